"""The map in memory and the map in pages are one map: protocol.md's recursive definition, at every version."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import Malformed, NotProved
from ledger.log.hostmap import (
    ABSENT,
    HostMap,
    MapLeaf,
    key_bit,
    map_key,
    map_value,
    parse_siblings,
    updated_root,
    verify_map,
)
from ledger.log.pages import MemoryPages, PagedMap
from tests import reference

# Keys that share long prefixes, so that hosts meet deep in the tree and pages chain.
KEYS = st.one_of(
    st.binary(min_size=32, max_size=32),
    st.integers(0, 255).map(lambda bit: (1 << bit).to_bytes(32)),
    st.tuples(st.binary(min_size=1, max_size=1), st.integers(0, 31)).map(
        lambda pair: b"\xaa" * pair[1] + pair[0] + b"\xaa" * (31 - pair[1])
    ),
)
VALUES = st.binary(min_size=32, max_size=32)
BATCHES = st.lists(st.dictionaries(KEYS, VALUES, max_size=12), max_size=6)


@given(BATCHES, st.lists(KEYS, min_size=1, max_size=8))
def test_both_maps_equal_the_definition_after_every_batch(
    batches: list[dict[bytes, bytes]], asked: list[bytes]
) -> None:
    memory, paged, leaves, top = HostMap(), PagedMap(MemoryPages()), dict[bytes, bytes](), None
    at_once = HostMap()
    for batch in batches:
        leaves |= batch
        for key, value in batch.items():
            memory.set(key, value)
        at_once.update(batch.items())
        top, root = paged.update(top, batch)
        assert root == paged.root(top) == memory.root() == at_once.root() == reference.map_root(leaves)
        for key in (*asked, *leaves):
            proof = memory.prove(key)
            assert proof == paged.prove(top, key)
            assert proof.root(key) == root
            assert (
                (proof.leaf == MapLeaf(key, leaves[key]))
                if key in leaves
                else (proof.leaf is None or proof.leaf.key != key)
            )


@given(st.dictionaries(KEYS, VALUES, max_size=20), KEYS, VALUES)
def test_one_path_gives_the_root_after_an_update(leaves: dict[bytes, bytes], key: bytes, value: bytes) -> None:
    assert updated_root(HostMap(leaves.items()).prove(key), key, value) == reference.map_root({**leaves, key: value})


@given(st.dictionaries(KEYS, VALUES, min_size=1, max_size=20), st.permutations(range(20)))
def test_the_order_of_updates_does_not_matter(leaves: dict[bytes, bytes], order: list[int]) -> None:
    items = list(leaves.items())
    shuffled = [items[place] for place in order if place < len(items)]
    assert HostMap(shuffled).root() == HostMap(items).root()


RECORDS = st.dictionaries(
    st.integers(0, 60).map(lambda n: f"did:web:h{n}.example"), st.binary(max_size=20), max_size=30
)


@given(RECORDS, st.integers(0, 60), st.data())
@settings(max_examples=200)
def test_presence_and_absence_verify_and_nothing_else_does(
    records: dict[str, bytes], number: int, data: st.DataObject
) -> None:
    host = f"did:web:h{number}.example"
    hosts = HostMap((map_key(did), map_value(record)) for did, record in records.items())
    root, proof = hosts.root(), hosts.prove(map_key(host))
    record = records.get(host)
    other = proof.leaf if record is None else None
    verify_map(host, record, other, proof.siblings, root)

    lies: list[tuple[bytes | None, MapLeaf | None]] = [
        ((record or b"") + b"!", None),
        (record, MapLeaf(map_key(host), ABSENT)),
    ]
    if record is not None:
        lies += [(None, None), (None, proof.leaf), (None, MapLeaf(map_key("did:web:x.example"), map_value(record)))]
    else:
        lies += [(b"", None)] + ([(None, None)] if other else [(None, MapLeaf(map_key(host), ABSENT))])
    for lie in lies:
        with pytest.raises(NotProved):
            verify_map(host, *lie, proof.siblings, root)
    place = data.draw(st.integers(0, len(proof.siblings) - 1))
    for siblings in (
        proof.siblings[:place] + proof.siblings[place + 1 :],
        (*proof.siblings[:place], b"\x01" * 32, *proof.siblings[place:]),
        (*proof.siblings[:place], bytes(a ^ 1 for a in proof.siblings[place]), *proof.siblings[place + 1 :]),
    ):
        with pytest.raises(NotProved):
            verify_map(host, record, other, siblings, root)


def test_key_bits_count_from_the_most_significant() -> None:
    key = bytes([0b10100000]) + bytes(31)
    assert [key_bit(key, depth) for depth in range(4)] == [1, 0, 1, 0]


def test_a_map_path_has_one_spelling() -> None:
    assert parse_siblings(["", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="]) == (ABSENT, b"\x01" * 32)
    for texts, code in (
        ([], "map_path_length"),
        ([""] * 257, "map_path_length"),
        (["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="], "map_zeros_spelled_out"),
        (["AQ=="], "hash_length"),
    ):
        with pytest.raises((Malformed, NotProved)) as refusal:
            parse_siblings(texts)
        assert refusal.value.code == code


@pytest.mark.parametrize(
    "value", [None, {}, {"key": "x"}, {"key": 1, "value": 2}, {"key": "", "value": "", "note": ""}]
)
def test_map_other_is_exactly_key_and_value(value: object) -> None:
    with pytest.raises(Malformed) as refusal:
        MapLeaf.parse(value)
    assert refusal.value.code == "map_other_malformed"
