"""The host map as copy-on-write pages (protocol.md 8): every version ever published still proves.

A page covers four bits of the key: 16 slots, each empty, a leaf, or a page below. Pages are never changed once
written, so a cache of them never goes stale, and a version is no more than the number of its top page.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.errors import NotStored
from ledger.log.hostmap import ABSENT, MapLeaf, MapProof, map_node
from ledger.log.lru import Cache

BITS = 4
SLOTS = 1 << BITS
CACHED_PAGES = 4096


class PageStore(Protocol):
    """Numbered pages. A page's bytes never change; numbers only grow."""

    def read_page(self, page: int) -> bytes: ...

    def write_page(self, data: bytes) -> int:
        """Store a new page and return its number."""


class MemoryPages(list[bytes]):
    """Pages in memory, numbered from 0."""

    def read_page(self, page: int) -> bytes:
        return self[page]

    def write_page(self, data: bytes) -> int:
        self.append(data)
        return len(self) - 1


@dataclass(frozen=True, slots=True)
class Below:
    """A slot that leads to another page, which holds at least two hosts."""

    page: int
    hash: bytes


Slot = MapLeaf | Below | None
# T(S, d) of protocol.md 1 for some slots of a page: its hash, and the leaf when S is that one host.
Part = tuple[bytes, MapLeaf | None]


class Page:
    """Sixteen slots and, by height, the hashes over 1, 2, 4, 8 and 16 of them."""

    __slots__ = ("parts", "slots")

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.slots = slots
        self.parts: list[list[Part]] = [[_part(slot) for slot in slots]]
        while len(below := self.parts[-1]) > 1:
            self.parts.append([_join(below[i], below[i + 1]) for i in range(0, len(below), 2)])

    @property
    def hash(self) -> bytes:
        return self.parts[BITS][0][0]

    @property
    def top_hash(self) -> bytes:
        """The map root is a node even over one host or none."""
        left, right = self.parts[BITS - 1]
        return map_node(left[0], right[0])


class PagedMap:
    """All versions of the map. `top` is the number of a version's top page, None for the map without hosts."""

    def __init__(self, store: PageStore) -> None:
        self._store = store
        self._cache: Cache[int, Page] = Cache(CACHED_PAGES)

    def update(self, top: int | None, values: Mapping[bytes, bytes]) -> tuple[int | None, bytes]:
        """A new version with `values` (key to value) set: its top page and its root."""
        if not values:
            return top, self.root(top)
        page = self._set(self._read(top), 0, [MapLeaf(key, value) for key, value in values.items()])
        return self._write(page), page.top_hash

    def root(self, top: int | None) -> bytes:
        return self._read(top).top_hash

    def prove(self, top: int | None, key: bytes) -> MapProof:
        siblings: list[bytes] = []
        page, depth = self._read(top), 0
        while True:
            slot = _slot(key, depth)
            for height in range(BITS, 0, -1):
                hash_, leaf = page.parts[height][slot >> height]
                if (leaf or hash_ == ABSENT) and siblings:
                    return MapProof(tuple(reversed(siblings)), leaf)
                siblings.append(page.parts[height - 1][slot >> height - 1 ^ 1][0])
            end = page.slots[slot]
            if not isinstance(end, Below):
                return MapProof(tuple(reversed(siblings)), end)
            page, depth = self._read(end.page), depth + BITS

    def _set(self, page: Page, depth: int, leaves: Iterable[MapLeaf]) -> Page:
        by_slot: dict[int, list[MapLeaf]] = {}
        for leaf in leaves:
            by_slot.setdefault(_slot(leaf.key, depth), []).append(leaf)
        slots = list(page.slots)
        for slot, group in by_slot.items():
            old = slots[slot]
            if isinstance(old, MapLeaf) and all(leaf.key != old.key for leaf in group):
                group.append(old)
            if isinstance(old, Below) or len(group) > 1:
                below = self._read(old.page) if isinstance(old, Below) else EMPTY
                below = self._set(below, depth + BITS, group)
                slots[slot] = Below(self._write(below), below.hash)
            else:
                slots[slot] = group[0]
        return Page(slots)

    def _write(self, page: Page) -> int:
        number = self._store.write_page(encode_page(page.slots))
        self._cache.put(number, page)
        return number

    def _read(self, number: int | None) -> Page:
        if number is None:
            return EMPTY
        return self._cache.get(number) or self._cache.put(number, Page(decode_page(self._store.read_page(number))))


def _slot(key: bytes, depth: int) -> int:
    return key[depth >> 3] >> (0 if depth & 4 else 4) & 15


def _part(slot: Slot) -> Part:
    if slot is None:
        return ABSENT, None
    return slot.hash, slot if isinstance(slot, MapLeaf) else None


def _join(left: Part, right: Part) -> Part:
    """A lone host rises as a leaf; two hosts meet in a node."""
    if left[0] == ABSENT and (right[0] == ABSENT or right[1]):
        return right
    if right[0] == ABSENT and left[1]:
        return left
    return map_node(left[0], right[0]), None


EMPTY = Page((None,) * SLOTS)


def encode_page(slots: Sequence[Slot]) -> bytes:
    """Two bits per slot (0 empty, 1 leaf, 2 page), then a leaf as key and value, a page as number and hash."""
    kinds, parts = 0, []
    for slot in slots:
        kinds <<= 2
        if isinstance(slot, MapLeaf):
            kinds |= 1
            parts += [slot.key, slot.value]
        elif slot is not None:
            kinds |= 2
            parts += [slot.page.to_bytes(8), slot.hash]
    return kinds.to_bytes(4) + b"".join(parts)


def decode_page(data: bytes) -> list[Slot]:
    kinds, at = int.from_bytes(data[:4]), 4
    slots: list[Slot] = []
    for shift in range(2 * SLOTS - 2, -1, -2):
        kind = kinds >> shift & 3
        if kind == 0:
            slots.append(None)
        elif kind == 1:
            slots.append(MapLeaf(data[at : at + 32], data[at + 32 : at + 64]))
            at += 64
        elif kind == 2:
            slots.append(Below(int.from_bytes(data[at : at + 8]), data[at + 8 : at + 40]))
            at += 40
        else:
            raise NotStored("a map page is damaged: a slot is of an unknown kind")
    if at != len(data) or len(data) < 4:
        raise NotStored("a map page is damaged: its length does not fit its slots")
    return slots
