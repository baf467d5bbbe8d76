"""OpenSTR RFC-005 7.6, reviews of bookings that were made elsewhere."""

import json
from hashlib import sha256

import pytest

from audits.verify import verify_answer
from tests.api.hosts_and_guests import PDF, attest, attestation, consent, entry_of, trust_hosts
from tests.api.site import Person, Site, problem, published
from tests.identities import IDV, RATINGS, THIEF, Speaker
from tests.interop.rfc005 import CATEGORIES
from tests.reviewing import credential, resigned

STRUCTURED = json.dumps({"booking": "E-1", "platform": "Elsewhere", "nights": 4}).encode()
GIF = b"GIF89a"


@pytest.fixture(scope="module")
def elsewhere(site: Site) -> Site:
    trust_hosts(site)
    return site


def test_hosts_may_submit_what_they_have(elsewhere: Site, host: Person) -> None:
    """7.6 encouraged: each booking of each platform, once; the same reference on another platform is another one."""
    for platform in ("Elsewhere", "Another place"):
        assert attest(elsewhere, attestation(host, platform=platform)).status_code == 201
    problem(attest(elsewhere, attestation(host, ratings=dict.fromkeys(CATEGORIES, 5))), "already_reviewed")
    assert elsewhere.reputation(host)["total_reviews"] == 2


def test_a_document_is_required(elsewhere: Site, host: Person) -> None:
    """7.6 a booking confirmation document: PDF or structured data, checked by its content, and the very one that the
    host attests. Only its hash is kept, in a commitment."""
    data = attestation(host, "E-2", document=STRUCTURED, document_type="application/json")
    assert attest(elsewhere, attestation(host)).status_code == 201
    assert attest(elsewhere, data, STRUCTURED).status_code == 201
    without = elsewhere.client.post(
        "/v1/reviews/cross-platform", files={"attestation": (None, json.dumps(attestation(host, "E-3")))}
    )
    problem(without, "parameter_invalid")
    problem(attest(elsewhere, attestation(host, "E-3"), PDF + b"%%EOF"), "document_mismatch")
    problem(attest(elsewhere, attestation(host, "E-3", document=GIF), GIF), "document_invalid")
    reviews = [each["review_id"] for each in elsewhere.reputation(host)["review_history"]]
    for path, shown in published(elsewhere.get, [host.did], reviews).items():
        for document in (PDF, STRUCTURED):
            assert sha256(document).hexdigest().encode() not in shown, path
            assert document not in shown, path


def test_an_attestation_is_signed_by_the_host(elsewhere: Site, host: Person) -> None:
    """7.6 a signed attestation: by a key of the host's DID, which a trusted provider knows as the host of the listing."""
    whole = attestation(host)
    for sent, code in (
        (resigned(whole, THIEF), "not_the_host"),
        (resigned(whole, Speaker(4, host.did, f"#{host.multikey}")), "proof_invalid"),
        (whole | {"review_text": "Better."}, "proof_invalid"),
        ({name: value for name, value in whole.items() if name != "proof"}, "schema_invalid"),
        (attestation(host, host_credential=None), "host_credential_required"),
        (attestation(host, listing_id="castle"), "listing_not_covered"),
        (attestation(host, check_out="2026-06-02"), "stay_not_over"),
    ):
        problem(attest(elsewhere, sent), code)
    assert elsewhere.reputation(host)["total_reviews"] == 0


def test_the_consent_of_the_guest(elsewhere: Site, host: Person, guest: Person) -> None:
    """7.6 the guest's consent and GuestCredential if available: signed by the guest, to this document, these ratings
    and this text. Then the review is the guest's, verified."""
    answer = attest(elsewhere, attestation(host, guest_statement=consent(guest)))
    assert answer.status_code == 201
    entry = entry_of(answer.json())
    assert (entry["level"], entry["evidence"]["booking"]) == ("guest_verified", "attestation")
    assert (entry["evidence"]["issuer"], entry["evidence"]["idv_level"]) == (IDV, "identity_verified")
    assert elsewhere.reputation(host)["average_ratings"]["overall"] == RATINGS["overall"]
    forger = Speaker(9, "https://other.example", "/keys/1")
    for given, code in (
        (consent(guest, ratings=dict.fromkeys(CATEGORIES, 1)), "consent_mismatch"),
        (consent(guest, review_text="Cold."), "consent_mismatch"),
        (consent(guest, document=STRUCTURED), "consent_mismatch"),
        (consent(guest, signer=host), "holder_mismatch"),
        (consent(guest, guest_credential=credential(guest, issuer=forger)), "issuer_not_trusted"),
        (consent(host), "self_review"),
    ):
        problem(attest(elsewhere, attestation(host, "E-2", guest_statement=given)), code)
    assert elsewhere.reputation(host)["total_reviews"] == 1


def test_without_a_credential_it_is_host_attested(elsewhere: Site, host: Person) -> None:
    """7.6 host_attested: stored, and marked so rather than guest_verified."""
    receipt = attest(elsewhere, attestation(host)).json()
    assert receipt["verification_level"] == "host_attested"
    record = elsewhere.reputation(host)
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 0)
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES)
    assert record["host_since"] is None


def test_levels_are_told_apart(elsewhere: Site, host: Person, guest: Person) -> None:
    """7.6 distinguished in agent responses: each review by its level and evidence, and their counts and means, which
    are never mixed; in an answer that can be proved."""
    for number, stars in enumerate((5, 5, 4.5)):
        attest(elsewhere, attestation(host, f"E-{number}", ratings=dict.fromkeys(CATEGORIES, stars)))
    elsewhere.review(guest, host, ratings=dict.fromkeys(CATEGORIES, 2))
    record = elsewhere.reputation(host)
    assert [(each["verification_level"], each["evidence"]["booking"]) for each in record["review_history"]] == [
        ("guest_verified", "stay_receipt"),
        *[("host_attested", "attestation")] * 3,
    ]
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES, 2.0)
    assert record["statistics"]["reviews"] == {"guest_verified": 1, "host_attested": 3, "unconfirmed": 0}
    assert record["statistics"]["average_ratings"]["host_attested"] == dict.fromkeys(CATEGORIES, 4.8)
    [issuer] = {each["guest_credential_issuer"] for each in record["review_history"][1:]}
    assert issuer is None
    answer = elsewhere.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    verify_answer(answer, elsewhere.ledger.verifier, host.did)
