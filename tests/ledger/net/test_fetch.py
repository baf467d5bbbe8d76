"""The one fetcher against real servers with TLS on this machine, in the event loops of Python and of the service."""

import asyncio
import os
import re
import socket
import stat
import subprocess
import sys
import tracemalloc
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic
from typing import Any, TypeVar

import pytest
import uvloop
from aiohttp import ClientConnectorError
from prometheus_client import REGISTRY

from ledger.errors import NotAccepted, NotFetched, StaylogError
from ledger.net import fetch, profiles, wire
from ledger.net.development import Development
from ledger.net.fetch import MOST_PER_HOST, Fetched, Fetcher
from ledger.net.guard import check_url
from ledger.net.profiles import DID, LISTING, Profile
from tests.network import Authority, Handler, Neighbourhood, Request, response
from tests.waiting import until

AGENT = "staylog/test (+https://ledger.example)"
URL = "https://idv.example/"
# Enough for everything that is to come; for what is not, as little as possible.
SMALL = Profile("small", 4096, 5)
BRIEF = Profile("brief", 4096, 0.3)
FOLLOWING = Profile("following", 4096, 5, redirects=3)

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
T = TypeVar("T")


@dataclass(frozen=True)
class Visitor:
    """Asks from an event loop that ends afterwards. Whatever it was answered, no connection to `port` stays open."""

    new_loop: Callable[[], asyncio.AbstractEventLoop]
    fetcher: Fetcher
    port: int

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            try:
                return await work
            finally:
                await _until(lambda: _connections(self.port) == 0, 1)

        with asyncio.Runner(loop_factory=self.new_loop) as runner:
            return runner.run(main())

    def get(self, url: str = URL, profile: Profile = SMALL, body: bytes | None = None) -> Fetched:
        return self.run(self.fetcher.fetch(url, profile, body))

    def refused(self, url: str = URL, profile: Profile = SMALL, body: bytes | None = None) -> StaylogError:
        with pytest.raises((NotFetched, NotAccepted)) as refusal:
            self.get(url, profile, body)
        # It goes into answers and logs.
        assert refusal.value.message.isprintable()
        return refusal.value

    def code(self, url: str = URL, profile: Profile = SMALL) -> str:
        return self.refused(url, profile).code


def _connections(port: int, *, at_host: bool = False) -> int:
    """Of this process to a host at this port; or those that the host has, which is in this process, too."""
    count = 0
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6):
                        here, there = found.getsockname(), found.getpeername()
                        count += (here if at_host else there)[1] == port
    return count


async def _until(condition: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture(params=LOOPS)
def visitor(request: pytest.FixtureRequest, neighbourhood: Neighbourhood) -> Iterator[Visitor]:
    yield Visitor(LOOPS[request.param], Fetcher(AGENT, neighbourhood.development), neighbourhood.port)
    # The hosts have seen that we went away.
    until(lambda: _connections(neighbourhood.port, at_host=True) == 0)


def raw(*parts: bytes) -> Handler:
    """Answers with these bytes, one part after the other."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.001)

    return answer


def chunked(body: bytes, size: int = 1000) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    head = response(b"", content_length="", transfer_encoding="chunked")
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


# What comes


def test_a_good_answer(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    url = "https://idv.example/a/b?c=d&e=%C3%A9"
    neighbourhood.put(url, {"id": "é"})
    fetched = visitor.get(url)
    assert fetched == Fetched(url, b'{"id": "\\u00e9"}', None)
    assert fetched.json() == {"id": "é"}
    assert neighbourhood.requests == {url: 1}
    assert neighbourhood.connections == 1


def test_a_url_in_another_spelling_is_asked_in_one(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put("https://idv.example/A?b", {})
    assert visitor.get("https://IDV.example:443/A?b").url == "https://idv.example/A?b"
    neighbourhood.put("https://idv.example/x/../y//z/%2e%2E", {})
    assert visitor.get("https://idv.example/x/../y//z/%2e%2E").body == b"{}"


@pytest.mark.parametrize(
    ("name", "max_bytes", "seconds", "redirects"),
    [
        ("listing", 256 * 1024, 10, 3),
        ("manifest", 2 * 1024 * 1024, 10, 3),
        ("credential", 64 * 1024, 3, 0),
        ("did", 64 * 1024, 3, 0),
        ("jwks", 64 * 1024, 3, 0),
        ("discovery", 64 * 1024, 3, 0),
        ("status_list", 1024 * 1024, 3, 0),
        ("offer", 64 * 1024, 5, 0),
        ("hint", 64 * 1024, 3, 0),
        ("callback", 64 * 1024, 5, 0),
    ],
)
def test_profiles_have_the_limits_of_the_design(name: str, max_bytes: int, seconds: int, redirects: int) -> None:
    """And there are no others."""
    [profile] = [profile for profile in profiles.PROFILES if profile.name == name]
    assert replace(profile, trusted=False) == Profile(name, max_bytes, seconds, redirects)
    assert getattr(profiles, name.upper()) is profile
    assert len(profiles.PROFILES) == 10


def test_how_long_an_answer_may_be_kept(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for said, max_age in {
        "": None,
        "max-age=60": 60,
        "public, max-age=5": 5,
        'MAX-AGE="7", must-revalidate': 7,
        "max-age=0": 0,
        "max-age=99999999999999": 999999999,
        "no-store": 0,
        "no-cache, max-age=60": 0,
        "max-age=60, NO-STORE": 0,
        "s-maxage=9": None,
        "max-age=-1": None,
        "max-age=soon": None,
        "public": None,
    }.items():
        neighbourhood.put(URL, {}, cache_control=said)
        assert visitor.get().max_age == max_age, said


def test_how_long_an_answer_may_be_kept_may_be_said_in_two_lines(
    visitor: Visitor, neighbourhood: Neighbourhood
) -> None:
    """They are one (RFC 9110, 5.3)."""
    neighbourhood.put(URL, {}, cache_control="public\r\ncache-control: no-store")
    assert visitor.get().max_age == 0


def test_json_under_all_its_names(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for media_type in (
        *("application/json", "application/json; charset=utf-8", "application/json;charset=utf-8", "Application/JSON"),
        *("application/did+json", "application/did+ld+json", "application/vc", "application/ld+json"),
        *("application/vc+ld+json", "application/vc+ld+json; profile=x", "application/problem+json"),
    ):
        neighbourhood.put(URL, {}, media_type=media_type)
        assert visitor.get().json() == {}, media_type


def test_what_is_not_json(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for media_type in (
        *("", "text/html", "text/plain", "text/json", "application/octet-stream", "application/jsonp", "json"),
        *("application/json, text/html", "application/xml+json+html", "application/+json", "application/vcx", ";"),
        *("application/xjson", "application/vc+jwt", "multipart/form-data; boundary=application/json", "é/json"),
    ):
        neighbourhood.put(URL, {}, media_type=media_type)
        assert visitor.code() == "fetch_not_json", media_type


def test_what_says_it_is_json_and_is_not(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for body in (b"", b"<html>", b'{"a":1,"a":2}', b"\xff", b"NaN", b"{}{}", b"[" * 4000):
        neighbourhood.put(URL, body)
        fetched = visitor.get()
        with pytest.raises(NotFetched) as refusal:
            fetched.json()
        assert refusal.value.code == "fetch_not_json"
        assert URL in refusal.value.message


def test_compressed_answers_are_refused(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Unread: what is small on the way may be large at home."""
    for coding in ("gzip", "br", "deflate", "zstd", "x-gzip", "GZIP", "identity, gzip", "compress"):
        neighbourhood.put(URL, {}, content_encoding=coding)
        assert visitor.code() == "fetch_encoded", coding
    for coding in ("identity", "Identity", ""):
        neighbourhood.put(URL, {}, content_encoding=coding)
        assert visitor.get().body == b"{}", coding


def test_statuses(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for status in (101, 201, 202, 203, 204, 205, 206, 400, 401, 403, 404, 407, 410, 418, 500, 502, 599):
        neighbourhood.handle(URL, raw(response(b"" if status in (101, 204, 205) else b"{}", status)))
        refusal = visitor.refused()
        assert isinstance(refusal, NotFetched)
        assert (refusal.code, refusal.status, refusal.retry_after) == ("fetch_status", status, None)
        assert str(status) in refusal.message


@pytest.mark.parametrize("status", [429, 503])
def test_when_to_ask_again(visitor: Visitor, neighbourhood: Neighbourhood, status: int) -> None:
    for said, seconds in {
        "120": 120,
        "0": 0,
        "": None,
        "-1": None,
        "1.5": None,
        "soon": None,
        "٣": None,
        "1e9": None,
        "999999999": 999999999,
        "9999999999": None,
        "Fri, 31 Dec 2027 23:59:59 GMT": None,
    }.items():
        neighbourhood.put(URL, {}, status=status, retry_after=said)
        refusal = visitor.refused()
        assert isinstance(refusal, NotFetched)
        assert (refusal.code, refusal.status, refusal.retry_after) == ("fetch_status", status, seconds), said


# How much may come


@pytest.mark.parametrize("way", ["content-length", "connection: close", "chunked", "chunked in one"])
def test_the_size_is_limited_to_the_byte(visitor: Visitor, neighbourhood: Neighbourhood, way: str) -> None:
    def answer(size: int) -> bytes:
        body = b'"' + b"a" * (size - 2) + b'"'
        return {
            "content-length": response(body),
            "connection: close": response(body, content_length=""),
            "chunked": chunked(body),
            "chunked in one": chunked(body, size),
        }[way]

    neighbourhood.handle(URL, raw(answer(SMALL.max_bytes)))
    assert len(visitor.get().json()) == SMALL.max_bytes - 2
    neighbourhood.handle(URL, raw(answer(SMALL.max_bytes + 1)))
    assert visitor.code() == "fetch_too_large"


def test_what_says_that_it_is_too_large_is_not_waited_for(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for length in (SMALL.max_bytes + 1, 2**31, 2**63 - 1):

        async def answer(_request: Request, writer: asyncio.StreamWriter, length: int = length) -> None:
            writer.write(response(b"", content_length=str(length)))
            await asyncio.sleep(60)

        neighbourhood.handle(URL, answer)
        began = monotonic()
        assert visitor.code() == "fetch_too_large"
        assert monotonic() - began < SMALL.seconds


@dataclass
class Stranger:
    """A host for one who asks, which does as it likes."""

    development: Development
    port: int
    # Bytes that were taken from it.
    taken: int = 0
    # Whether we went away.
    left: Event = field(default_factory=Event)


@contextmanager
def stranger(neighbourhood: Neighbourhood, start: bytes, again: bytes = b"") -> Iterator[Stranger]:
    """Says `start`, then `again` without end if there is that, and never goodbye in TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    made = Stranger(Development({"idv.example": address}, neighbourhood.development.ca), address[1])
    context = neighbourhood.authority.context("idv.example")

    def serve() -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)
                secured.sendall(start)
                # The system may stop taking without a word when we are gone.
                secured.settimeout(0.5 if again else None)
                while again:
                    secured.sendall(again)
                    made.taken += len(again)
                with socket.socket(fileno=secured.detach()) as bare:
                    while bare.recv(65536):
                        pass
            made.left.set()

    thread = Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        yield made
    thread.join(5)


@contextmanager
def little_memory() -> Iterator[None]:
    """At both ends together, at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


ENDLESS = {
    "chunks": (response(b"", content_length="", transfer_encoding="chunked"), b"10000\r\n" + b"a" * 0x10000 + b"\r\n"),
    "one chunk": (response(b"", content_length="", transfer_encoding="chunked") + b"fffffffff\r\n", b"a" * 0x10000),
    "connection: close": (response(b"", content_length=""), b"a" * 0x10000),
    "one header": (b"HTTP/1.1 200 X\r\nx: ", b"a" * 0x10000),
    "many headers": (b"HTTP/1.1 200 X\r\n", b"x: y\r\n" * 0x1000),
    "the first line": (b"HTTP/1.1 200 ", b"X" * 0x10000),
    "no line at all": (b"", b"a" * 0x10000),
    "trailers": (chunked(b"{}")[:-2], b"x: y\r\n" * 0x1000),
    "an extension of a chunk": (chunked(b"")[:-5] + b"2;", b"a" * 0x10000),
    "small chunks": (chunked(b"")[:-5], b"1;aaaaaaaa\r\n \r\n" * 0x1000),
    "notices": (b"", b"HTTP/1.1 103 X\r\n\r\n" * 0x1000),
    "cookies": (b"HTTP/1.1 200 X\r\n", b"set-cookie: a=b\r\n" * 0x1000),
    "a redirect": (response(b"", 302, content_length="", location="/"), b"a" * 0x10000),
    "an error": (response(b"", 500, content_length=""), b"a" * 0x10000),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_never_ends_is_cut_off_and_fills_no_memory(
    visitor: Visitor, neighbourhood: Neighbourhood, kind: str
) -> None:
    """Long before the time is over; not more is taken than fits into the buffers on the way."""
    with stranger(neighbourhood, *ENDLESS[kind]) as host, little_memory():
        began = monotonic()
        code = visiting(visitor, host).code()
        assert monotonic() - began < SMALL.seconds
    assert code in ("fetch_too_large", "fetch_unreachable", "fetch_redirected", "fetch_status")
    assert host.taken < 32 * 2**20


def visiting(visitor: Visitor, host: Stranger) -> Visitor:
    return replace(visitor, fetcher=Fetcher(AGENT, host.development), port=host.port)


NOTICES = """
import socket, sys
from pathlib import Path
from tests.network import Authority

authority = Authority()
Path(sys.argv[1]).write_bytes(authority.pem)
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    with authority.context("idv.example").wrap_socket(connection, server_side=True) as secured:
        while True:
            secured.sendall(b"HTTP/1.1 103 X\\r\\n\\r\\n" * 5000)
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_flood_of_notices_is_cut_off_and_holds_up_nobody(loop: str, tmp_path: Path) -> None:
    """Answers of status 103 may come before the answer; all others who use the loop go on meanwhile. From a process of
    its own, which is as fast as it can be."""
    profile, pauses = Profile("second", 64 * 1024, 1), [0.0]

    async def watch() -> None:
        last = monotonic()
        while True:
            await asyncio.sleep(0.01)
            pauses.append(monotonic() - last)
            last = monotonic()

    async def ask(fetcher: Fetcher) -> str:
        watching = asyncio.ensure_future(watch())
        # It is made once for all.
        assert fetcher._tls
        began = monotonic()
        with pytest.raises(NotFetched) as refusal:
            await fetcher.fetch(URL, profile)
        assert monotonic() - began < 3 * profile.seconds
        watching.cancel()
        return refusal.value.code

    ca = tmp_path / "ca.pem"
    command = [sys.executable, "-c", NOTICES, str(ca)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as flood:
        assert flood.stdout
        try:
            address = ("127.0.0.1", int(flood.stdout.readline()))
            fetcher = Fetcher(AGENT, Development({"idv.example": address}, ca))
            with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
                assert runner.run(ask(fetcher)) in ("fetch_too_large", "fetch_timeout")
        finally:
            flood.kill()
    # On a machine that has other things to do as well; where it does hold up others, that is for seconds.
    assert max(pauses) < 2


# How long it may take


def drip(data: bytes) -> Handler:
    """A byte now and then, so that nothing ever stands still."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)

    return answer


async def silent(_request: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(drip(response(b" " * 1000 + b"{}")), id="the head"),
        pytest.param(drip(b"HTTP/1.1 100 X\r\n\r\n" * 100), id="notices"),
        pytest.param(raw(response(b"", content_length="1000"), *[b" "] * 400), id="the body"),
        pytest.param(raw(chunked(b"")[:-5], *[b"1\r\n \r\n"] * 400), id="chunks"),
        pytest.param(silent, id="nothing"),
    ],
)
def test_a_slow_answer_ends_with_the_time(visitor: Visitor, neighbourhood: Neighbourhood, handler: Handler) -> None:
    neighbourhood.handle(URL, handler)
    assert ends_in_time(visitor, replace(BRIEF, max_bytes=1_000_000)) == "fetch_timeout"


def test_somebody_who_says_nothing_at_all_ends_with_the_time(visitor: Visitor) -> None:
    """Not even hello in TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        deaf = Fetcher(AGENT, Development({"idv.example": listener.getsockname()}))
        assert ends_in_time(replace(visitor, fetcher=deaf)) == "fetch_timeout"


def test_a_name_server_that_says_nothing_ends_with_the_time(visitor: Visitor) -> None:
    async def lookup(_host: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    assert ends_in_time(replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup))) == "fetch_timeout"


def test_all_redirects_together_have_the_time_of_one_question(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for number in range(3):
        url, location = f"https://idv.example/{number}", f"/{number + 1}"
        neighbourhood.put(url, b"", status=302, delay=BRIEF.seconds / 2.5, location=location)
    neighbourhood.put("https://idv.example/3", {}, delay=BRIEF.seconds / 2.5)
    assert ends_in_time(visitor, replace(BRIEF, redirects=3), "https://idv.example/0") == "fetch_timeout"


def ends_in_time(visitor: Visitor, profile: Profile = BRIEF, url: str = URL) -> str:
    began = monotonic()
    refusal = visitor.refused(url, profile)
    assert profile.seconds <= monotonic() - began < profile.seconds + 2
    assert "0.3 seconds" in refusal.message
    return refusal.code


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(response(b"{}", connection="keep-alive"), "fetched", id="good"),
        pytest.param(response(b"{}"), "fetched", id="good, and the last"),
        pytest.param(response(b"{}", 404), "fetch_status", id="status"),
        pytest.param(response(b"", content_length="5000"), "fetch_too_large", id="too large"),
        pytest.param(response(b"", 302, location="/"), "fetch_redirected", id="redirect"),
        pytest.param(b"nonsense\r\n\r\n", "fetch_unreachable", id="nonsense"),
        pytest.param(b"", "fetch_timeout", id="nothing"),
    ],
)
@pytest.mark.parametrize("loop", LOOPS)
def test_nobody_holds_a_connection_after_the_fetch(
    neighbourhood: Neighbourhood, loop: str, answer: bytes, outcome: str
) -> None:
    """TLS has a goodbye, and event loops wait half a minute for it: whoever does not say it would have our sockets,
    more of them than may ask one host at once."""

    async def ask(host: Stranger) -> tuple[str, bool]:
        try:
            # Only who waits for the end of the time waits briefly: a busy machine takes a while for all else.
            profile = BRIEF if outcome == "fetch_timeout" else replace(BRIEF, seconds=SMALL.seconds)
            await Fetcher(AGENT, host.development).fetch(URL, profile)
            code = "fetched"
        except NotFetched as refusal:
            code = refusal.code
        return code, await asyncio.to_thread(host.left.wait, 1)

    with stranger(neighbourhood, answer) as host, asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(ask(host)) == (outcome, True)


# Where it leads


ELSEWHERE = (
    *("https://other.example/", "//other.example/", "https://sub.idv.example/", "https://idv.example.other.example/"),
    *("http://idv.example/", "http://other.example/", "https://127.0.0.1:{port}/", "https://127.0.0.1/"),
    *("https://2130706433/", "https://[::1]/", "https://localhost:{port}/", "https://idv.example:{port}/"),
    *("https://idv.example@127.0.0.1:{port}/", "https://guest@idv.example/", "\\\\127.0.0.1\\", "file:///etc/passwd"),
    *("https://idv.example/\u00e9", "https://idv.example/" + "a" * 3000),
    # What no reader of URLs can read.
    *("https://[", "//[::1", "https://idv.example]/", "https://a\u2100b.example/", "//[x]/"),
)


def test_nobody_is_followed_elsewhere(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Neither to another host, nor to another scheme or port, nor inside."""
    for name in ("other.example", "sub.idv.example", "idv.example.other.example"):
        neighbourhood.put(f"https://{name}/", {})
    for number, location in enumerate(ELSEWHERE):
        for status in (301, 302, 303, 307, 308):
            neighbourhood.put(URL, b"", status=status, location=location.format(port=neighbourhood.port))
            profile = (SMALL, FOLLOWING)[(number + status) % 2]
            assert visitor.code(profile=profile) == "fetch_redirected", location
    assert neighbourhood.requests == {URL: 5 * len(ELSEWHERE)}
    assert neighbourhood.connections == 5 * len(ELSEWHERE)


def chain(neighbourhood: Neighbourhood, length: int, status: int = 302) -> list[str]:
    """So many redirects and an answer, all of one host."""
    urls = [f"https://idv.example/{number}" for number in range(length + 1)]
    spellings = ("/{}", "https://idv.example/{}", "{}", "https://IDV.example:443/{}", "//idv.example/{}")
    for number, url in enumerate(urls[:-1]):
        location = spellings[number % len(spellings)].format(number + 1)
        neighbourhood.put(url, b"", status=status, location=location)
    neighbourhood.put(urls[-1], {"found": True})
    return urls


@pytest.mark.parametrize("length", [1, 2, 3])
def test_listings_are_followed_within_their_origin(visitor: Visitor, neighbourhood: Neighbourhood, length: int) -> None:
    for status in (301, 302, 303, 307, 308):
        neighbourhood.requests.clear()
        urls = chain(neighbourhood, length, status)
        assert visitor.get(urls[0], LISTING) == Fetched(urls[-1], b'{"found": true}', None)
        assert neighbourhood.requests == dict.fromkeys(urls, 1)


def test_listings_are_followed_three_times_at_most(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    urls = chain(neighbourhood, 4)
    assert visitor.code(urls[0], LISTING) == "fetch_redirected"
    assert neighbourhood.requests == dict.fromkeys(urls[:4], 1)


def test_a_chain_that_leaves_its_origin_is_left_there(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    urls = chain(neighbourhood, 2)
    neighbourhood.put("https://other.example/", {})
    neighbourhood.put(urls[1], b"", status=302, location="https://other.example/")
    assert visitor.code(urls[0], LISTING) == "fetch_redirected"
    assert neighbourhood.requests == dict.fromkeys(urls[:2], 1)


def test_loops_end(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, b"", status=302, location="/")
    assert visitor.code(profile=LISTING) == "fetch_redirected"
    assert neighbourhood.requests == {URL: 4}


def test_the_others_are_never_followed(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    urls = chain(neighbourhood, 1)
    others = [profile for profile in profiles.PROFILES if profile not in (LISTING, profiles.MANIFEST)]
    for profile in others:
        assert visitor.code(urls[0], profile) == "fetch_redirected", profile.name
    assert neighbourhood.requests == {urls[0]: len(others)}


@pytest.mark.parametrize("status", [300, 302, 304])
def test_a_redirect_to_nowhere_is_not_asked_again(visitor: Visitor, neighbourhood: Neighbourhood, status: int) -> None:
    neighbourhood.handle(URL, raw(response(b"", status)))
    for profile in (DID, LISTING):
        neighbourhood.requests.clear()
        assert visitor.code(profile=profile) in ("fetch_redirected", "fetch_status")
        assert neighbourhood.requests == {URL: 1}


# Who it is


@pytest.mark.parametrize("kind", ["another name", "a parent's name", "expired", "another authority", "self-signed"])
def test_wrong_certificates(visitor: Visitor, neighbourhood: Neighbourhood, kind: str) -> None:
    """Nothing is said to whoever cannot show who they are: the connection ends before the request."""
    good, name = neighbourhood.authority, "idv.example"
    other = Authority("Another authority")
    contexts = {
        "another name": lambda: good.context("other.example"),
        "a parent's name": lambda: good.context("example"),
        "expired": lambda: good.context(name, expired=True),
        "another authority": lambda: other.context(name),
        "self-signed": lambda: Authority(name).context(name),
    }
    neighbourhood.host(name, contexts[kind]())
    neighbourhood.put(URL, {})
    refusal = visitor.refused()
    assert refusal.code == "fetch_tls"
    assert "idv.example does not show that it is idv.example: " in refusal.message
    assert neighbourhood.connections == 1
    assert neighbourhood.requests == {}


def test_the_systems_authorities_do_not_know_ours(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, {})
    alone = Fetcher(AGENT, replace(neighbourhood.development, ca=None))
    assert replace(visitor, fetcher=alone).code() == "fetch_tls"
    assert neighbourhood.requests == {}


def test_no_tls_at_all(visitor: Visitor) -> None:
    async def serve(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"{}"))
        await writer.drain()
        writer.close()

    async def ask() -> str:
        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            plain = Fetcher(AGENT, Development({"idv.example": server.sockets[0].getsockname()}))
            with pytest.raises(NotFetched) as refusal:
                await plain.fetch(URL, SMALL)
        return refusal.value.code

    assert visitor.run(ask()) == "fetch_tls"


# What goes wrong


def test_nobody_listens(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, {})
    neighbourhood.take_down("idv.example")
    assert visitor.code() == "fetch_unreachable"
    neighbourhood.bring_back("idv.example")
    assert visitor.get().body == b"{}"


def test_a_name_that_is_not_known(visitor: Visitor) -> None:
    for error in (socket.EAI_NONAME, socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_NODATA):

        async def lookup(_host: str, error: int = error) -> list[str]:
            raise socket.gaierror(error, "there is no such name")

        refusal = replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup)).refused()
        assert (refusal.code, refusal.message) == ("fetch_unresolved", "the name idv.example is not known")


def test_a_name_without_an_address(visitor: Visitor) -> None:
    async def lookup(_host: str) -> list[str]:
        return []

    assert replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup)).code() == "fetch_unresolved"


BROKEN = {
    "nothing": [b""],
    "no HTTP": [b"nonsense\r\n\r\n"],
    "half a line": [b"HTTP/1.1 2"],
    "half a head": [b"HTTP/1.1 200 X\r\ncontent-type: appl"],
    "another version": [b"HTTP/2 200\r\n\r\n"],
    "no status": [b"HTTP/1.1 20x X\r\n\r\n"],
    "no length": [response(b"{}", content_length="x")],
    "a negative length": [response(b"{}", content_length="-2")],
    "two lengths": [response(b"{}", content_length="2\r\ncontent-length: 3")],
    "cut short": [response(b"{}", content_length="5")],
    "cut short in parts": [response(b"", content_length="5"), b"{}"],
    "a chunk is missing": [chunked(b"{}")[:-5]],
    "an end is missing": [chunked(b"{}")[:-2]],
    "no chunk": [chunked(b"{}").replace(b"\r\n2\r\n", b"\r\nzz\r\n")],
    "a length and chunks": [response(b"{}", transfer_encoding="chunked")],
    "a header without a name": [b"HTTP/1.1 200 X\r\n: y\r\n\r\n"],
    "a header with NUL": [b"HTTP/1.1 200 X\r\nx\0: y\r\n\r\n"],
    "TLS inside": [b"\x16\x03\x01\x00\x05hello"],
}


def test_broken_http(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for kind, parts in BROKEN.items():
        neighbourhood.handle(URL, raw(*parts))
        assert visitor.code() == "fetch_unreachable", kind
        assert neighbourhood.requests.pop(URL) == 1, f"{kind}: asked again"


def test_broken_chunks_make_no_whole_answer(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Though what came before them would be one. aiohttp leaves some of them to the time."""
    for broken in (b"zz\r\n\r\n", b"-2\r\n{}\r\n", b"0\r\nx\r\n\r\n"):
        neighbourhood.handle(URL, raw(chunked(b"")[:-5], b"2\r\n{}\r\n", broken, b"0\r\n\r\n"))
        assert visitor.code(profile=BRIEF) in ("fetch_unreachable", "fetch_timeout")


def test_whatever_comes_is_an_answer_or_a_refusal(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Answers with random damage, whole and in parts: never another error, and never more than was allowed."""
    good = [
        response(b'{"a": 1}', cache_control="max-age=5", set_cookie='a="b"; path=/; max-age=1'),
        chunked(b'{"a": 1, "b": 2}', 5),
        response(b"{}", content_length=""),
        b"HTTP/1.1 100 X\r\n\r\nHTTP/1.1 103 Y\r\nlink: </a>; rel=x\r\n\r\n" + response(b"{}", set_cookie="a=\\777"),
        response(b"", 101, content_length="", upgrade="websocket", connection="upgrade"),
        response(b"{}", 503, retry_after="5"),
        response(b"{}", 304, location="/"),
    ]
    inserted = (b"\r\n", b"\n", b"\0", b":", b"\xff", b"-", b"\r\n\r\n", b"chunked", b"a" * 9000, b";" * 9, b"9" * 30)
    random, parts = Random(1), [b""]

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    async def ask_often() -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for _ in range(250):
            data = random.choice(good)
            for _ in range(random.randrange(4)):
                place = random.randrange(len(data) + 1)
                data = random.choice(
                    [
                        data[:place] + random.choice(inserted) + data[place:],
                        data[:place] + random.randbytes(1) + data[place + 1 :],
                        data[:place] + data[place + random.randrange(9) :],
                        data[:place],
                    ]
                )
            cut = random.randrange(len(data) + 1)
            parts[:] = random.choice([[data], [data[:cut], data[cut:]]])
            try:
                fetched = await visitor.fetcher.fetch(URL, SMALL)
                assert len(fetched.body) <= SMALL.max_bytes
                outcomes["fetched"] += 1
            except NotFetched as refusal:
                outcomes[refusal.code] += 1
        return outcomes

    neighbourhood.handle(URL, answer)
    outcomes = visitor.run(ask_often())
    assert outcomes.keys() >= {"fetched", "fetch_unreachable", "fetch_status", "fetch_not_json"}


# What is said


def test_what_is_said_of_ourselves(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """And nothing else."""
    neighbourhood.put(URL, {})
    visitor.get()
    [asked] = neighbourhood.asked
    assert (asked.method, asked.body) == ("GET", b"")
    assert asked.headers.pop("accept").startswith("application/json")
    assert {name: value for name, value in asked.headers.items() if name != "connection"} == {
        "host": "idv.example",
        "user-agent": AGENT,
        "accept-encoding": "identity",
    }


def test_a_body_is_posted(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, {"taken": True})
    body = b'{"a":"\xc3\xa9"}'
    assert visitor.get(body=body).json() == {"taken": True}
    assert visitor.get(body=b"").json() == {"taken": True}
    one, none = neighbourhood.asked
    assert (one.method, one.body, one.headers["content-type"]) == ("POST", body, "application/json")
    assert one.headers["content-length"] == str(len(body))
    assert (none.method, none.body) == ("POST", b"")


def test_a_body_has_headers_of_its_own(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """What goes with a signed body, exactly; who only asks for something sends none."""
    neighbourhood.put(URL, {})
    own = {
        "Content-Type": "application/jose+json",
        "Signature-Input": 'sig1=("@method");created=1;nonce="a-b_c"',
        "Signature": "sig1=:AA==:",
    }
    visitor.run(visitor.fetcher.fetch(URL, SMALL, b"{}", own))
    visitor.run(visitor.fetcher.fetch(URL, SMALL, None, own))
    posted, asked = neighbourhood.asked
    assert posted.method == "POST"
    assert {name: posted.headers[name.lower()] for name in own} == own
    assert posted.headers["user-agent"] == AGENT
    assert asked.method == "GET"
    assert not {name.lower() for name in own} & asked.headers.keys()


def test_a_body_is_not_posted_elsewhere(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put("https://other.example/", {})
    neighbourhood.put(URL, b"", status=307, location="https://other.example/")
    assert visitor.refused(body=b"{}").code == "fetch_redirected"
    assert neighbourhood.requests == {URL: 1}


def test_how_a_ledger_calls_itself() -> None:
    assert re.fullmatch(r"staylog/[0-9][0-9a-z.]* \(\+https://l\.example\)", fetch.user_agent("https://l.example"))


class Trap:
    """Listens, and counts who came."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self._listener = socket.create_server((address, port))
        self.address, self.port = self._listener.getsockname()[:2]

    def __enter__(self) -> "Trap":
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.close()

    @property
    def connections(self) -> int:
        """Since it was last asked; the system has accepted them."""
        self._listener.setblocking(False)
        count = 0
        with suppress(BlockingIOError):
            while True:
                self._listener.accept()[0].close()
                count += 1
        return count


def test_a_trap_counts() -> None:
    with Trap() as trap:
        assert trap.connections == 0
        for _ in range(3):
            socket.create_connection((trap.address, trap.port)).close()
        assert trap.connections == 3


def test_the_environments_proxies_are_not_asked(
    visitor: Visitor, neighbourhood: Neighbourhood, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbourhood.put(URL, {})
    with Trap() as trap:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "WSS_PROXY"):
            for each in (name, name.lower()):
                monkeypatch.setenv(each, f"http://guest:secret@127.0.0.1:{trap.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert visitor.get().body == b"{}"
        assert trap.connections == 0
    assert neighbourhood.requests == {URL: 1}
    assert not any("proxy" in name for name in neighbourhood.asked[0].headers)


def test_passwords_of_the_environment_are_not_told(
    visitor: Visitor, neighbourhood: Neighbourhood, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine idv.example login guest password secret\ndefault login guest password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    neighbourhood.put(URL, {}, status=401, www_authenticate='Basic realm="a"')
    assert visitor.code() == "fetch_status"
    [asked] = neighbourhood.asked
    assert "authorization" not in asked.headers


def test_cookies_are_forgotten(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Between two questions, and from one redirect to the next."""
    cookie = "session=secret; Path=/; Secure; Max-Age=9999"
    neighbourhood.put(URL, {}, set_cookie=cookie)
    neighbourhood.put("https://idv.example/start", b"", status=302, location="/", set_cookie=cookie)

    async def ask() -> None:
        for url in (URL, URL, "https://idv.example/start"):
            await visitor.fetcher.fetch(url, LISTING)

    visitor.run(ask())
    assert len(neighbourhood.asked) == 4
    assert not any("cookie" in asked.headers for asked in neighbourhood.asked)


# How many at once


@dataclass
class Busy:
    """Holds whoever asks until it is told to let go."""

    let_go: Event
    here: int = 0
    most: int = 0
    came: int = 0

    async def answer(self, _request: Request, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        self.here += 1
        self.most = max(self.most, self.here)
        while not self.let_go.is_set():
            await asyncio.sleep(0.001)
        # Whoever comes too early would be here by now.
        await asyncio.sleep(0.01)
        self.here -= 1
        writer.write(response(b"{}"))


@pytest.fixture
def busy(neighbourhood: Neighbourhood) -> Iterator[Busy]:
    made = Busy(Event())
    neighbourhood.handle(URL, made.answer)
    yield made
    made.let_go.set()


def test_few_ask_one_host_at_once_and_hold_up_no_other(
    visitor: Visitor, neighbourhood: Neighbourhood, busy: Busy
) -> None:
    neighbourhood.put("https://other.example/", {})

    async def ask() -> None:
        # In either spelling it is one host.
        urls = [URL, "https://IDV.example:443/", "https://idv.example"] * 3
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(url, SMALL)) for url in urls]
        await _until(lambda: busy.here == MOST_PER_HOST)
        for _ in range(5):
            assert (await visitor.fetcher.fetch("https://other.example/", SMALL)).body == b"{}"
        assert busy.came == MOST_PER_HOST
        busy.let_go.set()
        assert [each.body for each in await asyncio.gather(*asked)] == [b"{}"] * 9

    visitor.run(ask())
    assert (busy.came, busy.most) == (9, MOST_PER_HOST)
    assert neighbourhood.connections == 9 + 5


def test_waiting_for_a_place_is_part_of_the_time(visitor: Visitor, busy: Busy) -> None:
    """And whoever has waited in vain never comes."""

    async def ask() -> None:
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST)]
        await _until(lambda: busy.here == MOST_PER_HOST)
        with pytest.raises(NotFetched) as refusal:
            await visitor.fetcher.fetch(URL, replace(SMALL, seconds=0.3))
        assert refusal.value.code == "fetch_timeout"
        busy.let_go.set()
        await asyncio.gather(*asked)

    visitor.run(ask())
    assert busy.came == MOST_PER_HOST


def test_one_kind_of_question_holds_up_no_other(visitor: Visitor, neighbourhood: Neighbourhood, busy: Busy) -> None:
    """What strangers may have us ask does not stand in the way of what we have to know."""
    neighbourhood.put("https://idv.example/status", {})

    async def ask() -> None:
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST + 1)]
        await _until(lambda: busy.here == MOST_PER_HOST)
        assert (await visitor.fetcher.fetch("https://idv.example/status", profiles.STATUS_LIST)).body == b"{}"
        busy.let_go.set()
        await asyncio.gather(*asked)

    visitor.run(ask())


def test_not_too_many_wait(visitor: Visitor, busy: Busy) -> None:
    """Who would be one too many is told at once, and when to come back."""

    async def ask() -> None:
        all_places = fetch.MOST_PER_HOST + fetch.MOST_WAITING
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(all_places)]
        await _until(lambda: busy.here == MOST_PER_HOST)
        with pytest.raises(NotFetched) as refusal:
            await visitor.fetcher.fetch(URL, SMALL)
        assert (refusal.value.code, refusal.value.retry_after) == ("fetch_too_often", 1)
        busy.let_go.set()
        assert [each.body for each in await asyncio.gather(*asked)] == [b"{}"] * all_places

    visitor.run(ask())
    assert visitor.get().body == b"{}"


def test_whoever_goes_away_leaves_their_place(visitor: Visitor, busy: Busy) -> None:
    async def ask() -> None:
        first = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST)]
        await _until(lambda: busy.here == MOST_PER_HOST)
        second = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST + 1)]
        await asyncio.sleep(0)
        second.pop().cancel()
        for each in first:
            each.cancel()
        await _until(lambda: busy.came == 2 * MOST_PER_HOST)
        busy.let_go.set()
        assert [each.body for each in await asyncio.gather(*second)] == [b"{}"] * MOST_PER_HOST

    visitor.run(ask())
    # The next loop finds all places free.
    for _ in range(MOST_PER_HOST + 1):
        assert visitor.get().body == b"{}"


# Which addresses


INSIDE = (
    *(["127.0.0.1"], ["::1"], ["10.0.0.5"], ["169.254.169.254"], ["0.0.0.0"], ["::"], ["fe80::1%lo"], ["224.0.0.1"]),
    *(["::ffff:20.1.1.1"], ["64:ff9b::1401:101"], ["localhost"], ["20.1.1.1 "], ["idv.example"], [""]),
    *(["20.1.1.1", "10.0.0.5"], ["10.0.0.5", "20.1.1.1"], ["20.1.1.1", "2600:1f00::1", "::1"], ["20.1.1.1", ""]),
)


def test_names_that_lead_inside_are_not_asked(visitor: Visitor) -> None:
    """Nor if only one of their addresses does. Which one is not told."""
    answers, looked = list(INSIDE), Counter[str]()

    async def lookup(host: str) -> list[str]:
        looked[host] += 1
        return answers[0]

    asking = replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup))
    while answers:
        refusal = asking.refused()
        assert isinstance(refusal, NotAccepted)
        assert refusal.code == "address_not_allowed"
        assert not any(address in refusal.message for address in answers[0] if address not in ("", "idv.example"))
        answers.pop(0)
    assert looked == {"idv.example": len(INSIDE)}


def test_a_name_that_leads_to_a_trap_on_this_machine_springs_none(
    visitor: Visitor, neighbourhood: Neighbourhood
) -> None:
    """On the port that would be asked; alone, with a public address, and beside the hosts of a developer."""
    # A worker's own address, so that another one's trap is not in the way.
    address = f"127.{64 + os.getpid() % 64}.{os.getpid() // 64 % 256}.{os.getpid() // 64 // 256 % 254 + 1}"
    try:
        trap = Trap(address, wire.PORT)
    except PermissionError:
        pytest.skip("not permitted to listen on port 443 here")
    neighbourhood.put("https://known.example/", {})
    for addresses in ([address], ["20.1.1.1", address], [address, "20.1.1.1"], [f"::ffff:{address}"]):

        async def lookup(_host: str, given: Sequence[str] = addresses) -> list[str]:
            return list(given)

        for development in (Development(), neighbourhood.development):
            asking = replace(visitor, fetcher=Fetcher(AGENT, development, lookup))
            assert asking.code() == "address_not_allowed"
    with trap:
        assert trap.connections == 0


def test_literals_are_not_even_looked_up(visitor: Visitor) -> None:
    async def lookup(host: str) -> list[str]:
        raise AssertionError(f"{host} was looked up")

    asking = replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup))
    with Trap() as trap:
        for host in ("127.0.0.1", "2130706433", "0x7f.1", "0177.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"):
            assert asking.code(f"https://{host}/") == "address_not_allowed"
            assert asking.code(f"https://{host}:{trap.port}/") == "address_not_allowed"
        assert trap.connections == 0


def test_no_socket_is_made_for_an_address_that_is_not_public(neighbourhood: Neighbourhood) -> None:
    """Whoever says that it should be connected: what was looked up is not the only way."""
    neighbourhood.host("idv.example")
    for fetcher in (Fetcher(AGENT), Fetcher(AGENT, neighbourhood.development)):
        for address in ("127.0.0.1", "10.0.0.5", "169.254.169.254", "0.0.0.0", "224.0.0.1"):
            for port in (443, 80, 1):
                with pytest.raises(PermissionError):
                    fetcher._socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)))
        for address in ("::1", "::ffff:20.1.1.1", "fe80::1", "64:ff9b::1401:101", "::"):
            with pytest.raises(PermissionError):
                fetcher._socket((socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, 443, 0, 0)))
        # Made, not connected.
        fetcher._socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("20.1.1.1", 443))).close()
    here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", neighbourhood.port))
    fetcher._socket(here).close()
    with pytest.raises(PermissionError):
        Fetcher(AGENT)._socket(here)


def test_a_session_connects_to_no_literal_either(visitor: Visitor) -> None:
    """aiohttp does not look up what is an address already; the socket is refused all the same."""

    async def ask(url: str) -> None:
        async with asyncio.timeout(5), visitor.fetcher._session(check_url(URL), SMALL) as session:
            with pytest.raises(ClientConnectorError):
                await session.get(url)

    with Trap() as trap:
        visitor.run(ask(f"https://127.0.0.1:{trap.port}/"))
        visitor.run(ask(f"http://127.0.0.1:{trap.port}/"))
        visitor.run(ask(f"http://[::ffff:127.0.0.1]:{trap.port}/"))
        assert trap.connections == 0


# What is counted


def test_every_outcome_is_counted(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    def counted(profile: str, outcome: str) -> float:
        return REGISTRY.get_sample_value("staylog_fetches_total", {"profile": profile, "outcome": outcome}) or 0

    neighbourhood.put(URL, {})
    neighbourhood.put("https://idv.example/gone", {}, status=410)
    neighbourhood.put("https://idv.example/html", b"<html>", media_type="text/html")
    neighbourhood.put("https://idv.example/elsewhere", b"", status=302, location="https://other.example/")
    expected = [
        (DID, URL, "fetched"),
        (LISTING, URL, "fetched"),
        (DID, "https://idv.example/gone", "fetch_status"),
        (DID, "https://idv.example/html", "fetch_not_json"),
        (LISTING, "https://idv.example/elsewhere", "fetch_redirected"),
        (LISTING, "https://127.0.0.1/", "address_not_allowed"),
    ]
    for profile, url, outcome in expected:
        before = {(name.name, code): counted(name.name, code) for name in (DID, LISTING) for _, _, code in expected}
        if outcome == "fetched":
            visitor.get(url, profile)
        else:
            assert visitor.code(url, profile) == outcome
        after = {key: counted(*key) for key in before}
        assert {key for key in before if after[key] != before[key]} == {(profile.name, outcome)}
        assert after[profile.name, outcome] == before[profile.name, outcome] + 1
