"""Nothing is decided and nothing is erased by a clock that nothing confirms; and what a log whose time is ahead takes."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.canon.times import parse_time
from ledger.errors import NotYet, Refused, StaylogError, Unavailable
from ledger.reviews import feedback, intake, supplement
from ledger.reviews.worker import Worker
from ledger.store.limiter import DAY, Limit
from tests.hosting import BOOKED, Hosted, claim, evidence, notice
from tests.network import Neighbourhood
from tests.outcomes import silent, waits
from tests.reviewing import DOMAIN, GUESTS, HOST, Reviewing, encoded, response, review, stay_receipt
from tests.running import Writer

FAR = timedelta(days=40)
DAYS = timedelta(days=1)


class Public(Reviewing):
    """A ledger that the world reaches; statements are made for `DOMAIN` all the same."""

    def open(self, **options: Any) -> Any:
        ledger = super().open(**options)
        self.desk = ledger.desk(DOMAIN)
        return ledger


@pytest.fixture
def public(tmp_path: Path, neighbourhood: Neighbourhood) -> Iterator[Public]:
    url = f"sqlite:///{tmp_path}/ledger.db"
    made = Public(tmp_path / "data", url, neighbourhood.development, "https://ledger.example")
    yield made
    made.ledger.close()


@pytest.fixture
def hosted(public: Public, neighbourhood: Neighbourhood) -> Hosted:
    return Hosted(public, neighbourhood)


@pytest.fixture
def ahead(public: Public, writer: Writer) -> Public:
    """A log whose time is 40 days ahead since one batch, with the clock put right."""
    public.clock.jump(days=FAR.days)
    public.reopen(accept_clock=True)
    public.add(writer.policy())
    public.clock.jump(days=-FAR.days)
    public.reopen()
    return public


def stay(public: Public, nights_ago: int) -> dict[str, Any]:
    today = public.clock().date()
    return {"check_in": str(today - (nights_ago + 2) * DAYS), "check_out": str(today - nights_ago * DAYS)}


def submit(public: Public, guest: int, nights_ago: int) -> Any:
    dates, speaker = stay(public, nights_ago), GUESTS[guest]
    receipt = stay_receipt(speaker, **dates)
    return public.submit(review(speaker, now=public.clock(), booking_evidence=receipt, **dates)).receipt


@pytest.mark.parametrize("nights_ago", [2, 30, 364])
def test_a_stay_is_held_against_the_clock_and_not_against_the_logs_time(ahead: Public, nights_ago: int) -> None:
    """By the log's time the last of these is 404 days ago."""
    receipt = submit(ahead, 0, nights_ago)
    at = ahead.ledger.reader.published.at
    assert parse_time(at) - ahead.clock() > FAR - DAYS
    assert f'"at":"{at}"' in receipt["entry"]


@pytest.mark.parametrize(("nights_ago", "code"), [(-20, "stay_not_over"), (367, "too_late")])
def test_a_stay_that_is_over_by_the_logs_time_alone_is_not_over(ahead: Public, nights_ago: int, code: str) -> None:
    with pytest.raises(NotYet) as refused:
        submit(ahead, 0, nights_ago)
    assert refused.value.code == code


def test_a_response_in_time_is_refused_as_the_logs_fault_and_never_as_late(public: Public, writer: Writer) -> None:
    review_id = submit(public, 0, 3)["review_id"]
    late = submit(public, 1, 3)["review_id"]
    public.clock.jump(days=FAR.days)
    public.reopen(accept_clock=True)
    public.add(writer.policy())
    public.clock.jump(days=-FAR.days)
    public.reopen()
    public.clock.forward(days=29)
    with pytest.raises(Refused) as refused:
        public.respond(response(review_id, HOST, now=public.clock()))
    assert refused.value.code == "log_time_ahead"
    assert refused.value.refusal["code"] == "log_time_ahead"
    public.clock.forward(days=2)
    with pytest.raises(StaylogError) as closed:
        public.respond(response(late, HOST, now=public.clock()))
    assert closed.value.code == "response_window_closed"


def test_a_response_to_a_review_that_is_dated_ahead_is_taken(ahead: Public) -> None:
    review_id = submit(ahead, 0, 3)["review_id"]
    ahead.clock.forward(days=29)
    assert ahead.respond(response(review_id, HOST, now=ahead.clock())).receipt["status"] == "accepted"


def _review(hosted: Hosted) -> None:
    hosted.take(hosted.review(booking_evidence=hosted.receipt()))


def _response(hosted: Hosted) -> None:
    public = hosted.reviewing
    review_id = public.ledger.reader.events(HOST.did, 100)[0].entry.members["review_id"]
    public.respond(response(review_id, HOST, now=public.clock()))


def _evidence(hosted: Hosted) -> None:
    public = hosted.reviewing
    review_id = next(
        event.entry.members["review_id"]
        for event in public.ledger.reader.events(hosted.site.speaker.did, 100)
        if event.entry.type == "review"
    )
    body = evidence(review_id, hosted.receipt(), now=public.clock())
    asyncio.run(supplement.supplement(public.desk, review_id, encoded(body)))


def _notice(hosted: Hosted) -> None:
    body = notice(hosted.site.speaker, now=hosted.clock())
    asyncio.run(intake.take_booking(hosted.desk, encoded(body)))


def _claim(hosted: Hosted) -> None:
    body = claim(hosted.site.speaker, now=hosted.clock())
    asyncio.run(intake.take_booking(hosted.desk, encoded(body)))


def _feedback(hosted: Hosted) -> None:
    body = hosted.site.speaker.sign(
        {"type": "FeedbackRequest", "host_did": hosted.site.speaker.did}, domain=DOMAIN, now=hosted.clock()
    )
    asyncio.run(feedback.collect(hosted.desk, encoded(body)))


@pytest.mark.parametrize("statement", [_review, _response, _evidence, _notice, _claim, _feedback])
def test_every_statement_is_put_off_and_none_is_refused_for_good(
    hosted: Hosted, writer: Writer, statement: Callable[[Hosted], None]
) -> None:
    """Not `too_late`, `expired` or `stale_proof`, and without a signed refusal."""
    public = hosted.reviewing
    public.submit(review(GUESTS[5], now=public.clock()))
    public.add(writer.review(hosted.site.speaker.did, level="unconfirmed"))
    size, right = public.ledger.reader.refresh().size, public.clock.now
    public.clock.jump(days=FAR.days)
    with pytest.raises(Unavailable) as refused:
        statement(hosted)
    assert refused.value.code == "clock_unconfirmed"
    assert not isinstance(refused.value, Refused)
    public.clock.now = right
    assert public.ledger.reader.refresh().size == size
    assert hosted.site.asked == []


def test_does_not_decide_while_the_clock_is_unconfirmed(hosted: Hosted) -> None:
    waiting = silent(hosted)
    asked, worker = len(hosted.site.asked), Worker(hosted.desk)
    hosted.clock.jump(days=FAR.days)
    for _ in range(8):
        assert asyncio.run(worker.work()) == 0
        hosted.clock.forward(minutes=1)
    assert (waits(hosted, waiting), len(hosted.site.asked)) == (True, asked)
    hosted.clock.jump(days=-FAR.days)
    assert asyncio.run(worker.work()) == 1
    assert (waits(hosted, waiting), len(hosted.site.asked)) == (True, asked + 1)


def test_does_not_erase_while_the_clock_is_unconfirmed(hosted: Hosted) -> None:
    """However long the clock is ahead."""
    hosted.clock.now = BOOKED
    public = hosted.reviewing
    public.reopen()
    hosted.site.book()
    body = notice(hosted.site.speaker, now=hosted.clock())
    asyncio.run(intake.take_booking(hosted.desk, encoded(body)))
    worker = Worker(hosted.desk)
    hosted.clock.jump(days=400)
    assert [worker.tidy_with_care() for _ in range(5)] == [0] * 5
    hosted.clock.jump(days=-400)
    assert [worker.tidy_with_care() for _ in range(2)] == [0, 0]
    # The operator says that it is right.
    hosted.clock.jump(days=400)
    public.reopen(accept_clock=True)
    worker = Worker(hosted.desk)
    assert [worker.tidy_with_care() for _ in range(2)] == [0, 1]


def test_limits_of_a_day_are_not_forgotten(public: Public) -> None:
    """Though whatever is counted takes rows away that are needed no more."""
    limit, limiter = Limit("test", 1, DAY, 1, "quota_exceeded", "one a day"), public.ledger.limiter
    other = Limit("other", 100, DAY, 100, "quota_exceeded", "a hundred a day")
    limiter.spend(limit, "a guest")
    public.clock.jump(days=FAR.days)
    for each in range(20):
        limiter.spend(other, f"guest {each}")
    public.clock.jump(days=-FAR.days)
    with pytest.raises(StaylogError) as refused:
        limiter.spend(limit, "a guest")
    assert refused.value.code == "quota_exceeded"
