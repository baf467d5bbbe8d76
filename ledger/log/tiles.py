"""Tiles and entry bundles (c2sp.org/tlog-tiles 0.1.0): how a tree is stored and served.

A tile row holds up to 256 hashes of one level and only grows at its end, so any older partial tile is a prefix of
the stored row, and every proof of every older size comes from the same rows.
"""

import re
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from ledger.errors import BadEntry, BadTilePath, NotStored
from ledger.log.tree import (
    EMPTY_ROOT,
    HASH_SIZE,
    Edge,
    Subtree,
    consistency_subtrees,
    fold_edge,
    inclusion_subtrees,
    multiproof_subtrees,
    node_hash,
    perfect_subtrees,
)

HEIGHT = 8
WIDTH = 1 << HEIGHT
MAX_ENTRY = 65535
# 8 KiB of hashes expand to 16 KiB and some object overhead: about 10 MB in all.
CACHED_TILES = 256


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
            nodes += [_perfect_root(row, lo, hi) for lo, hi in perfect_subtrees(0, widths[level])]
        self._changed: dict[int, bytearray] = {}
        self._edge = Edge(size, nodes, self._on_node)

    @property
    def size(self) -> int:
        return self._edge.size

    def append(self, leaf: bytes) -> None:
        self._edge.append(leaf)

    def root(self) -> bytes:
        return self._edge.root()

    def take_rows(self) -> dict[int, bytes]:
        """The tile rows that changed since the last call, to be stored in the transaction that stores the entries."""
        rows = {tile: bytes(data) for tile, data in self._changed.items()}
        self._changed.clear()
        return rows

    def _on_node(self, level: int, node: bytes) -> None:
        if level % HEIGHT:
            return
        level //= HEIGHT
        tile = self._tiles.setdefault(level, bytearray())
        tile += node
        # The edge counts a leaf only when all its nodes are told, hence the size before this leaf.
        self._changed[tile_id(level, self._edge.size >> HEIGHT * (level + 1))] = tile
        if len(tile) == WIDTH * HASH_SIZE:
            self._tiles[level] = bytearray()


class TileTree:
    """Roots and proofs of any size up to the stored one, read from tiles through a cache of expanded tiles."""

    def __init__(self, store: TileStore) -> None:
        self._store = store
        self._cache: OrderedDict[tuple[int, int], list[list[bytes]]] = OrderedDict()

    def root(self, size: int) -> bytes:
        return self._hashes([(0, size)], size)[0] if size else EMPTY_ROOT

    def inclusion(self, index: int, size: int) -> list[bytes]:
        return self._hashes(inclusion_subtrees(index, size), size)

    def consistency(self, first: int, second: int) -> list[bytes]:
        return self._hashes(consistency_subtrees(first, second), second)

    def multiproof(self, indices: Sequence[int], size: int) -> list[bytes]:
        return self._hashes(multiproof_subtrees(indices, size), size)

    def _hashes(self, subtrees: Sequence[Subtree], size: int) -> list[bytes]:
        parts = [perfect_subtrees(lo, hi) for lo, hi in subtrees]
        places = [[_place(lo, hi) for lo, hi in part] for part in parts]
        tiles = self._tiles({(level, index) for part in places for level, index, _, _ in part}, size)
        return [
            fold_edge([tiles[level, index][height][offset] for level, index, height, offset in part]) for part in places
        ]

    def _tiles(self, wanted: Iterable[tuple[int, int]], size: int) -> dict[tuple[int, int], list[list[bytes]]]:
        """Expanded tiles, all missing ones by one read."""
        found: dict[tuple[int, int], list[list[bytes]]] = {}
        missing: dict[tuple[int, int], tuple[int, tuple[int, int]]] = {}
        for level, index in wanted:
            width = min((size >> HEIGHT * level) - index * WIDTH, WIDTH)
            key = (tile_id(level, index), width)
            if key in self._cache:
                self._cache.move_to_end(key)
                found[level, index] = self._cache[key]
            else:
                missing[level, index] = (width, key)
        if missing:
            rows = self._store.read_tiles([key[0] for _, key in missing.values()])
            for place, (width, key) in missing.items():
                found[place] = self._cache[key] = _expand(_prefix(rows, key[0], width))
            while len(self._cache) > CACHED_TILES:
                self._cache.popitem(last=False)
        return found


def _place(lo: int, hi: int) -> tuple[int, int, int, int]:
    """Where the root of a perfect subtree is found: tile level, tile index, height in the tile, offset."""
    level, height = divmod((hi - lo).bit_length() - 1, HEIGHT)
    return level, lo >> HEIGHT * (level + 1), height, (lo >> HEIGHT * level) % WIDTH >> height


def _prefix(rows: Mapping[int, bytes], tile: int, width: int) -> bytes:
    row = rows.get(tile)
    if row is None or len(row) < width * HASH_SIZE:
        raise NotStored(f"tile {tile >> 48}/{tile & (1 << 48) - 1} with {width} hashes is not stored")
    return row[: width * HASH_SIZE]


def _expand(row: bytes) -> list[list[bytes]]:
    """All perfect subtrees inside a tile: hashes[height][offset]."""
    hashes = [[row[at : at + HASH_SIZE] for at in range(0, len(row), HASH_SIZE)]]
    while len(below := hashes[-1]) > 1:
        hashes.append([node_hash(below[i], below[i + 1]) for i in range(0, len(below) - 1, 2)])
    return hashes


def _perfect_root(row: bytes, lo: int, hi: int) -> bytes:
    return _expand(row[lo * HASH_SIZE : hi * HASH_SIZE])[-1][0]


def tile_resources(size: int) -> list[str]:
    """The names of all tiles and bundles that exist at `size`, under the log's prefix."""
    names, level, count = [], 0, size
    while count:
        full, width = divmod(count, WIDTH)
        for index in range(full + bool(width)):
            suffix = "" if index < full else f".p/{width}"
            names.append(f"tile/{level}/{tile_name(index)}{suffix}")
            if level == 0:
                names.append(f"tile/entries/{tile_name(index)}{suffix}")
        level, count = level + 1, full
    return names


def tile_name(index: int) -> str:
    """1234067 is x001/x234/067."""
    name = f"{index % 1000:03}"
    while index := index // 1000:
        name = f"x{index % 1000:03}/{name}"
    return name


_PATH = re.compile(r"tile/(entries|0|[1-9][0-9]?)/((?:x[0-9]{3}/)*[0-9]{3})(?:\.p/([1-9][0-9]{0,2}))?")


def parse_tile_path(path: str) -> tuple[int | None, int, int]:
    """Level (None for a bundle), index and width of the resource `path` names below the log's prefix."""
    match = _PATH.fullmatch(path)
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


def decode_bundle(bundle: bytes) -> list[bytes]:
    entries, at = [], 0
    while at < len(bundle):
        start = at + 2
        at = start + int.from_bytes(bundle[at:start])
        entries.append(bundle[start:at])
    if at != len(bundle):
        raise BadEntry("entry_malformed", "the entry bundle is cut off")
    return entries
