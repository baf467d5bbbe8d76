"""The log's time under a clock that jumps, in a ledger that the world reaches."""

import logging
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client import REGISTRY

from ledger.canon.times import format_time, parse_time
from ledger.errors import Unavailable
from ledger.folder import Ledger, open_ledger
from ledger.log.sequencer import Sequencer
from tests.running import Running, SetClock, Writer
from tests.waiting import until

BASE = "https://ledger.example"


@pytest.fixture
def dated(tmp_path: Path) -> Iterator[Running]:
    made = Running(tmp_path / "data", f"sqlite:///{tmp_path}/ledger.db", base_url=BASE)
    yield made
    made.ledger.close()


@pytest.fixture
def shared(tmp_path: Path, database_url: str) -> Iterator[Running]:
    """On each engine."""
    made = Running(tmp_path / "data", database_url, base_url=BASE)
    yield made
    made.ledger.close()


def refusal(running: Running, writer: Writer) -> Unavailable:
    """What adding an entry is refused with; nothing is added."""
    size = running.ledger.reader.refresh().size
    with pytest.raises(Unavailable) as refused:
        running.add(writer.policy())
    assert running.ledger.reader.refresh().size == size
    assert refused.value.code == "clock_unconfirmed"
    return refused.value


def added(running: Running, writer: Writer) -> str:
    """The time of an entry that is added now."""
    [done] = running.add(writer.policy())
    assert done.entry.at is not None
    return done.entry.at


def test_a_bad_batch_does_not_freeze_the_logs_time(shared: Running, writer: Writer) -> None:
    before = added(shared, writer)
    shared.clock.jump(days=40)
    assert "960 h more than the time that has passed" in refusal(shared, writer).message
    shared.clock.jump(days=-40)
    shared.clock.forward(minutes=1)
    assert added(shared, writer) == format_time(parse_time(before) + timedelta(minutes=1))


def test_the_clock_is_held_against_the_time_that_passes_from_the_opening_on(dated: Running, writer: Writer) -> None:
    """A jump by less than the bound of a start is one, though nothing was added before it."""
    dated.clock.jump(hours=24)
    refusal(dated, writer)


def test_goes_on_while_the_clock_is_behind(dated: Running, writer: Writer) -> None:
    before = added(dated, writer)
    dated.clock.jump(days=-40)
    assert added(dated, writer) == before
    dated.reopen()
    assert added(dated, writer) == before
    dated.clock.jump(days=40)
    dated.clock.forward(minutes=1)
    assert added(dated, writer) == format_time(dated.clock())


@pytest.mark.parametrize(("hours", "accepted"), [(24, True), (26, False)])
def test_a_restart_accepts_a_clock_within_the_bound(dated: Running, writer: Writer, hours: int, accepted: bool) -> None:
    dated.ledger.close()
    dated.clock.forward(hours=hours)
    dated.open()
    if accepted:
        assert added(dated, writer) == format_time(dated.clock())
    else:
        assert "more than 25 h before that" in refusal(dated, writer).message


def test_the_bound_is_a_setting(dated: Running, writer: Writer) -> None:
    dated.settings = replace(dated.settings, clock_bound=timedelta(hours=72))
    dated.clock.forward(hours=71)
    dated.reopen()
    assert added(dated, writer) == format_time(dated.clock())


def test_the_operators_word_lets_the_log_go_on(dated: Running, writer: Writer) -> None:
    dated.clock.forward(days=12)
    dated.reopen()
    refusal(dated, writer)
    dated.reopen(accept_clock=True)
    assert added(dated, writer) == format_time(dated.clock())
    dated.reopen()
    added(dated, writer)


def test_a_ledger_on_this_machine_alone_trusts_its_clock(running: Running, writer: Writer) -> None:
    running.clock.jump(days=40)
    assert added(running, writer) == format_time(running.clock())
    running.clock.jump(days=40)
    running.reopen()
    assert added(running, writer) == format_time(running.clock())


def test_a_public_ledger_trusts_no_clock_under_a_loopback_address(dated: Running, writer: Writer) -> None:
    """As where a command is run with another STAYLOG_BASE_URL than the service."""
    dated.settings = replace(dated.settings, base_url="http://127.0.0.1:8080", base_url_stated=True)
    dated.clock.jump(days=40)
    dated.reopen()
    refusal(dated, writer)


def test_a_log_whose_time_is_ahead_goes_on(dated: Running, writer: Writer) -> None:
    dated.clock.jump(days=40)
    dated.reopen(accept_clock=True)
    ahead = added(dated, writer)
    dated.clock.jump(days=-40)
    dated.reopen()
    for _ in range(3):
        dated.clock.forward(hours=5)
        assert added(dated, writer) == ahead
    # No map head is due by such a time.
    assert dated.ledger.sequencer._is_due() is False
    assert dated.fsck().findings == []


class Second:
    """Another service on the database, with a clock of its own."""

    def __init__(self, running: Running, folder: Path, **jump: float) -> None:
        self.clock = SetClock(format_time(running.clock()))
        self.clock.jump(**jump)
        folder.mkdir(mode=0o700)
        for path in (running.settings.log_key, running.settings.service_keys, running.settings.mark):
            (folder / path.name).write_bytes(path.read_bytes())
            (folder / path.name).chmod(0o600)
        self.settings = replace(running.settings, data=folder)

    def open(self, *, accept_clock: bool = False) -> Ledger:
        clock = self.clock
        return open_ledger(self.settings, clock=clock, elapsed=clock.elapsed, accept_clock=accept_clock)


def test_a_second_service_with_a_clock_ahead_is_refused_and_the_first_goes_on(
    shared: Running, writer: Writer, tmp_path: Path
) -> None:
    second = Second(shared, tmp_path / "second", days=40)
    with closing(second.open()) as ahead:
        with pytest.raises(Unavailable) as refused:
            ahead.sequencer.append([writer.policy()])
        assert refused.value.code == "clock_unconfirmed"
        assert added(shared, writer) == format_time(shared.clock())


def test_a_service_whose_clock_is_behind_the_log_dates_by_the_log(
    shared: Running, writer: Writer, tmp_path: Path
) -> None:
    second = Second(shared, tmp_path / "second", hours=20)
    with closing(second.open()) as ahead:
        [theirs] = ahead.sequencer.append([writer.policy()])
    assert theirs.entry.at == format_time(second.clock())
    assert added(shared, writer) == theirs.entry.at


def test_an_entry_by_another_process_confirms_a_service_that_waits(
    shared: Running, writer: Writer, tmp_path: Path
) -> None:
    """`issuer add --accept-clock` is the word for the service, too."""
    shared.clock.forward(days=12)
    shared.reopen()
    refusal(shared, writer)
    second = Second(shared, tmp_path / "second")
    with closing(second.open(accept_clock=True)) as accepting:
        accepting.sequencer.append([writer.policy()])
    assert added(shared, writer) == format_time(shared.clock())


def gauge(name: str, **labels: str) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_tells_health_metrics_and_the_log_and_goes_on_by_itself(
    dated: Running, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    ledger, sequencer = dated.ledger, dated.ledger.sequencer
    sequencer.start()
    assert ledger.health.reason() is None
    dated.clock.jump(days=40)
    until(lambda: ledger.health.reason() is not None)
    reason = ledger.health.reason()
    assert reason is not None
    assert reason.code == "clock_unconfirmed"
    assert "--accept-clock" in reason.message
    assert gauge("staylog_cannot_write", part="clock", code="clock_unconfirmed") == 1
    assert gauge("staylog_log_time_ahead_seconds") == -40 * 86400
    dated.clock.jump(days=-40)
    until(lambda: ledger.health.reason() is None)
    assert gauge("staylog_cannot_write", part="clock", code="clock_unconfirmed") == 0
    told = [record.getMessage() for record in caplog.records if record.name == "ledger.log.clock_watch"]
    assert len(told) == 2
    assert "--accept-clock" in told[0]
    assert "confirmed" in told[1]


def test_tells_that_the_logs_time_is_ahead(dated: Running, writer: Writer, caplog: pytest.LogCaptureFixture) -> None:
    dated.clock.jump(days=40)
    dated.reopen(accept_clock=True)
    added(dated, writer)
    dated.clock.jump(days=-40)
    dated.reopen()
    caplog.set_level(logging.WARNING)
    dated.ledger.sequencer.start()
    assert dated.ledger.health.reason() is None
    assert gauge("staylog_log_time_ahead_seconds") == 40 * 86400
    assert "3456000 s ahead of the clock" in caplog.text


def test_a_change_of_policy_waits_for_the_clock(dated: Running, writer: Writer, tmp_path: Path) -> None:
    """The service starts all the same."""
    dated.clock.forward(days=12)
    dated.settings = replace(dated.settings, publishes_unanswered=False)
    ledger = dated.reopen()
    assert ledger.adopt_policy() is False
    ledger.sequencer.start()
    assert ledger.reader.refresh().size == 2
    with closing(Second(dated, tmp_path / "second").open(accept_clock=True)) as accepting:
        accepting.sequencer.append([writer.review()])
    until(lambda: ledger.reader.refresh().size > 4)
    newest = ledger.reader.newest_policy()
    assert newest is not None
    assert newest[0] == 4
    until(lambda: ledger.health.reason() is None)


def test_no_write_is_begun_again_and_again_while_the_clock_is_not_confirmed(
    dated: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though a map head is long due."""
    dated.clock.forward(days=12)
    sequencer: Sequencer = dated.reopen().sequencer
    assert sequencer._is_due() is False
    dated.reopen(accept_clock=True)
    assert dated.ledger.sequencer._is_due() is True
