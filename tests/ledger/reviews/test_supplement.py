"""Evidence that comes later: only the guest of an unconfirmed review raises its level, by a receipt of the host."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from audits.receipts import verify_receipt
from ledger.errors import StaylogError
from tests.hosting import BOOKED, Hosted, evidence, notice
from tests.identities import RATINGS, Speaker
from tests.outcomes import become, checks, silent
from tests.reviewing import GUEST, GUESTS, STAY, credential, encoded, resigned

OLD = Speaker(131, "did:web:cottage.example", "#old")


def unconfirmed(hosted: Hosted, guest: Speaker = GUEST, reference: str = "B-1", **changes: Any) -> str:
    """The id of a review whose host never answered."""
    waiting = silent(hosted, guest=guest, reference=reference, **changes)
    for minutes in (1, 4, 25, 90, 240, *[720] * 6):
        hosted.go_on(minutes=minutes)
    return str(become(hosted, waiting)["receipt"]["review_id"])


def with_receipt(hosted: Hosted, review_id: str, guest: Speaker = GUEST, **changes: Any) -> dict[str, Any]:
    return evidence(review_id, hosted.receipt(guest, **changes), guest, now=hosted.clock.now)


def refusal(hosted: Hosted, body: Mapping[str, Any]) -> str:
    with pytest.raises(StaylogError) as refused:
        hosted.supplement(body)
    return refused.value.code


def level(hosted: Hosted, review_id: str) -> str:
    [found] = [each for each in hosted.record()["review_history"] if each["review_id"] == review_id]
    return str(found["verification_level"])


def test_a_receipt_raises_the_level(hosted: Hosted) -> None:
    """Counts, means and histogram move with it, and the text is shown."""
    review_id = unconfirmed(hosted, review_text="Damp.")
    before = hosted.record()
    assert (before["verified_reviews"], before["statistics"]["reviews"]["unconfirmed"]) == (0, 1)
    body = with_receipt(hosted, review_id)
    receipt = hosted.supplement(body).receipt
    assert (receipt["review_id"], receipt["verification_level"]) == (review_id, "guest_verified")
    after = hosted.record()
    assert (after["total_reviews"], after["verified_reviews"]) == (1, 1)
    assert after["statistics"]["reviews"] == {"guest_verified": 1, "host_attested": 0, "unconfirmed": 0}
    assert after["statistics"]["ratings"]["unconfirmed"] == {}
    assert after["average_ratings"]["overall"] == RATINGS["overall"]
    assert before["average_ratings"]["overall"] is None
    histograms = [answer["statistics"]["histogram"] for answer in (before, after)]
    assert (sum(histograms[0]), sum(histograms[1])) == (0, 1)
    shown = json.loads(hosted.reviewing.answer(hosted.site.speaker.did, limit=100))
    assert (shown["review_history"][0]["review_text"], level(hosted, review_id)) == ("Damp.", "guest_verified")
    assert checks(hosted) == {"unanswered": 1}
    report = verify_receipt(encoded(receipt), hosted.reviewing.ledger.verifier, submission=encoded(body))
    assert "the upgrade rests on exactly this signed submission" in report.proved


def test_the_same_again_gets_the_same_receipt(hosted: Hosted) -> None:
    """Also when its proof is old by then."""
    body = with_receipt(hosted, unconfirmed(hosted))
    first = hosted.supplement(body)
    hosted.clock.forward(hours=1)
    again = hosted.supplement(body)
    assert (first.repeated, again.repeated, again.receipt) == (False, True, first.receipt)


def test_once(hosted: Hosted) -> None:
    review_id = unconfirmed(hosted)
    hosted.supplement(with_receipt(hosted, review_id))
    assert refusal(hosted, with_receipt(hosted, review_id, nonce="another-receipt-1")) == "already_verified"
    assert hosted.record()["verified_reviews"] == 1


def test_a_review_that_counts_already_needs_none(hosted: Hosted) -> None:
    taken: Any = hosted.take(hosted.review(booking_evidence=hosted.receipt()))
    assert refusal(hosted, with_receipt(hosted, taken.receipt["review_id"])) == "already_verified"


def test_nobody_else_raises_it(hosted: Hosted) -> None:
    """Another guest with a receipt for the same booking, another DID of the same person, the host."""
    review_id = unconfirmed(hosted)
    assert refusal(hosted, with_receipt(hosted, review_id, GUESTS[1])) == "holder_mismatch"
    site = hosted.site.speaker
    assert refusal(hosted, evidence(review_id, hosted.receipt(site), site, now=hosted.clock.now)) == "holder_mismatch"
    assert level(hosted, review_id) == "unconfirmed"


def test_not_even_another_did_of_the_same_person(hosted: Hosted) -> None:
    review_id, other = unconfirmed(hosted), GUESTS[1]
    person = f"person-of-{GUEST.did[-8:]}"
    now = hosted.clock.now
    hosted.take(hosted.review(other, "B-7", guest_credential=credential(other, person, now=now), now=now))
    assert refusal(hosted, with_receipt(hosted, review_id, other)) == "holder_mismatch"


def test_a_key_that_is_not_the_guests(hosted: Hosted) -> None:
    """What others sign for the guest: by their own key under the guest's name."""
    body = with_receipt(hosted, unconfirmed(hosted))
    thief = Speaker(77, GUEST.did, GUEST.method.removeprefix(GUEST.did))
    assert refusal(hosted, resigned(body, thief, now=hosted.clock.now)) == "proof_invalid"


def test_another_review_of_the_same_guest(hosted: Hosted) -> None:
    first = unconfirmed(hosted)
    second = unconfirmed(hosted, reference="B-2")
    assert refusal(hosted, evidence(second, hosted.receipt(), now=hosted.clock.now)) == "holder_mismatch"
    assert (level(hosted, first), level(hosted, second)) == ("unconfirmed", "unconfirmed")


def test_it_is_sent_to_the_review_that_it_names(hosted: Hosted) -> None:
    body = with_receipt(hosted, "rev-" + "a" * 26)
    assert refusal(hosted, body) == "review_not_found"


@pytest.mark.parametrize(
    "changes",
    [
        {"listing_id": "loft-2"},
        {"host_did": GUESTS[5].did},
        {"guest_did": GUESTS[5].did},
        {"check_in": "2026-05-21"},
        {"check_out": "2026-05-23"},
    ],
    ids=lambda changes: str(*changes),
)
def test_a_receipt_that_is_wrong_in_one_member(hosted: Hosted, changes: dict[str, Any]) -> None:
    review_id = unconfirmed(hosted)
    assert refusal(hosted, with_receipt(hosted, review_id, **changes)) == "booking_evidence_invalid"
    assert level(hosted, review_id) == "unconfirmed"


def test_a_receipt_of_another_booking(hosted: Hosted) -> None:
    review_id = unconfirmed(hosted)
    body = {**with_receipt(hosted, review_id), "booking_reference": "B-2"}
    assert refusal(hosted, resigned(body, GUEST, now=hosted.clock.now)) == "booking_evidence_invalid"


def test_a_forged_receipt(hosted: Hosted) -> None:
    """By a stranger under the name of the host's key."""
    review_id, host = unconfirmed(hosted), hosted.site.speaker
    forger = Speaker(66, host.did, host.method.removeprefix(host.did))
    receipt = forger.sign({name: value for name, value in hosted.receipt().items() if name != "proof"}, domain=None)
    assert refusal(hosted, evidence(review_id, receipt, now=hosted.clock.now)) == "booking_evidence_invalid"
    nobody = Speaker(66, host.did, "#nobody-has-seen-it")
    receipt = nobody.sign({name: value for name, value in hosted.receipt().items() if name != "proof"}, domain=None)
    assert refusal(hosted, evidence(review_id, receipt, now=hosted.clock.now)) == "booking_unverifiable"


def test_a_receipt_by_a_key_that_the_host_had(hosted: Hosted) -> None:
    """A host that changes its keys takes nothing back."""
    hosted.clock.now, now = BOOKED, hosted.clock.now
    hosted.site.publish(OLD)
    hosted.book(notice(OLD, GUESTS[5], "B-9"))
    hosted.clock.now = now
    receipt = hosted.receipt()
    hosted.site.publish(Speaker(132, "did:web:cottage.example", "#new"))
    review_id = unconfirmed(hosted)
    assert hosted.supplement(evidence(review_id, receipt, now=hosted.clock.now)).receipt["index"] > 0
    assert level(hosted, review_id) == "guest_verified"


def test_a_booking_that_was_cancelled_in_time(hosted: Hosted) -> None:
    review_id = unconfirmed(hosted)
    hosted.clock.now, now = BOOKED, hosted.clock.now
    hosted.book(notice(hosted.site.speaker, status="cancelled"))
    hosted.clock.now = now
    assert refusal(hosted, with_receipt(hosted, review_id)) == "booking_cancelled"


def test_a_cancellation_after_the_review_changes_nothing(hosted: Hosted) -> None:
    review_id = unconfirmed(hosted)
    hosted.book(notice(hosted.site.speaker, status="cancelled", now=hosted.clock.now))
    hosted.supplement(with_receipt(hosted, review_id))
    assert level(hosted, review_id) == "guest_verified"


def test_nothing_that_the_host_says_later_raises_it(hosted: Hosted) -> None:
    """It would confirm what it likes by then."""
    review_id = unconfirmed(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.book(notice(hosted.site.speaker, now=hosted.clock.now))
    assert hosted.go_on(days=30) == 0
    assert (level(hosted, review_id), hosted.record()["verified_reviews"]) == ("unconfirmed", 0)


def test_a_denial_that_a_receipt_contradicts(hosted: Hosted) -> None:
    with pytest.raises(StaylogError, match="does not know"):
        hosted.take(hosted.review())
    hosted.clock.forward(days=2)
    review_id = unconfirmed(hosted)
    assert checks(hosted) == {"denied": 1, "unanswered": 1}
    hosted.supplement(with_receipt(hosted, review_id))
    assert checks(hosted) == {"denied": 1, "unanswered": 1, "contradicted": 1}
    assert level(hosted, review_id) == "guest_verified"


def test_two_guests_of_one_booking_are_in_conflict(hosted: Hosted) -> None:
    """Both stand, and the log says so; while nothing shows the second, there is none."""
    first = unconfirmed(hosted)
    hosted.site.down = None
    hosted.take(hosted.review(GUESTS[1], booking_evidence=hosted.receipt(GUESTS[1])))
    assert checks(hosted) == {"unanswered": 1}
    hosted.supplement(with_receipt(hosted, first))
    assert checks(hosted) == {"unanswered": 1, "conflict": 1}
    assert hosted.record()["verified_reviews"] == 2


def test_what_is_no_receipt(hosted: Hosted) -> None:
    review_id = unconfirmed(hosted)
    body = {**with_receipt(hosted, review_id), "booking_evidence": notice(hosted.site.speaker)}
    assert refusal(hosted, resigned(body, GUEST, now=hosted.clock.now)) == "schema_invalid"
    assert STAY["listing_id"] == hosted.record()["review_history"][0]["listing_id"]


def test_an_old_supplement(hosted: Hosted) -> None:
    review_id = unconfirmed(hosted)
    body = with_receipt(hosted, review_id)
    hosted.clock.forward(minutes=6)
    assert refusal(hosted, body) == "stale_proof"
