"""What shows that a stay was booked, the strongest first, and what voids it."""

from datetime import timedelta

import pytest

from ledger.errors import Refused
from tests.hosting import Hosted, claim, notice
from tests.identities import NOW, Speaker
from tests.ledger.reviews.shown import before_check_in, outcome
from tests.outcomes import checks
from tests.reviewing import GUEST, GUESTS, credential, stay_receipt

STRANGER = Speaker(99, "did:web:cottage.example")


# The order of evidence


def test_the_strongest_evidence_is_taken(hosted: Hosted) -> None:
    """Receipt, claim, notice from before check-in, notice from later, the host's answer; the next when one is gone."""
    site = hosted.site
    receipts = {guest: hosted.receipt(guest, f"B-{number}") for number, guest in enumerate(GUESTS[:5])}
    claims = [
        claim(site.speaker, guest, receipts[guest]["booking_reference"], booking_evidence=receipts[guest])
        for guest in GUESTS[:2]
    ]
    early = [notice(site.speaker, guest, receipts[guest]["booking_reference"]) for guest in GUESTS[:3]]
    before_check_in(hosted, *claims, *early)
    for guest in GUESTS[:4]:
        hosted.book(notice(site.speaker, guest, receipts[guest]["booking_reference"], now=NOW))
    for guest in GUESTS[:5]:
        site.book(guest, receipts[guest]["booking_reference"])
    found = []
    for number, guest in enumerate(GUESTS[:5]):
        shown = {"booking_evidence": receipts[guest]} if not number else {}
        found.append(outcome(hosted, hosted.review(guest, f"B-{number}", **shown)))
    assert found == ["stay_receipt", "booking_claim", "booking_notice", "callback", "callback"]
    # Only who has nothing else had the host asked.
    assert site.asked == ["B-4"]
    assert hosted.record()["verified_reviews"] == 5


def test_nobody_is_asked_who_has_no_endpoint(hosted: Hosted) -> None:
    site = hosted.add_host("harbour.example", known=False)
    site.book()
    with pytest.raises(Refused, match="ask the host for a stay receipt, and submit the review with it") as refused:
        hosted.take(hosted.review(site=site))
    assert (refused.value.code, site.asked) == ("booking_unverifiable", [])


@pytest.mark.parametrize(
    ("level", "found"),
    [
        ("email_verified", "booking_unverifiable"),
        ("identity_verified", "callback"),
        ("payment_verified", "callback"),
    ],
)
def test_nobody_is_asked_for_somebody_whom_nobody_identified(hosted: Hosted, level: str, found: str) -> None:
    hosted.site.book()
    body = hosted.review(guest_credential=credential(GUEST, level=level))
    assert outcome(hosted, body) == found
    assert len(hosted.site.asked) == (found == "callback")


@pytest.mark.parametrize("reference", [".", ".."])
def test_references_that_cannot_be_asked_about_need_a_receipt(hosted: Hosted, reference: str) -> None:
    assert outcome(hosted, hosted.review(reference=reference)) == "booking_unverifiable"
    receipt = hosted.receipt(reference=reference)
    assert outcome(hosted, hosted.review(reference=reference, booking_evidence=receipt)) == "stay_receipt"
    assert hosted.site.asked == []


def test_a_receipt_by_a_key_that_nobody_has_seen_is_passed_over(hosted: Hosted) -> None:
    """It is no evidence and no forgery: claim, notice and answer count as if it were not there."""
    site = hosted.site
    for guest, reference in zip(GUESTS, ("B-1", "B-2", "B-3"), strict=False):
        site.book(guest, reference)
    first = claim(site.speaker, GUESTS[0], "B-1", booking_evidence=hosted.receipt(GUESTS[0], "B-1"))
    before_check_in(hosted, first, notice(site.speaker, GUESTS[1], "B-2"))
    found = []
    for guest, reference in zip(GUESTS, ("B-1", "B-2", "B-3", "B-4"), strict=False):
        unknown = stay_receipt(guest, STRANGER, reference)
        found.append(outcome(hosted, hosted.review(guest, reference, booking_evidence=unknown)))
    assert found == ["booking_claim", "booking_notice", "callback", "booking_denied"]
    other = hosted.add_host("harbour.example", known=False)
    unknown = stay_receipt(GUEST, Speaker(99, other.speaker.did))
    with pytest.raises(Refused, match="ask the host for a new one") as refused:
        hosted.take(hosted.review(site=other, booking_evidence=unknown))
    assert refused.value.code == "booking_unverifiable"


def test_a_forged_receipt_is_not_passed_over(hosted: Hosted) -> None:
    """Whatever else there is: whoever shows such a one is not heard."""
    site = hosted.site
    site.book()
    before_check_in(hosted, notice(site.speaker))
    forger = Speaker(99, site.speaker.did, "#" + site.speaker.multikey)
    changed = {**hosted.receipt(), "issued_at": "2026-04-02T09:00:00Z"}
    for receipt in (stay_receipt(GUEST, forger), changed, hosted.receipt(GUESTS[1]), hosted.receipt(reference="B-2")):
        assert outcome(hosted, hosted.review(booking_evidence=receipt)) == "booking_evidence_invalid"
    assert site.asked == []


# Cancelled


@pytest.mark.parametrize(
    ("received", "code"),
    [(timedelta(seconds=-1), "booking_cancelled"), (timedelta(0), None)],
)
def test_what_is_cancelled_before_check_in_is_void(hosted: Hosted, received: timedelta, code: str | None) -> None:
    """Receipt, claim and notice; and later nothing is. It is 00:00 in London at 23:00 UTC."""
    site = hosted.site
    references = ("R-1", "C-1", "N-1")
    claimed = claim(site.speaker, GUESTS[1], "C-1", booking_evidence=hosted.receipt(GUESTS[1], "C-1"))
    before_check_in(hosted, claimed, notice(site.speaker, GUESTS[2], "N-1"))
    hosted.clock.now = NOW.replace(month=5, day=19, hour=23) + received
    for guest, reference in zip(GUESTS, references, strict=False):
        hosted.book(notice(site.speaker, guest, reference, "cancelled", now=hosted.clock()))
    hosted.clock.now = NOW
    receipt = hosted.receipt(GUESTS[0], "R-1")
    found = [
        outcome(hosted, hosted.review(GUESTS[0], "R-1", booking_evidence=receipt)),
        outcome(hosted, hosted.review(GUESTS[1], "C-1")),
        outcome(hosted, hosted.review(GUESTS[2], "N-1")),
    ]
    assert found == ([code] * 3 if code else ["stay_receipt", "booking_claim", "booking_notice"])
    assert (checks(hosted) if code is None else {}, site.asked) == ({}, [])


def test_a_cancellation_of_another_guest_voids_nothing(hosted: Hosted) -> None:
    before_check_in(hosted, notice(hosted.site.speaker, GUESTS[1], status="cancelled"))
    assert outcome(hosted, hosted.review(booking_evidence=hosted.receipt())) == "stay_receipt"
