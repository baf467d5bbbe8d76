"""A guest's consent to a review from another platform: to exactly this one, by the guest's own key."""

from typing import Any

import pytest

from ledger.identity.issuers import distrust
from tests.attesting import JSON_DOCUMENT, attest, attestation, attesting_ledger, consent, record, refusal
from tests.identities import IDV, RATINGS, Speaker
from tests.network import Neighbourhood
from tests.reviewing import GUEST, GUESTS, HOST, Reviewing, credential


@pytest.fixture
def attesting(connected: Reviewing, neighbourhood: Neighbourhood) -> Reviewing:
    return attesting_ledger(connected, neighbourhood)


@pytest.mark.parametrize(
    "changes",
    [{"ratings": {**RATINGS, "overall": 1}}, {"review_text": "Loud."}, {"review_text": None}],
    ids=lambda changes: str(*changes),
)
def test_to_another_review(attesting: Reviewing, changes: dict[str, Any]) -> None:
    refused = refusal(attesting, attestation(guest_statement=consent(**changes)))
    assert refused.code == "consent_mismatch"


def test_to_another_document(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(guest_statement=consent(JSON_DOCUMENT))).code == "consent_mismatch"


def test_to_a_text_that_the_host_leaves_out(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(review_text=None, guest_statement=consent())).code == "consent_mismatch"
    assert attest(attesting, attestation(review_text=None, guest_statement=consent(review_text=None)))


def test_by_a_key_that_is_not_the_guests(attesting: Reviewing) -> None:
    """Every host that the guest booked with has the credential."""
    for signer in (HOST, GUESTS[1]):
        assert refusal(attesting, attestation(guest_statement=consent(signer=signer))).code == "holder_mismatch"
    thief = Speaker(89, GUEST.did, GUEST.method.removeprefix(GUEST.did))
    assert refusal(attesting, attestation(guest_statement=consent(signer=thief))).code == "proof_invalid"


def test_of_the_host_itself(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(guest_statement=consent(guest=HOST))).code == "self_review"


def test_by_an_issuer_that_is_not_trusted(attesting: Reviewing) -> None:
    attesting.add(distrust(attesting.ledger.issuers(), "guest", IDV, None))
    refused = refusal(attesting, attestation(guest_statement=consent()))
    assert (refused.code, refused.message.startswith("guest_statement: ")) == ("issuer_not_trusted", True)


def test_that_is_no_consent(attesting: Reviewing) -> None:
    refused = refusal(attesting, attestation(guest_statement=consent(consent=False)))
    assert refused.code == "schema_invalid"


def test_another_did_of_the_same_person_consents_to_nothing_more(attesting: Reviewing) -> None:
    attest(attesting, attestation(guest_statement=consent()))
    other = consent(guest=GUESTS[1], guest_credential=credential(GUESTS[1], f"person-of-{GUEST.did[-8:]}"))
    body = attestation(guest_statement=other, booking_reference="HM-2")
    assert refusal(attesting, body).code == "already_reviewed"
    assert record(attesting)["verified_reviews"] == 1
