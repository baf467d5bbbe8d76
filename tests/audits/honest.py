"""Ledgers that obey every rule, those about issuers too; and how they are served: from a folder, or over HTTP."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from audits.audit import Audit, Options
from audits.source import Source
from audits.state import State
from ledger.canon.times import format_time, parse_time
from ledger.errors import BrokenRule, NotFound, NotStored, StaylogError
from ledger.log.entries import make_entry, parse_entry
from ledger.log.face import Event, statistics, summary
from ledger.log.members import BOOKINGS, IDV_LEVELS, LEVELS
from ledger.log.memory import MemoryLog
from ledger.log.note import Verifier
from ledger.log.record import RESPONSE_WINDOW, fold
from ledger.log.tiles import WIDTH, encode_bundle, parse_tile_path, tile_id, tile_resources
from ledger.log.tree import HASH_SIZE
from tests.audits.service_answers import Told
from tests.world import HOSTS, LOG, World

ISSUERS = ("https://idv.example/issuers/1", "did:web:id.example", "https://other.example")
KINDS = ("review", "response", "late_response", "upgrade", "redaction", "check", "policy", "issuer", "artifact")


class Honest(World):
    """A ledger that breaks no rule: who vouches for a guest is trusted for that where the review stands."""

    def __init__(self, seed: int, hosts: tuple[str, ...] = HOSTS) -> None:
        super().__init__(seed, hosts)
        # Whom the log trusts at its end, and how far.
        self.trusted: dict[str, str | None] = {}
        self._steps: dict[str, Callable[[], Any]] = {
            "review": self.review,
            "response": self.response,
            "late_response": self.late_response,
            "upgrade": self.upgrade,
            "redaction": self.redaction,
            "check": self.booking_check,
            "policy": self.other,
            "issuer": self.issuer,
            "artifact": self.artifact,
        }

    def step(self) -> None:
        weights = [8 if kind == "review" else 1 for kind in KINDS]
        self.take(self.random.choices(KINDS, weights)[0])

    def take(self, *kinds: str) -> None:
        """One more entry of each kind, where the rules allow it just now."""
        for kind in kinds:
            self._steps[kind]()

    def review(self, host: str | None = None, **members: Any) -> int:
        issuer = self.random.choice([None, *self.trusted])
        level = "host_attested" if issuer is None else members.get("level") or self.random.choice(LEVELS)
        highest = IDV_LEVELS.index(self.trusted.get(issuer or "") or IDV_LEVELS[-1])
        idv_level = self.random.choice((None, *IDV_LEVELS[: highest + 1]))
        booking = self.random.choice(BOOKINGS[level])
        evidence = {"booking": booking, "commitment": self.hash(), "idv_level": idv_level, "issuer": issuer}
        return super().review(host, **{**members, "level": level, "evidence": evidence})

    def late_response(self) -> None:
        """In the last second in which a host may answer."""
        window = timedelta(seconds=RESPONSE_WINDOW)
        last = {index: parse_time(review["at"]) + window for index, review in self._reviews.items()}
        open_ = [index for index, end in last.items() if end >= self.now and not self._reviews[index]["responded"]]
        if open_:
            named = self.random.choice(open_)
            review, self.now = self._reviews[named], last[named]
            review["responded"], review["response"] = True, self.next_index
            said = {"text": self.commit(self.next_index, "At last."), "statement": self.hash()}
            self._batch.append(make_entry("response", **self._about(named), **said, at=format_time(self.now)))

    def issuer(self) -> None:
        """Trusted, trusted again for more or less, removed, or in other hands. Hosts' issuers are another matter."""
        issuer, role = self.random.choice(ISSUERS), self.random.choice(("guest", "guest", "host"))
        action = self.random.choice(("trusted", "trusted", "removed", "compromised"))
        level, since = self.random.choice((None, *IDV_LEVELS)), None
        if action == "compromised":
            since = format_time(self.now - timedelta(days=1))
        if role == "guest":
            self.trusted.pop(issuer, None)
            if action == "trusted":
                self.trusted[issuer] = level
        members = {"role": role, "issuer": issuer, "action": action, "keys": self.hash()}
        self._add("issuer", {**members, "max_idv_level": level, "since": since})

    def artifact(self) -> None:
        self._batch.append(parse_entry(b"sha256:" + self.random.randbytes(32).hex().encode()))


def expected_figures(log: MemoryLog, sample: int = 20) -> dict[str, int]:
    hosts = {entry.host for entry in log.entries if entry.host is not None}
    return {
        "entries": len(log.entries),
        "hosts": len(hosts),
        "map_heads": sum(entry.type == "map_head" for entry in log.entries),
        "texts": sum(entry.members.get("text") is not None for entry in log.entries),
        "checkpoints": len(log.published),
        "tiles": sum("entries" not in path for path in tile_resources(len(log.entries))),
        "answers": min(len(hosts), sample),
        "cosignatures": 0,
    }


def audited(source: Source, state: State, log: Verifier = LOG, **options: Any) -> Audit:
    """An audit that does not wait, and is still to be run."""
    given = {name: options.pop(name) for name in ("replayer", "clock", "pause") if name in options}
    return Audit(source, log, state, Options(**options), **{"pause": 0, **given})


class Served:
    """A ledger in memory as a service serves it: what is under a path, or a refusal."""

    def __init__(self, log: MemoryLog) -> None:
        self.log = log

    def get(self, path: str, query: dict[str, str]) -> bytes:
        first, _, rest = path.partition("/")
        if path == "log/checkpoint":
            return self.log.published[-1].note.encode()
        if first == "log":
            return self._resource(rest)
        if path == "v1/log/checkpoints":
            return _json(self._checkpoints(int(query.get("before", 1 << 60)), int(query.get("count", 20))))
        if path.startswith("v1/log/openings/"):
            return _json(self._openings(int(path.rpartition("/")[2])))
        if path.startswith("v1/issuers/"):
            return _json(self._told().days_of_issuer(path[len("v1/issuers/") : -len("/activity")], query))
        if path.startswith("v1/reviews/"):
            return _json(self._told().review(path.split("/")[2], query))
        if path.startswith("v1/hosts/") and path.endswith("/events"):
            return _json(self._told().days_of_host(path.split("/")[2], query))
        if path.startswith("v1/hosts/"):
            return _json(self._answer(path.split("/")[2], query))
        if path == "v1/log/key":
            return _json({"origin": LOG.name, "vkey": str(LOG)})
        raise NotFound("not_found", path)

    def _resource(self, path: str) -> bytes:
        level, index, width = parse_tile_path(path)
        if level is None:
            found = self.log.entries[index * WIDTH : index * WIDTH + width]
            data, length = encode_bundle(entry.data for entry in found), len(found)
        else:
            data = self.log.tiles.get(tile_id(level, index), b"")[: width * HASH_SIZE]
            length = len(data) // HASH_SIZE
        if length < width:
            raise NotFound("not_found", path)
        return data

    def _checkpoints(self, before: int, count: int) -> dict[str, Any]:
        found = [{"size": each.size, "checkpoint": each.note} for each in self.log.published if each.size < before]
        listed = found[::-1][:count]
        return {"checkpoints": listed, "next": listed[-1]["size"] if len(found) > count else None}

    def _openings(self, number: int) -> dict[str, Any]:
        places = range(number * WIDTH, min((number + 1) * WIDTH, self.log.published[-1].size))
        if not places:
            raise NotFound("not_found", f"bundle {number}")
        found = {index: self.log.openings[index].as_json() for index in places if index in self.log.openings}
        return {"start": places[0], "openings": [{"index": index, **each} for index, each in found.items()]}

    def _answer(self, host: str, query: dict[str, str]) -> dict[str, Any]:
        proof = query.get("proof", "none")
        size = int(query.get("size", self.log.published[-1].size))
        told = self._told(size)
        more, events = told.more(host), told.events(host, query.get("text", "verified"))
        if proof == "page":
            start, count = int(query["from"]), int(query["count"])
            page = self.log.answer(host, "page", size=size, start=start, count=count)
            shown = {event.index: event for event in events}
            return {**_with_texts(page, shown), **more}
        if proof == "aggregate":
            return {**self.log.answer(host, "aggregate", size=size), **more}
        if proof == "full":
            shown = {event.index: event for event in events}
            return {**_with_texts(self.log.answer(host, size=size), shown), **told.listed(host, query), **more}
        record = json.loads(fold(host, ((event.index, event.entry) for event in events))) if events else None
        return {**summary(host, record), "statistics": statistics(record), **told.listed(host, query), **more}

    def _told(self, size: int | None = None) -> Told:
        notes = {each.size: each.note for each in self.log.published}
        size = size or self.log.published[-1].size
        return Told(self.log.entries, self.log.openings, notes, self.log.tree, size)


def _with_texts(answer: dict[str, Any], shown: dict[int, Event]) -> dict[str, Any]:
    for event in answer["proof"]["events"]:
        opening = shown[event["index"]].opening
        event["opening"] = opening.as_json() if opening else None
    return answer


def lay_out(log: MemoryLog, folder: Path) -> Path:
    """The newest state of a ledger as files, for a `FolderSource`."""
    served = Served(log)
    hosts = {entry.host for entry in log.entries if entry.host is not None}
    paths = ["log/checkpoint", *(f"log/{path}" for path in tile_resources(len(log.entries))), "v1/log/key"]
    paths += [f"v1/log/openings/{number}" for number in range(-(-len(log.entries) // WIDTH))]
    files = {path: served.get(path, {}) for path in paths}
    files["v1/log/checkpoints"] = served.get("v1/log/checkpoints", {"count": str(len(log.published))})
    for host in hosts:
        about = f"v1/hosts/{host}/reputation"
        # About some hosts of a log that breaks rules nothing can be said.
        with suppress(BrokenRule, NotStored):
            full, plain = (
                served.get(about, {"proof": proof, "limit": "100", "text": "all"}) for proof in ("full", "none")
            )
            files[about] = _json({**json.loads(full), "plain": json.loads(plain)})
    for path, data in files.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return folder


@contextmanager
def web_server(respond: Callable[[str, dict[str, str]], bytes]) -> Iterator[str]:
    """A web server on this machine, and its address. A refusal is 404, or 413 where an answer would be too long."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            try:
                status, body = 200, respond(unquote(parts.path).removeprefix("/"), query)
            except StaylogError as error:
                status, body = 413 if error.code == "proof_too_large" else 404, b"{}"
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
