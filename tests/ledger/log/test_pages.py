"""The map in pages: every version proves, damage is seen, and no more is read, written or kept than is needed."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import NotStored
from ledger.log.hostmap import ABSENT, MapLeaf, map_key, map_leaf, map_node, map_value
from ledger.log.pages import MemoryPages, PagedMap, decode_page, links_of
from tests.ledger.log.test_hostmap import BATCHES


@given(BATCHES)
def test_every_old_version_still_proves(batches: list[dict[bytes, bytes]]) -> None:
    pages, top = MemoryPages(), None
    paged = PagedMap(pages)
    versions: list[tuple[int | None, bytes, dict[bytes, bytes]]] = [(top, paged.root(top), {})]
    for batch in batches:
        top, root = paged.update(top, batch)
        versions.append((top, root, {**versions[-1][2], **batch}))
    fresh = PagedMap(pages)  # nothing in the cache: only what was stored
    every_key = versions[-1][2]
    for top, root, leaves in versions:
        assert fresh.root(top) == root
        assert fresh.get_all(top, every_key, root) == leaves
        for key in every_key:
            assert fresh.get(top, key, root) == leaves.get(key)
            proof = fresh.prove(top, key, root)
            assert proof.root(key) == root
            assert (proof.leaf is not None and proof.leaf.key == key) == (key in leaves)


class Shelf(MemoryPages):
    """Pages in memory that remember how they were read."""

    def __init__(self, pages: Sequence[bytes] = ()) -> None:
        super().__init__(pages)
        self.reads: list[list[int]] = []

    def read_pages(self, numbers: Sequence[int]) -> Mapping[int, bytes]:
        self.reads.append(list(numbers))
        return super().read_pages(numbers)


def slot_key(*slots: int) -> bytes:
    """The key that leads through these slots, and through slot 0 from there on."""
    return bytes.fromhex("".join(f"{slot:x}" for slot in slots).ljust(64, "0"))


@given(BATCHES)
def test_a_check_finds_every_new_leaf_in_new_pages_only(batches: list[dict[bytes, bytes]]) -> None:
    pages = Shelf()
    paged, leaves, top = PagedMap(pages), dict[bytes, bytes](), None
    for batch in batches:
        since = len(pages)
        top, root = paged.update(top, batch)
        leaves |= batch
        pages.reads.clear()
        found = paged.check(top, root, since)
        assert found.items() <= leaves.items()
        if batch:
            assert batch.items() <= found.items()
            assert sorted(chain(*pages.reads)) == list(range(since, len(pages)))
            lost = MemoryPages([b""] * since + pages[since:])
            assert PagedMap(lost).check(top, root, since) == found
        assert paged.check(top, root, 0) == leaves


# What a damaged page must not change. Each runs on nothing but what is stored.
QUESTIONS: list[Callable[[PagedMap, int | None, bytes, bytes], object]] = [
    lambda paged, top, root, key: paged.prove(top, key, root),
    lambda paged, top, root, key: paged.get(top, key, root),
    lambda paged, top, root, key: paged.update(top, {key: b"\x07" * 32}, root)[1],
    lambda paged, top, root, key: paged.check(top, root, 0),
]


@given(BATCHES.filter(any), st.data())
def test_a_flipped_byte_changes_no_answer(batches: list[dict[bytes, bytes]], data: st.DataObject) -> None:
    pages, top = MemoryPages(), None
    versions, keys = [], sorted({key for batch in batches for key in batch})
    for batch in batches:
        top, root = PagedMap(pages).update(top, batch)
        versions.append((top, root))
    damaged = MemoryPages(pages)
    page = data.draw(st.integers(0, len(pages) - 1))
    place = data.draw(st.integers(0, len(pages[page]) - 1))
    flipped = pages[page][place] ^ data.draw(st.integers(1, 255))
    damaged[page] = pages[page][:place] + bytes([flipped]) + pages[page][place + 1 :]
    for top, root in versions:
        key = data.draw(st.sampled_from(keys))
        for ask in QUESTIONS:
            answer = ask(PagedMap(MemoryPages(pages)), top, root, key)
            with suppress(NotStored):
                assert ask(PagedMap(MemoryPages(damaged)), top, root, key) == answer


def test_the_check_sees_a_flip_of_any_byte() -> None:
    pages, keys = MemoryPages(), [map_key(f"did:web:h{n}.example") for n in range(24)]
    top, root = PagedMap(pages).update(None, {key: map_value(key) for key in keys})
    for number, page in enumerate(pages):
        for place, byte in enumerate(page):
            # Kinds of slots become all others.
            for flip in range(1, 256) if place < 4 else (1, 128):
                damaged = MemoryPages(pages)
                damaged[number] = page[:place] + bytes([byte ^ flip]) + page[place + 1 :]
                with pytest.raises(NotStored, match=r"map page \d+ is missing or damaged"):
                    PagedMap(damaged).check(top, root, 0)


def test_a_damaged_page_is_in_the_way_of_its_hosts_only() -> None:
    pages, keys = MemoryPages(), [slot_key(5, 1), slot_key(5, 2), slot_key(5, 3, 1), slot_key(5, 3, 2), slot_key(6)]
    top, root = PagedMap(pages).update(None, dict.fromkeys(keys, ABSENT))
    for number, page in enumerate(pages):
        damaged = MemoryPages(pages)
        damaged[number] = page[:-1] + bytes([page[-1] ^ 1])
        for key, ask in product(keys, QUESTIONS[:3]):
            whole = Shelf(pages)
            answer = ask(PagedMap(whole), top, root, key)
            if [number] in whole.reads:
                with pytest.raises(NotStored, match=f"map page {number} "):
                    ask(PagedMap(MemoryPages(damaged)), top, root, key)
            else:
                assert ask(PagedMap(MemoryPages(damaged)), top, root, key) == answer


def test_a_leaf_in_a_neighbours_slot_is_refused_although_the_hash_is_right() -> None:
    pages, keys = MemoryPages(), [slot_key(0), slot_key(8)]
    top, root = PagedMap(pages).update(None, dict.fromkeys(keys, ABSENT))
    assert pages[0][:4].hex() == "40004000"
    pages[0] = bytes.fromhex("10004000") + pages[0][4:]
    for ask in QUESTIONS:
        with pytest.raises(NotStored, match="map page 0 "):
            ask(PagedMap(pages), top, root, keys[0])


@pytest.mark.parametrize(
    "change", [lambda page: page[:-1], lambda page: page + b"\0", lambda _: b"", lambda _: b"\0\0"]
)
def test_a_page_of_another_length_is_refused_even_without_a_root(change: Callable[[bytes], bytes]) -> None:
    pages = MemoryPages()
    top, _ = PagedMap(pages).update(None, {map_key("did:web:a.example"): ABSENT, map_key("did:web:b.example"): ABSENT})
    assert top is not None
    pages[top] = change(pages[top])
    with pytest.raises(NotStored, match=f"map page {top} "):
        PagedMap(pages).root(top)


def test_a_page_number_that_leads_nowhere_is_named() -> None:
    pages, keys = MemoryPages(), [slot_key(5, 1), slot_key(5, 2)]
    top, root = PagedMap(pages).update(None, dict.fromkeys(keys, ABSENT))
    assert top == 1
    for number in (2, 2**64 - 1):
        pages[1] = pages[1][:4] + number.to_bytes(8) + pages[1][12:]
        for ask in QUESTIONS:
            with pytest.raises(NotStored, match=f"map page {number} "):
                ask(PagedMap(pages), top, root, keys[0])
    with pytest.raises(NotStored, match="map page 7 "):
        PagedMap(pages).root(7)


def test_the_top_page_must_have_the_root_that_the_caller_names() -> None:
    pages = MemoryPages()
    paged, key = PagedMap(pages), slot_key(5)
    none = paged.root(None)
    top, root = paged.update(None, {key: ABSENT}, none)
    for ask in QUESTIONS:
        ask(paged, top, root, key)
        ask(paged, None, none, key)
        for named in (none, root[:-1], b""):
            with pytest.raises(NotStored):
                ask(paged, top, named, key)
        with pytest.raises(NotStored):
            ask(paged, None, root, key)


def test_a_page_read_without_a_root_is_not_taken_for_a_checked_one() -> None:
    pages, key, other = MemoryPages(), slot_key(5), bytes(31) + b"\1"
    top, root = PagedMap(pages).update(None, {key: ABSENT})
    pages[0] = pages[0][:36] + other + map_leaf(key, other)
    paged = PagedMap(pages)
    assert paged.get(top, key) == other
    for ask in QUESTIONS:
        with pytest.raises(NotStored):
            ask(paged, top, root, key)


@pytest.mark.parametrize("at", [4, 36, 68], ids=["key", "value", "hash"])
def test_a_leaf_has_the_hash_of_its_key_and_value(at: int) -> None:
    pages, key = MemoryPages(), slot_key(5)
    top, _ = PagedMap(pages).update(None, {key: ABSENT})
    pages[0] = pages[0][: at + 31] + bytes([pages[0][at + 31] ^ 1]) + pages[0][at + 32 :]
    with pytest.raises(NotStored, match="map page 0 "):
        PagedMap(pages).root(top)


def test_all_pages_of_a_level_are_read_at_once() -> None:
    pages = Shelf()
    keys = [slot_key(*slots) for slots in ((1, 1, 1), (1, 1, 2), (1, 2), (2, 1), (2, 2), (3,))]
    top, root = PagedMap(pages).update(None, dict.fromkeys(keys, ABSENT))
    asks: list[Callable[[PagedMap], object]] = [
        lambda paged: paged.get_all(top, keys, root),
        lambda paged: (paged.get_all(top, keys, root), paged.update(top, dict.fromkeys(keys, b"\1" * 32), root)),
        lambda paged: paged.check(top, root, 0),
    ]
    for ask in asks:
        pages.reads.clear()
        ask(PagedMap(pages))
        assert [len(numbers) for numbers in pages.reads] == [1, 2, 1]


def test_a_writer_keeps_the_pages_of_its_version_alone() -> None:
    pages = Shelf()
    paged, top, root = PagedMap(pages), None, None
    for number in range(50):
        top, root = paged.update(top, {map_key(f"did:web:{number % 20}.example"): bytes([number] * 32)}, root)
    assert {int.from_bytes(link[:8]) for link in paged._cache._young} == _reachable(pages, top)


def _reachable(pages: "Shelf", top: int | None) -> set[int]:
    level, found, depth = [top] if top is not None else [], set[int](), 0
    while level:
        found |= set(level)
        made = [decode_page(pages[number], depth) for number in level]
        level, depth = [number for page in made if page for number, _ in links_of(page)], depth + 4
    return found


def test_what_was_just_written_is_not_read_again() -> None:
    pages, keys = Shelf(), [slot_key(1, 1), slot_key(1, 2)]
    paged = PagedMap(pages)
    top, root = paged.update(None, dict.fromkeys(keys, ABSENT))
    paged.update(top, {key: paged.prove(top, key, root).root(key) for key in keys}, root)
    assert pages.reads == []
    assert PagedMap(pages, cached=1).get(top, keys[0], root) == paged.get(top, keys[0], root) == ABSENT


def test_the_bytes_of_a_page_are_kinds_and_slots() -> None:
    pages = MemoryPages()
    one, two, three = slot_key(0), slot_key(5, 1), slot_key(5, 2)
    PagedMap(pages).update(None, {one: b"\1" * 32, two: b"\2" * 32, three: b"\3" * 32})
    leaves = MapLeaf(two, b"\2" * 32), MapLeaf(three, b"\3" * 32)
    assert pages[0] == bytes.fromhex("14000000") + b"".join(leaf.key + leaf.value + leaf.hash for leaf in leaves)
    # Slots 1 and 2 meet over slots 0 to 3; nothing is in the others.
    below = map_node(map_node(map_node(leaves[0].hash, leaves[1].hash), ABSENT), ABSENT)
    assert pages[1] == bytes.fromhex("40200000") + one + b"\1" * 32 + map_leaf(one, b"\1" * 32) + bytes(8) + below


def test_an_update_of_nothing_writes_nothing() -> None:
    pages = MemoryPages()
    paged = PagedMap(pages)
    assert paged.update(None, {}) == (None, paged.root(None))
    assert not pages
