"""Who issued it, about whom, and for how long."""

from datetime import timedelta
from typing import Any

import pytest

from ledger.canon import proofs
from ledger.errors import StaylogError
from ledger.identity.issuers import Issuer, Registry
from tests.identities import (
    IDV,
    ISSUER,
    NOW,
    PROPERTY,
    STATUS,
    Speaker,
    credential,
    judge,
    signed,
    statement,
)
from tests.security.verdicts import refused, subject, unheard


def test_issuers_that_are_not_trusted() -> None:
    unknown = Speaker(9, "https://other.example", "/keys/1")
    assert refused(credential(issuer=unknown)) == "issuer_not_trusted"
    guests_only = Registry([Issuer("guest", IDV, "trusted", (ISSUER.multikey,))])
    assert refused(credential("host"), "host", trust=guests_only) == "issuer_not_trusted"
    for status in ("removed", "compromised"):
        gone = Registry([Issuer("guest", IDV, status, (ISSUER.multikey,), since="2026-01-01T00:00:00Z")])
        assert refused(credential(), trust=gone) == "issuer_not_trusted"
    low = Registry([Issuer("guest", IDV, "trusted", (ISSUER.multikey,), "email_verified")])
    assert refused(credential(), trust=low) == "issuer_not_trusted"


def test_a_key_that_is_not_pinned() -> None:
    """The issuer's name and a method of its origin are not enough."""
    assert refused(credential(issuer=Speaker(9, IDV, "/keys/1"))) == "proof_invalid"


def test_another_issuers_credential_under_a_trusted_name() -> None:
    document = credential(issuer=Speaker(9, "https://other.example", "/keys/1"), suites=(proofs.EDDSA_JCS,))
    assert refused({**document, "issuer": IDV}) == "issuer_key_mismatch"


def test_self_issued() -> None:
    me = Speaker(9)
    trust = Registry([Issuer("guest", me.did, "trusted", (me.multikey,))])
    mine = {**subject(credential(), id=me.did), "issuer": me.did}
    assert refused(signed(mine, speaker=me), trust=trust) == "self_issued"
    assert refused(signed({**subject(credential(), id=IDV), "issuer": {"id": IDV}})) == "self_issued"


def test_wrong_types() -> None:
    assert refused(credential("host"), "guest") == "wrong_credential_type"
    assert refused(credential("guest"), "host") == "wrong_credential_type"
    for types in (["VerifiableCredential"], "OpenSTRHostCredential", [], None, ["VerifiablePresentation"]):
        assert refused(signed({**credential(), "type": types})) == "wrong_credential_type"
    both = ["VerifiableCredential", "OpenSTRGuestCredential", "OpenSTRHostCredential"]
    assert refused(signed({**credential(), "type": both})) == "schema_invalid"


def test_subjects_that_are_not_one_with_an_id() -> None:
    document = credential()
    claims = document["credentialSubject"]
    nameless = {name: value for name, value in claims.items() if name != "id"}
    for wrong in ([claims], [claims, claims], [], nameless, "did:key:z6Mk", None):
        assert refused(signed({**document, "credentialSubject": wrong})) == "schema_invalid"


def test_a_subject_without_a_key() -> None:
    """RFC-004 allows any URI; a review needs a signature of its holder."""
    opaque = credential(id="urn:uuid:0b1f3cf4-6d3a-4a3e-9f45-0cbf2f9a6d3c")
    assert judge(opaque)
    body = statement("ReviewSubmission", guest_credential=opaque)
    assert unheard(body, "ReviewSubmission") == "holder_binding_unavailable"


@pytest.mark.parametrize(("listing", "right"), [("castle", True), ("rose-cottage", False)])
def test_listings_that_are_not_covered(listing: str, right: bool) -> None:
    document = credential("host", properties=[{**PROPERTY, "right_to_let_verified": right}])
    with pytest.raises(StaylogError) as refusal:
        judge(document, "host").require_listing(listing)
    assert refusal.value.code == "listing_not_covered"


@pytest.mark.parametrize("right", ["true", 1, [True], {"@value": True}, None])
def test_a_right_to_let_that_is_not_the_literal_true(right: Any) -> None:
    document = credential("host")
    document["credentialSubject"]["properties"][0]["right_to_let_verified"] = right
    assert refused(signed(document), "host") == "schema_invalid"


def test_validity() -> None:
    document = credential()
    assert refused(document, now=NOW + timedelta(days=71)) == "expired"
    assert refused(document, now=NOW - timedelta(days=11)) == "not_yet_valid"
    without = {name: value for name, value in document.items() if name != "validUntil"}
    assert refused(signed(without)) == "missing_expiry"
    old = {**without, "expirationDate": "2030-01-01T00:00:00Z"}
    assert refused(signed(old)) == "missing_expiry"
    for wrong in ("2030-01-01", "2030-01-01T00:00:00", "2030-01-01 00:00:00Z", "tomorrow"):
        assert refused(signed({**document, "validUntil": wrong})) == "date_invalid"
    for other in (1893456000, None, ["2030-01-01T00:00:00Z"]):
        assert refused(signed({**document, "validUntil": other})) == "schema_invalid"


def test_a_status_of_another_type() -> None:
    for change in ({"type": "StatusList2021Entry"}, {"statusListIndex": 77}, {"statusListIndex": "077"}):
        assert refused(signed({**credential(), "credentialStatus": {**STATUS, **change}})) == "schema_invalid"
