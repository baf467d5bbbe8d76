"""Batches: one transaction each, refused one by one, acknowledged only under a signed checkpoint."""

import json
from concurrent.futures import Future
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Event
from time import sleep

import pytest

from audits.receipts import verify_tlog_proof
from ledger.errors import BrokenRule, Halted, StaylogError, Unavailable
from ledger.folder import open_ledger
from ledger.log import sequencer
from ledger.log.batch import Batch
from ledger.log.cache import Cache
from ledger.log.checkpoint import open_checkpoint
from ledger.log.drafts import Draft, artifact_draft, make_draft
from ledger.log.integrate import FRESHNESS, SomeRefused
from ledger.log.pages import PagedMap
from ledger.log.proofs import verify_consistency
from ledger.log.sequencer import Integrated
from ledger.log.tiles import Appender
from ledger.log.tlog_proof import TlogProof
from ledger.store.rows import Rows, read_head
from tests.running import HOST, OTHER, Running, Writer


def test_what_queued_up_is_one_batch(running: Running, writer: Writer) -> None:
    """Submitted before the writer runs, so all are waiting when it starts."""
    futures = [running.ledger.sequencer.submit(writer.review()) for _ in range(5)]
    running.ledger.sequencer.start()
    done = [future.result(10) for future in futures]
    assert [each.index for each in done] == [2, 3, 4, 5, 6]
    assert {each.published.size for each in done} == {8}
    assert running.ledger.reader.entries(7, 8)[0].startswith(b'{"at":"2026-06-01T12:00:00Z","root":')
    running.answer()
    assert running.fsck().findings == []


def test_whoever_is_about_to_come_shares_the_commit(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While more are coming than are here."""
    monkeypatch.setattr(sequencer, "IDLE_SECONDS", 60)
    submit, coming = running.ledger.sequencer.submit, [running.ledger.sequencer.coming() for _ in range(4)]
    running.ledger.sequencer.start()
    for each in coming:
        each.__enter__()
    first = submit(writer.review())
    sleep(0.1)
    assert not first.done()
    second = submit(writer.review())
    sleep(0.1)
    assert not second.done()
    # Two of them give up, and two are left, who are here.
    for each in coming[2:]:
        each.__exit__(None, None, None)
    assert {future.result(10).published.size for future in (first, second)} == {5}
    for each in coming[:2]:
        each.__exit__(None, None, None)


def test_who_is_alone_waits_for_nobody_and_enough_is_enough(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "IDLE_SECONDS", 60)
    submit, coming = running.ledger.sequencer.submit, running.ledger.sequencer.coming
    running.ledger.sequencer.start()
    with coming():
        assert submit(writer.review()).result(10).published.size == 4
    with ExitStack() as all_of_them:
        for _ in range(3 * sequencer.ENOUGH):
            all_of_them.enter_context(coming())
        futures = [submit(writer.review()) for _ in range(sequencer.ENOUGH)]
        assert {future.result(10).published.size for future in futures} == {4 + sequencer.ENOUGH + 1}


def test_nobody_waits_for_ever_for_who_does_not_come(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "IDLE_SECONDS", 0.2)
    running.ledger.sequencer.start()
    with running.ledger.sequencer.coming(), running.ledger.sequencer.coming():
        assert running.ledger.sequencer.submit(writer.review()).result(10).index == 2


def test_a_service_that_stops_does_not_wait_for_who_is_coming(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sequencer, "IDLE_SECONDS", 60)
    running.ledger.sequencer.start()
    with running.ledger.sequencer.coming(), running.ledger.sequencer.coming():
        future = running.ledger.sequencer.submit(writer.review())
        running.ledger.sequencer.close()
        assert future.result(0).index == 2


def test_the_checkpoint_of_an_entry_is_the_first_that_covers_it(running: Running, writer: Writer) -> None:
    """Though another process has signed it and gone on before this one could."""
    other = open_ledger(running.settings, clock=running.clock)
    more = [writer.review(OTHER), None]

    def go_on(step: str) -> None:
        if step == "committed" and (draft := more.pop(0)) is not None:
            other.sequencer.append([draft])

    running.reopen(on_step=go_on)
    [placed] = running.add(writer.review())
    assert (placed.index, placed.published.size) == (2, 4)
    assert running.ledger.reader.refresh().size == 6
    assert placed.published == running.ledger.reader.first_covering(2)
    other.close()


def test_an_acknowledged_entry_is_in_the_tree_that_is_signed(running: Running, writer: Writer) -> None:
    for draft in (writer.review(), writer.check(), writer.policy(), artifact_draft(bytes(32))):
        [done] = running.add(draft)
        path = running.ledger.reader.tree.inclusion(done.index, done.published.size)
        proof = TlogProof(done.index, tuple(path), done.published.note)
        verify_tlog_proof(str(proof), done.entry.data, running.ledger.verifier)


def test_more_than_fits_a_batch_is_several_batches(running: Running, writer: Writer) -> None:
    done = running.add(*(writer.policy() for _ in range(600)))
    assert [each.index for each in done][253:257] == [255, 256, 258, 259]
    assert running.ledger.reader.published.size == 2 + 600 + 3
    assert running.fsck().findings == []


def test_batches_have_their_limit(running: Running, writer: Writer) -> None:
    running.reopen(max_batch=2)
    futures = [running.ledger.sequencer.submit(writer.policy()) for _ in range(5)]
    running.ledger.sequencer.start()
    assert [future.result(10).index for future in futures] == [2, 3, 5, 6, 8]


def test_a_refused_draft_does_not_hold_up_the_others(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review())
    again = make_draft("review", _members(review))
    drafts = [writer.response(review), again, writer.response(review), writer.review()]
    futures = [running.ledger.sequencer.submit(draft) for draft in drafts]
    running.ledger.sequencer.start()
    codes = [_outcome(future) for future in futures]
    assert codes == [4, "review_id_reused", "response_repeated", 5]
    running.answer()
    assert running.fsck().findings == []


def test_every_rule_about_reviews_holds_across_batches_and_restarts(running: Running, writer: Writer) -> None:
    confirmed, unconfirmed, silent = running.add(
        writer.review(), writer.review(level="unconfirmed"), writer.review(text=None)
    )
    [foreign] = running.add(writer.review(OTHER))
    running.add(writer.response(confirmed), writer.upgrade(unconfirmed), writer.redaction(confirmed))
    running.reopen()
    named = {"review": foreign.index, "review_id": foreign.entry.members["review_id"]}
    mixed = make_draft("redaction", {**writer.redaction(confirmed).members, **named})
    later = make_draft("redaction", {**writer.redaction(confirmed).members, "review": 900})
    cases = {
        "response_repeated": writer.response(confirmed),
        "upgrade_not_unconfirmed": writer.upgrade(unconfirmed),
        "redaction_repeated": writer.redaction(confirmed),
        "redaction_of_nothing": writer.redaction(silent),
        "review_id_reused": make_draft("review", _members(confirmed)),
    }
    for code, draft in cases.items():
        assert _refusal(running, draft) == code
    for draft in (mixed, later):
        assert _refusal(running, draft) == "review_unknown"
    running.clock.forward(days=30, seconds=1)
    assert _refusal(running, writer.response(silent)) == "response_late"
    running.add(writer.redaction(confirmed, "response"))
    assert running.fsck().findings == []


@pytest.mark.parametrize("column", ["about", "host_key"])
def test_how_entries_are_filed_is_not_believed(running: Running, writer: Writer, column: str) -> None:
    """A response that is filed elsewhere would make room for a second one, which every auditor refuses."""
    [review] = running.add(writer.review())
    [response] = running.add(writer.response(review))
    with running.ledger.store.write() as connection:
        connection.exec_driver_sql(f"UPDATE entry SET {column} = NULL WHERE idx = {response.index}")
    running.reopen()
    if column == "about":
        assert _refusal(running, writer.response(review)) == "response_repeated"
    else:
        with pytest.raises(Halted) as halted:
            running.add(writer.response(review))
        assert halted.value.code == "log_damaged"
    assert running.ledger.reader.refresh().size == 6


def test_a_halted_log_refuses_without_growing(running: Running, writer: Writer) -> None:
    running.ledger.sequencer.halted = Halted("log_damaged", "a test says so")
    for _ in range(3):
        with pytest.raises(Halted, match="a test says so") as refused:
            running.ledger.sequencer.submit(writer.review())
        depth, trace = 0, refused.value.__traceback__
        while trace is not None:
            depth, trace = depth + 1, trace.tb_next
        assert depth < 6


def test_a_file_is_added_as_a_whole_or_not_at_all(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review())
    size = running.ledger.reader.published.size
    drafts = [*(writer.review() for _ in range(300)), writer.response(review), writer.response(review)]
    with pytest.raises(SomeRefused) as refused:
        running.add(*drafts)
    assert {place: error.code for place, error in refused.value.refusals.items()} == {301: "response_repeated"}
    assert running.ledger.reader.refresh().size == size
    running.add(*drafts[:-1])
    assert running.fsck().findings == []


def test_a_repetition_gets_the_same_entry(running: Running, writer: Writer) -> None:
    """Within a batch, after it, and after a restart; also when nobody waited for the first."""
    first = make_draft("policy", {"policy": writer.hash()}, key=b"one")
    second = make_draft("policy", {"policy": writer.hash()}, key=b"one")
    futures = [running.ledger.sequencer.submit(draft) for draft in (first, second)]
    assert not futures[0].cancel()
    running.ledger.sequencer.start()
    done = [future.result(10) for future in futures]
    running.reopen()
    [later] = running.add(second)
    assert [(each.index, each.repeated) for each in (*done, later)] == [(2, False), (2, True), (2, True)]
    assert later.entry.data == done[0].entry.data
    assert running.ledger.reader.refresh().size == 4


def test_an_artifact_has_one_leaf(running: Running) -> None:
    [once], [twice] = running.add(artifact_draft(bytes(32))), running.add(artifact_draft(bytes(32)))
    assert (once.index, twice.index, twice.repeated) == (2, 2, True)
    assert once.entry.data == b"sha256:" + b"0" * 64


def test_times_never_fall(running: Running, writer: Writer) -> None:
    running.add(writer.policy())
    running.clock.forward(days=-3)
    [back] = running.add(writer.policy())
    running.clock.forward(days=4)
    [forth] = running.add(writer.policy())
    assert [back.entry.at, forth.entry.at] == ["2026-06-01T12:00:00Z", "2026-06-02T12:00:00Z"]


def test_a_lone_map_head_after_a_day(running: Running) -> None:
    published = Event()
    running.ledger.sequencer._on_published = lambda newest: published.set() if newest.size > 2 else None
    running.clock.forward(seconds=FRESHNESS.total_seconds() - 1)
    running.ledger.sequencer._write([])
    assert not published.is_set()
    running.clock.forward(seconds=1)
    running.ledger.sequencer.start()
    assert published.wait(10)
    running.ledger.sequencer.close()
    # Another process that was as patient finds it done.
    other = open_ledger(running.settings, clock=running.clock)
    assert other.sequencer._integrator.integrate([]) == []
    other.close()
    assert running.ledger.reader.refresh().size == 3
    assert json.loads(running.ledger.reader.entries(2, 3)[0])["at"] == "2026-06-02T12:00:00Z"
    assert running.fsck().findings == []


def test_a_full_queue_and_a_closing_service_say_so(running: Running, writer: Writer) -> None:
    sequencer = running.ledger.sequencer
    sequencer._max_queue = 2
    waiting = [sequencer.submit(writer.policy()) for _ in range(2)]
    with pytest.raises(Unavailable, match="waiting") as busy:
        sequencer.submit(writer.policy())
    assert (busy.value.code, busy.value.retry_after) == ("busy", 5)
    sequencer.start()
    sequencer.close()
    assert [future.result(0).index for future in waiting] == [2, 3]
    with pytest.raises(Unavailable, match="shutting down"):
        sequencer.submit(writer.policy())


def test_what_was_written_ahead_is_moved_into_the_file(
    tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite would let the write-ahead log grow for ever."""
    monkeypatch.setattr(sequencer, "TIDY_AFTER", 100)
    running = Running(tmp_path / "data", f"sqlite:///{tmp_path}/ledger.db")
    before = (tmp_path / "ledger.db").stat().st_size
    for _ in range(10):
        running.add(*(writer.review() for _ in range(20)))
    assert (tmp_path / "ledger.db").stat().st_size > before
    running.ledger.close()


def test_the_head_moves_by_compare_and_set(running: Running, writer: Writer) -> None:
    """The lock keeps writers apart; if it ever failed, the second of two would find the head moved, and stop."""
    running.add(writer.policy())
    with running.ledger.store.write() as connection:
        head = read_head(connection)
        assert head is not None
        rows = Rows(lambda: nullcontext(connection))
        batch = Batch(connection, replace(head, size=2), rows, PagedMap(rows), Cache(1000), Appender(rows, 2), head.at)
        with pytest.raises(Halted) as refused:
            batch._move_head(replace(head, size=9))
    assert refused.value.code == "log_forked"
    assert running.fsck().findings == []


def test_every_checkpoint_is_kept_and_extends_the_one_before(running: Running, writer: Writer) -> None:
    for number in range(12):
        running.add(*(writer.review() for _ in range(number % 4 + 1)))
    reader = running.ledger.reader
    states = reader.checkpoints(None, 100)
    assert [state.size for state in states] == sorted((state.size for state in states), reverse=True)
    assert len(states) == 13
    for newer, older in pairwise(states):
        signed = [open_checkpoint(state.note, running.ledger.verifier) for state in (older, newer)]
        proof = reader.tree.consistency(older.size, newer.size)
        verify_consistency(older.size, newer.size, signed[0].root, signed[1].root, proof)
        running.answer(HOST, size=newer.size)


def _members(review: Integrated) -> dict[str, object]:
    return {name: value for name, value in review.entry.members.items() if name not in ("type", "v", "at")}


def _outcome(future: "Future[Integrated]") -> int | str:
    try:
        return future.result(10).index
    except StaylogError as error:
        return error.code


def _refusal(running: Running, draft: Draft) -> str:
    with pytest.raises(SomeRefused) as refused:
        running.add(draft)
    [error] = refused.value.refusals.values()
    assert isinstance(error, BrokenRule)
    return error.code
