"""Proofs: every byte that a suite signs, each suite against an independent Ed25519."""

from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from ledger.canon import base58, proofs
from ledger.errors import NotAccepted
from tests.identities import ISSUER, THIEF, canonize, credential

DOCUMENT = {name: value for name, value in credential().items() if name != "proof"}
OPTIONS = {"verificationMethod": ISSUER.method, "created": "2026-05-22T12:00:00Z"}


def made(suite: str) -> dict[str, Any]:
    return proofs.sign(DOCUMENT, suite, ISSUER.key, OPTIONS, canonize)


def refusal(document: Any, proof: Any, key: bytes = ISSUER.public) -> str:
    with pytest.raises(NotAccepted) as refused:
        proofs.verify(document, proof, [key], canonize)
    return refused.value.code


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_a_proof_verifies_and_tells_the_key(suite: str) -> None:
    proof = made(suite)
    assert proofs.suite_of(proof) == suite
    assert proofs.verify(DOCUMENT, proof, [THIEF.public, ISSUER.public], canonize) == ISSUER.public
    assert refusal(DOCUMENT, proof, THIEF.public) == "proof_invalid"


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_another_library_signs_the_same(suite: str) -> None:
    proof = made(suite)
    key = Ed25519PrivateKey.from_private_bytes(bytes(ISSUER.key))
    signature = key.sign(proofs.signed_bytes(DOCUMENT, proof, canonize))
    assert proof["proofValue"] == "z" + base58.encode(signature)


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(
    "change",
    [
        {"created": "2026-05-22T12:00:01Z"},
        {"verificationMethod": "https://idv.example/keys/2"},
        {"proofPurpose": "authentication"},
        {"expires": "2027-01-01T00:00:00Z"},
        {"domain": "https://ledger.example"},
        {"challenge": "x"},
        {"nonce": "x"},
        {"id": "urn:uuid:1"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_every_option_is_signed(suite: str, change: dict[str, str]) -> None:
    assert refusal(DOCUMENT, {**made(suite), **change}) == "proof_invalid"


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_a_proof_of_one_suite_is_none_of_another(suite: str) -> None:
    """The name of the suite is signed."""
    proof = made(suite)
    for other in proofs.SUITES:
        if other != suite:
            kind = {name: made(other)[name] for name in ("type", "cryptosuite") if name in made(other)}
            bare = {name: value for name, value in proof.items() if name not in ("type", "cryptosuite", "@context")}
            assert refusal(DOCUMENT, {**bare, **kind}) == "proof_invalid"


@pytest.mark.parametrize(
    "proof",
    [
        {},
        {"type": "Ed25519Signature2018"},
        {"type": "JsonWebSignature2020"},
        {"type": "DataIntegrityProof"},
        {"type": "DataIntegrityProof", "cryptosuite": "ecdsa-jcs-2019"},
        {"type": "DataIntegrityProof", "cryptosuite": ["eddsa-jcs-2022"]},
        {"type": ["Ed25519Signature2020"]},
    ],
    ids=str,
)
def test_other_suites_are_refused(proof: dict[str, Any]) -> None:
    assert proofs.suite_of(proof) is None
    assert (
        refusal(DOCUMENT, {**proof, "proofValue": made(proofs.EDDSA_JCS)["proofValue"]}) == "proof_type_not_supported"
    )


def test_without_a_canonicaliser_only_jcs_is_verified() -> None:
    assert proofs.verify(DOCUMENT, made(proofs.EDDSA_JCS), [ISSUER.public])
    with pytest.raises(NotAccepted) as refused:
        proofs.verify(DOCUMENT, made(proofs.EDDSA_RDFC), [ISSUER.public])
    assert refused.value.code == "proof_type_not_supported"


@pytest.mark.parametrize(
    "value",
    [None, 1, "", "z", "u" + "A" * 86, "z" + "1" * 64, "z" + "2" * 87, "z" + "0" * 88, "z" + "2" * 300, "Z" + "2" * 87],
)
def test_a_value_that_is_no_signature_is_refused(value: Any) -> None:
    """64 zero bytes are one, and do not verify."""
    code = "proof_invalid" if value == "z" + "1" * 64 else "proof_value_invalid"
    assert refusal(DOCUMENT, {**made(proofs.EDDSA_JCS), "proofValue": value}) == code


@given(st.binary(min_size=0, max_size=80))
def test_only_64_bytes_are_a_signature(data: bytes) -> None:
    proof = {**made(proofs.EDDSA_JCS), "proofValue": "z" + base58.encode(data)}
    assert refusal(DOCUMENT, proof) == ("proof_invalid" if len(data) == 64 else "proof_value_invalid")
