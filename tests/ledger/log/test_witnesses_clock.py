"""A witness of the log confirms its clock: at the start, and while it runs."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest

from ledger.errors import Unavailable
from ledger.log import witnesses
from ledger.log.add_checkpoint import AddCheckpoint
from tests.ledger.log.crooked import CROOK, Crook, Reply, crooked, honest_line
from tests.ledger.log.watched_log import follow, policy_of, state, witness
from tests.running import Running, Writer
from tests.waiting import until


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "data", f"sqlite:///{tmp_path}/ledger.db", base_url="https://ledger.example")
    yield made
    made.ledger.close()


@pytest.fixture
def crook() -> Iterator[Crook]:
    with crooked(lambda _: Reply(503, "")) as made:
        yield made


def signs_at(dated: Running, crook: Crook, **ahead: float) -> None:
    """Cosign with the time of the log's clock, so far ahead."""

    def says(request: AddCheckpoint) -> Reply:
        return Reply(200, honest_line(request, (dated.clock() + timedelta(**ahead)).timestamp()))

    crook.says = says


def adds(dated: Running, writer: Writer) -> bool:
    with suppress(Unavailable):
        return len(dated.add(writer.policy())) == 1
    return False


AT_START = [(0, True), (-59, True), (-61, False), (-40 * 24 * 60, False), (59, True), (61, False)]


@pytest.mark.parametrize(("minutes", "confirms"), AT_START)
def test_at_the_start(dated: Running, writer: Writer, crook: Crook, minutes: int, confirms: bool) -> None:
    dated.clock.forward(days=60)
    signs_at(dated, crook, minutes=minutes)
    dated.settings.tlog_policy.write_text(policy_of(dated, f"witness w {CROOK} {crook.url}"))
    dated.reopen()
    assert adds(dated, writer) is confirms


def test_a_witness_that_is_silent_confirms_nothing(dated: Running, writer: Writer, crook: Crook) -> None:
    dated.clock.forward(days=60)
    dated.settings.tlog_policy.write_text(policy_of(dated, f"witness w {CROOK} {crook.url}"))
    dated.reopen()
    assert not adds(dated, writer)


def test_while_it_runs_it_is_asked_again_about_a_checkpoint_that_it_cosigned(
    dated: Running, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a witness of our own: it signs the same checkpoint with the time of now."""
    monkeypatch.setattr(witnesses, "IDLE_SECONDS", 0.02)
    right = dated.clock.now
    with witness(dated, tmp_path / "w") as w:
        follow(dated, policy_of(dated, f"witness w {w.vkey} {w.url}", quorum="w"))
        until(lambda: state(dated) == ("cosigned", 2))
        w.witness._clock = lambda: (right + timedelta(minutes=10)).timestamp()
        dated.clock.jump(hours=5)
        assert not adds(dated, writer)
        # Five hours have passed for the witness, too: this machine was stopped for so long.
        w.witness._clock = lambda: dated.clock().timestamp()
        until(lambda: adds(dated, writer))


def test_a_clock_that_is_ahead_is_not_confirmed_by_a_witness_that_is_right(
    dated: Running, writer: Writer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "IDLE_SECONDS", 0.02)
    right = dated.clock.now
    with witness(dated, tmp_path / "w") as w:
        follow(dated, policy_of(dated, f"witness w {w.vkey} {w.url}", quorum="w"))
        until(lambda: state(dated) == ("cosigned", 2))
        w.witness._clock = lambda: right.timestamp()
        asked: list[int] = []
        monkeypatch.setattr(dated.ledger.clock_watch.guard, "witnessed", asked.append)
        dated.clock.jump(days=40)
        until(lambda: len(asked) >= 3)
        assert not adds(dated, writer)
        assert set(asked) == {int(right.timestamp())}


def test_a_log_whose_time_is_ahead_keeps_no_cosignature_that_would_convict_it(
    dated: Running, writer: Writer, crook: Crook
) -> None:
    """The witness is not said to lie, and counts again when the log's time has come."""
    dated.clock.jump(days=40)
    dated.reopen(accept_clock=True)
    dated.add(writer.policy())
    dated.clock.jump(days=-40)
    signs_at(dated, crook)
    follow(dated, policy_of(dated, f"witness w {CROOK} {crook.url}"))
    until(lambda: dated.ledger.witnesses.states()[0].detail is not None)
    [told] = dated.ledger.witnesses.states()
    assert told.state == "waiting"
    assert told.detail is not None
    assert "ahead of the clock" in told.detail
    dated.clock.forward(days=40)
    dated.reopen()
    until(lambda: state(dated) == ("cosigned", 4))


@pytest.mark.usefixtures("prompt")
def test_a_cosignature_that_is_not_kept_confirms_the_clock_all_the_same(
    dated: Running, writer: Writer, crook: Crook
) -> None:
    """Of a log whose time is ahead, on a machine that was stopped for five hours."""
    dated.clock.jump(days=40)
    dated.reopen(accept_clock=True)
    dated.add(writer.policy())
    dated.clock.jump(days=-40)
    crook.says = lambda _: Reply(503, "")
    follow(dated, policy_of(dated, f"witness w {CROOK} {crook.url}"))
    dated.clock.jump(hours=5)
    assert not adds(dated, writer)
    signs_at(dated, crook)
    until(lambda: adds(dated, writer))
    assert state(dated) == ("waiting", None)
