"""Every code by which a review is refused for its stay or its receipt, and a response for its review."""

from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from ledger.identity.issuers import trust
from ledger.reviews.listings import add_listing
from tests.api.refusals import (
    BROWN,
    Case,
    Sent,
    answered,
    body,
    changed,
    first_review,
    receipt,
    try_refusal,
    with_receipt,
)
from tests.api.site import Site
from tests.identities import NOW, REVIEW_ID, THIEF, Speaker, bodies
from tests.reviewing import DOMAIN, GUEST, HOST, OTHER_HOST, credential, resigned, response, review, stay_receipt


def another_review_of_the_booking(site: Site, stack: ExitStack) -> Sent:
    first_review(site)
    return Sent(review(review_text="I have thought about it again."))


def another_did_of_the_person(site: Site, stack: ExitStack) -> Sent:
    """The same person by the word of the issuer, with another key and a receipt for it."""
    first_review(site)
    person = credential(GUEST)["credentialSubject"]["issuer_guest_id"]
    return Sent(review(BROWN, guest_credential=credential(BROWN, person)))


def another_issuer_of_the_did(site: Site, stack: ExitStack) -> Sent:
    """Known by the guest reference alone: found by the sequencer, after Argon2."""
    first_review(site)
    other = Speaker(40)
    draft = trust(site.ledger.issuers(), "guest", other.did, [], None)
    assert draft is not None
    site.add(draft)
    return Sent(review(guest_credential=credential(GUEST, issuer=other)))


def after_the_window(site: Site, stack: ExitStack) -> Sent:
    review_id = site.review()["review_id"]
    site.running.clock.forward(days=30, seconds=1)
    return Sent(response(review_id, now=site.running.clock()), f"/v1/reviews/{review_id}/response")


def by_a_log_whose_time_is_ahead(site: Site, stack: ExitStack) -> Sent:
    """Since one entry by a clock that was 40 days ahead."""
    review_id = site.review()["review_id"]
    site.running.clock.jump(days=40)
    site.review(BROWN, reference="B-2")
    site.running.clock.jump(days=-40)
    return Sent(response(review_id, now=site.running.clock()), f"/v1/reviews/{review_id}/response")


def in_london(site: Site, stack: ExitStack) -> Sent:
    """13 minutes before midnight there, though the day is over further east."""
    with site.ledger.store.write() as connection:
        add_listing(connection, HOST.did, "rose-cottage", "Europe/London", "operator")
    site.running.clock.now = NOW.replace(month=5, day=24, hour=22, minute=47)
    return Sent(review(BROWN, now=site.running.clock()))


CASES = [
    # The stay.
    Case("stay_not_over", "tomorrow", changed(check_out="2026-06-02")),
    Case("stay_not_over", "today, though not everywhere", changed(check_out="2026-06-01")),
    Case("stay_not_over", "not in its time zone", in_london, alone={}),
    Case("too_late", "366 days ago", changed(check_in="2025-05-29", check_out="2025-05-31")),
    Case("already_reviewed", "another review of the booking", another_review_of_the_booking, signed=True),
    Case("already_reviewed", "another DID of the person", another_did_of_the_person, signed=True),
    Case("already_reviewed", "another issuer of the DID", another_issuer_of_the_did, signed=True, alone={}),
    Case("booking_unverifiable", "no evidence", changed(booking_evidence=None), signed=True),
    Case(
        "booking_unverifiable",
        "evidence of another type",
        with_receipt(lambda _: HOST.sign(bodies()["BookingNotice"][1], domain=DOMAIN)),
        signed=True,
    ),
    Case("booking_unverifiable", "evidence of no type", changed(booking_evidence="B-1"), signed=True),
    *(
        Case("booking_evidence_invalid", what, make, signed=True)
        for what, make in {
            "another reference": receipt(reference="B-other"),
            "another listing": receipt(listing_id="loft-2"),
            "another host": receipt(host=OTHER_HOST),
            "another guest": receipt(guest=GUEST),
            "it began later": receipt(check_in="2026-05-21"),
            "it ended earlier": receipt(check_out="2026-05-23"),
            "signed by another key": with_receipt(
                lambda reference: resigned(stay_receipt(BROWN, reference=reference), THIEF, domain=None)
            ),
            "signed by another key in its name": with_receipt(
                lambda reference: resigned(
                    stay_receipt(BROWN, reference=reference), Speaker(4, HOST.did, f"#{HOST.multikey}"), domain=None
                )
            ),
            "signed by the guest": with_receipt(
                lambda reference: resigned(stay_receipt(BROWN, reference=reference), BROWN, domain=None)
            ),
            "changed after signing": with_receipt(
                lambda reference: (
                    stay_receipt(BROWN, reference=reference, check_out="2026-05-23") | {"check_out": "2026-05-24"}
                )
            ),
            "dated in the future": receipt(now=NOW + timedelta(days=50, minutes=6)),
            "for another ledger": with_receipt(
                lambda reference: resigned(stay_receipt(BROWN, reference=reference), HOST, domain="https://a.example")
            ),
        }.items()
    ),
    # The response.
    Case(
        "review_not_found",
        "no such review",
        body(lambda: response(REVIEW_ID), path=f"/v1/reviews/{REVIEW_ID}/response"),
    ),
    Case("not_the_host", "another host", answered(host=OTHER_HOST)),
    Case(
        "not_the_host",
        "another key",
        lambda site, stack: Sent(
            resigned(response(first_review(site)), THIEF), f"/v1/reviews/{first_review(site)}/response"
        ),
    ),
    Case("already_responded", "another response", answered(text="And another thing."), signed=True),
    Case("log_time_ahead", "29 days by the clock", by_a_log_whose_time_is_ahead, signed=True, alone={}, others=True),
    Case("response_window_closed", "30 days and a second", after_the_window, signed=True, alone={}, others=True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    try_refusal(case, request, tmp_path)
