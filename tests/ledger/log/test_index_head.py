"""An index head in the log: read by everything that reads a log, written by nothing."""

from typing import Any

import pytest

from ledger.canon import base64, strict_json
from ledger.errors import BadEntry, BrokenRule
from ledger.log.drafts import Draft, make_draft
from ledger.log.entries import make_entry
from ledger.log.replay import Replay
from tests.running import Running, Writer
from tests.world import World

ROOT = base64.encode(bytes(range(32)))
ANY_TIME = "2000-01-01T00:00:00Z"


def index_head(seq: int, count: int = 3) -> Draft:
    """A draft that `make_draft` refuses: what a later version of the service may write."""
    members: dict[str, Any] = {"type": "index_head", "v": 1, "seq": seq, "count": count, "root": ROOT}
    named = {name: value for name, value in members.items() if name not in ("type", "v")}
    return Draft("index_head", members, make_entry("index_head", **named, at=ANY_TIME).data)


def test_refuses_to_write_one() -> None:
    with pytest.raises(BadEntry) as refused:
        make_draft("index_head", {"seq": 0, "count": 0, "root": ROOT})
    assert refused.value.code == "entry_invalid"


def test_reads_a_database_with_index_heads(running: Running, writer: Writer) -> None:
    running.add(writer.review(), index_head(0), index_head(7), writer.review())
    running.reopen()
    running.add(index_head(7), writer.check())
    assert running.fsck().findings == []
    assert strict_json.loads(running.answer())["total_reviews"] == 2
    assert [b"index_head" in data for data in running.ledger.reader.entries(2, 6)] == [False, True, True, False]


def test_fsck_finds_a_number_that_falls(running: Running, writer: Writer) -> None:
    running.add(index_head(2), index_head(1), writer.check())
    [finding] = running.fsck().findings
    assert "index head at 3 has seq 1" in finding


def test_a_replay_refuses_a_number_that_falls() -> None:
    replay, world = Replay(), World(0)
    for entry in world.log.entries:
        replay.add(entry.data)
    for seq in (0, 5, 5, 2**53 - 1):
        replay.add(make_entry("index_head", seq=seq, count=0, root=ROOT, at="2027-01-01T00:00:00Z").data)
    with pytest.raises(BrokenRule) as broken:
        replay.add(make_entry("index_head", seq=5, count=0, root=ROOT, at="2027-01-01T00:00:00Z").data)
    assert broken.value.code == "index_seq_falls"
