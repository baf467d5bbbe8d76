"""Claims of guests: verified before check-in, when nobody knows how the stay will be, and good whatever the host does
then."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from ledger.canon import jcs
from ledger.errors import Refused, StaylogError, TooMany
from ledger.reviews.callback import CALLBACKS_PER_TARGET
from ledger.reviews.claims import CLAIMS_PER_PERSON, Claimed
from ledger.reviews.pending import Waiting
from tests.hosting import BOOKED, Hosted, claim, notice
from tests.identities import IDV, NOW, Speaker
from tests.ledger.reviews.shown import outcome, rows
from tests.outcomes import become, checks, waits
from tests.reviewing import GUEST, GUESTS, credential, resigned, stay_receipt

SECOND = timedelta(seconds=1)
# 00:00 of the day of check-in in London.
MIDNIGHT = datetime.fromisoformat("2026-05-19T23:00:00+00:00")
PERSON = f"person-of-{GUEST.did[-8:]}"


def claimed(hosted: Hosted, body: Any) -> Claimed:
    taken = hosted.book(body)
    assert isinstance(taken, Claimed), taken
    return taken


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(StaylogError) as refused:
        call()
    return refused.value.code


@pytest.fixture(autouse=True)
def booking_time(hosted: Hosted) -> None:
    hosted.clock.now = BOOKED


# How one is verified


def test_by_a_receipt_nobody_is_asked(hosted: Hosted) -> None:
    taken = claimed(hosted, claim(hosted.site.speaker, booking_evidence=hosted.receipt()))
    assert (taken.repeated, taken.claim.received, hosted.site.asked) == (False, BOOKED, [])


def test_by_the_hosts_answer(hosted: Hosted) -> None:
    hosted.site.book()
    body = claim(hosted.site.speaker)
    assert not claimed(hosted, body).repeated
    assert hosted.site.asked == ["B-1"]
    # What is on file needs no asking, and is known after check-in, too.
    hosted.clock.now = NOW
    again = claimed(hosted, dict(reversed(body.items())))
    assert (again.repeated, again.claim.received) == (True, BOOKED)
    assert hosted.site.asked == ["B-1"]


def test_a_newer_one_replaces_it_and_an_older_is_refused(hosted: Hosted) -> None:
    host, receipt = hosted.site.speaker, hosted.receipt()
    first = claim(host, booking_evidence=receipt)
    claimed(hosted, first)
    hosted.clock.forward(hours=1)
    newer = claim(host, booking_evidence=receipt, check_in="2026-05-21", now=hosted.clock())
    assert not claimed(hosted, newer).repeated
    assert code_of(lambda: hosted.book(first)) == "notice_outdated"
    assert len(rows(hosted, "booking")) == 1


def test_one_that_the_host_does_not_answer_waits_until_it_does(hosted: Hosted) -> None:
    hosted.site.book()
    hosted.site.down = 503
    waiting = hosted.book(claim(hosted.site.speaker))
    assert isinstance(waiting, Waiting)
    assert waiting.decide_by == "2026-04-15T12:00:00Z"
    again = hosted.book(waiting.body)
    assert isinstance(again, Waiting)
    assert (again.id, again.repeated) == (waiting.id, True)
    hosted.site.down = None
    hosted.go_on(minutes=1)
    assert become(hosted, waiting)["status"] == "accepted"
    assert claimed(hosted, waiting.body).repeated
    hosted.clock.now = NOW
    hosted.site.down = 503
    assert outcome(hosted, hosted.review()) == "booking_claim"


def test_the_host_has_until_check_in(hosted: Hosted) -> None:
    """What it says later it may say because of the stay."""
    hosted.site.book()
    hosted.site.down = 503
    hosted.clock.now = MIDNIGHT - timedelta(minutes=3)
    waiting = hosted.book(claim(hosted.site.speaker))
    assert isinstance(waiting, Waiting)
    assert waiting.decide_by == "2026-05-19T23:00:00Z"
    hosted.go_on(minutes=1)
    assert waits(hosted, waiting)
    hosted.site.down = None
    asked = len(hosted.site.asked)
    hosted.clock.now = MIDNIGHT
    for _ in range(3):
        hosted.go_on(minutes=1)
    assert become(hosted, waiting)["code"] == "booking_unverifiable"
    assert len(hosted.site.asked) == asked
    assert rows(hosted, "booking") == []
    # That a claim was not answered is told of nobody.
    assert hosted.record()["statistics"] is None


def test_a_claim_comes_before_the_day_of_check_in(hosted: Hosted) -> None:
    receipts = {guest: hosted.receipt(guest) for guest in GUESTS[:2]}
    hosted.clock.now = MIDNIGHT - SECOND
    host = hosted.site.speaker
    claimed(hosted, claim(host, GUESTS[0], booking_evidence=receipts[GUESTS[0]], now=hosted.clock()))
    hosted.clock.now = MIDNIGHT
    # However long ago it was signed.
    late = claim(host, GUESTS[1], booking_evidence=receipts[GUESTS[1]])
    with pytest.raises(Refused) as refused:
        hosted.book(late)
    assert refused.value.code == "claim_too_late"


@pytest.mark.parametrize("check_out", ["2028-12-31", "9999-12-31"])
def test_nobody_books_so_far_ahead(hosted: Hosted, check_out: str) -> None:
    """What is kept has an end."""
    body = claim(hosted.site.speaker, booking_evidence=hosted.receipt(check_out=check_out), check_out=check_out)
    assert code_of(lambda: hosted.book(body)) == "date_invalid"
    assert code_of(lambda: hosted.book(claim(hosted.site.speaker, check_in="0001-01-01"))) == "claim_too_late"


def test_what_is_denied_is_not_on_file(hosted: Hosted) -> None:
    with pytest.raises(Refused) as refused:
        hosted.book(claim(hosted.site.speaker))
    assert (refused.value.code, rows(hosted, "booking")) == ("booking_denied", [])
    hosted.site.book(check_in="2026-05-21")
    assert code_of(lambda: hosted.book(claim(hosted.site.speaker))) == "booking_dates_mismatch"


def test_what_was_cancelled_cannot_be_claimed(hosted: Hosted) -> None:
    hosted.book(notice(hosted.site.speaker, status="cancelled"))
    body = claim(hosted.site.speaker, booking_evidence=hosted.receipt())
    assert code_of(lambda: hosted.book(body)) == "booking_cancelled"


@pytest.mark.parametrize(
    ("level", "receipt", "code"),
    [
        ("email_verified", None, "booking_unverifiable"),
        ("email_verified", "good", None),
        ("identity_verified", "unknown", "booking_denied"),
        ("email_verified", "unknown", "booking_unverifiable"),
        ("identity_verified", "forged", "booking_evidence_invalid"),
        ("identity_verified", "another's", "booking_evidence_invalid"),
    ],
)
def test_a_receipt_in_a_claim_is_judged_as_in_a_review(
    hosted: Hosted, level: str, receipt: str | None, code: str | None
) -> None:
    host = hosted.site.speaker
    receipts = {
        "good": hosted.receipt(),
        "unknown": stay_receipt(GUEST, Speaker(99, host.did)),
        "forged": stay_receipt(GUEST, Speaker(99, host.did, "#" + host.multikey)),
        "another's": hosted.receipt(GUESTS[1]),
    }
    shown = None if receipt is None else receipts[receipt]
    body = claim(host, booking_evidence=shown, guest_credential=credential(GUEST, level=level, now=BOOKED))
    if code is None:
        claimed(hosted, body)
    else:
        assert code_of(lambda: hosted.book(body)) == code


def test_nobody_claims_with_anothers_credential(hosted: Hosted) -> None:
    body = claim(hosted.site.speaker, booking_evidence=hosted.receipt())
    assert code_of(lambda: hosted.book(resigned(body, GUESTS[1], now=BOOKED))) == "holder_mismatch"


# Who may have a booking


def test_nobody_can_occupy_anothers_booking(hosted: Hosted) -> None:
    """Claims of several guests for one reference stand side by side; the host knows whose it is."""
    host = hosted.site.speaker
    hosted.site.book()
    assert code_of(lambda: hosted.book(claim(host, GUESTS[1]))) == "booking_denied"
    hosted.site.down = 503
    other = hosted.book(claim(host, GUESTS[2]))
    assert isinstance(other, Waiting)
    claimed(hosted, claim(host, GUESTS[3], booking_evidence=hosted.receipt(GUESTS[3])))
    hosted.site.down = None
    claimed(hosted, claim(host))
    assert len(rows(hosted, "booking")) == 2
    hosted.clock.now = NOW
    assert outcome(hosted, hosted.review()) == "booking_claim"


def test_another_did_of_the_same_person_has_one_place_with_the_first(hosted: Hosted) -> None:
    """The newer stands; nobody has two claims of one booking, and neither DID has what the other was given."""
    host = hosted.site.speaker
    claimed(hosted, claim(host, booking_evidence=hosted.receipt()))
    hosted.clock.forward(hours=1)
    shown = {
        "guest_credential": credential(GUESTS[1], PERSON, now=BOOKED),
        "booking_evidence": hosted.receipt(GUESTS[1]),
    }
    claimed(hosted, claim(host, GUESTS[1], now=hosted.clock(), **shown))
    assert len(rows(hosted, "booking")) == 1
    hosted.clock.now = NOW
    assert outcome(hosted, hosted.review()) == "booking_denied"
    body = hosted.review(GUESTS[1], guest_credential=credential(GUESTS[1], PERSON))
    assert outcome(hosted, body) == "booking_claim"


# What it is good for


@pytest.mark.parametrize("then", ["another key", "down", "denies", "cancels late", "dumb"])
@pytest.mark.parametrize("by", ["receipt", "callback"])
def test_a_verified_claim_carries_the_review_whatever_the_host_does_then(hosted: Hosted, then: str, by: str) -> None:
    site = hosted.site
    site.book()
    claimed(hosted, claim(site.speaker, booking_evidence=hosted.receipt() if by == "receipt" else None))
    asked, old = len(site.asked), site.speaker
    hosted.clock.now = NOW
    if then == "another key":
        site.publish(Speaker(98, old.did))
    elif then == "down":
        hosted.outside.take_down(site.name)
    elif then == "denies":
        site.bookings.clear()
    elif then == "cancels late":
        hosted.book(notice(old, status="cancelled", now=NOW))
    else:
        hosted.outside.put(f"https://{site.name}/.well-known/did.json", b"<html>")
    taken = hosted.take(hosted.review())
    assert not isinstance(taken, Waiting)
    assert taken.receipt["verification_level"] == "guest_verified"
    assert taken.receipt["booking"]["type"] == "BookingClaim"
    # Nobody was asked again, and nothing is told of the host.
    assert (len(site.asked), checks(hosted)) == (asked, {})


def test_a_claim_is_for_its_own_days_and_listing(hosted: Hosted) -> None:
    receipt = hosted.receipt()
    claimed(hosted, claim(hosted.site.speaker, booking_evidence=receipt, check_in="2026-05-21"))
    hosted.clock.now = NOW
    assert outcome(hosted, hosted.review()) == "booking_denied"
    assert outcome(hosted, hosted.review(listing_id="loft", check_in="2026-05-21")) == "booking_unverifiable"
    assert outcome(hosted, hosted.review(check_in="2026-05-21")) == "booking_claim"


# How many


def test_a_person_claims_so_many_in_a_day(hosted: Hosted) -> None:
    """At all hosts, by all their DIDs; what is denied counts, because a host was asked."""
    host, who = hosted.site.speaker, GUESTS[1]
    for _ in range(18):
        hosted.desk.limiter.spend(CLAIMS_PER_PERSON, jcs.dumps([IDV, PERSON]))
    assert code_of(lambda: hosted.book(claim(host, reference="X-1"))) == "booking_denied"
    claimed(hosted, claim(host, booking_evidence=hosted.receipt()))
    other = credential(who, PERSON, now=BOOKED)
    for body in (claim(host, reference="X-2"), claim(host, who, "X-3", guest_credential=other)):
        with pytest.raises(Refused) as refused:
            hosted.book(body)
        assert refused.value.code == "quota_exceeded"
        assert isinstance(refused.value.reason, TooMany)
    assert hosted.site.asked == ["X-1"]
    # The same again costs nothing; another person has their own; so has the next day.
    assert claimed(hosted, claim(host, booking_evidence=hosted.receipt())).repeated
    claimed(hosted, claim(host, who, "B-2", booking_evidence=hosted.receipt(who, "B-2")))
    hosted.clock.forward(days=1)
    assert code_of(lambda: hosted.book(claim(host, reference="X-2"))) == "booking_denied"


def test_one_person_cannot_use_up_what_a_host_is_asked(hosted: Hosted) -> None:
    """By inventing bookings: twenty claims in a day, of sixty questions in an hour."""
    assert CLAIMS_PER_PERSON.count < CALLBACKS_PER_TARGET.count
    invented = [claim(hosted.site.speaker, reference=f"X-{number}") for number in range(25)]
    codes = [code_of(partial(hosted.book, body)) for body in invented]
    assert codes == ["booking_denied"] * 20 + ["quota_exceeded"] * 5
    assert len(hosted.site.asked) == 20
    # That they were denied is told of nobody, either: there was no review.
    assert hosted.record()["statistics"] is None
