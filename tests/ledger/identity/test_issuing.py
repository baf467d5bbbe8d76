"""What an issuer makes is verified by the same code, and never has another form."""

from typing import Any

import pytest

from ledger.canon import proofs
from ledger.errors import BadForm
from tests.identities import GUEST, ISSUER, credential, judge


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
