"""The veto by answers: what a host says, or does not quite say, when it is asked about a booking. Whatever is no signed
word about this question is silence, and silence ends with a review that stands and is counted (design: reviews 3)."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ledger.errors import TooMany
from ledger.identity.resolution import NEW_PER_DOMAIN
from ledger.reviews import callback
from ledger.reviews.claims import Claimed
from tests.hosting import BOOKED, Hosted, claim
from tests.network import Request, response
from tests.reviewing import GUESTS, stay_receipt
from tests.security.standing import BAD, Standing, decided, refused, say, standing

UNANSWERED = Standing(unconfirmed=1, unconfirmed_mean=1.0, unanswered=1, shown=("unconfirmed, none",))
VERIFIED = Standing(1.0, verified=1, shown=("guest_verified, booking_claim",))


def send(hosted: Hosted, *pieces: bytes, pause: float = 0) -> None:
    """The host answers every question with these bytes, in pieces."""

    async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
        hosted.site.asked.append(request.url)
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(pause)

    hosted.outside.house(hosted.site.name, answer)


def said(**members: Any) -> Callable[[Hosted], None]:
    return lambda hosted: say(hosted, **members)


def sent(body: Any, status: int = 200, **headers: str) -> Callable[[Hosted], None]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda hosted: send(hosted, response(data, status, **headers))


SILENCE: dict[str, Callable[[Hosted], None]] = {
    "rubbish": sent(b"\x00\xff rubbish"),
    "an empty object": sent({}),
    "a list": sent([]),
    "an endless number": sent(b"9" * 60_000),
    "too much": sent(b'{"a": "' + b"x" * 100_000 + b'"}'),
    "a page": sent(b"<html>", media_type="text/html"),
    "no word signed": sent({"type": "BookingVerification", "known": False}),
    "a plain no": sent({"known": False}, 404),
    "elsewhere": sent({}, 302, location="https://elsewhere.example/"),
    "a denial by a stranger": lambda hosted: say(hosted, GUESTS[5], known=False),
    "pending": said(status="pending"),
    "another listing": said(listing_id="barn"),
    "another reference": said(booking_reference="B-2", known=False),
    "another question": said(request_id="bvr-another", known=False),
    "a stay receipt": sent(stay_receipt(GUESTS[0])),
    "cancelled, of some day": said(status="cancelled"),
    "cancelled after check-in": said(status="cancelled", cancelled_at="2026-05-21T08:00:00Z"),
    "cancelled at no time": said(status="cancelled", cancelled_at="2026-05-00T08:00:00Z"),
}


@pytest.mark.parametrize("what", SILENCE)
def test_what_is_no_answer_is_silence(hosted: Hosted, what: str) -> None:
    """For 72 hours; a denial would have to be signed, by the host, and answer this question."""
    SILENCE[what](hosted)
    waiting = hosted.wait(hosted.review(ratings=BAD))
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert len(hosted.site.asked) == 12
    assert standing(hosted) == UNANSWERED


def test_an_answer_that_drips_is_silence_too(hosted: Hosted) -> None:
    """A byte now and then, for ever: after five seconds nobody listens any more."""
    begun = response(b"x" * 1000)[:-900]
    send(hosted, begun, *(b"x" for _ in range(900)), pause=0.25)
    waiting = hosted.wait(hosted.review(ratings=BAD))
    hosted.outside.house(hosted.site.name, hosted.site._answer)
    hosted.site.down = 503
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == UNANSWERED


BACK_DATED: dict[str, Any] = {"status": "cancelled", "cancelled_at": "2026-05-19T08:00:00Z"}
OTHER_DATES: dict[str, Any] = {"check_in": "2026-06-20", "check_out": "2026-06-24"}


def test_a_cancellation_with_an_older_date_is_a_denial(hosted: Hosted) -> None:
    """What is left to a host that lies about the day: as much as by any other signed lie, and it is counted."""
    say(hosted, **BACK_DATED)
    assert refused(hosted, hosted.review(ratings=BAD)) == "booking_denied"
    assert standing(hosted) == Standing(denied=1)
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == Standing(
        1.0, verified=1, denied=1, contradicted=1, shown=("guest_verified, stay_receipt",)
    )


CANCELLED_SINCE: dict[str, Any] = {**OTHER_DATES, "status": "cancelled", "cancelled_at": "2026-05-30T08:00:00Z"}


@pytest.mark.parametrize("lie", [OTHER_DATES, CANCELLED_SINCE], ids=["confirmed", "cancelled"])
def test_other_dates_keep_out_who_has_nothing_to_show(hosted: Hosted, lie: dict[str, Any]) -> None:
    """What is left, and not even counted: the host signs that another week was booked. The guest has that the ledger
    refused for this reason, signed; and comes with a receipt, if there is one."""
    say(hosted, **lie)
    assert refused(hosted, hosted.review(ratings=BAD)) == "booking_dates_mismatch"
    assert standing(hosted) == Standing()
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == Standing(1.0, verified=1, shown=("guest_verified, stay_receipt",))


@pytest.mark.parametrize("lie", [{"known": False}, BACK_DATED, OTHER_DATES], ids=["unknown", "cancelled", "other days"])
def test_nobody_asks_a_host_that_confirmed_a_claim_before_check_in(hosted: Hosted, lie: dict[str, Any]) -> None:
    """It answered when it could not know how the stay would be; what it would say now is not heard."""
    hosted.clock.now = BOOKED
    hosted.site.book()
    assert isinstance(hosted.book(claim(hosted.site.speaker)), Claimed)
    say(hosted, **lie)
    hosted.clock.forward(days=50)
    hosted.take(hosted.review(ratings=BAD))
    assert len(hosted.site.asked) == 1
    assert standing(hosted) == VERIFIED


def test_our_own_limits_are_not_its_silence(hosted: Hosted) -> None:
    """A domain is asked 60 times in an hour. Somebody sees to it for four days that these are used up: the review waits
    on, and no entry says that the host did not answer."""
    hosted.site.book()
    use_up(hosted)
    waiting = hosted.wait(hosted.review(ratings=BAD))
    for _ in range(8):
        hosted.clock.forward(hours=12)
        use_up(hosted)
        assert hosted.work() == 1
    assert hosted.site.asked == []
    assert standing(hosted) == Standing()
    hosted.go_on(hours=13)
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == Standing(1.0, verified=1, shown=("guest_verified, callback",))


def test_nor_is_a_domain_of_which_too_much_was_asked(hosted: Hosted) -> None:
    """600 DIDs of a domain that nobody has seen are looked up in an hour, and strangers may name them all."""
    hosted.site.book()

    def name_them_all() -> None:
        with suppress(TooMany):
            while True:
                hosted.desk.limiter.take(NEW_PER_DOMAIN, hosted.site.name)

    name_them_all()
    waiting = hosted.wait(hosted.review(ratings=BAD))
    for _ in range(8):
        hosted.clock.forward(hours=12)
        name_them_all()
        assert hosted.work() == 1
    assert standing(hosted) == Standing()
    hosted.go_on(hours=13)
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == Standing(1.0, verified=1, shown=("guest_verified, callback",))


def use_up(hosted: Hosted) -> None:
    with suppress(TooMany):
        while True:
            hosted.desk.limiter.spend(callback.CALLBACKS_PER_TARGET, hosted.site.name)
