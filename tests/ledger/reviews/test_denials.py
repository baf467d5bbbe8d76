"""What is told of hosts that deny a booking, and of bookings that two guests have: entries that nobody can multiply."""

import pytest

from ledger.keys import rotate_pepper
from tests.hosting import Hosted, evidence
from tests.ledger.reviews.shown import outcome, unconfirmed
from tests.outcomes import checks
from tests.reviewing import GUEST, GUESTS, credential

# What a host says no to


def test_a_denial_is_told_once_for_each_person_and_host(hosted: Hosted) -> None:
    for reference in ("X-1", "X-2", "X-3"):
        assert outcome(hosted, hosted.review(reference=reference)) == "booking_denied"
    hosted.clock.forward(days=40)
    assert outcome(hosted, hosted.review(reference="X-4")) == "booking_denied"
    # Another DID of the same person is nobody new; another person is.
    same = credential(GUESTS[1], f"person-of-{GUEST.did[-8:]}", now=hosted.clock())
    assert outcome(hosted, hosted.review(GUESTS[1], "X-5", guest_credential=same)) == "booking_denied"
    assert checks(hosted) == {"denied": 1}
    assert outcome(hosted, hosted.review(GUESTS[2], "X-1")) == "booking_denied"
    assert checks(hosted) == {"denied": 2}
    assert hosted.record()["total_reviews"] == 0


def test_other_dates_are_refused_and_not_told(hosted: Hosted) -> None:
    hosted.site.book(check_in="2026-05-21")
    assert outcome(hosted, hosted.review()) == "booking_dates_mismatch"
    # The log has not heard of this host.
    assert hosted.record()["statistics"] is None
    assert outcome(hosted, hosted.review(check_in="2026-05-21")) == "callback"
    assert checks(hosted) == {}


@pytest.mark.parametrize("rotated", [False, True])
def test_a_receipt_contradicts_each_denial(hosted: Hosted, rotated: bool) -> None:
    """Also of the second booking of which no entry tells, and after the pepper was changed."""
    for reference in ("B-1", "B-2", "B-3"):
        assert outcome(hosted, hosted.review(reference=reference)) == "booking_denied"
    if rotated:
        rotate_pepper(hosted.reviewing.settings.service_keys)
        hosted.reviewing.reopen()
    shown = [
        outcome(hosted, hosted.review(reference=reference, booking_evidence=hosted.receipt(reference=reference)))
        for reference in ("B-2", "B-1", "B-9")
    ]
    assert shown == ["stay_receipt"] * 3
    assert checks(hosted) == {"denied": 1, "contradicted": 2}


def test_a_host_that_changes_its_mind_contradicts_nobody(hosted: Hosted) -> None:
    assert outcome(hosted, hosted.review()) == "booking_denied"
    hosted.site.book()
    hosted.clock.forward(minutes=1)
    assert outcome(hosted, hosted.review()) == "callback"
    assert checks(hosted) == {"denied": 1}


def test_a_denial_of_another_guest_is_not_contradicted(hosted: Hosted) -> None:
    assert outcome(hosted, hosted.review(GUESTS[1])) == "booking_denied"
    assert outcome(hosted, hosted.review(booking_evidence=hosted.receipt())) == "stay_receipt"
    assert checks(hosted) == {"denied": 1}


def test_a_receipt_that_comes_behind_the_review_contradicts_too(hosted: Hosted) -> None:
    """Denied, then silent, then shown by a receipt."""
    assert outcome(hosted, hosted.review()) == "booking_denied"
    hosted.clock.forward(minutes=1)
    review_id = unconfirmed(hosted, hosted.review())
    assert checks(hosted) == {"denied": 1, "unanswered": 1}
    hosted.supplement(evidence(review_id, hosted.receipt(), now=hosted.clock()))
    assert checks(hosted) == {"denied": 1, "unanswered": 1, "contradicted": 1}


# Two guests of one booking


def test_two_guests_of_a_booking_are_a_conflict_if_both_have_evidence(hosted: Hosted) -> None:
    first, second, third = GUESTS[:3]
    assert outcome(hosted, hosted.review(first, booking_evidence=hosted.receipt(first))) == "stay_receipt"
    review_id = unconfirmed(hosted, hosted.review(second))
    # What nobody confirmed is in conflict with nothing, until it is raised.
    assert checks(hosted) == {"unanswered": 1}
    hosted.supplement(evidence(review_id, hosted.receipt(second), second, now=hosted.clock()))
    assert checks(hosted) == {"unanswered": 1, "conflict": 1}
    late = hosted.receipt(third)
    assert outcome(hosted, hosted.review(third, booking_evidence=late)) == "stay_receipt"
    assert checks(hosted) == {"unanswered": 1, "conflict": 2}
    assert hosted.record()["verified_reviews"] == 3
