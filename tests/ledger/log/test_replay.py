"""A whole log obeys its rules, and a log that breaks one is refused by name. The public vectors have more of these."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canon import base64
from ledger.errors import BrokenRule, StaylogError
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import make_entry
from ledger.log.hostmap import map_key
from ledger.log.proofs import verify_consistency
from ledger.log.record import fold
from ledger.log.replay import MAX_BATCH, Replay
from tests.world import LOG, START, World


@given(st.integers(0, 10_000))
@settings(max_examples=30)
def test_a_grown_ledger_replays_to_the_same_state(seed: int) -> None:
    world = World(seed).grow(15)
    replay, published = Replay(), {state.size: state for state in world.log.published}
    previous = None
    for entry in world.log.entries:
        replay.add(entry.data)
        state = published.get(replay.tree.size)
        if state is None:
            with pytest.raises(BrokenRule) as refusal:
                replay.require_head()
            assert refusal.value.code == "map_head_not_last"
            continue
        replay.require_head()
        checkpoint = open_checkpoint(state.note, LOG)
        assert (checkpoint.size, checkpoint.root) == (state.size, replay.tree.root())
        assert world.log.map.root(state.map_top) == replay.map_root()
        if previous:
            proof = world.log.tree.consistency(previous.size, checkpoint.size)
            verify_consistency(previous.size, checkpoint.size, previous.root, checkpoint.root, proof)
        previous = checkpoint
    assert replay.origin == world.log.origin
    for host, state_of_host in replay.hosts.items():
        events = [(index, entry) for index, entry in enumerate(world.log.entries) if entry.host == host]
        assert state_of_host.record() == fold(host, events)
        assert replay.map.prove(map_key(host)) == world.log.map.prove(world.log.published[-1].map_top, map_key(host))


def test_an_empty_log_has_no_checkpoint() -> None:
    with pytest.raises(BrokenRule):
        Replay().require_head()


def test_a_batch_has_at_most_255_entries() -> None:
    policy = make_entry("policy", policy=base64.encode(bytes(32)), at=START)
    replay = Replay()
    for entry in World(0).log.entries:
        replay.add(entry.data)
    for _ in range(MAX_BATCH):
        replay.add(policy.data)
    head = make_entry("map_head", size=replay.tree.size, root=base64.encode(replay.map_root()), at=START)
    with pytest.raises(BrokenRule) as refusal:
        replay.add(policy.data)
    assert refusal.value.code == "batch_too_long"
    assert head.members["size"] == 2 + MAX_BATCH


def test_no_answer_for_a_size_that_was_not_published() -> None:
    with pytest.raises(StaylogError) as refusal:
        World(3).grow(3).log.answer("did:web:a.example", size=1)
    assert refusal.value.code == "unknown_size"
