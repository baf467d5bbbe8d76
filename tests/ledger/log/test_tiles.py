from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import BadEntry, BadTilePath, NotStored
from ledger.log.tiles import (
    WIDTH,
    Appender,
    MemoryTiles,
    TileTree,
    decode_bundle,
    encode_bundle,
    parse_tile_path,
    tile_id,
    tile_name,
    tile_resources,
)
from ledger.log.tree import HASH_SIZE, leaf_hash, root_of

LEAVES = [leaf_hash(b"%d" % i) for i in range(2000)]


@given(st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_appending_in_any_batches_and_reopening_gives_the_same_tiles(batches: list[int]) -> None:
    tiles, size = MemoryTiles(), 0
    for batch in batches:
        if size + batch > len(LEAVES):
            break
        appender = Appender(tiles, size)  # opened anew, as after a restart
        appender.extend(LEAVES[size : size + batch])
        size += batch
        assert (appender.size, appender.root()) == (size, root_of(LEAVES[:size]))
        tiles.update(appender.take_rows())
        assert appender.take_rows() == {}
    at_once = MemoryTiles()
    appender = Appender(at_once)
    for leaf in LEAVES[:size]:
        appender.append(leaf)
    assert tiles == appender.take_rows()


def test_an_older_tile_is_a_prefix_of_the_stored_row() -> None:
    tiles = MemoryTiles()
    appender = Appender(tiles)
    rows: dict[int, bytes] = {}
    for leaf in LEAVES[:700]:
        appender.append(leaf)
        for tile, row in appender.take_rows().items():
            assert row.startswith(rows.get(tile, b""))
            rows[tile] = row
    assert {len(row) // 32 for row in rows.values()} == {256, 188, 2}


def test_size_70000_has_the_tiles_of_the_specification() -> None:
    names = [name for name in tile_resources(70_000) if ".p/" in name or name.startswith("tile/2")]
    assert names == ["tile/0/273.p/112", "tile/entries/273.p/112", "tile/1/001.p/17", "tile/2/000.p/1"]


@given(st.integers(0, 2**48 - 1), st.integers(0, 63), st.integers(1, 256))
def test_paths_are_read_back(index: int, level: int, width: int) -> None:
    suffix = "" if width == 256 else f".p/{width}"
    assert parse_tile_path(f"tile/{level}/{tile_name(index)}{suffix}") == (level, index, width)
    assert parse_tile_path(f"tile/entries/{tile_name(index)}{suffix}") == (None, index, width)


@pytest.mark.parametrize(
    "path",
    ["", "tile", "tile/0/0", "tile/64/000", "tile/00/000", "tile/0/x000/000", "tile/0/1000", "tile/0/000.p/256", "tile/0/000.p/0",
     "tile/0/000.p/01", "tile/0/001/000", "tile/data/000", "/tile/0/000", "tile/0/000\n", "tile/0/٠٠٠", "tile/-1/000",
     "tile/0/x999/x999/x999/x999/x999/999", "tile/0/" + "x001/" * 2000 + "000"],
)  # fmt: skip
def test_other_paths_are_refused(path: str) -> None:
    with pytest.raises(BadTilePath) as refusal:
        parse_tile_path(path)
    assert refusal.value.code == "tile_path_invalid"


@given(st.lists(st.binary(max_size=70), max_size=20))
def test_bundles_are_read_back(entries: list[bytes]) -> None:
    bundle = encode_bundle(entries)
    assert decode_bundle(bundle) == entries
    if entries:
        with pytest.raises(BadEntry):
            decode_bundle(bundle + b"\x00\x05ab")
        with pytest.raises(BadEntry):
            decode_bundle(bundle + b"\x00")


def test_an_entry_fits_a_bundle_up_to_65535_bytes() -> None:
    assert decode_bundle(encode_bundle([b"x" * 65_535])) == [b"x" * 65_535]
    with pytest.raises(BadEntry) as refusal:
        encode_bundle([b"x" * 65_536])
    assert refusal.value.code == "entry_too_large"


def test_a_missing_or_short_tile_is_named() -> None:
    tiles = MemoryTiles()
    appender = Appender(tiles)
    for leaf in LEAVES[:300]:
        appender.append(leaf)
    tiles.update(appender.take_rows())
    tiles[tile_id(0, 1)] = tiles[tile_id(0, 1)][:-32]
    with pytest.raises(NotStored, match="0/1 with 44 hashes"):
        TileTree(tiles).root(300)
    del tiles[tile_id(1, 0)]
    with pytest.raises(NotStored, match="1/0 with 1 hashes"):
        Appender(tiles, 256)


class CountedTiles(MemoryTiles):
    reads = 0

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        self.reads += len(ids)
        return super().read_tiles(ids)


def test_a_tile_is_read_once() -> None:
    tiles = CountedTiles()
    appender = Appender(tiles)
    appender.extend(LEAVES)
    tiles.update(appender.take_rows())
    tree = TileTree(tiles)
    assert tree.inclusion(0, 2000) == tree.inclusion(0, 2000)
    first = tiles.reads
    tree.inclusion(1, 2000)
    assert tiles.reads == first


@given(st.lists(st.tuples(st.integers(1, 1200), st.integers(0, 1199)), min_size=2, max_size=12))
def test_a_tree_that_grows_goes_on_from_what_it_has_worked_out(asked: list[tuple[int, int]]) -> None:
    """Sizes in any order, as when somebody asks for an older checkpoint in between."""
    tiles = MemoryTiles()
    appender = Appender(tiles)
    appender.extend(LEAVES)
    tiles.update(appender.take_rows())
    kept = TileTree(tiles, cached=2)
    for size, index in asked:
        assert kept.inclusion(index % size, size) == TileTree(tiles).inclusion(index % size, size)
        assert kept.root(size) == root_of(LEAVES[:size])


def test_what_is_asked_for_often_stays_in_a_cache_of_the_usual_size() -> None:
    """128 leaves of a million are in as many tiles, with some sixteen above them."""

    class AnyTiles:
        reads = 0

        def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
            self.reads += len(ids)
            return dict.fromkeys(ids, bytes(WIDTH * HASH_SIZE))

    store = AnyTiles()
    tree, often = TileTree(store), range(0, 1_000_000, 1_000_000 // 128)
    for _ in range(3):
        for index in often:
            tree.inclusion(index, 1_000_000)
    assert len(often) < store.reads < 160


def test_a_leaf_hash_has_32_bytes() -> None:
    for leaf in (b"x" * 31, b"x" * 33):
        with pytest.raises(ValueError, match="32 bytes"):
            Appender(MemoryTiles()).append(leaf)
