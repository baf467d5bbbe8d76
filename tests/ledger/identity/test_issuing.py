"""What an issuer makes is verified by the same code, and never has another form."""

from datetime import timedelta
from typing import Any

import pytest

from ledger.canon import proofs
from ledger.errors import BadForm, NotAccepted
from ledger.identity.issuing import issue
from tests.identities import (
    GUEST,
    GUEST_CLAIMS,
    IDV,
    ISSUER,
    NOW,
    STATUS,
    canonize,
    credential,
    judge,
    status_list,
)


@pytest.mark.parametrize("role", ["guest", "host"])
def test_by_default_it_has_the_proof_that_is_demanded_and_the_one_that_is_quick(role: str) -> None:
    document = credential(role)
    assert [proofs.suite_of(proof) for proof in document["proof"]] == [proofs.ED25519_2020, proofs.EDDSA_JCS]
    for proof in document["proof"]:
        assert judge({**document, "proof": proof}, role).key == ISSUER.public


def test_one_proof_is_not_in_a_list() -> None:
    assert credential(suites=(proofs.EDDSA_RDFC,))["proof"]["cryptosuite"] == proofs.EDDSA_RDFC


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"idv_level": "very_verified"}, "one of email_verified"),
        ({"idv_method": None}, "'idv_method' is missing"),
        ({"nickname": "x"}, "no member 'nickname'"),
        ({"id": "guest 55"}, "credentialSubject.id: absolute uri expected"),
        ({"idv_level": "email_verified"}, "payment_verified expected"),
    ],
)
def test_another_form_is_not_signed(claims: dict[str, Any], message: str) -> None:
    with pytest.raises(BadForm, match=message):
        credential(suites=(proofs.EDDSA_JCS,), issuer=ISSUER, **claims)


def test_claims_are_copied() -> None:
    document = credential()
    document["credentialSubject"]["idv_level"] = "changed"
    assert credential()["credentialSubject"]["id"] == GUEST.did
    assert credential()["credentialSubject"]["idv_level"] == "payment_verified"


def test_a_list_that_no_ledger_would_ask_for_is_not_signed() -> None:
    """Nor is a credential that names one."""
    for url, code in (
        ("http://idv.example/status/1", "address_not_allowed"),
        ("https://idv.example:8443/status/1", "address_not_allowed"),
        ("https://other.example/status/1", "status_invalid"),
    ):
        with pytest.raises(NotAccepted) as refused:
            status_list(url=url)
        assert refused.value.code == code
        with pytest.raises(NotAccepted) as refused:
            issue(
                "guest",
                GUEST_CLAIMS,
                id_="urn:x:1",
                issuer=IDV,
                method=ISSUER.method,
                key=ISSUER.key,
                valid_from=NOW,
                valid_until=NOW + timedelta(days=9),
                canonize=canonize,
                status={**STATUS, "statusListCredential": url},
            )
        assert refused.value.code == code
    with pytest.raises(BadForm):
        status_list(purpose="doubt")
