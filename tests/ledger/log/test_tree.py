from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymerkle import InmemoryTree

from ledger.errors import NotProved
from ledger.log.proofs import multiproof_root, prefix_roots, verify_consistency, verify_inclusion
from ledger.log.tiles import Appender, MemoryTiles, TileTree
from ledger.log.tree import EMPTY_ROOT, Edge, leaf_hash, multiproof_subtrees, prefix_subtrees, root_of
from tests.bits import flip
from tests.reference import Tree

MAX = 600
ENTRIES = [b"entry %d" % i for i in range(MAX)]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]
REFERENCE = Tree(LEAVES)
# Every size up to 600 is checked; the work is cut into parts so that workers share it.
PARTS = [range(start, MAX + 1, 8) for start in range(1, 9)]


def stored(leaves: Iterable[bytes]) -> MemoryTiles:
    tiles = MemoryTiles()
    appender = Appender(tiles)
    for leaf in leaves:
        appender.append(leaf)
    tiles.update(appender.take_rows())
    return tiles


def tile_tree(leaves: Iterable[bytes]) -> TileTree:
    return TileTree(stored(leaves))


TREE = tile_tree(LEAVES)


def test_the_empty_tree_has_the_hash_of_nothing() -> None:
    assert root_of([]) == EMPTY_ROOT == TREE.root(0) == REFERENCE.root(0)


@pytest.mark.parametrize("sizes", PARTS, ids=str)
def test_roots_and_inclusion_equal_the_reference_and_pymerkle(sizes: range) -> None:
    oracle = InmemoryTree(algorithm="sha256")
    for entry in ENTRIES:
        oracle.append_entry(entry)
    for size in sizes:
        root = REFERENCE.root(size)
        assert root == TREE.root(size) == root_of(LEAVES[:size]) == oracle.get_root(size)
        for index in range(size):
            proof = TREE.inclusion(index, size)
            assert proof == REFERENCE.path(index, 0, size)
            # pymerkle counts from 1 and puts the leaf itself before its siblings.
            assert [LEAVES[index], *proof] == oracle.prove_inclusion(index + 1, size).path
            verify_inclusion(LEAVES[index], index, size, proof, root)


@pytest.mark.parametrize("sizes", PARTS, ids=str)
def test_consistency_equals_the_reference(sizes: range) -> None:
    for second in sizes:
        for first in range(1, second + 1):
            proof = TREE.consistency(first, second)
            assert proof == REFERENCE.proof(first, 0, second)
            verify_consistency(first, second, REFERENCE.root(first), REFERENCE.root(second), proof)


@pytest.fixture(scope="module")
def large() -> tuple[list[bytes], Tree, TileTree]:
    leaves = [leaf_hash(b"%d" % i) for i in range(65_536 + 300)]
    return leaves, Tree(leaves), tile_tree(leaves)


@pytest.mark.parametrize("size", [65_535, 65_536, 65_537, 65_536 + 255, 65_536 + 256, 65_536 + 257])
def test_around_65536(size: int, large: tuple[list[bytes], Tree, TileTree]) -> None:
    leaves, reference, tree = large
    root = reference.root(size)
    assert tree.root(size) == root
    for index in {0, 1, 255, 256, 32_767, 32_768, 65_279, 65_280, 65_534, size - 2, size - 1}:
        proof = tree.inclusion(index, size)
        assert proof == reference.path(index, 0, size)
        verify_inclusion(leaves[index], index, size, proof, root)
    for first in {1, 2, 255, 256, 257, 32_768, 65_535, size - 1, size}:
        proof = tree.consistency(first, size)
        assert proof == reference.proof(first, 0, size)
        verify_consistency(first, size, reference.root(first), root, proof)


def test_pymerkle_agrees_on_a_large_root(large: tuple[list[bytes], Tree, TileTree]) -> None:
    oracle = InmemoryTree(algorithm="sha256")
    for i in range(65_537):
        oracle.append_entry(b"%d" % i)
    for size in (65_535, 65_536, 65_537):
        assert oracle.get_root(size) == large[2].root(size)
        for index in (0, 255, 256, 65_000, 65_534, size - 1):
            assert oracle.prove_inclusion(index + 1, size).path[1:] == large[2].inclusion(index, size)


@pytest.mark.parametrize("indices", [[0], [700], [0, 511], [255, 256, 65_280], [3, 900, 40_000, 65_790]], ids=str)
def test_multiproofs_of_few_among_many(indices: list[int], large: tuple[list[bytes], Tree, TileTree]) -> None:
    """One alone in its tile, and in those beside it."""
    _, reference, tree = large
    for size in (65_791, 65_836):
        assert tree.multiproof(indices, size) == reference.multiproof(indices, 0, size)


@given(st.data())
def test_multiproofs_equal_the_reference_and_give_the_root(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, MAX))
    indices = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=40)))
    proof = TREE.multiproof(indices, size)
    assert proof == REFERENCE.multiproof(indices, 0, size)
    assert proof == TREE.subtrees(multiproof_subtrees(indices, size), size)
    assert multiproof_root([(i, LEAVES[i]) for i in indices], size, proof) == REFERENCE.root(size)


@given(st.data())
def test_a_changed_inclusion_proof_is_refused(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, MAX))
    index = data.draw(st.integers(0, size - 1))
    proof = TREE.inclusion(index, size)
    changed = data.draw(changes(proof))
    with pytest.raises(NotProved):
        verify_inclusion(LEAVES[index], index, size, changed, REFERENCE.root(size))


@given(st.data())
def test_a_changed_consistency_proof_is_refused(data: st.DataObject) -> None:
    second = data.draw(st.integers(2, MAX))
    first = data.draw(st.integers(1, second))
    changed = data.draw(changes(TREE.consistency(first, second)))
    with pytest.raises(NotProved):
        verify_consistency(first, second, REFERENCE.root(first), REFERENCE.root(second), changed)


@given(st.data())
def test_a_changed_multiproof_does_not_give_the_root(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, MAX))
    indices = sorted(data.draw(st.sets(st.integers(0, size - 1), min_size=1, max_size=10)))
    changed = data.draw(changes(TREE.multiproof(indices, size)))
    leaves = [(i, LEAVES[i]) for i in indices]
    assert given_root(leaves, size, changed) != REFERENCE.root(size)


def given_root(leaves: Sequence[tuple[int, bytes]], size: int, proof: Sequence[bytes]) -> bytes | None:
    try:
        return multiproof_root(leaves, size, proof)
    except NotProved:
        return None


def changes(proof: Sequence[bytes]) -> st.SearchStrategy[list[bytes]]:
    """The proof with a bit flipped, two hashes exchanged, one taken out, put in, cut or made longer."""
    longer = st.integers(0, len(proof)).map(lambda at: [*proof[:at], LEAVES[0], *proof[at:]])
    if not proof:
        return longer
    place = st.integers(0, len(proof) - 1)

    def replaced(change: Callable[[bytes], bytes]) -> st.SearchStrategy[list[bytes]]:
        return place.map(lambda at: [*proof[:at], change(proof[at]), *proof[at + 1 :]])

    return st.one_of(
        longer,
        place.map(lambda at: [*proof[:at], *proof[at + 1 :]]),
        place.map(lambda at: [*proof[at + 1 :], *proof[: at + 1]]).filter(lambda other: other != list(proof)),
        st.integers(0, 255).flatmap(lambda bit: replaced(lambda h: flip(h, bit))),
        replaced(lambda h: h[:-1]),
        replaced(lambda h: h + b"\0"),
    )


@pytest.mark.parametrize(("index", "size"), [(5, 5), (-1, 5), (0, 0)])
def test_an_index_outside_the_tree_is_refused(index: int, size: int) -> None:
    with pytest.raises(NotProved) as refusal:
        verify_inclusion(LEAVES[0], index, size, [], REFERENCE.root(5))
    assert refusal.value.code == "index_out_of_range"
    with pytest.raises(ValueError, match="no leaf"):
        TREE.inclusion(index, size)


@pytest.mark.parametrize(("first", "second"), [(0, 5), (6, 5), (-1, 3)])
def test_impossible_consistency_is_refused(first: int, second: int) -> None:
    with pytest.raises(NotProved) as refusal:
        verify_consistency(first, second, REFERENCE.root(5), REFERENCE.root(5), [])
    assert refusal.value.code == "index_out_of_range"
    with pytest.raises(ValueError, match="no consistency proof"):
        TREE.consistency(first, second)


def test_a_fork_is_named() -> None:
    with pytest.raises(NotProved, match="forked"):
        verify_consistency(5, 5, LEAVES[0], LEAVES[1], [])


@pytest.mark.parametrize("indices", [[], [3, 3], [4, 3], [5], [-1]])
def test_multiproof_indices_are_ascending_and_inside(indices: list[int]) -> None:
    with pytest.raises(NotProved) as refusal:
        multiproof_root([(i, LEAVES[0]) for i in indices], 5, [])
    assert refusal.value.code in ("index_out_of_range", "index_order")


def test_an_edge_can_be_taken_up_again() -> None:
    for size in range(70):
        edge = Edge()
        for leaf in LEAVES[:size]:
            edge.append(leaf)
        again = Edge(size, edge.nodes)
        again.append(LEAVES[size])
        assert again.root() == REFERENCE.root(size + 1)
    with pytest.raises(ValueError, match="edge nodes"):
        Edge(3, [LEAVES[0]])


@given(st.data())
def test_a_tree_shows_what_a_smaller_one_has_to_be(data: st.DataObject) -> None:
    second = data.draw(st.integers(1, MAX))
    first = data.draw(st.integers(1, second))
    hashes = TREE.subtrees(prefix_subtrees(first, second), second)
    assert prefix_roots(first, second, hashes) == (REFERENCE.root(second), REFERENCE.root(first))
    assert len(hashes) <= 2 * MAX.bit_length()


@given(st.data())
def test_hashes_that_are_too_many_too_few_or_too_short_show_nothing(data: st.DataObject) -> None:
    second = data.draw(st.integers(2, MAX))
    first = data.draw(st.integers(1, second))
    hashes = TREE.subtrees(prefix_subtrees(first, second), second)
    for wrong in ([*hashes, bytes(32)], hashes[:-1], [hashes[0][:-1], *hashes[1:]]):
        with pytest.raises(NotProved):
            prefix_roots(first, second, wrong)
    with pytest.raises(ValueError, match="no tree"):
        prefix_roots(second + 1, second, hashes)
