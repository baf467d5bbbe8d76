"""The host map as copy-on-write pages (protocol.md 8): every version ever published still proves.

A page covers four bits of the key: 16 slots, each empty, a leaf, or a page below. Pages are never changed once
written, so a cache of them never goes stale, and a version is no more than the number of its top page.

A store may lose or damage pages, so a page that is read must have the hash its parent names, and a top page the root
the caller names. Page numbers are not hashed: a wrong one leads to a page with another hash.
"""

import struct
from collections.abc import Collection, Iterable, Mapping, Sequence
from hashlib import sha256
from itertools import product
from typing import Protocol

from ledger.errors import NotStored
from ledger.log.cache import Cache
from ledger.log.hostmap import ABSENT, NODE_PREFIX, MapLeaf, MapProof, map_leaf, map_node

BITS = 4
SLOTS = 1 << BITS
# 16 MiB with 10^5 hosts, 41 MiB if all pages were full.
CACHED_PAGES = 16384

# T(S, d) of protocol.md 1 as a "part": bytes that end in the hash and tell by their length what S is. No host: no
# bytes. One host: key, value, hash. More hosts: the hash alone or, in a slot, the number of their page and the hash.
NODE, LINK, LEAF = 32, 8 + 32, 32 + 32 + 32
# Stands in the link to a top page for a root that the caller does not know.
UNKNOWN = b"?"


class PageStore(Protocol):
    """Numbered pages. A page's bytes never change; numbers only grow."""

    def read_pages(self, numbers: Sequence[int]) -> Mapping[int, bytes]:
        """Those of the pages that are stored. A damaged page can name any number below 2**64."""

    def write_page(self, data: bytes) -> int:
        """Store a new page and return its number."""


class MemoryPages(list[bytes]):
    """Pages in memory, numbered from 0."""

    def read_pages(self, numbers: Sequence[int]) -> Mapping[int, bytes]:
        return {number: self[number] for number in numbers if number < len(self)}

    def write_page(self, data: bytes) -> int:
        self.append(data)
        return len(self) - 1


# The parts of a page as a heap: part n joins the parts 2n and 2n + 1, part 1 has the page's hash, and the last 16 are
# the slots, whose kinds (`kinds_of`) are part 0. A plain tuple of bytes: the garbage collector does not look into
# these, and a writer keeps tens of thousands.
Page = tuple[bytes, ...]

# All parts above the slots, lower ones first.
ABOVE = range(SLOTS - 1, 0, -1)


def make_page(depth: int, parts: list[bytes], stale: Iterable[int] = ABOVE) -> Page:
    """The page of these slots, after working out the `stale` parts above them anew, lower ones first."""
    for n in stale:
        left, right = parts[2 * n], parts[2 * n + 1]
        if left and right:
            parts[n] = sha256(NODE_PREFIX + left[-32:] + right[-32:]).digest()
        elif len(left or right) in (NODE, LINK):
            parts[n] = map_node(left[-32:] or ABSENT, right[-32:] or ABSENT)
        else:
            # A lone host rises as a leaf.
            parts[n] = left or right
    if depth == 0 and len(parts[1]) != NODE:
        # The map root is a node in any case.
        parts[1] = map_node(parts[2][-32:] or ABSENT, parts[3][-32:] or ABSENT)
    return tuple(parts)


def links_of(page: Page) -> list[tuple[int, bytes]]:
    """The numbers and hashes of the pages right below."""
    return [(_number(part), part[8:]) for part in page[SLOTS:] if len(part) == LINK]


FOURS = list(product(range(3), repeat=4))
LENGTHS = (0, LEAF, LINK)
FIELDS = ("0s", "96s", "40s")
# The byte that has the kinds of four slots, by their lengths; and the fields of four slots, by that byte.
KINDS = {bytes(LENGTHS[k] for k in four): four[0] << 6 | four[1] << 4 | four[2] << 2 | four[3] for four in FOURS}
LAYOUTS = {kinds: "".join(FIELDS[LENGTHS.index(length)] for length in lengths) for lengths, kinds in KINDS.items()}


def kinds_of(parts: Sequence[bytes]) -> bytes:
    """Two bits per slot: 0 empty, 1 leaf, 2 page."""
    lengths = bytes(map(len, parts[SLOTS:]))
    return bytes([KINDS[lengths[:4]], KINDS[lengths[4:8]], KINDS[lengths[8:12]], KINDS[lengths[12:]]])


# A page below the top before there is anything in it, and the top page of the map without hosts.
EMPTY: Page = (bytes(SLOTS // 4), *[b""] * (2 * SLOTS - 1))
NO_HOSTS = make_page(0, list(EMPTY))


class PagedMap:
    """All versions of the map. `top` is the number of a version's top page, None for the map without hosts.

    Who knows the `root` of a version names it, so that its top page is checked too. NotStored is raised for a page
    that is missing or damaged.
    """

    def __init__(self, store: PageStore, cached: int = CACHED_PAGES) -> None:
        self._store = store
        # By link: a page found here was checked against the very hash that is asked for.
        self._cache: Cache[bytes, Page] = Cache(cached)

    def update(
        self, top: int | None, values: Mapping[bytes, bytes], root: bytes | None = None
    ) -> tuple[int | None, bytes]:
        """A new version with `values` (key to value) set: its top page and its root. Pages that are not in the cache
        are read one by one: ask `get_all` first."""
        page = self._top(top, root)
        if not values:
            return top, page[1]
        leaves = [key + value + map_leaf(key, value) for key, value in values.items()]
        link = self._set(page, 0, leaves)
        if top is not None:
            self._cache.drop(_link(top, page[1]))
        return _number(link), link[8:]

    def root(self, top: int | None) -> bytes:
        return self._top(top)[1]

    def get(self, top: int | None, key: bytes, root: bytes | None = None) -> bytes | None:
        return self.get_all(top, [key], root).get(key)

    def get_all(self, top: int | None, keys: Iterable[bytes], root: bytes | None = None) -> dict[bytes, bytes]:
        """The values of those of the keys that the version has."""
        found: dict[bytes, bytes] = {}
        first, pages, depth = self._top(top, root), {}, 0
        for key in keys:
            part = self._cached(first, key)
            if part is None:
                pages[key] = first
            elif part[:32] == key:
                found[key] = part[32:64]
        # Level by level, so that the pages of many keys are one query.
        while pages:
            parts = {key: page[_slot(key, depth)] for key, page in pages.items()}
            found |= {key: part[32:64] for key, part in parts.items() if len(part) == LEAF and part[:32] == key}
            links = {key: part for key, part in parts.items() if len(part) == LINK}
            depth += BITS
            below = self._read(set(links.values()), depth)
            pages = {key: below[link] for key, link in links.items()}
        return found

    def _cached(self, page: Page, key: bytes) -> bytes | None:
        """The slot in which the way of a key ends, from the top page on; None if that leads out of the cache."""
        depth = 0
        while len(part := page[_slot(key, depth)]) == LINK:
            below = self._cache.get(part)
            if below is None:
                return None
            page, depth = below, depth + BITS
        return part

    def prove(self, top: int | None, key: bytes, root: bytes | None = None) -> MapProof:
        siblings: list[bytes] = []
        page, depth = self._top(top, root), 0
        while True:
            slot = _slot(key, depth)
            for height in range(BITS - 1, -1, -1):
                part, sibling = page[slot >> height], page[slot >> height ^ 1]
                siblings.append(sibling[-32:] or ABSENT)
                if len(part) in (0, LEAF):
                    return MapProof(tuple(reversed(siblings)), MapLeaf(part[:32], part[32:64]) if part else None)
            depth += BITS
            page = self._read([part], depth)[part]

    def check(self, top: int | None, root: bytes, since: int) -> dict[bytes, bytes]:
        """Read the top page and all pages from number `since` on anew, past the cache, and return their leaves.

        Where none is refused, `root` commits to these leaves. Compare them with what was to be written: a damaged page
        can name an older number, behind which this does not look.
        """
        found: dict[bytes, bytes] = {}
        depth = 0
        first = since.to_bytes(8)
        pages = [self._top(None, root)] if top is None else self._stored([_link(top, root)], 0)
        while pages:
            links = []
            for page in pages:
                for part in page[SLOTS:]:
                    if len(part) == LEAF:
                        found[part[:32]] = part[32:64]
                    elif part >= first:  # links sort by number
                        links.append(part)
            depth += BITS
            pages = self._stored(links, depth)
        return found

    def _set(self, page: Page, depth: int, leaves: list[bytes]) -> bytes:
        """The link to a new page: `page` with the leaves set. Only what is above them is hashed anew."""
        parts, below = list(page), depth + BITS
        groups = {_slot(leaves[0], depth): leaves} if len(leaves) == 1 else _by_slot(leaves, depth)
        for slot, group in groups.items():
            old = page[slot]
            if len(old) == LINK:
                known = self._cache.get(old) or self._read([old], below)[old]
                parts[slot] = self._set(known, below, group)
                # Who updates goes on from the new version.
                self._cache.drop(old)
            else:
                if old and all(leaf[:32] != old[:32] for leaf in group):
                    group = [*group, old]
                parts[slot] = self._set(EMPTY, below, group) if len(group) > 1 else group[0]
            if len(parts[slot]) != len(old):
                parts[0] = b""
        if not parts[0]:
            parts[0] = kinds_of(parts)
        return self._write(make_page(depth, parts, _above(groups)))

    def _write(self, page: Page) -> bytes:
        link = _link(self._store.write_page(encode_page(page)), page[1])
        self._cache.put(link, page)
        return link

    def _top(self, top: int | None, root: bytes | None = None) -> Page:
        if top is not None:
            link = _link(top, UNKNOWN if root is None else root)
            return self._read([link], 0)[link]
        if root not in (None, NO_HOSTS[1]):
            raise NotStored("a map with this root has a top page, but none is named")
        return NO_HOSTS

    def _read(self, links: Collection[bytes], depth: int) -> dict[bytes, Page]:
        pages = {link: page for link in links if (page := self._cache.get(link))}
        missing = [link for link in links if link not in pages]
        for link, page in zip(missing, self._stored(missing, depth), strict=True):
            pages[link] = self._cache.put(link, page)
        return pages

    def _stored(self, links: Sequence[bytes], depth: int) -> list[Page]:
        numbers = [_number(link) for link in links]
        stored = self._store.read_pages(numbers) if numbers else {}
        pages = []
        for number, link in zip(numbers, links, strict=True):
            page = decode_page(stored[number], depth) if number in stored else None
            if page is None or link[8:] not in (page[1], UNKNOWN):
                raise NotStored(f"map page {number} is missing or damaged")
            pages.append(page)
        return pages


def _slot(key: bytes, depth: int) -> int:
    """The part that is the slot of a key, or of a leaf, for it begins with its key."""
    return SLOTS | key[depth >> 3] >> (0 if depth & 4 else 4) & 15


def _by_slot(leaves: Iterable[bytes], depth: int) -> dict[int, list[bytes]]:
    groups: dict[int, list[bytes]] = {}
    for leaf in leaves:
        groups.setdefault(_slot(leaf, depth), []).append(leaf)
    return groups


def _above(slots: Collection[int]) -> Iterable[int]:
    """The parts above some slots, lower ones first."""
    if len(slots) == 1:
        [slot] = slots
        return slot >> 1, slot >> 2, slot >> 3, 1
    return sorted({slot >> height for slot in slots for height in range(1, BITS + 1)}, reverse=True)


def _link(number: int, hash_: bytes) -> bytes:
    return number.to_bytes(8) + hash_


def _number(link: bytes) -> int:
    return int.from_bytes(link[:8])


def encode_page(page: Page) -> bytes:
    """The kinds of the slots, then the slots."""
    return page[0] + b"".join(page[SLOTS:])


def decode_page(data: bytes, depth: int) -> Page | None:
    """The page of these bytes; None if no page at this depth has them."""
    try:
        slots = struct.unpack("4x" + "".join([LAYOUTS[kinds] for kinds in data[:4]]), data)
    except (KeyError, struct.error):
        return None
    for n, part in enumerate(slots, SLOTS):
        # The page's hash would not tell of a wrong slot: a leaf that rises has the same one from its neighbour's.
        if len(part) == LEAF and (_slot(part, depth) != n or part[64:] != map_leaf(part[:32], part[32:64])):
            return None
    return make_page(depth, [data[:4], *EMPTY[1:SLOTS], *slots])
