"""A clock that jumps, far ahead or back, while submissions wait: nobody is judged by it at once, nothing is stuck for
ever, and nothing is decided twice."""

from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from ledger.reviews import pending
from ledger.reviews.pending import Waiting
from ledger.reviews.worker import Worker
from tests.hosting import BOOKED, Hosted, claim
from tests.outcomes import become, checks, silent, waits

FAR = timedelta(days=3650)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
# Hours that are waited at most, once the clock goes on as it should: three days and a half, of a worker that looks
# once in an hour.
LONG_ENOUGH = 84


class Watch:
    """The real time, whatever the clock shows, and when the host was asked."""

    def __init__(self, hosted: Hosted, waiting: Waiting) -> None:
        self.hosted = hosted
        self.waiting = waiting
        self.passed = timedelta()
        self.asked = [self.passed]

    def jump(self, ahead: timedelta) -> None:
        self.hosted.clock.now += ahead

    def work(self, step: timedelta = timedelta()) -> None:
        self.passed += step
        self.hosted.clock.now += step
        self.hosted.work()
        self.asked += [self.passed] * (len(self.hosted.site.asked) - len(self.asked))

    def end(self) -> dict[str, Any]:
        for _ in range(LONG_ENOUGH):
            if not waits(self.hosted, self.waiting):
                break
            self.work(HOUR)
        return become(self.hosted, self.waiting)

    def require_fair(self) -> None:
        """The host was asked often enough, and not all at once. One question more where the clock jumped."""
        assert len(self.asked) >= 5, self.asked
        assert self.asked[4] - self.asked[0] >= 3 * MINUTE, self.asked


def watched(hosted: Hosted, asked: int) -> Watch:
    """So many times it is asked while the clock is right."""
    watch = Watch(hosted, silent(hosted))
    while len(watch.asked) < asked:
        watch.work(MINUTE if watch.passed < HOUR else HOUR)
    return watch


def require_one(hosted: Hosted) -> None:
    assert (hosted.record()["total_reviews"], checks(hosted)) == (1, {"unanswered": 1})
    assert hosted.go_on(days=4) == 0


@pytest.mark.parametrize("asked", [1, 2, 4])
def test_far_ahead_nothing_is_decided_at_once(hosted: Hosted, asked: int) -> None:
    watch = watched(hosted, asked)
    watch.jump(FAR)
    for left in reversed(range(5 - asked)):
        assert waits(hosted, watch.waiting)
        watch.work(MINUTE)
        # Not within the minute.
        watch.work(timedelta(seconds=59))
        watch.passed -= timedelta(seconds=59)
        hosted.clock.now -= timedelta(seconds=59)
        assert len(watch.asked) == 5 - left
    assert not waits(hosted, watch.waiting)
    watch.require_fair()
    require_one(hosted)


def test_far_ahead_a_host_that_comes_back_is_heard(hosted: Hosted) -> None:
    watch = watched(hosted, 1)
    watch.jump(FAR)
    watch.work(MINUTE)
    watch.work(MINUTE)
    hosted.site.down = None
    hosted.site.book()
    watch.work(MINUTE)
    assert become(hosted, watch.waiting)["receipt"]["verification_level"] == "guest_verified"


@pytest.mark.parametrize("asked", [1, 4, 8])
def test_ahead_and_back_again(hosted: Hosted, asked: int) -> None:
    watch = watched(hosted, asked)
    watch.jump(FAR)
    if asked < 4:
        watch.work(MINUTE)
    else:
        pending.lease(hosted.desk, 16)
    watch.jump(-FAR)
    assert waits(hosted, watch.waiting)
    assert watch.end()["status"] == "accepted"
    watch.require_fair()
    require_one(hosted)


@pytest.mark.parametrize("asked", [1, 4, 8])
@pytest.mark.parametrize("back", [FAR, 5 * HOUR])
def test_back_it_is_decided_all_the_same(hosted: Hosted, asked: int, back: timedelta) -> None:
    """Though what it waits for is ten years ahead by then."""
    watch = watched(hosted, asked)
    watch.jump(-back)
    assert watch.end()["status"] == "accepted"
    watch.require_fair()
    require_one(hosted)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_the_clock_does(hosted: Hosted, seed: int) -> None:
    random, watch = Random(seed), watched(hosted, 1)
    for _ in range(12):
        watch.jump(random.choice([FAR, -FAR, HOUR, -HOUR, timedelta(days=2), timedelta(days=-2)]))
        watch.work(random.choice([MINUTE, MINUTE, HOUR]))
    assert watch.end()["status"] == "accepted"
    watch.require_fair()
    require_one(hosted)


def claimed(hosted: Hosted, check_in: str) -> Waiting:
    hosted.clock.now = BOOKED
    hosted.site.down = 503
    check_out = str((datetime.fromisoformat(check_in) + timedelta(days=3)).date())
    waiting = hosted.book(claim(hosted.site.speaker, check_in=check_in, check_out=check_out))
    assert isinstance(waiting, Waiting)
    return waiting


def test_a_claim_is_not_given_up_at_once(hosted: Hosted) -> None:
    """While check-in is still to come."""
    watch = Watch(hosted, claimed(hosted, "2026-09-01"))
    watch.jump(timedelta(days=30))
    watch.work(MINUTE)
    assert waits(hosted, watch.waiting)
    assert watch.end()["code"] == "booking_unverifiable"
    watch.require_fair()


def test_nobody_is_asked_about_a_claim_for_ever(hosted: Hosted) -> None:
    watch = Watch(hosted, claimed(hosted, "2026-09-01"))
    watch.jump(timedelta(days=-30))
    assert watch.end()["code"] == "booking_unverifiable"
    assert len(watch.asked) <= 13


def test_a_clock_that_is_ahead_for_an_hour_erases_nothing(hosted: Hosted) -> None:
    hosted.clock.now = BOOKED
    hosted.site.book()
    hosted.book(claim(hosted.site.speaker))
    worker = Worker(hosted.desk)
    assert worker.tidy_with_care() == 0
    hosted.clock.now += FAR
    assert worker.tidy_with_care() == 0
    hosted.clock.now -= FAR
    assert worker.tidy_with_care() == 0
    # When its time has come in earnest, it goes at the second look.
    hosted.clock.now += timedelta(days=200)
    assert [worker.tidy_with_care() for _ in range(2)] == [0, 1]
