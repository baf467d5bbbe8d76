"""A log that holds whatever one likes, signed with its key, and a server that shows it as a service shows its own."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from nacl.signing import SigningKey

from audits.contradictions import Placed
from ledger.canon import base64, strict_json
from ledger.canon.times import format_time
from ledger.errors import BadEntry, BrokenRule, StaylogError
from ledger.log import answers
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.cosignature import cosign
from ledger.log.drafts import Draft, make_draft
from ledger.log.entries import Entry, make_entry, parse_entry
from ledger.log.face import summary
from ledger.log.hostmap import HostMap, map_key, map_value
from ledger.log.note import Note, Verifier
from ledger.log.openings import Opening
from ledger.log.record import HostFold, sublog_leaf
from ledger.log.sequencer import Integrated
from ledger.log.tiles import MemoryTiles, TileTree, encode_bundle, parse_tile_path, tile_id
from ledger.log.tree import leaf_hash
from ledger.store.rows import Published
from tests.audits.service_answers import Told
from tests.identities import ISSUER
from tests.ledger.log.test_tree import stored
from tests.running import SetClock, Writer
from tests.world import KEY, ORIGIN

HASH = base64.encode(bytes(32))
# Who vouches for the guests of `Writer`.
VOUCHER = "https://idv.example/issuers/1"
TRUST = {
    "role": "guest",
    "issuer": VOUCHER,
    "action": "trusted",
    "keys": [ISSUER.multikey],
    "max_idv_level": None,
    "since": None,
}
_NOWHERE = Published(0, b"", None, b"", 0, "", "")


def genesis(origin: str = ORIGIN, at: str = "2026-06-01T12:00:00Z") -> Entry:
    return make_entry("genesis", origin=origin, policy=HASH, previous=None, at=at)


class Forger:
    """Any bytes as entries, under map heads of any root. Without being told otherwise it tells the truth; what breaks a
    rule is not counted. `instead` is served at its paths in place of what is right, `plain` where no proof is asked for, and
    nothing where it is `missing`."""

    def __init__(self, first: bytes | None = None) -> None:
        self.clock = SetClock()
        self.data: list[bytes] = []
        self.notes: dict[int, str] = {}
        self.openings: dict[int, Opening] = {}
        self.instead: dict[str, bytes] = {}
        self.plain: dict[str, bytes] = {}
        self.missing: set[str] = set()
        self.tiles = MemoryTiles()
        self.map = HostMap()
        self._folds: dict[str, HostFold] = {}
        self.put(genesis().data if first is None else first)

    @classmethod
    def begun(cls, writer: Writer) -> "Forger":
        """With an issuer that is trusted, and a review with its response."""
        forger = cls()
        forger.head()
        forger.add(make_draft("issuer", TRUST))
        forger.head()
        review = forger.add(writer.review())
        forger.add(writer.response(review))
        forger.head()
        return forger

    @property
    def size(self) -> int:
        return len(self.data)

    def add(self, draft: Draft, at: str | None = None) -> Integrated:
        entry = draft.at(at or format_time(self.clock()))
        index = self.put(entry.data)
        if draft.opening is not None:
            self.openings[index] = draft.opening
        return Integrated(index, entry, _NOWHERE, repeated=False)

    def put(self, data: bytes) -> int:
        self.data.append(data)
        try:
            entry = parse_entry(data)
            if entry.host is not None:
                fold = self._folds.setdefault(entry.host, HostFold(entry.host))
                fold.add(self.size - 1, entry)
                self.map.set(map_key(entry.host), map_value(fold.record()))
        except (BadEntry, BrokenRule):
            pass
        return self.size - 1

    def head(self, **members: Any) -> str:
        """A map head, right but for `members`, and the checkpoint over it."""
        right = {"size": self.size, "root": base64.encode(self.map.root()), "at": format_time(self.clock())}
        self.put(make_entry("map_head", **{**right, **members}).data)
        return self.sign()

    def sign(self, root: bytes | None = None) -> str:
        self.tiles = stored(map(leaf_hash, self.data))
        root = TileTree(self.tiles).root(self.size) if root is None else root
        self.notes[self.size] = sign_checkpoint(Checkpoint(ORIGIN, self.size, root), KEY)
        return self.notes[self.size]

    def cosign(self, size: int, witness: Verifier, key: SigningKey, at: datetime) -> None:
        """A witness says that it saw the checkpoint of `size` entries then."""
        note = Note.parse(self.notes[size])
        seen = cosign(note.text, witness.name, key, int(at.timestamp()))
        self.notes[size] = str(Note(note.text, (*note.signatures, seen)))

    def record(self, host: str) -> bytes:
        return self._folds[host].record()

    def get(self, path: str) -> bytes | None:
        """What is served under a path without its first slash."""
        where, query = urlsplit(path).path, parse_qs(urlsplit(path).query)
        if where in self.missing:
            return None
        if where in self.plain and "proof" not in query:
            return self.plain[where]
        if where in self.instead:
            return self.instead[where]
        if where == "log/checkpoint":
            return self.notes[max(self.notes)].encode()
        if where.startswith("log/tile/"):
            return self._tile(where.removeprefix("log/"))
        if where == "v1/log/checkpoints":
            return json.dumps(self._checkpoints(query)).encode()
        if where.startswith("v1/log/openings/"):
            number = int(where.rpartition("/")[2])
            shown = [(index, opening) for index, opening in self.openings.items() if index // 256 == number]
            return json.dumps(
                {"openings": [{"index": index, **opening.as_json()} for index, opening in shown]}
            ).encode()
        about, asked = where.split("/"), {name: values[0] for name, values in query.items()}
        if where.startswith("v1/hosts/") and where.endswith("/events"):
            return json.dumps(self._told().days_of_host(unquote(about[2]), asked)).encode()
        if where.startswith("v1/issuers/"):
            return json.dumps(self._told().days_of_issuer(unquote(about[2]), asked)).encode()
        if where.startswith("v1/reviews/"):
            return json.dumps(self._told().review(about[2], asked)).encode()
        if where.startswith("v1/hosts/"):
            return json.dumps(self._answer(unquote(about[2]), asked)).encode()
        return None

    def _before(self, size: int) -> tuple[dict[str, HostFold], HostMap]:
        """Records and map as they were."""
        earlier = Forger(self.data[0])
        for data in self.data[1:size]:
            earlier.put(data)
        return earlier._folds, earlier.map

    def _told(self, size: int | None = None) -> Told:
        """At the newest checkpoint, or an older one."""
        entries = [Placed.read(index, data).entry for index, data in enumerate(self.data)]
        return Told(entries, self.openings, self.notes, TileTree(self.tiles), size or max(self.notes))

    def _tile(self, name: str) -> bytes | None:
        level, index, width = parse_tile_path(name)
        if self.size >> 8 * (level or 0) < index * 256 + width:
            return None
        if level is None:
            return encode_bundle(self.data[index * 256 : index * 256 + width])
        return self.tiles[tile_id(level, index)][: width * 32]

    def _checkpoints(self, query: dict[str, list[str]]) -> dict[str, Any]:
        before, count = int(query.get("before", [str(self.size + 1)])[0]), int(query["count"][0])
        sizes = sorted((size for size in self.notes if size < before), reverse=True)
        listed = [{"size": size, "checkpoint": self.notes[size]} for size in sizes[:count]]
        return {"checkpoints": listed, "next": sizes[count - 1] if len(sizes) > count else None}

    def _answer(self, host: str, query: dict[str, str]) -> dict[str, Any]:
        told = self._told(int(query["size"]) if "size" in query else None)
        events, size, tree = told.events(host, query.get("text", "verified")), told.size, told.tree
        folds, hosts = (self._folds, self.map) if size == max(self.notes) else self._before(size)
        fold = folds.get(host)
        record = fold.record() if fold is not None else None
        face = {**summary(host, strict_json.loads(record) if record is not None else None), **told.more(host)}
        proof = query.get("proof", "none")
        if proof == "none":
            return {**face, **told.listed(host, query)}
        head, path = self.data[size - 1].decode(), hosts.prove(map_key(host))
        view = answers.View(host, self.notes[size], size, head, path, record)
        if proof == "aggregate":
            return {**face, **answers.aggregate(view, tree)}
        if proof == "full":
            return {**face, **answers.full(view, tree, events), **told.listed(host, query)}
        start, count = int(query["from"]), int(query["count"])
        sublog = answers.Leaves(sublog_leaf(event.index, event.entry.leaf_hash) for event in events)
        return {**face, **answers.page(view, tree, events[start : start + count], start, sublog)}


@contextmanager
def serving(forger: Forger) -> Iterator[str]:
    """The address at which a forger's log is served, as a service would."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                data, status = forger.get(self.path.removeprefix("/")), 200
            except StaylogError as error:
                # The one refusal of an answer: that it would be too large.
                data, status = str(error).encode(), 413
            self.send_response(status if data is not None else 404)
            self.send_header("Content-Length", str(len(data or b"")))
            self.end_headers()
            self.wfile.write(data or b"")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
