"""Tokens, stolen credentials, replays, and DIDs without a usable key."""

import json
from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon import did, jcs, proofs
from ledger.errors import StaylogError
from ledger.identity import contexts
from ledger.identity.did import offline
from tests.identities import (
    GUEST,
    HOST,
    ISSUER,
    LEDGER,
    NOW,
    THIEF,
    TRUST,
    Speaker,
    credential,
    statement,
)
from tests.security.verdicts import refused, unheard


def token(header: dict[str, Any], payload: Any) -> str:
    def part(value: Any) -> str:
        return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()

    message = f"{part(header)}.{part(payload)}"
    return f"{message}.{urlsafe_b64encode(ISSUER.key.sign(message.encode()).signature).rstrip(b'=').decode()}"


@pytest.mark.parametrize(
    "header",
    [
        {"alg": "EdDSA", "typ": "vc+jwt", "kid": ISSUER.method},
        {"alg": "none"},
        {"alg": "HS256"},
        {"alg": "ES256"},
        {"alg": "EdDSA", "jwk": {"kty": "OKP"}},
        {"alg": "EdDSA", "jku": "https://evil.example"},
        {"alg": "EdDSA", "x5c": []},
        {"alg": "EdDSA", "crit": ["b64"], "b64": False},
        {"alg": "EdDSA", "typ": "JWT"},
        {"alg": "EdDSA", "kid": THIEF.method},
        {"alg": "dir", "enc": "A256GCM"},
    ],
    ids=str,
)
def test_tokens_are_not_read_whatever_their_header_says(header: dict[str, Any]) -> None:
    """Bare, padded, in an envelope of VC 2.0, and inside of a review."""
    compact = token(header, credential())
    for given in (compact, compact + "=", f"{compact}.{compact}"):
        assert refused(given) == "jwt_not_acceptable"
    envelope = {
        "@context": [contexts.CREDENTIALS_V2],
        "type": "EnvelopedVerifiableCredential",
        "id": f"data:application/vc+jwt,{compact}",
    }
    assert refused(envelope) == "jwt_not_acceptable"
    assert unheard(statement("ReviewSubmission", guest_credential=compact), "ReviewSubmission") == "jwt_not_acceptable"


def test_a_credential_in_both_forms_is_read_in_one() -> None:
    assert refused({**credential(), "vc": token({"alg": "EdDSA"}, credential())}) == "undefined_term"


def test_a_stolen_credential() -> None:
    """Every host that the guest booked with has a copy."""
    body = statement("ReviewSubmission")
    stolen = THIEF.sign({name: value for name, value in body.items() if name != "proof"})
    assert unheard(stolen, "ReviewSubmission") == "holder_mismatch"
    as_guest = THIEF.sign(stolen)
    as_guest["proof"]["verificationMethod"] = GUEST.method
    assert unheard(as_guest, "ReviewSubmission") == "proof_invalid"


def test_replays() -> None:
    """To another ledger, or later. The same body to the same ledger at once is for the ledger to know again."""
    body = statement("ReviewSubmission")
    assert unheard(body, "ReviewSubmission", domain="https://other.example") == "wrong_domain"
    assert unheard(body, "ReviewSubmission", now=NOW + timedelta(minutes=5, seconds=1)) == "stale_proof"
    assert unheard(body, "ReviewSubmission", now=NOW - timedelta(minutes=5, seconds=1)) == "stale_proof"
    for kind, name in (("HostResponse", "host_did"), ("FeedbackRequest", "host_did")):
        assert unheard(statement(kind, **{name: GUEST.did}), kind) == "not_the_host"


@pytest.mark.parametrize("domain", [LEDGER + "/", LEDGER.upper(), "https://ledger.example:443", "ledger.example"])
def test_domains_are_compared_as_text(domain: str) -> None:
    body = {"type": "FeedbackRequest", "host_did": HOST.did}
    assert unheard(HOST.sign(body, domain=domain), "FeedbackRequest") == "wrong_domain"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("did:key:z6Mk", "key_not_acceptable"),
        ("did:key:z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQgQjQC23ZCit6F", "key_not_acceptable"),
        ("did:key:f01", "did_not_canonical"),
        (f"{GUEST.did}#{GUEST.multikey}", "did_not_canonical"),
        (f"{GUEST.did}/path", "did_not_canonical"),
        (f"{GUEST.did}?query", "did_not_canonical"),
        ("did:jwk:e30", "key_not_acceptable"),
        ("did:jwk:e30=", "did_not_canonical"),
        ("did:jwk:e31", "did_not_canonical"),
        ("did:jwk:!!!!", "did_not_canonical"),
        ("did:ion:abc", "did_not_canonical"),
        ("not a did", "did_not_canonical"),
    ],
)
def test_dids_that_have_no_key_here(name: str, code: str) -> None:
    with pytest.raises(StaylogError) as refusal:
        offline(name)
    assert refusal.value.code == code


@pytest.mark.parametrize(
    "change",
    [
        {"d": "AAAA"},
        {"crv": "X25519"},
        {"kty": "EC"},
        {"x": "AAAA"},
        {"x": None},
        {"x": "A" * 44},
        {"use": "enc"},
        {"alg": "HS256"},
        {"key_ops": ["encrypt"]},
    ],
    ids=str,
)
def test_jwks_that_are_not_ed25519_public_keys(change: dict[str, Any]) -> None:
    x = urlsafe_b64encode(GUEST.public).rstrip(b"=").decode()
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": x}
    name = "did:jwk:" + urlsafe_b64encode(jcs.dumps({**jwk, **change})).rstrip(b"=").decode()
    did.check(name)
    with pytest.raises(StaylogError) as refusal:
        offline(name)
    assert refusal.value.code == "key_not_acceptable"


def test_a_reference_instead_of_a_credential() -> None:
    reference = {"credential_uri": "https://idv.example/credentials/55"}
    assert refused(reference) == "credential_by_reference"
    body = statement("ReviewSubmission", guest_credential=reference)
    assert unheard(body, "ReviewSubmission") == "credential_by_reference"


def test_an_untrusted_issuer_costs_nothing() -> None:
    """Trust and times come before the proof: pyld is never asked."""

    def never(*documents: dict[str, Any]) -> list[bytes]:
        raise AssertionError(documents)

    from ledger.identity.credentials import verify

    unknown = credential(issuer=Speaker(9, "https://other.example", "/keys/1"), suites=(proofs.ED25519_2020,))
    for document, now in ((unknown, NOW), (credential(suites=(proofs.ED25519_2020,)), NOW + timedelta(days=400))):
        with pytest.raises(StaylogError) as refusal:
            verify(document, "guest", TRUST, now, never)
        assert refusal.value.code in ("issuer_not_trusted", "expired")
