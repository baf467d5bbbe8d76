"""A whole log from its tiles and bundles: accepted as it is, refused when a byte differs or a rule is broken."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.mirror import verify_mirror
from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import make_entry
from ledger.log.memory import MemoryLog
from ledger.log.tiles import encode_bundle, parse_tile_path, tile_id, tile_resources
from ledger.log.tree import root_of
from tests.bits import flip
from tests.ledger.log.test_tree import stored
from tests.world import HOSTS, KEY, LOG, START, World


def served(log: MemoryLog, size: int) -> dict[str, bytes]:
    resources = {}
    for path in tile_resources(size):
        level, index, width = parse_tile_path(path)
        if level is None:
            resources[path] = encode_bundle([entry.data for entry in log.entries[index * 256 : index * 256 + width]])
        else:
            resources[path] = log.tiles[tile_id(level, index)][: width * 32]
    return resources


WORLD = World(9).grow(90)
STATE = WORLD.log.published[-1]
RESOURCES = served(WORLD.log, STATE.size)


def test_every_published_state_verifies() -> None:
    assert STATE.size > 256
    for state in WORLD.log.published[::15]:
        report = verify_mirror(state.note, served(WORLD.log, state.size), LOG)
        assert report.size == state.size
        assert any("every map head follows" in line for line in report.proved)


@given(st.data())
@settings(max_examples=60)
def test_no_changed_byte_passes(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(sorted(RESOURCES)))
    bit = data.draw(st.integers(0, len(RESOURCES[path]) * 8 - 1))
    with pytest.raises(StaylogError):
        verify_mirror(STATE.note, {**RESOURCES, path: flip(RESOURCES[path], bit)}, LOG)


def refusal(note: str, resources: dict[str, bytes]) -> str:
    with pytest.raises(StaylogError) as refused:
        verify_mirror(note, resources, LOG)
    return refused.value.code


def test_what_is_missing_or_foreign_is_named() -> None:
    bundle = "tile/entries/000"
    assert (
        refusal(STATE.note, {path: data for path, data in RESOURCES.items() if path != bundle}) == "mirror_incomplete"
    )
    short = encode_bundle([entry.data for entry in WORLD.log.entries[:255]])
    assert refusal(STATE.note, {**RESOURCES, bundle: short}) == "bundle_mismatch"
    assert refusal(STATE.note, {**RESOURCES, "tile/0/000": bytes(8192)}) == "tile_mismatch"
    other = World(10).grow(2).log
    note = sign_checkpoint(Checkpoint(LOG.name, other.published[-1].size, bytes(32)), KEY)
    assert refusal(note, served(other, other.published[-1].size)) == "root_mismatch"


def test_an_operator_cannot_sign_a_map_that_leaves_a_host_out() -> None:
    """The one lie that no answer about another host can show."""
    log = World(11).grow(1).log
    at = "2026-12-31T00:00:00Z"
    hidden = make_entry("booking_check", host_did=HOSTS[0], outcome="denied", booking=base64.encode(bytes(32)), at=at)
    top = log.published[-1].map_top
    head = make_entry(
        "map_head", size=len(log.entries) + 1, root=base64.encode(log.map.root(top)), at="2026-12-31T00:00:00Z"
    )
    entries = [*log.entries, hidden, head]
    log.tiles.update(stored(entry.leaf_hash for entry in entries))
    log.entries[:] = entries
    note = sign_checkpoint(Checkpoint(LOG.name, len(entries), root_of(entry.leaf_hash for entry in entries)), KEY)
    assert refusal(note, served(log, len(entries))) == "map_root_mismatch"


def test_a_checkpoint_ends_in_a_map_head() -> None:
    log = World(13).grow(1).log
    log.entries.append(make_entry("policy", policy=base64.encode(bytes(32)), at="2026-12-31T00:00:00Z"))
    log.tiles.update(stored(entry.leaf_hash for entry in log.entries))
    root = root_of(entry.leaf_hash for entry in log.entries)
    note = sign_checkpoint(Checkpoint(LOG.name, len(log.entries), root), KEY)
    assert refusal(note, served(log, len(log.entries))) == "map_head_not_last"


def test_the_genesis_names_the_log() -> None:
    log = MemoryLog("other.example/log", KEY, bytes(32), START)
    note = sign_checkpoint(Checkpoint(LOG.name, 2, root_of(entry.leaf_hash for entry in log.entries)), KEY)
    assert refusal(note, served(log, 2)) == "origin_mismatch"
