"""The veto by notices: a host that cancels what was booked, moves its days, or floods the ledger with notices (design:
reviews 3). What was said before check-in stays, and what is said later is heard as an answer would be, or not at all."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from ledger.errors import NotAccepted, Refused
from ledger.reviews import notices
from ledger.reviews.claims import Claimed
from ledger.reviews.listings import add_listing
from ledger.reviews.notices import Noticed
from ledger.store.rows import run
from tests.hosting import BOOKED, Hosted, claim, notice
from tests.identities import NOW, Speaker
from tests.reviewing import GUESTS
from tests.security.standing import BAD, Standing, refused, say, standing

SYBIL = GUESTS[9]
NOTICE = Standing(1.0, verified=1, shown=("guest_verified, booking_notice",))
CLAIM = Standing(1.0, verified=1, shown=("guest_verified, booking_claim",))
RECEIPT = Standing(1.0, verified=1, shown=("guest_verified, stay_receipt",))
# The day of check-in has begun in London, and not everywhere.
ARRIVED = datetime.fromisoformat("2026-05-20T05:00:00Z")


def at(hosted: Hosted, moment: datetime, **changes: Any) -> Noticed:
    """A notice that the host sends then, made then."""
    hosted.clock.now = moment
    sent = hosted.book(notice(hosted.site.speaker, now=moment, **changes))
    assert isinstance(sent, Noticed)
    return sent


# (f) It cancels after check-in

LATER: dict[str, dict[str, Any]] = {
    "cancelled": {"status": "cancelled"},
    "cancelled, with the days moved ahead": {
        "status": "cancelled",
        "check_in": "2026-07-20",
        "check_out": "2026-07-24",
    },
    "moved ahead": {"check_in": "2026-07-20", "check_out": "2026-07-24"},
    "moved back": {"check_in": "2026-05-18", "check_out": "2026-05-19"},
    "of another guest": {"guest": SYBIL},
    "of another listing": {"listing_id": "barn"},
    "cancelled, of a listing where it is still the day before": {"status": "cancelled", "listing_id": "lagoon"},
}


@pytest.mark.parametrize("when", [ARRIVED, NOW], ids=["on the day", "after the stay"])
@pytest.mark.parametrize("what", LATER)
def test_a_notice_from_before_check_in_stands_whatever_is_noticed_later(
    hosted: Hosted, what: str, when: datetime
) -> None:
    with hosted.reviewing.ledger.store.write() as connection:
        add_listing(connection, hosted.site.speaker.did, "lagoon", "Pacific/Midway", "operator")
    at(hosted, BOOKED)
    say(hosted, known=False)
    assert not at(hosted, when, **LATER[what]).repeated
    hosted.clock.now = NOW
    hosted.take(hosted.review(ratings=BAD))
    assert hosted.site.asked == []
    assert standing(hosted) == NOTICE


@pytest.mark.parametrize("what", LATER)
def test_so_do_a_claim_and_a_receipt(hosted: Hosted, what: str) -> None:
    hosted.clock.now = BOOKED
    assert isinstance(hosted.book(claim(hosted.site.speaker, booking_evidence=hosted.receipt())), Claimed)
    at(hosted, NOW, **LATER[what])
    say(hosted, status="cancelled", cancelled_at="2026-05-01T08:00:00Z")
    hosted.take(hosted.review(ratings=BAD))
    assert standing(hosted) == CLAIM


def test_a_cancellation_after_check_in_does_not_void_a_receipt(hosted: Hosted) -> None:
    at(hosted, ARRIVED, status="cancelled")
    hosted.clock.now = NOW
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == RECEIPT


def test_one_that_was_made_before_and_sent_after_check_in_does_not_either(hosted: Hosted) -> None:
    """When it came counts, and not the date that the host wrote on it."""
    sent = hosted.book(notice(hosted.site.speaker, status="cancelled", now=BOOKED))
    assert isinstance(sent, Noticed)
    assert not sent.before_check_in
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == RECEIPT


def test_what_a_host_noticed_late_is_as_good_as_its_answer(hosted: Hosted) -> None:
    """Before publication: then it is blind still. A late cancellation is no answer, and the host is asked."""
    at(hosted, NOW)
    hosted.take(hosted.review(ratings=BAD))
    at(hosted, NOW, guest=GUESTS[1], reference="B-2", status="cancelled")
    hosted.site.down = 503
    hosted.wait(hosted.review(GUESTS[1], "B-2", ratings=BAD))
    hosted.time_out()
    assert standing(hosted) == Standing(
        1.0,
        verified=1,
        unconfirmed=1,
        unconfirmed_mean=1.0,
        unanswered=1,
        shown=("guest_verified, callback", "unconfirmed, none"),
    )


def test_a_cancellation_before_check_in_voids_everything(hosted: Hosted) -> None:
    """What is left, and counted nowhere: a host that cancels all bookings with the ledger on the eve of check-in, and
    lets the guests in. It does not know yet how they will like it, so it is rid of the good reviews too. The guest has
    that the ledger refused because of it, signed."""
    at(hosted, BOOKED)
    assert isinstance(hosted.book(claim(hosted.site.speaker, booking_evidence=hosted.receipt())), Claimed)
    at(hosted, datetime.fromisoformat("2026-05-19T22:59:59Z"), status="cancelled")
    hosted.clock.now = NOW
    for receipt in (None, hosted.receipt()):
        body = hosted.review(ratings=BAD, booking_evidence=receipt)
        assert refused(hosted, body) == "booking_cancelled"
    assert standing(hosted) == Standing()


# (g) It floods the ledger with notices


def count(hosted: Hosted) -> int:
    with hosted.reviewing.ledger.store.read() as connection:
        return int(run(connection, "SELECT count(*) FROM booking")[0][0])


FLOODS: dict[str, Callable[[int], dict[str, Any]]] = {
    "of many bookings": lambda number: {"reference": f"F-{number}", "status": "cancelled"},
    "of many guests": lambda number: {"guest": GUESTS[1 + number % 9], "status": "cancelled"},
    "newer and newer": lambda number: {"status": ("cancelled", "confirmed")[number % 2]},
}


@pytest.mark.parametrize("what", FLOODS)
def test_a_flood_of_notices_washes_nothing_away(hosted: Hosted, what: str) -> None:
    """A booking has one notice from before check-in and one from later, however many are sent; the others are of other
    bookings, and nobody asks for them."""
    at(hosted, BOOKED)
    for number in range(40):
        at(hosted, NOW - timedelta(minutes=60 - number), **FLOODS[what](number))
    assert count(hosted) == (41 if what == "of many bookings" else 2)
    hosted.clock.now = NOW
    hosted.take(hosted.review(ratings=BAD))
    assert standing(hosted) == NOTICE


def test_notices_are_limited_and_the_limit_is_the_hosts_own(hosted: Hosted) -> None:
    """600 in an hour. When they are used up the guests of this host, and other hosts, are taken in as before."""
    limit, host = notices.NOTICES_PER_HOST, hosted.site.speaker.did
    for _ in range(limit.count):
        hosted.desk.limiter.spend(limit, host)
    with pytest.raises(Refused, match="600 notices"):
        at(hosted, NOW)
    other = hosted.add_host("harbour.example")
    assert isinstance(hosted.book(notice(other.speaker, now=NOW)), Noticed)
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == RECEIPT


def test_a_strangers_notice_is_nobodys_word(hosted: Hosted) -> None:
    """Only a key of the host speaks for it: nobody else cancels, or confirms, its bookings."""
    stranger = Speaker(77, hosted.site.speaker.did)
    with pytest.raises(NotAccepted, match="not a key"):
        hosted.book(notice(stranger, status="cancelled", now=NOW))
    assert count(hosted) == 0
