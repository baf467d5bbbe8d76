"""Proofs of other kinds, for other purposes, by other keys."""

from datetime import timedelta
from typing import Any

import pytest

from ledger.canon import base58, proofs
from ledger.canon.times import format_time
from ledger.errors import StaylogError
from ledger.identity.did import offline
from ledger.identity.issuers import Issuer, Registry
from tests.identities import (
    IDV,
    ISSUER,
    NOW,
    THIEF,
    Speaker,
    credential,
    judge,
    signed,
    statement,
)
from tests.ledger.canon.test_ed25519 import SMALL, did_jwk
from tests.security.verdicts import refused, unheard


@pytest.mark.parametrize(
    "proof",
    [
        {"type": "Ed25519Signature2018"},
        {"type": "JsonWebSignature2020"},
        {"type": "BbsBlsSignature2020"},
        {"type": "DataIntegrityProof", "cryptosuite": "ecdsa-rdfc-2019"},
        {"type": "DataIntegrityProof", "cryptosuite": "bbs-2023"},
        {"type": "DataIntegrityProof"},
        {},
    ],
    ids=str,
)
def test_unknown_proof_types(proof: dict[str, str]) -> None:
    known = credential(suites=(proofs.ED25519_2020,))
    kind = {name: value for name, value in known["proof"].items() if name != "type"}
    assert refused({**known, "proof": {**kind, **proof}}) == "proof_type_not_supported"
    assert refused({**known, "proof": [{**kind, **proof}]}) == "proof_type_not_supported"


def test_sets_and_chains_of_proofs() -> None:
    document = credential(suites=(proofs.EDDSA_JCS,))
    proof = document["proof"]
    assert judge({**document, "proof": [proof]})
    assert refused({**document, "proof": []}) == "schema_invalid"
    assert refused({**document, "proof": None}) == "schema_invalid"
    assert refused({**document, "proof": [proof, proof]}) == "schema_invalid"
    assert refused({**document, "proof": [proof] + [{"type": "x"}] * 4}) == "schema_invalid"
    assert refused({**document, "proof": {**proof, "previousProof": "urn:uuid:1"}}) == "proof_chain"
    assert refused({**document, "proof": [proof, {"type": "x", "previousProof": "urn:uuid:1"}]}) == "proof_chain"


def test_the_proof_that_counts_stands_alone() -> None:
    """A thief's proof of the cheaper suite beside the issuer's: it is the one that is verified, and refused."""
    document = credential(suites=(proofs.ED25519_2020,))
    forged = signed(document, proofs.EDDSA_JCS, Speaker(4, IDV, "/keys/1"))["proof"]
    assert refused({**document, "proof": [document["proof"], forged]}) == "proof_invalid"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize("purpose", ["authentication", "keyAgreement", "", None, ["assertionMethod"]])
def test_other_purposes(suite: str, purpose: Any) -> None:
    document = credential(suites=(suite,))
    document["proof"]["proofPurpose"] = purpose
    assert refused(document) == "wrong_proof_purpose"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("https://other.example/keys/1", "issuer_key_mismatch"),
        ("https://idv.example.evil.example/keys/1", "issuer_key_mismatch"),
        ("https://idv.example:8443/keys/1", "issuer_key_mismatch"),
        ("http://idv.example/keys/1", "issuer_key_mismatch"),
        (ISSUER.method.replace("idv", "IDV"), "issuer_key_mismatch"),
        ("https://idv.example@evil.example/keys/1", "bad_verification_method"),
        (f"did:key:{ISSUER.multikey}#{ISSUER.multikey}", "issuer_key_mismatch"),
        ("#key-1", "bad_verification_method"),
        ("/keys/1", "bad_verification_method"),
        ("", "bad_verification_method"),
        ({"id": ISSUER.method}, "bad_verification_method"),
    ],
    ids=str,
)
def test_methods_that_are_not_under_an_https_issuer(suite: str, method: Any, code: str) -> None:
    document = credential(suites=(suite,))
    document["proof"]["verificationMethod"] = method
    assert refused(document) == code


@pytest.mark.parametrize(
    ("method", "code"),
    [
        ("{did}", "bad_verification_method"),
        ("{did}#", "bad_verification_method"),
        ("{did}#key-1", "bad_verification_method"),
        ("{did}/path#{key}", "bad_verification_method"),
        ("{did}?versionId=1#{key}", "bad_verification_method"),
        ("{did}#{key}#{key}", "bad_verification_method"),
        ("#{key}", "bad_verification_method"),
        ("{thief}#{key}", "issuer_key_mismatch"),
        ("https://idv.example/keys/1", "issuer_key_mismatch"),
    ],
)
def test_methods_that_are_not_under_a_did(method: str, code: str) -> None:
    issuer = Speaker(7)
    trust = Registry([Issuer("guest", issuer.did, "trusted", (issuer.multikey,))])
    document = credential(issuer=issuer, suites=(proofs.EDDSA_JCS,))
    named = method.format(did=issuer.did, key=issuer.multikey, thief=THIEF.did)
    assert refused(signed(document, speaker=issuer, verificationMethod=named), trust=trust) == code


def test_a_did_jwk_has_one_key_name() -> None:
    issuer = Speaker(7, did_jwk(Speaker(7).public), "#0")
    trust = Registry([Issuer("guest", issuer.did, "trusted", (issuer.multikey,))])
    document = credential(issuer=issuer)
    assert judge(document, trust=trust)
    wrong = signed(document, speaker=issuer, verificationMethod=f"{issuer.did}#1")
    assert refused(wrong, trust=trust) == "bad_verification_method"


@pytest.mark.parametrize("suite", proofs.SUITES)
@pytest.mark.parametrize(
    "value", ["", "z", "z" + "2" * 60, "u" + "A" * 86, "z0" + "2" * 86, "z1" + "z" * 87, "z" + "2" * 89, 5, None]
)
def test_proof_values_that_are_none(suite: str, value: Any) -> None:
    document = credential(suites=(suite,))
    document["proof"]["proofValue"] = value
    assert refused(document) == "proof_value_invalid"


def test_a_second_spelling_of_a_signature() -> None:
    """S plus the order of the group, and a leading zero in base58."""
    document = credential(suites=(proofs.EDDSA_JCS,))
    signature = base58.decode(document["proof"]["proofValue"][1:])
    order = 2**252 + 27742317777372353535851937790883648493
    other = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
    document["proof"]["proofValue"] = "z" + base58.encode(signature[:32] + other)
    assert refused(document) == "proof_invalid"


@pytest.mark.parametrize("key", SMALL[:5], ids=bytes.hex)
def test_small_order_keys(key: bytes) -> None:
    """A guest chooses their key: under this one, "signatures" would bind nothing."""
    for name in (f"did:key:z{base58.encode(bytes([0xED, 1]) + key)}", did_jwk(key)):
        with pytest.raises(StaylogError) as refusal:
            offline(name)
        assert refusal.value.code == "key_not_acceptable"
    name = f"did:key:z{base58.encode(bytes([0xED, 1]) + key)}"
    body = statement("ReviewSubmission", guest_credential=credential(id=name))
    body["proof"]["verificationMethod"] = f"{name}#{name.removeprefix('did:key:')}"
    assert unheard(body, "ReviewSubmission") == "key_not_acceptable"


@pytest.mark.parametrize(
    ("created", "code"),
    [
        (NOW - timedelta(days=10, minutes=6), "proof_time_invalid"),
        (NOW + timedelta(minutes=6), "proof_time_invalid"),
    ],
)
def test_proofs_from_before_the_credential_or_from_the_future(created: Any, code: str) -> None:
    assert refused(signed(credential(), created=format_time(created))) == code


def test_a_proof_that_has_expired() -> None:
    assert refused(signed(credential(), expires=format_time(NOW - timedelta(seconds=1)))) == "proof_time_invalid"
