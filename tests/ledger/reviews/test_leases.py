"""Several workers share what waits: nobody does another's work, what a dead one left is taken up, and whatever is broken
off at any point ends in one review, one entry about its host, and one outcome."""

import asyncio
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest

from ledger.folder import open_ledger
from ledger.identity.issuers import distrust
from ledger.reviews import bookings, pending, verification, worker
from ledger.reviews.admission import Submission, admit
from ledger.reviews.desk import Desk
from ledger.reviews.verification import Shown
from ledger.reviews.worker import Worker
from ledger.store.rows import run
from tests.hosting import BOOKED, Hosted, claim
from tests.identities import IDV, NOW
from tests.outcomes import become, checks, silent, waits
from tests.reviewing import GUESTS

BROKEN_OFF = timedelta(minutes=2)


def settle(hosted: Hosted, leased: pending.Leased) -> None:
    """What a worker does with one that it has leased, however long ago."""
    asyncio.run(Worker(hosted.reviewing.ledger.desk())._settle(leased))


def lease(hosted: Hosted) -> pending.Leased:
    hosted.clock.forward(minutes=1)
    [leased] = pending.lease(hosted.desk, 16)
    return leased


def test_two_at_once_never_work_on_the_same(hosted: Hosted) -> None:
    for number, guest in enumerate(GUESTS):
        silent(hosted, guest=guest, reference=f"B-{number}")
    hosted.site.asked.clear()
    hosted.clock.forward(minutes=1)
    other = open_ledger(hosted.reviewing.settings, clock=hosted.clock, development=hosted.outside.development)
    other.sequencer.start()
    desks = [hosted.reviewing.ledger.desk(), hosted.reviewing.ledger.desk(), other.desk()]
    together = Barrier(len(desks))

    def work(desk: Any) -> list[bytes]:
        together.wait()
        found = []
        while leased := pending.lease(desk, 2):
            found += [each.key for each in leased]
        return found

    try:
        with ThreadPoolExecutor(len(desks)) as threads:
            shares = list(threads.map(work, desks))
        assert Counter(key for share in shares for key in share).most_common(1)[0][1] == 1
        assert sum(map(len, shares)) == len(GUESTS)
        hosted.clock.forward(minutes=2)
        together.reset()

        def ask(desk: Any) -> int:
            together.wait()
            return asyncio.run(Worker(desk).work())

        with ThreadPoolExecutor(len(desks)) as threads:
            assert sum(threads.map(ask, desks)) == len(GUESTS)
        assert Counter(hosted.site.asked) == {f"B-{number}": 1 for number in range(len(GUESTS))}
    finally:
        other.close()


@pytest.mark.parametrize("seconds", [-1800, -90, -1, 1, 90])
def test_clocks_that_differ_a_little_break_no_lease(hosted: Hosted, seconds: int) -> None:
    silent(hosted)
    # It is due for long.
    hosted.clock.forward(hours=1)
    lease(hosted)
    hosted.clock.forward(seconds=seconds)
    assert pending.lease(hosted.desk, 16) == []


def test_a_host_is_not_asked_twice_where_clocks_differ(hosted: Hosted) -> None:
    """What is due in twelve hours is not due at once: it would be judged in half the time."""
    silent(hosted)
    for minutes in (1, 5, 30, 120, 360):
        hosted.clock.now = NOW + timedelta(minutes=minutes)
        assert hosted.work() == 1
    hosted.clock.forward(seconds=-5)
    assert hosted.work() == 0


def test_what_a_dead_worker_left_is_taken_up(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book()
    lease(hosted)
    assert hosted.go_on(seconds=119) == 0
    assert hosted.go_on(seconds=1) == 1
    assert become(hosted, waiting)["status"] == "accepted"


def test_what_is_decided_is_not_decided_again(hosted: Hosted) -> None:
    waiting = silent(hosted)
    slow = lease(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.clock.forward(minutes=2)
    hosted.work()
    before = become(hosted, waiting)
    assert not pending.decide(hosted.desk, slow, {"status": "rejected", "code": "booking_denied"})
    pending.again(hosted.desk, slow)
    assert become(hosted, waiting) == before
    assert hosted.go_on(days=3) == 0


def test_a_slow_worker_changes_nothing_twice(hosted: Hosted) -> None:
    """It goes on after another one has taken over, and the host has changed its mind."""
    waiting = silent(hosted)
    slow = lease(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.clock.forward(minutes=2)
    assert hosted.work() == 1
    before = become(hosted, waiting)
    hosted.site.bookings.clear()
    settle(hosted, slow)
    assert become(hosted, waiting) == before
    record = hosted.record()
    assert (record["total_reviews"], record["verified_reviews"], checks(hosted)) == (1, 1, {})


def test_two_that_decide_at_the_same_time(hosted: Hosted) -> None:
    waiting = silent(hosted)
    slow = lease(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.clock.forward(minutes=2)
    [taken] = pending.lease(hosted.desk, 1)
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda leased: settle(hosted, leased), (slow, taken)))
    assert become(hosted, waiting)["status"] == "accepted"
    assert (hosted.record()["total_reviews"], checks(hosted)) == (1, {})


# Broken off


class Killed(BaseException):
    """As the end of a process: nobody catches it."""


def killed_after(hosted: Hosted, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> Callable[[], None]:
    """The process ends when this is done, and before whatever comes next. Workers of other services, which other tests
    have left running in this process, go on."""
    real, store = getattr(where, name), hosted.reviewing.ledger.store

    def end(desk: Desk) -> None:
        if desk.store is store:
            raise Killed

    async def then_die(desk: Desk, *arguments: Any) -> Any:
        done = await real(desk, *arguments)
        end(desk)
        return done

    def then_die_at_once(desk: Desk, *arguments: Any) -> Any:
        done = real(desk, *arguments)
        end(desk)
        return done

    monkeypatch.setattr(where, name, then_die if asyncio.iscoroutinefunction(real) else then_die_at_once)
    return monkeypatch.undo


def die(hosted: Hosted, monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> None:
    undo = killed_after(hosted, monkeypatch, where, name)
    with pytest.raises(Killed):
        hosted.work()
    undo()
    hosted.reviewing.reopen()
    hosted.clock.now += BROKEN_OFF


STEPS = {
    "leased": (pending, "lease"),
    "asked": (verification, "verify"),
    "in the log": (worker, "admit"),
    "told": (verification, "tell"),
    "decided": (pending, "decide"),
}


@pytest.mark.parametrize("step", ["leased", "asked", "in the log", "decided"])
@pytest.mark.parametrize("then", ["confirms", "denies", "is silent"])
def test_a_confirmed_one_broken_off(hosted: Hosted, monkeypatch: pytest.MonkeyPatch, step: str, then: str) -> None:
    """Once it is in the log, nothing that the host says by then changes anything."""
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.clock.forward(minutes=1)
    die(hosted, monkeypatch, *STEPS[step])
    if step in ("in the log", "decided"):
        if then == "denies":
            hosted.site.bookings.clear()
        hosted.site.down = 503 if then == "is silent" else None
    hosted.work()
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["receipt"]["verification_level"]) == ("accepted", "guest_verified")
    assert (hosted.record()["total_reviews"], checks(hosted)) == (1, {})
    assert hosted.go_on(days=4) == 0


@pytest.mark.parametrize("step", ["in the log", "told", "decided"])
@pytest.mark.parametrize("then", ["confirms", "denies", "is silent"])
def test_an_unanswered_one_broken_off(hosted: Hosted, monkeypatch: pytest.MonkeyPatch, step: str, then: str) -> None:
    waiting = silent(hosted)
    for minutes in (1, 5, 30, 120, 360, 1080, 1800, 2520, 3240, 3960):
        hosted.clock.now = NOW + timedelta(minutes=minutes)
        hosted.work()
    hosted.clock.forward(hours=6)
    die(hosted, monkeypatch, *STEPS[step])
    hosted.site.down = 503 if then == "is silent" else None
    if then == "confirms":
        hosted.site.book()
    hosted.work()
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["receipt"]["verification_level"]) == ("accepted", "unconfirmed")
    assert (hosted.record()["total_reviews"], checks(hosted)) == (1, {"unanswered": 1})


@pytest.mark.parametrize("step", ["told", "decided"])
def test_a_denied_one_broken_off(hosted: Hosted, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.clock.forward(minutes=1)
    die(hosted, monkeypatch, *STEPS[step])
    hosted.work()
    assert become(hosted, waiting)["code"] == "booking_denied"
    assert (hosted.record()["total_reviews"], checks(hosted)) == (0, {"denied": 1})


def test_an_issuer_that_goes_when_it_is_in_the_log(hosted: Hosted) -> None:
    """Then it is accepted: nobody may sign that it was refused."""
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book()
    leased = lease(hosted)
    found = asyncio.run(verification.verify(hosted.reviewing.ledger.desk(), waiting.body, waiting.guest))
    assert isinstance(found, Shown)
    submission = Submission.of(hosted.desk, waiting.body)
    asyncio.run(admit(hosted.desk, submission, waiting.guest, found))
    hosted.reviewing.add(distrust(hosted.reviewing.ledger.issuers(), "guest", IDV, None))
    settle(hosted, leased)
    assert become(hosted, waiting)["status"] == "accepted"


def test_a_claim_broken_off_when_it_is_on_file(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    hosted.clock.now = BOOKED
    hosted.site.down = 503
    waiting: Any = hosted.book(claim(hosted.site.speaker))
    hosted.site.down = None
    hosted.site.book()
    hosted.clock.forward(minutes=1)
    die(hosted, monkeypatch, bookings, "keep_claim")
    hosted.site.bookings.clear()
    hosted.work()
    assert become(hosted, waiting)["status"] == "accepted"


def test_leases_of_a_clock_that_was_far_ahead_block_nobody(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.clock.forward(days=3650)
    assert len(pending.lease(hosted.desk, 16)) == 1
    hosted.clock.forward(days=-3650, minutes=1)
    assert hosted.work() == 1
    assert waits(hosted, waiting)
    with hosted.desk.store.read() as connection:
        assert run(connection, "SELECT leased_until FROM submission") == [(None,)]
