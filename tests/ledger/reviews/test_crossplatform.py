"""Reviews from other platforms (RFC-005 7.6): what a host attests, with a document and perhaps with the guest's consent."""

import json
from hashlib import sha256
from time import process_time
from typing import Any

import pytest

from audits.receipts import verify_receipt
from ledger.canon import jcs, strict_json
from ledger.errors import Refused
from ledger.identity.issuers import distrust
from ledger.reviews import crossplatform
from ledger.store.rows import run
from tests import identities
from tests.attesting import (
    JSON_DOCUMENT,
    PDF,
    attest,
    attestation,
    attesting_ledger,
    consent,
    host_credential,
    record,
    refusal,
)
from tests.identities import IDV, NOW, RATINGS, STATUS, Speaker, status_list
from tests.network import Neighbourhood
from tests.reviewing import DOMAIN, GUEST, GUESTS, HOST, OTHER_HOST, Reviewing, credential, encoded, review


@pytest.fixture
def attesting(connected: Reviewing, neighbourhood: Neighbourhood) -> Reviewing:
    return attesting_ledger(connected, neighbourhood)


# What it becomes


@pytest.mark.parametrize("document", [PDF, JSON_DOCUMENT])
def test_the_word_of_the_host(attesting: Reviewing, document: bytes) -> None:
    body = attestation(document)
    accepted = attest(attesting, body, document)
    assert accepted.receipt["verification_level"] == "host_attested"
    entry = json.loads(accepted.receipt["entry"])
    evidence = {name: value for name, value in entry["evidence"].items() if name != "commitment"}
    assert evidence == {"booking": "attestation", "issuer": None, "idv_level": None}
    report = verify_receipt(encoded(accepted.receipt), attesting.ledger.verifier, submission=encoded(body))
    assert "the review rests on exactly this signed submission" in report.proved
    found = record(attesting)
    assert (found["total_reviews"], found["verified_reviews"]) == (1, 0)


def test_the_consent_of_the_guest(attesting: Reviewing) -> None:
    accepted = attest(attesting, attestation(guest_statement=consent()))
    assert accepted.receipt["verification_level"] == "guest_verified"
    [shown] = record(attesting)["review_history"]
    assert (shown["evidence"]["booking"], shown["evidence"]["issuer"]) == ("attestation", IDV)
    assert shown["guest_credential_issuer"] == "idv.example"


def test_levels_stay_apart(attesting: Reviewing) -> None:
    attest(attesting, attestation(ratings={**RATINGS, "overall": 5}))
    low = {**RATINGS, "overall": 2}
    attest(attesting, attestation(ratings=low, booking_reference="HM-2", guest_statement=consent(ratings=low)))
    attesting.submit(review(GUESTS[1], ratings={**RATINGS, "overall": 3}))
    found = record(attesting)
    assert found["average_ratings"]["overall"] == 2.5
    assert found["statistics"]["ratings"]["host_attested"]["overall"] == [1, 10]
    assert found["statistics"]["reviews"] == {"guest_verified": 2, "host_attested": 1, "unconfirmed": 0}


def test_the_same_again_gets_the_same_receipt(attesting: Reviewing) -> None:
    body = attestation()
    first = attest(attesting, body)
    attesting.clock.forward(days=1)
    again = attest(attesting, body)
    assert (first.repeated, again.repeated, first.receipt) == (False, True, again.receipt)


def test_one_for_each_booking_of_a_platform(attesting: Reviewing) -> None:
    attest(attesting, attestation())
    assert refusal(attesting, attestation(review_text="Loud.")).code == "already_reviewed"
    assert refusal(attesting, attestation(guest_statement=consent())).code == "already_reviewed"
    attest(attesting, attestation(platform="Another"))
    attest(attesting, attestation(booking_reference="HM-56"))
    attest(attesting, attestation(host=OTHER_HOST))


def test_a_consent_is_to_one_review(attesting: Reviewing) -> None:
    """Whatever bookings, platforms and days the host invents for it."""
    agreed = consent()
    attest(attesting, attestation(guest_statement=agreed))
    invented: list[dict[str, Any]] = [
        {"booking_reference": "HM-2"},
        {"booking_reference": "HM-3", "platform": "Another"},
        {"booking_reference": "HM-4", "listing_id": "loft-2", "check_in": "2026-04-01", "check_out": "2026-04-03"},
    ]
    for changes in invented:
        assert refusal(attesting, attestation(guest_statement=agreed, **changes)).code == "already_reviewed"
    assert record(attesting)["verified_reviews"] == 1


def test_a_guest_who_reviewed_the_booking_here(attesting: Reviewing) -> None:
    attesting.submit(review(reference="HM-55"))
    assert refusal(attesting, attestation(guest_statement=consent())).code == "already_reviewed"


def test_fifty_in_a_day(attesting: Reviewing) -> None:
    """Refused ones are not counted."""
    desk = attesting.ledger.desk()
    for _ in range(50):
        desk.limiter.spend(crossplatform.CROSS_PLATFORM_PER_HOST, HOST.did)
    assert refusal(attesting, attestation()).code == "quota_exceeded"
    attest(attesting, attestation(host=OTHER_HOST))
    assert crossplatform.CROSS_PLATFORM_PER_HOST.count == 50


# The document


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        (b"", "application/pdf"),
        (b"", "application/json"),
        (PDF, "application/json"),
        (JSON_DOCUMENT, "application/pdf"),
        (b"GIF89a" + PDF, "application/pdf"),
        (b"%PDF-1.7\nno end", "application/pdf"),
        (b"%PDF-1.7\n%%EOF" + b"\0" * 1024, "application/pdf"),
        (b"[1, 2]", "application/json"),
        (b'{"a": 1, "a": 2}', "application/json"),
        (b'{"a": 1}' + PDF, "application/json"),
        (b'{"a": 1}' + PDF, "application/pdf"),
        (b"\xff\xfe{}", "application/json"),
        (b'{"a":' * 2000 + b"1" + b"}" * 2000, "application/json"),
        (b"<html>%PDF-1.7 %%EOF</html>", "application/pdf"),
    ],
)
def test_what_a_document_is_by_its_content(attesting: Reviewing, document: bytes, kind: str) -> None:
    body = attestation(document, document_type=kind)
    assert refusal(attesting, body, document).code == "document_invalid"


def test_another_document_than_was_signed(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(), PDF.replace(b"55", b"56")).code == "document_mismatch"


def test_a_document_that_is_too_large(attesting: Reviewing) -> None:
    large = PDF[:-6] + b" " * (crossplatform.MAX_DOCUMENT - len(PDF)) + PDF[-6:]
    assert attest(attesting, attestation(large, document_type="application/pdf"), large)
    larger = large[:-6] + b" " + large[-6:]
    assert refusal(attesting, attestation(larger, document_type="application/pdf"), larger).code == "too_large"


def test_parses_no_document_before_signature_and_credential_count(attesting: Reviewing) -> None:
    """To parse the largest document takes far longer than to refuse what a stranger sends with it."""
    large = b'{"a":[%s]}' % b",".join([b"1"] * (crossplatform.MAX_DOCUMENT // 2 - 10))
    began = process_time()
    assert strict_json.loads(large)
    parsing = process_time() - began
    body = attestation(large, document_type="application/json")
    forged = {**body, "ratings": {**RATINGS, "overall": 1.0}}
    for sent, code in (
        (forged, "proof_invalid"),
        (attestation(large, document_type="application/json", host_credential=None), "host_credential_required"),
    ):
        began = process_time()
        assert refusal(attesting, sent, large).code == code
        assert process_time() - began < parsing / 3


def test_takes_no_other_document_for_what_is_known(attesting: Reviewing) -> None:
    body = attestation()
    attest(attesting, body)
    assert refusal(attesting, body, PDF + b"\n").code == "document_mismatch"


def test_nothing_of_the_document_is_kept(attesting: Reviewing) -> None:
    """Nor of the guest, the platform and the booking."""
    secret = b'{"name": "Ada Lovelace of Marylebone"}'
    body = attestation(secret, document_type="application/json", platform="Otherwhere", guest_statement=consent(secret))
    attest(attesting, body, secret)
    digest = sha256(secret)
    with attesting.ledger.store.read() as connection:
        if attesting.ledger.store.is_sqlite:
            names = [name for (name,) in run(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")]
        else:
            query = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'"
            names = [name for (name,) in run(connection, query)]
        kept = [value for name in names for row in run(connection, f'SELECT * FROM "{name}"') for value in row]
    data = b"\n".join(value if isinstance(value, bytes) else str(value).encode() for value in kept)
    assert b"rose-cottage" in data
    for private in (
        b"Ada Lovelace",
        digest.digest(),
        digest.hexdigest().encode(),
        b"Otherwhere",
        b"HM-55",
        GUEST.did.encode(),
    ):
        assert private not in data


# The host


def test_without_a_credential(attesting: Reviewing) -> None:
    refused = refusal(attesting, attestation(host_credential=None))
    assert refused.code == "host_credential_required"
    assert isinstance(refused, Refused)
    assert refused.refusal["submission_sha256"] == sha256(jcs.dumps(attestation(host_credential=None))).hexdigest()


def test_the_credential_of_another_host(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(host_credential=host_credential(OTHER_HOST))).code == "not_the_host"


def test_a_credential_that_does_not_cover_the_listing(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(listing_id="castle")).code == "listing_not_covered"
    unproved = [{**identities.PROPERTY, "right_to_let_verified": False}]
    body = attestation(host_credential=host_credential(properties=unproved))
    assert refusal(attesting, body).code == "listing_not_covered"


def test_a_credential_of_a_guest(attesting: Reviewing) -> None:
    assert refusal(attesting, attestation(host_credential=credential(HOST))).code == "wrong_credential_type"


def test_an_issuer_that_is_not_trusted(attesting: Reviewing) -> None:
    attesting.add(distrust(attesting.ledger.issuers(), "host", IDV, None))
    assert refusal(attesting, attestation()).code == "issuer_not_trusted"


def test_a_credential_that_was_revoked(attesting: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(STATUS["statusListCredential"], status_list([77]))
    assert refusal(attesting, attestation()).code == "credential_revoked"


def test_a_credential_of_which_nobody_can_say(attesting: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.remove(STATUS["statusListCredential"])
    assert refusal(attesting, attestation()).code == "status_unavailable"


def test_not_by_anybody_else(attesting: Reviewing) -> None:
    body = {name: value for name, value in attestation().items() if name != "proof"}
    assert refusal(attesting, OTHER_HOST.sign(body, domain=DOMAIN, now=NOW)).code == "not_the_host"
    thief = Speaker(88, HOST.did, HOST.method.removeprefix(HOST.did))
    assert refusal(attesting, thief.sign(body, domain=DOMAIN, now=NOW)).code == "proof_invalid"


# The days


def test_a_stay_of_years_ago(attesting: Reviewing) -> None:
    assert attest(attesting, attestation(check_in="2019-05-20", check_out="2019-05-24"))


def test_a_stay_that_is_not_over(attesting: Reviewing) -> None:
    body = attestation(check_in="2026-05-30", check_out="2026-06-01")
    assert refusal(attesting, body).code == "stay_not_over"
