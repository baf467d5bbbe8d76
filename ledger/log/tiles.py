"""Tiles and entry bundles (c2sp.org/tlog-tiles 0.1.0): how a tree is stored and served.

A tile row holds up to 256 hashes of one level and only grows at its end, so any older partial tile is a prefix of
the stored row, and every proof of every older size comes from the same rows.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from ledger.errors import BadEntry, BadTilePath, NotStored
from ledger.log.cache import Cache
from ledger.log.tree import (
    EMPTY_ROOT,
    HASH_SIZE,
    Edge,
    Subtree,
    consistency_subtrees,
    fold_edge,
    inclusion_subtrees,
    multiproof_subtrees,
    parents,
    perfect_subtrees,
)

HEIGHT = 8
WIDTH = 1 << HEIGHT
MAX_ENTRY = 65535
# 8 KiB of hashes expand to 16 KiB: 3 MiB that stay, 6 MiB at most.
CACHED_TILES = 384
MAX_PATH = 64

# All perfect subtrees inside a tile, as a heap of hashes in a row: node n is above nodes 2n and 2n + 1, the tile's own
# hashes are the last 256. What a partial tile does not have yet is zeros.
Expanded = bytes


class TileStore(Protocol):
    """Rows are keyed by `tile_id`; a row that was returned once is a prefix of that row for ever."""

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]: ...


class MemoryTiles(dict[int, bytes]):
    """Tile rows in memory."""

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        return {tile: self[tile] for tile in ids if tile in self}


def tile_id(level: int, index: int) -> int:
    """One integer per tile keeps a database on its row-id tree."""
    return level << 48 | index


class Appender:
    """Appends leaf hashes and hands out the rows that changed. Cheap to open: it reads the last tile of each level."""

    def __init__(self, store: TileStore, size: int = 0) -> None:
        levels = range((max(size.bit_length() - 1, 0)) // HEIGHT + 1)
        widths = {level: (size >> HEIGHT * level) % WIDTH for level in levels}
        ids = {level: tile_id(level, size >> HEIGHT * (level + 1)) for level, width in widths.items() if width}
        rows = store.read_tiles(list(ids.values()))
        self._tiles: dict[int, bytearray] = {}
        nodes: list[bytes] = []
        for level in sorted(ids, reverse=True):
            row = _prefix(rows, ids[level], widths[level])
            self._tiles[level] = bytearray(row)
            heap = _expand(row)
            places = [_place(lo, hi)[1] for lo, hi in perfect_subtrees(0, widths[level])]
            nodes += [heap[at : at + HASH_SIZE] for at in places]
        self._changed: dict[int, bytearray] = {}
        self._edge = Edge(size, nodes, self._on_nodes)

    @property
    def size(self) -> int:
        return self._edge.size

    def append(self, leaf: bytes) -> None:
        self._edge.append(leaf)

    def extend(self, leaves: Iterable[bytes]) -> None:
        self._edge.extend(leaves)

    def root(self) -> bytes:
        return self._edge.root()

    def take_rows(self) -> dict[int, bytes]:
        """The tile rows that changed since the last call, to be stored in the transaction that stores the entries."""
        rows = {tile: bytes(data) for tile, data in self._changed.items()}
        self._changed.clear()
        return rows

    def _on_nodes(self, level: int, nodes: bytes) -> None:
        if level % HEIGHT:
            return
        level //= HEIGHT
        # The edge has its new size already; these nodes end at the last complete subtree of their level.
        first = (self._edge.size >> HEIGHT * level) - len(nodes) // HASH_SIZE
        while nodes:
            index, used = divmod(first, WIDTH)
            tile = self._tiles.setdefault(level, bytearray())
            part = nodes[: (WIDTH - used) * HASH_SIZE]
            tile += part
            self._changed[tile_id(level, index)] = tile
            if len(tile) == WIDTH * HASH_SIZE:
                del self._tiles[level]
            nodes = nodes[len(part) :]
            first += len(part) // HASH_SIZE


class TileTree:
    """Roots and proofs of any size up to the stored one, read from tiles through a cache of expanded tiles."""

    def __init__(self, store: TileStore, cached: int = CACHED_TILES) -> None:
        self._store = store
        # By number and width: a partial tile is the prefix of a row that still grows.
        self._cache: Cache[tuple[int, int], Expanded] = Cache(cached)
        # By level, the tile that was expanded last, and how wide it was: the tree's last tile is asked for again and
        # again while it grows.
        self._last: dict[int, tuple[int, int, Expanded]] = {}

    def root(self, size: int) -> bytes:
        return self.subtrees([(0, size)], size)[0] if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int) -> list[bytes]:
        return self.subtrees(inclusion_subtrees(index, size), size)

    def consistency(self, first: int, second: int) -> list[bytes]:
        return self.subtrees(consistency_subtrees(first, second), second)

    def multiproof(self, indices: Sequence[int], size: int) -> list[bytes]:
        return self.subtrees(multiproof_subtrees(indices, size, WIDTH), size)

    def subtrees(self, subtrees: Iterable[Subtree], size: int) -> list[bytes]:
        """All but the subtrees at the right edge are perfect, and have their hash in one place."""
        places: list[tuple[int, int]] = []
        uneven: list[slice] = []
        for lo, hi in subtrees:
            if lo == hi:
                tile = lo >> HEIGHT
                places += [(tile, at) for at in SIBLINGS[lo % WIDTH]]
            elif hi < size:
                places.append(_place(lo, hi))
            else:
                parts = [_place(*part) for part in perfect_subtrees(lo, hi)]
                uneven.append(slice(len(places), len(places) + len(parts)))
                places += parts
        tiles = self._expanded({tile for tile, _ in places}, size)
        hashes = [tiles[tile][at : at + HASH_SIZE] for tile, at in places]
        for part in reversed(uneven):
            hashes[part] = [fold_edge(hashes[part])]
        return hashes

    def _expanded(self, wanted: Iterable[int], size: int) -> dict[int, Expanded]:
        """Expanded tiles by number, all that are not in the cache by one read."""
        found: dict[int, Expanded] = {}
        missing: dict[int, int] = {}
        for tile in wanted:
            level, index = tile >> 48, tile & (1 << 48) - 1
            width = min((size >> HEIGHT * level) - index * WIDTH, WIDTH)
            cached = self._cache.get((tile, width))
            if cached is None:
                missing[tile] = width
            else:
                found[tile] = cached
        if missing:
            rows = self._store.read_tiles(list(missing))
            for tile, width in missing.items():
                last, narrower, before = self._last.get(tile >> 48, (tile, 0, b""))
                known = narrower if last == tile and narrower <= width else 0
                expanded = _expand(_prefix(rows, tile, width), known, before)
                self._last[tile >> 48] = tile, width, expanded
                found[tile] = self._cache.put((tile, width), expanded)
        return found


def _place(lo: int, hi: int) -> tuple[int, int]:
    """Where the root of a perfect subtree is found: the tile, and the offset in its heap."""
    bits = (hi - lo).bit_length() - 1
    level, first = bits >> 3, WIDTH >> (bits & 7)
    return level << 48 | lo >> HEIGHT * (level + 1), (first | lo >> bits & first - 1) * HASH_SIZE


def _siblings(heap_node: int) -> list[int]:
    """The offsets of all siblings on the way up from a node, left to right."""
    path = [heap_node >> height for height in range(HEIGHT)]
    left = [node - 1 for node in reversed(path) if node & 1]
    return [node * HASH_SIZE for node in (*left, *(node + 1 for node in path if not node & 1))]


# By place in the tile.
SIBLINGS = [_siblings(WIDTH + place) for place in range(WIDTH)]


def _prefix(rows: Mapping[int, bytes], tile: int, width: int) -> bytes:
    row = rows.get(tile)
    if row is None or len(row) < width * HASH_SIZE:
        raise NotStored(f"tile {tile >> 48}/{tile & (1 << 48) - 1} with {width} hashes is not stored")
    return row[: width * HASH_SIZE]


def _expand(row: bytes, known: int = 0, before: Expanded = b"") -> Expanded:
    """All nodes over a row; those over its first `known` hashes were worked out `before`."""
    heights = [row]
    for height in range(1, HEIGHT + 1):
        start, kept = HASH_SIZE * WIDTH >> height, HASH_SIZE * (known >> height)
        heights.append(before[start : start + kept] + parents(heights[-1][2 * kept :]))
    padded = [hashes.ljust(HASH_SIZE * WIDTH >> height, b"\0") for height, hashes in enumerate(heights)]
    return bytes(HASH_SIZE) + b"".join(reversed(padded))


def tile_resources(size: int) -> Iterator[str]:
    """The names of all tiles and bundles that exist at `size`, under the log's prefix. Nobody should make a list of
    them because of a size alone: whoever has a key can sign any."""
    level, count = 0, size
    while count:
        full, width = divmod(count, WIDTH)
        for index in range(full + bool(width)):
            suffix = "" if index < full else f".p/{width}"
            yield f"tile/{level}/{tile_name(index)}{suffix}"
            if level == 0:
                yield f"tile/entries/{tile_name(index)}{suffix}"
        level, count = level + 1, full


def tile_name(index: int) -> str:
    """1234067 is x001/x234/067."""
    name = f"{index % 1000:03}"
    while index := index // 1000:
        name = f"x{index % 1000:03}/{name}"
    return name


_PATH = re.compile(r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


def parse_tile_path(path: str) -> tuple[int | None, int, int]:
    """Level (None for a bundle), index and width of the resource `path` names below the log's prefix."""
    match = _PATH.fullmatch(path) if len(path) <= MAX_PATH else None
    if not match:
        raise BadTilePath(f"not a tile path: {path[:80]!r}")
    kind, name, width_text = match.groups()
    level = None if kind == "entries" else int(kind)
    index = int(name.replace("x", "").replace("/", ""))
    width = int(width_text) if width_text else WIDTH
    if (level or 0) > 63 or (width_text and width >= WIDTH) or tile_name(index) != name or index >= 1 << 48:
        raise BadTilePath(f"not a canonical tile path: {path[:80]!r}")
    return level, index, width


def encode_bundle(entries: Iterable[bytes]) -> bytes:
    """Entries as tlog-tiles serves them: each behind its length in two bytes."""
    parts = []
    for entry in entries:
        if len(entry) > MAX_ENTRY:
            raise BadEntry("entry_too_large", f"an entry of {len(entry)} bytes; at most {MAX_ENTRY} fit a bundle")
        parts += [len(entry).to_bytes(2), entry]
    return b"".join(parts)


def decode_bundle(bundle: bytes, most: int = WIDTH) -> list[bytes]:
    """The entries of a bundle, which are `most` at the most."""
    entries: list[bytes] = []
    at = 0
    while at < len(bundle):
        if len(entries) == most:
            raise BadEntry("entry_malformed", f"an entry bundle of more than {most} entries")
        start = at + 2
        at = start + int.from_bytes(bundle[at:start])
        entries.append(bundle[start:at])
    if at != len(bundle):
        raise BadEntry("entry_malformed", "the entry bundle is cut off")
    return entries
