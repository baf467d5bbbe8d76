"""The world and the inside of an operator's network, in a network namespace of its own, for test_ssrf: real addresses,
real DNS, real TLS, and the fetcher as the service has it. Prints what became of every attempt, as JSON.

It must be started by `unshare --net --mount`: it changes addresses, routes and files that the resolver reads. Every
address is local to the namespace, so that no attempt to connect fails for want of a route, and all are counted.
"""

import asyncio
import json
import socket
import ssl
import subprocess
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from struct import pack, unpack
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import uvloop

from ledger.clock import utc_now
from ledger.errors import StaylogError
from ledger.identity.resolution import Resolution
from ledger.net.development import Development
from ledger.net.fetch import Fetcher
from ledger.net.profiles import DID, LISTING, Profile
from tests.network import Neighbourhood

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
PUBLIC = ("20.1.1.1", "2600:1f00::1")
# The same host has it as well.
SECOND = "20.1.1.2"
# Where somebody listens whom nobody outside may reach.
INSIDE = (
    *("127.0.0.1", "10.0.0.5", "169.254.169.254", "192.168.1.1", "100.64.0.1", "172.16.0.9", "198.18.0.1"),
    *("192.0.0.192", "168.63.129.16", "::1", "fc00::5", "fd00:ec2::254", "fe80::5", "64:ff9b::a00:5"),
    *("64:ff9b:1::a00:5", "2002:a00:5::1", "2001:0:a00:5::1"),
)  # fmt: skip
# What else a name might lead to: mapped and compatible addresses, multicast, nowhere.
ODD = (
    *("::ffff:10.0.0.5", "::ffff:127.0.0.1", "::ffff:20.1.1.1", "::10.0.0.5", "::ffff:0:10.0.0.5", "0.0.0.0", "::"),
    *("127.1.2.3", "224.0.0.1", "239.255.255.250", "ff02::1", "ff0e::1", "240.0.0.1", "255.255.255.255", "192.0.2.1"),
    *("198.51.100.1", "203.0.113.1", "192.88.99.1", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "fec0::1"),
)
PORTS = (443, 80, 8080)
ROUNDS = 6

LITERALS = (
    *("10.0.0.5", "10.0.0.5:443", "10.0.0.5:8080", "167772165", "0xa000005", "0xa.0.0.5", "012.0.0.5", "10.5"),
    *("10.0.5", "127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "0.0.0.0", "localhost"),
    *("169.254.169.254", "0xa9fea9fe", "2852039166", "[::1]", "[::]", "[fc00::5]", "[fe80::5%25lo]", "[fe80::5%lo]"),
    *("[::ffff:10.0.0.5]", "[::ffff:a00:5]", "[::10.0.0.5]", "[64:ff9b::10.0.0.5]", "[2002:a00:5::1]", "20.1.1.1"),
    *("[2600:1f00::1]", "１０.0.0.5", "10。0。0。5", "%31%30.0.0.5", "10.0.0.5.", "10.0.0.5%2f.good.example", "①⓪.0.0.5"),
    *("good.example@10.0.0.5", "10.0.0.5#@good.example", "10.0.0.5\\@good.example", "good.example:8080"),
    *("localhost:8080", "good.example:80", "good.example.", "good.example\t", "10.0.0.5\0.good.example"),
    "good.example:443@10.0.0.5",
)  # fmt: skip


class Names:
    """The name server: by name the addresses of each answer in turn, from the first again after the last."""

    def __init__(self) -> None:
        self.answers: dict[str, Sequence[Sequence[str]]] = {}
        self.aliases: dict[str, str] = {}
        self.silent: set[str] = set()
        self.questions: Counter[tuple[str, int]] = Counter()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 53))
        Thread(target=self._serve, daemon=True).start()

    def asked(self, name: str) -> int:
        """How often it was looked up."""
        return self.questions[name, socket.AF_INET]

    def _serve(self) -> None:
        while True:
            question, asker = self._socket.recvfrom(512)
            answer = self._answer(question)
            if answer:
                self._socket.sendto(answer, asker)

    def _answer(self, message: bytes) -> bytes | None:
        (number,) = unpack("!H", message[:2])
        labels, end = [], 12
        while length := message[end]:
            labels.append(message[end + 1 : end + 1 + length].decode("ascii"))
            end += 1 + length
        question = message[12 : end + 5]
        name, (kind,) = ".".join(labels).lower(), unpack("!H", message[end + 1 : end + 3])
        family = {1: socket.AF_INET, 28: socket.AF_INET6}.get(kind, socket.AF_UNSPEC)
        turn = self.questions[name, family]
        self.questions[name, family] += 1
        if name in self.silent:
            return None
        alias = self.aliases.get(name)
        known = self.answers.get(alias or name)
        if known is None:
            return pack("!HHHHHH", number, 0x8183, 1, 0, 0, 0) + question
        given = [ip_address(address).packed for address in known[turn % len(known)]]
        addresses = [packed for packed in given if (family == socket.AF_INET) == (len(packed) == 4)]
        records = [_record(_encoded(alias or name), kind, packed) for packed in addresses]
        if alias:
            records.insert(0, _record(_encoded(name), 5, _encoded(alias)))
        return pack("!HHHHHH", number, 0x8180, 1, len(records), 0, 0) + question + b"".join(records)


def _encoded(name: str) -> bytes:
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def _record(owner: bytes, kind: int, data: bytes) -> bytes:
    return owner + pack("!HHIH", kind, 1, 0, len(data)) + data


class Listeners:
    """Whoever listens inside, on all ports; they count who comes, and hang up."""

    def __init__(self) -> None:
        self._listeners = {f"{address} {port}": _listen(address, port) for address in INSIDE for port in PORTS}
        self._came: Counter[str] = Counter()
        Thread(target=self._serve, daemon=True).start()

    def knock(self) -> None:
        """At every one, to see that they count."""
        for listener in self._listeners.values():
            with socket.socket(listener.family) as visitor:
                visitor.connect(listener.getsockname())
                # Until they hang up.
                visitor.recv(1)

    def count(self) -> dict[str, int]:
        """Since the last time."""
        counted = {where: self._came[where] for where in self._listeners}
        self._came.clear()
        return counted

    def _serve(self) -> None:
        with DefaultSelector() as selector:
            for where, listener in self._listeners.items():
                selector.register(listener, EVENT_READ, where)
            while True:
                for key, _ in selector.select():
                    self._came[key.data] += 1
                    self._listeners[key.data].accept()[0].close()


def _listen(address: str, port: int) -> socket.socket:
    [(family, kind, _, _, place)] = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    if address.startswith("fe80:"):
        place = (address, port, 0, socket.if_nametoindex("lo"))
    listener = socket.socket(family, kind)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(place)
    listener.listen()
    return listener


class Abroad(Neighbourhood):
    """Hosts at the public addresses, on port 443."""

    async def _start(self) -> asyncio.Server:
        self._tls = self.authority.context("nobody.example")
        self._tls.sni_callback = self._choose
        return await asyncio.start_server(self._serve, [*PUBLIC, SECOND], 443)

    def _choose(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> None:
        # Impostors have a certificate, but not for this name.
        if name is not None and not name.startswith("impostor"):
            super()._choose(connection, name, context)


class Attacks:
    """What strangers would have us ask, by kind; each gives what became of it."""

    def __init__(self, fetcher: Fetcher, names: Names, abroad: Abroad) -> None:
        self._fetcher = fetcher
        self._names = names
        self._abroad = abroad

    async def all(self) -> dict[str, Any]:
        return {
            "good": await self.good(),
            "inside": await self.inside(),
            "mixed": await self.mixed(),
            "indirect": await self.indirect(),
            "rebinding": await self.rebinding(),
            "literals": await self.literals(),
            "redirects": await self.redirects(),
            "moving": await self.moving(),
            "impostor": await self.impostor(),
            "identities": await self.identities(),
        }

    async def good(self) -> dict[str, str]:
        answers = {"four": PUBLIC[:1], "six": PUBLIC[1:], "both": PUBLIC, "all": (*PUBLIC, SECOND)}
        for name, addresses in answers.items():
            self._host(f"{name}.good.example", [addresses])
        self._host("alias.good.example", [])
        self._names.aliases["alias.good.example"] = "four.good.example"
        return {name: await self._ask(f"https://{name}.good.example/") for name in (*answers, "alias")}

    async def inside(self) -> dict[str, str]:
        return {address: await self._ask_at([[address]]) for address in (*INSIDE, *ODD)}

    async def mixed(self) -> dict[str, str]:
        found = {}
        for address in (*INSIDE, *ODD):
            found[f"first {address}"] = await self._ask_at([[address, *PUBLIC]])
            found[f"last {address}"] = await self._ask_at([[*PUBLIC, address]])
            # In the other family alone.
            other = [public for public in PUBLIC if (":" in public) != (":" in address)]
            found[f"beside {address}"] = await self._ask_at([[*other, address]])
        return found

    async def indirect(self) -> dict[str, str]:
        """By an alias; by the machine's own hosts file; by the domains that the machine searches."""
        self._names.answers["wiki.corp.example"] = [["10.0.0.5"]]
        self._names.aliases["alias.example"] = "wiki.corp.example"
        self._names.answers["unknown.example.corp.example"] = [PUBLIC]
        names = ("alias.example", "wiki.corp.example", "filed.example", "unknown.example", "none.corp.example")
        found = {name: await self._ask(f"https://{name}/") for name in names}
        found["searched"] = str(self._names.asked("unknown.example.corp.example"))
        return found

    async def rebinding(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for public, address in (
            (PUBLIC[0], "10.0.0.5"),
            (PUBLIC[0], "127.0.0.1"),
            (PUBLIC[1], "::1"),
            (PUBLIC[1], "fc00::5"),
        ):
            for turns in (
                [[public], [address]],
                [[address], [public]],
                [[public], [public, address]],
                [[public], [public], [address], [address]],
            ):
                name = self._name()
                self._host(name, turns)
                one_by_one = [await self._ask(f"https://{name}/") for _ in range(ROUNDS)]
                at_once = await asyncio.gather(*(self._ask(f"https://{name}/") for _ in range(ROUNDS)))
                outcomes = Counter((*one_by_one, *at_once))
                requests = self._abroad.requests[f"https://{name}/"]
                found[f"{turns}"] = {**outcomes, "questions": self._names.asked(name), "requests": requests}
        return found

    async def literals(self) -> dict[str, str]:
        before = self._names.questions.total()
        found = {literal: await self._ask(f"https://{literal}/latest/meta-data") for literal in LITERALS}
        found["questions"] = str(self._names.questions.total() - before)
        return found

    async def redirects(self) -> dict[str, str]:
        self._names.answers["wiki.corp.example"] = [["10.0.0.5"]]
        self._host("turn.example", [PUBLIC])
        places = [f"https://{literal}/" for literal in LITERALS if literal.isascii() and literal.isprintable()]
        places += ["https://wiki.corp.example/", "http://wiki.corp.example/", "http://10.0.0.5:8080/", "//10.0.0.5/"]
        places += ["http://turn.example/", "https://turn.example:8080/", "https:\\\\10.0.0.5/", "//wiki.corp.example"]
        found, before = {}, self._names.asked("wiki.corp.example")
        for number, place in enumerate(places):
            self._abroad.put(f"https://turn.example/{number}", b"", status=302, location=place)
            found[place] = await self._ask(f"https://turn.example/{number}", (DID, LISTING)[number % 2])
        found["questions"] = str(self._names.asked("wiki.corp.example") - before)
        return found

    async def moving(self) -> dict[str, Any]:
        """Redirects within a name that leads elsewhere by then."""
        found = {}
        for turns, last in (
            ([PUBLIC, ["10.0.0.5"]], 1),
            ([PUBLIC, ["::1"]], 1),
            ([PUBLIC, [*PUBLIC, "127.0.0.1"]], 1),
            ([PUBLIC, PUBLIC, ["169.254.169.254"]], 2),
            ([PUBLIC, PUBLIC, PUBLIC, ["fc00::5"]], 3),
            ([PUBLIC, PUBLIC, PUBLIC, PUBLIC], 4),
        ):
            name = self._name()
            self._host(name, turns)
            for number in range(3):
                self._abroad.put(f"https://{name}/{number}", b"", status=302, location=f"/{number + 1}")
            self._abroad.put(f"https://{name}/3", {})
            outcome = await self._ask(f"https://{name}/0", LISTING)
            urls = [f"https://{name}/{number}" for number in range(4)]
            asked = [self._abroad.requests[url] for url in urls]
            found[f"{turns}"] = {"outcome": outcome, "asked": asked, "expected": [1] * last + [0] * (4 - last)}
        return found

    async def impostor(self) -> dict[str, Any]:
        """Certificates for other names, at one public address and at several."""
        found: dict[str, Any] = {}
        before = self._abroad.connections
        for number, addresses in enumerate((PUBLIC[:1], PUBLIC[1:], PUBLIC, (PUBLIC[0], SECOND))):
            self._host(f"impostor{number}.example", [addresses])
            found[" ".join(addresses)] = await self._ask(f"https://impostor{number}.example/")
        found["connections"] = self._abroad.connections - before
        return found

    async def identities(self) -> dict[str, str]:
        """The same by way of DIDs, of guests and of hosts."""
        self._host("did.example", [PUBLIC])
        good = "did:web:did.example"
        self._abroad.put("https://did.example/.well-known/did.json", {"id": good})
        self._abroad.put("https://did.example/moved/did.json", b"", status=302, location="https://10.0.0.5/")
        self._names.answers["wiki.corp.example"] = [["10.0.0.5"]]
        self._host("swing.example", [["10.0.0.5"], [*PUBLIC, "10.0.0.5"]])
        guests, hosts = Resolution(self._fetcher, utc_now), Resolution(self._fetcher, utc_now)
        found = {}
        for name in (
            *(good, "did:web:10.0.0.5", "did:web:10.0.0.5%3A8080", "did:web:127.0.0.1", "did:web:2130706433"),
            *("did:web:0x7f.1", "did:web:localhost", "did:web:localhost%3A8080", "did:web:wiki.corp.example"),
            *("did:web:wiki.corp.example:a:b", "did:web:wiki.corp.example%3A8080", "did:web:did.example%3A8080"),
            *("did:web:swing.example", "did:web:filed.example", "did:web:did.example:moved", "did:web:unknown.example"),
        ):
            found[f"guest {name}"] = await _outcome(guests.guest(name))
            host = await hosts.host(name)
            found[f"host {name}"] = host.current.code if isinstance(host.current, StaylogError) else "fetched"
        for name in ("did:web:[::1]", "did:web:%31%30.0.0.5", "did:web:good@10.0.0.5", "did:web:10.0.0.5/"):
            found[f"guest {name}"] = await _outcome(guests.guest(name))
        return found

    async def waiting(self) -> dict[str, str]:
        """Names whose servers do not answer, and one whose does; in the loop of the service."""
        second = Profile("second", 4096, 0.9)
        silent = [f"silent{number}.example" for number in range(100)]
        self._names.silent |= {*silent}
        found = {}
        asked = [asyncio.ensure_future(self._ask(f"https://{name}/", second)) for name in silent[:40]]
        await asyncio.sleep(0.05)
        found["stranger"] = await self._ask("https://four.good.example/", second)
        asked += [asyncio.ensure_future(self._ask(f"https://{name}/", second)) for name in silent[40:]]
        await asyncio.sleep(0.05)
        found["trusted"] = await self._ask("https://four.good.example/", replace(second, trusted=True))
        return found | dict.fromkeys(await asyncio.gather(*asked), "silent")

    async def _ask_at(self, turns: Sequence[Sequence[str]]) -> str:
        name = self._name()
        self._host(name, turns)
        return await self._ask(f"https://{name}/")

    async def _ask(self, url: str, profile: Profile = DID) -> str:
        return await _outcome(self._fetcher.fetch(url, profile))

    def _host(self, name: str, turns: Sequence[Iterable[str]]) -> None:
        """A name, and a host that would answer."""
        self._names.answers[name] = [[*addresses] for addresses in turns]
        self._abroad.put(f"https://{name}/", {})

    def _name(self) -> str:
        return f"n{len(self._names.answers)}.example"


async def _outcome(work: Awaitable[Any]) -> str:
    try:
        await work
    except StaylogError as refusal:
        return refusal.code
    except Exception as error:
        return repr(error)
    return "fetched"


def prepare(folder: Path) -> None:
    """Addresses and routes; and what the resolver reads, for this namespace alone."""
    lines = ["link set lo up", "route add local 0.0.0.0/0 dev lo", "route add local ::/0 dev lo"]
    for address in (*PUBLIC, SECOND, *INSIDE):
        if address not in ("127.0.0.1", "::1"):
            lines.append(f"addr add {address}/128 dev lo nodad" if ":" in address else f"addr add {address}/32 dev lo")
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), check=True, text=True, stdout=sys.stderr)
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    for name, text in {
        "resolv.conf": "nameserver 127.0.0.1\nsearch corp.example\noptions ndots:5 timeout:2 attempts:1\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n10.0.0.5 filed.example\n",
        "nsswitch.conf": "hosts: files dns\n",
    }.items():
        (folder / name).write_text(text)
        if (Path("/etc") / name).exists():
            subprocess.run(["mount", "--bind", str(folder / name), f"/etc/{name}"], check=True)
    # It would ask outside of the namespace.
    if Path("/run/nscd").is_dir():
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run/nscd"], check=True)


def opened() -> int:
    """How many connections anybody in this namespace has tried to open, wherever to."""
    names, values = (
        line.split() for line in Path("/proc/self/net/snmp").read_text().splitlines() if line[:4] == "Tcp:"
    )
    return int(dict(zip(names, values, strict=True))["ActiveOpens"])


def main() -> None:
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        prepare(folder)
        names, listeners, abroad = Names(), Listeners(), Abroad(folder)
        listeners.knock()
        knocks, before = listeners.count(), opened()
        report: dict[str, Any] = {"knocks": knocks, "outcomes": {}}
        for name, new_loop in LOOPS.items():
            names.answers.clear()
            names.questions.clear()
            abroad.requests.clear()
            # As the service has it: no lookup of our own, only the authority that the test has made.
            fetcher = Fetcher("staylog/test", Development({}, abroad.development.ca))
            with asyncio.Runner(loop_factory=new_loop) as runner:
                report["outcomes"][name] = runner.run(Attacks(fetcher, names, abroad).all())
        with asyncio.Runner(loop_factory=LOOPS["uvloop"]) as runner:
            report["waiting"] = runner.run(Attacks(fetcher, names, abroad).waiting())
        report["opened"], report["connections"] = opened() - before, abroad.connections
        report["requests"], report["inside"] = len(abroad.asked), listeners.count()
        abroad.close()
    sys.stdout.write(json.dumps(report))


if __name__ == "__main__":
    main()
