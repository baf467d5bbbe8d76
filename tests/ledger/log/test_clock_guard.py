"""When the wall clock may date entries, with a wall clock and an elapsed time that the tests set."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canon.times import format_time, parse_time
from ledger.errors import Unavailable
from ledger.log.clock_guard import TOLERANCE, WITNESSED_WITHIN, ClockGuard
from ledger.settings import CLOCK_BOUND
from tests.running import SetClock


def guard(clock: SetClock, *, trusted: bool = False) -> ClockGuard:
    return ClockGuard(clock, clock.elapsed, CLOCK_BOUND, trusted=trusted)


def started(clock: SetClock) -> ClockGuard:
    """A process that starts right after the last entry."""
    made = guard(clock)
    made.require(format_time(clock()))
    return made


def ago(clock: SetClock, **amount: float) -> str:
    return format_time(clock() - timedelta(**amount))


def seconds(clock: SetClock) -> int:
    return int(clock().timestamp())


@pytest.mark.parametrize("hours", [0, 24, 25])
def test_accepts_a_start_within_the_bound_of_the_last_entry(hours: float) -> None:
    clock = SetClock()
    assert guard(clock).require(ago(clock, hours=hours)) == clock()


@pytest.mark.parametrize("hours", [26, 24 * 40])
def test_refuses_a_start_beyond_the_bound(hours: float) -> None:
    clock = SetClock()
    with pytest.raises(Unavailable, match="--accept-clock") as refused:
        guard(clock).require(ago(clock, hours=hours))
    assert (refused.value.code, refused.value.retry_after) == ("clock_unconfirmed", 60)


def test_accepts_a_start_with_a_clock_that_is_behind_the_log() -> None:
    clock = SetClock()
    assert guard(clock).is_confirmed(ago(clock, days=-40))


def test_a_clock_that_is_behind_the_log_at_the_start_may_catch_up() -> None:
    """As on a machine that sets its clock after the service has started."""
    clock = SetClock()
    last = format_time(clock())
    clock.jump(days=-400)
    running = guard(clock)
    assert running.is_confirmed(last)
    clock.jump(days=200)
    assert not running.is_confirmed(last)
    clock.jump(days=201)
    assert running.is_confirmed(last)
    clock.jump(hours=1)
    assert not running.is_confirmed(last)


@pytest.mark.parametrize("hours", [1, 40 * 24])
def test_a_clock_that_is_confirmed_behind_the_logs_time_may_not_jump_to_it(hours: float) -> None:
    """A witness or the operator says that it is the log's time that is wrong."""
    clock = SetClock()
    last = ago(clock, hours=-hours)
    running = guard(clock)
    assert running.is_confirmed(last)
    running.witnessed(seconds(clock))
    clock.jump(hours=hours)
    assert not running.is_confirmed(last)
    clock.jump(hours=-hours)
    clock.forward(hours=hours)
    assert running.is_confirmed(last)


def test_confirms_itself_when_the_log_goes_on_by_another_process() -> None:
    clock = SetClock()
    waiting = guard(clock)
    assert not waiting.is_confirmed(ago(clock, hours=30))
    assert waiting.is_confirmed(ago(clock, hours=1))


@pytest.mark.parametrize("days", [40, 1, 0.01])
def test_refuses_a_jump_ahead_however_old_the_last_entry_is(days: float) -> None:
    clock = SetClock()
    running = started(clock)
    clock.forward(hours=3)
    clock.jump(days=days)
    for last in (ago(clock, days=days), ago(clock, minutes=1), ago(clock, days=400)):
        with pytest.raises(Unavailable, match="more than the time that has passed") as refused:
            running.require(last)
        assert refused.value.code == "clock_unconfirmed"


def test_accepts_again_once_the_clock_is_put_right() -> None:
    clock = SetClock()
    running = started(clock)
    clock.jump(days=40)
    assert not running.is_confirmed(format_time(clock()))
    clock.jump(days=-40)
    assert running.require(format_time(clock())) == clock()


def test_accepts_a_jump_back_and_the_return() -> None:
    clock = SetClock()
    running, last = started(clock), format_time(clock())
    clock.jump(days=-40)
    assert running.is_confirmed(last)
    clock.jump(days=40)
    assert running.is_confirmed(last)


def test_accepts_a_machine_that_slept() -> None:
    """The elapsed time goes on while it sleeps (CLOCK_BOOTTIME)."""
    clock = SetClock()
    running, last = started(clock), format_time(clock())
    clock.forward(days=12)
    assert running.is_confirmed(last)


def test_small_steps_do_not_add_up() -> None:
    clock = SetClock()
    running = started(clock)
    for minutes in (2, 3, -1):
        clock.jump(minutes=minutes)
        clock.forward(hours=1)
        assert running.is_confirmed(format_time(clock()))
    clock.jump(minutes=2)
    assert not running.is_confirmed(format_time(clock()))


def test_the_operators_word_confirms_this_moment_and_no_later_jump() -> None:
    clock = SetClock()
    accepted = guard(clock)
    accepted.accept()
    assert accepted.is_confirmed(ago(clock, days=400))
    clock.jump(days=1)
    assert not accepted.is_confirmed(ago(clock, days=400))


def test_a_clock_that_is_trusted_is_never_refused() -> None:
    clock = SetClock()
    trusting = guard(clock, trusted=True)
    assert trusting.is_confirmed(ago(clock, days=400))
    clock.jump(days=40)
    assert trusting.is_confirmed(ago(clock, days=400))


@pytest.mark.parametrize("minutes", [-60, -59, 0, 59, 60])
def test_a_witness_within_an_hour_confirms(minutes: int) -> None:
    clock = SetClock()
    waiting = guard(clock)
    waiting.witnessed(seconds(clock) + 60 * minutes)
    assert waiting.is_confirmed(ago(clock, days=40))


@pytest.mark.parametrize("minutes", [-61, 61, -40 * 24 * 60])
def test_a_witness_beyond_an_hour_does_not_confirm(minutes: int) -> None:
    clock = SetClock()
    waiting = guard(clock)
    waiting.witnessed(seconds(clock) + 60 * minutes)
    assert not waiting.is_confirmed(ago(clock, days=40))


def test_a_witness_confirms_a_jump_that_was_right() -> None:
    """As when a virtual machine was stopped for a while."""
    clock = SetClock()
    running, last = started(clock), format_time(clock())
    clock.jump(hours=5)
    assert not running.is_confirmed(last)
    running.witnessed(seconds(clock))
    assert running.is_confirmed(last)


def test_a_witness_does_not_make_the_right_time_a_jump() -> None:
    """Of a clock that is half an hour behind for a while."""
    clock = SetClock()
    running, last = started(clock), format_time(clock())
    clock.jump(minutes=-30)
    running.witnessed(seconds(clock) + 1800)
    clock.jump(minutes=30)
    assert running.is_confirmed(last)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("passes"), st.integers(0, 40 * 24)),
        st.tuples(st.just("jumps"), st.integers(-40 * 24 * 60, 40 * 24 * 60)),
        st.tuples(st.just("restarts"), st.just(0)),
        st.tuples(st.just("witness"), st.just(0)),
    ),
    max_size=30,
)


@given(STEPS)
def test_law_jumps_do_not_add_to_the_logs_time(steps: list[tuple[str, int]]) -> None:
    """Whatever the clock does, the log's time gets ahead of the real time by the bound of each restart at most, by what
    a witness leaves open, and by the tolerance of each process."""
    clock = SetClock()
    real, running = clock(), started(clock)
    at, bound = format_time(real), TOLERANCE
    for what, amount in steps:
        if what == "passes":
            clock.forward(hours=amount)
            real += timedelta(hours=amount)
        elif what == "jumps":
            clock.jump(minutes=amount)
        elif what == "restarts":
            running = guard(clock)
            bound += CLOCK_BOUND + TOLERANCE
        else:
            running.witnessed(int(real.timestamp()))
            bound = max(bound, WITNESSED_WITHIN + TOLERANCE)
        if running.is_confirmed(at):
            at = max(at, format_time(running.require(at)))
        assert parse_time(at) - real <= bound
