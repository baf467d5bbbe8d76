"""When a host is asked again, whatever the clock does: it always ends, never before five questions, never stuck."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ledger.canon.times import format_time, parse_time
from ledger.reviews.guests import Guest
from ledger.reviews.pending import HURRIED, LONGEST, PATIENCE, SCHEDULE, SKEW, Waiting
from tests.identities import GUEST, IDV, ISSUER, NOW

AGES = timedelta(days=3650)
# However late it is.
LEAST = 5
JUMPS = st.timedeltas(-AGES, AGES) | st.sampled_from(
    [timedelta(), AGES, -AGES, PATIENCE, -LONGEST, timedelta(seconds=-1)]
)


def begun() -> Waiting:
    guest = Guest(GUEST.did, {}, IDV, "p-1", "identity_verified", ISSUER.public, 0)
    return Waiting("sub-1", "review", {}, guest, format_time(NOW), format_time(NOW + PATIENCE), {})


def asked_at(jumps: Iterable[timedelta]) -> list[tuple[timedelta, datetime]]:
    """How long it was waited in truth, and what the clock said, at every question: the first before it begins to wait.
    The clock jumps before each of the others; what is due too late to be true is due at once."""
    passed, now, waiting, jumping = timedelta(), NOW, begun(), iter(jumps)
    due, questions = now + SCHEDULE[0], [(timedelta(), NOW)]
    while True:
        now += next(jumping, timedelta())
        wait = due - now if now < due <= now + LONGEST + SKEW else timedelta()
        passed, now = passed + wait, now + wait
        questions.append((passed, now))
        if waiting.is_last(now):
            return questions
        due, waiting = waiting.due_after(now), replace(waiting, tries=waiting.tries + 1)
        assert now < due <= now + LONGEST
        assert len(questions) <= 1 + len(SCHEDULE), "it never ends"


def test_by_a_clock_that_is_right() -> None:
    """After 1, 5, 30 minutes, 2 and 6 hours, then every 12 hours, to 72 hours."""
    hours = [0, 1 / 60, 5 / 60, 0.5, 2, 6, 18, 30, 42, 54, 66, 72]
    assert [passed / timedelta(hours=1) for passed, _ in asked_at([])] == hours
    assert max(later - earlier for earlier, later in pairwise(SCHEDULE)) == LONGEST


@given(st.lists(JUMPS, max_size=len(SCHEDULE)))
def test_by_a_clock_that_jumps(jumps: list[timedelta]) -> None:
    questions = asked_at(jumps)
    assert LEAST <= len(questions) <= 1 + len(SCHEDULE)
    # No longer than the schedule, but for what is waited anew after each jump back.
    assert questions[-1][0] <= PATIENCE + len(jumps) * (LONGEST + SKEW)
    # It ends when the time is over by the clock, or when there are no more questions.
    assert questions[-1][1] >= parse_time(begun().decide_by) or len(questions) == 1 + len(SCHEDULE)


@given(JUMPS)
def test_a_clock_that_jumps_once_judges_nobody_at_once(jump: timedelta) -> None:
    """However far ahead it is all at once, the host has some minutes to answer."""
    questions = asked_at([jump])
    assert questions[-1][0] >= (LEAST - 2) * HURRIED


@given(st.integers(0, 20), JUMPS)
def test_what_is_last_stays_last(tries: int, ahead: timedelta) -> None:
    """A later moment, or one more question, never makes it wait on."""
    waiting, now = replace(begun(), tries=tries), NOW + ahead
    if waiting.is_last(now):
        assert tries + 2 >= LEAST
        assert waiting.is_last(now + HURRIED)
        assert replace(waiting, tries=tries + 1).is_last(now)
