"""A whole ledger in memory, made of the same parts as the durable one: for tests, vectors and benchmarks.

Batches, map heads and checkpoints are as protocol.md 3 has them; nothing here survives the process.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import base64, strict_json
from ledger.errors import NotFound
from ledger.log import answers
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import Entry, make_entry
from ledger.log.face import Event, summary
from ledger.log.hostmap import map_key, map_value
from ledger.log.openings import Opening
from ledger.log.pages import MemoryPages, PagedMap
from ledger.log.record import fold, sublog_leaf
from ledger.log.replay import Replay
from ledger.log.tiles import Appender, MemoryTiles, TileTree


@dataclass(frozen=True, slots=True)
class Published:
    """A signed state of the log and the version of the map that belongs to it."""

    size: int
    note: str
    map_top: int | None


class MemoryLog:
    def __init__(self, origin: str, key: SigningKey, policy: bytes, at: str) -> None:
        self.origin = origin
        self._key = key
        self.entries: list[Entry] = []
        self.openings: dict[int, Opening] = {}
        self.published: list[Published] = []
        self._rules = Replay()
        self.tiles = MemoryTiles()
        self._appender = Appender(self.tiles)
        self.tree = TileTree(self.tiles)
        self.map = PagedMap(MemoryPages())
        genesis = {"origin": origin, "policy": base64.encode(policy), "previous": None}
        self.append_batch([make_entry("genesis", at=at, **genesis)], at)

    def append_batch(self, entries: Iterable[Entry], at: str) -> Published:
        """Integrate `entries` and the map head of time `at`, and sign. After a refusal discard this log."""
        changed = set()
        for entry in entries:
            self._integrate(entry)
            if entry.host is not None:
                changed.add(entry.host)
        values = {map_key(host): map_value(self._rules.hosts[host].record()) for host in changed}
        top = self.published[-1].map_top if self.published else None
        top, root = self.map.update(top, values)
        self._integrate(make_entry("map_head", size=len(self.entries), root=base64.encode(root), at=at))
        self.tiles.update(self._appender.take_rows())
        checkpoint = Checkpoint(self.origin, self._appender.size, self._appender.root())
        self.published.append(Published(checkpoint.size, sign_checkpoint(checkpoint, self._key), top))
        return self.published[-1]

    def answer(
        self, host: str, proof: str = "full", *, size: int | None = None, start: int = 0, count: int = 500
    ) -> dict[str, Any]:
        """The reputation answer for `host` with its proof: full, aggregate or page."""
        state = self._state(size)
        events = [
            Event(index, entry, self.openings.get(index))
            for index, entry in enumerate(self.entries[: state.size])
            if entry.host == host
        ]
        record = fold(host, ((event.index, event.entry) for event in events)) if events else None
        path = self.map.prove(state.map_top, map_key(host))
        head = self.entries[state.size - 1].data.decode()
        view = answers.View(host, state.note, state.size, head, path, record)
        face = summary(host, strict_json.loads(record) if record else None)
        if proof == "full":
            return {**face, **answers.full(view, self.tree, events)}
        if proof == "aggregate":
            return {**face, **answers.aggregate(view, self.tree)}
        sublog = answers.Leaves(sublog_leaf(event.index, event.entry.leaf_hash) for event in events)
        return {**face, **answers.page(view, self.tree, events[start : start + count], start, sublog)}

    def _integrate(self, entry: Entry) -> None:
        self._rules.add(entry.data)
        self.entries.append(entry)
        self._appender.append(entry.leaf_hash)

    def _state(self, size: int | None) -> Published:
        for state in reversed(self.published):
            if size in (None, state.size):
                return state
        raise NotFound("unknown_size", f"no checkpoint of size {size} was published")
