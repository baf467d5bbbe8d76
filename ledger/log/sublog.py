"""A host's sub-log (protocol.md 1) at one size of the log: its hashes, without reading all of the host's events.

Every version of a host's record is stored with the edge of its sub-log, which has a hash for each perfect subtree that
was complete by then. So a subtree is the end of one edge and the few events that came before the next one: those of one
batch at most. A proof costs one version and one short read for each of its hashes, however many events there are.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from ledger.errors import NotStored
from ledger.log.record import sublog_leaf
from ledger.log.tiles import HEIGHT, WIDTH, TileStore
from ledger.log.tree import HASH_SIZE, Edge, Subtree, fold_edge, perfect_subtrees

# The log index of an event by its distance from another one, looking down or up. The index alone is read.
_BELOW = "SELECT idx FROM entry WHERE host_key = ? AND idx < ? ORDER BY idx DESC LIMIT 1 OFFSET ?"
_ABOVE = "SELECT idx FROM entry WHERE host_key = ? AND idx > ? ORDER BY idx LIMIT 1 OFFSET ?"
_BETWEEN = "SELECT idx FROM entry WHERE host_key = ? AND idx > ? AND idx <= ? ORDER BY idx"
# The version of the batch in which an entry came, and the last one before it.
_WITH = (
    "SELECT data, edge FROM record WHERE idx = (SELECT max(idx) FROM entry WHERE host_key = ? "
    "AND idx < (SELECT min(size) FROM checkpoint WHERE size > ?))"
)
_VERSION = (
    "SELECT idx, data, edge FROM record WHERE idx = (SELECT max(idx) FROM entry WHERE host_key = ? "
    "AND idx < (SELECT max(size) FROM checkpoint WHERE size <= ?))"
)

Run = Callable[..., list[Any]]


class _Events(msgspec.Struct, gc=False):
    events: int


_decode = msgspec.json.Decoder(_Events).decode


class SubLog:
    """The first `count` events of a host, whose last edge is `nodes`; `run` asks the database. `size` is the log's."""

    def __init__(self, run: Run, tiles: TileStore, host_key: bytes, size: int, count: int, nodes: bytes) -> None:
        self._run = run
        self._tiles = tiles
        self._key = host_key
        self._count = count
        self._newest = dict(zip(perfect_subtrees(0, count), _split(nodes, count), strict=True))
        # Log indices by position among the events; before the first and behind the last one are none, but known.
        self._places = {-1: -1, count: size}

    def __len__(self) -> int:
        return self._count

    def place(self, position: int) -> int:
        """The log index of an event, looked for from the nearest one that is known."""
        if position not in self._places:
            near = min(self._places, key=lambda known: abs(known - position))
            query = _BELOW if near > position else _ABOVE
            rows = self._run(query, self._key, self._places[near], abs(near - position) - 1)
            if not rows:
                raise NotStored(f"event {position} of a host with {self._count} events is not stored")
            self._places[position] = rows[0][0]
        return self._places[position]

    def subtrees(self, subtrees: Sequence[Subtree]) -> list[bytes]:
        """The hash of each. Raises NotStored where what it follows from is missing or damaged."""
        return [self._hash(lo, hi) for lo, hi in subtrees]

    def _hash(self, lo: int, hi: int) -> bytes:
        parts = [part for part in self._newest if lo <= part[0] < hi]
        if parts and (parts[0][0], parts[-1][1]) == (lo, hi):
            return fold_edge([self._newest[part] for part in parts])
        return self._grow(lo, hi)

    def _grow(self, lo: int, hi: int) -> bytes:
        """Of a perfect subtree: from the edge that was stored with its last event, where it is in there; else from the
        last one before that event, and the events since."""
        last = self.place(hi - 1)
        for data, edge in self._run(_WITH, self._key, last):
            count = _decode(data).events
            stored = dict(zip(perfect_subtrees(0, count), _split(edge, count), strict=True))
            if (lo, hi) in stored:
                return stored[lo, hi]
        for after, data, edge in self._run(_VERSION, self._key, last):
            count = _decode(data).events
            if lo < count < hi:
                parts = zip(perfect_subtrees(0, count), _split(edge, count), strict=True)
                grown = Edge(count - lo, [node for (start, _), node in parts if start >= lo])
                return self._extended(grown, hi - count, after, last)
        return self._extended(Edge(), hi - lo, self.place(lo) - 1, last)

    def _extended(self, edge: Edge, count: int, after: int, last: int) -> bytes:
        """The root once the `count` events behind one log index, up to another, are added."""
        places = [index for (index,) in self._run(_BETWEEN, self._key, after, last)]
        if len(places) != count:
            raise NotStored(f"entry {last} and those before it are not all stored, or the edge before them is damaged")
        edge.extend(self._leaves(places))
        return edge.root()

    def _leaves(self, places: Sequence[int]) -> list[bytes]:
        tiles = self._tiles.read_tiles(sorted({place >> HEIGHT for place in places}))
        found = []
        for place in places:
            at = place % WIDTH * HASH_SIZE
            leaf = tiles.get(place >> HEIGHT, b"")[at : at + HASH_SIZE]
            if len(leaf) != HASH_SIZE:
                raise NotStored(f"the hash of entry {place} is not stored")
            found.append(sublog_leaf(place, leaf))
        return found


def _split(nodes: bytes, count: int) -> list[bytes]:
    if len(nodes) != count.bit_count() * HASH_SIZE:
        raise NotStored(f"the stored edge of a sub-log of {count} events is damaged")
    return [nodes[at : at + HASH_SIZE] for at in range(0, len(nodes), HASH_SIZE)]
