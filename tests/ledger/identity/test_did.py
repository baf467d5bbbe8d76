"""Which keys may speak for a DID. What is refused stands in tests/security/test_speakers.py."""

from base64 import urlsafe_b64encode
from typing import Any

import pytest

from ledger.canon import jcs
from ledger.errors import BadKey, NotAccepted
from ledger.identity.did import agreement_key_of_jwk, did_key, is_offline, method_of, offline
from tests.identities import GUEST, HOST, Speaker, hear
from tests.ledger.canon.test_ed25519 import did_jwk


def test_a_did_key_repeats_its_key_in_the_fragment() -> None:
    assert did_key(GUEST.public) == GUEST.did
    assert offline(GUEST.did) == {f"{GUEST.did}#{GUEST.multikey}": GUEST.public}


def test_the_key_of_a_did_jwk_has_the_name_0() -> None:
    name = did_jwk(GUEST.public)
    assert offline(name) == {f"{name}#0": GUEST.public}


def test_a_jwk_may_say_what_its_key_is_for() -> None:
    x = urlsafe_b64encode(GUEST.public).rstrip(b"=").decode()
    for more in ({"use": "sig"}, {"alg": "EdDSA"}, {"alg": "Ed25519"}, {"kid": "k"}, {"key_ops": ["verify"]}):
        jwk = jcs.dumps({"kty": "OKP", "crv": "Ed25519", "x": x, **more})
        [key] = offline("did:jwk:" + urlsafe_b64encode(jwk).rstrip(b"=").decode()).values()
        assert key == GUEST.public


def test_a_jwk_to_seal_to_may_say_what_its_key_is_for() -> None:
    jwk = {"kty": "OKP", "crv": "X25519", "x": urlsafe_b64encode(bytes(range(32))).rstrip(b"=").decode()}
    right: list[dict[str, Any]] = [{}, {"use": "enc"}, {"alg": "ECDH-ES"}, {"key_ops": []}, {"key_ops": ["deriveBits"]}]
    wrong: list[dict[str, Any]] = [
        *({"use": "sig"}, {"use": None}, {"alg": "EdDSA"}, {"alg": ["ECDH-ES"]}, {"d": "AAAA"}, {"kty": "EC"}),
        *({"key_ops": ["verify"]}, {"key_ops": ["deriveKey", "sign"]}, {"key_ops": "deriveKey"}, {"key_ops": [{}]}),
        *({"crv": "Ed25519"}, {"x": None}, {"x": "AA=="}, {"x": "AB"}),
    ]
    for more in right:
        assert agreement_key_of_jwk({**jwk, **more}) == bytes(range(32))
    values: list[Any] = [*({**jwk, **more} for more in wrong), None, [], "x", {}]
    for value in values:
        with pytest.raises(BadKey):
            agreement_key_of_jwk(value)


def test_a_did_jwk_speaks_by_that_name_only() -> None:
    host = Speaker(3, did_jwk(HOST.public), "#0")
    body = {"type": "FeedbackRequest", "host_did": host.did}
    assert hear(host.sign(body), "FeedbackRequest").method == f"{host.did}#0"
    other = Speaker(3, host.did, "#1")
    with pytest.raises(NotAccepted) as refused:
        hear(other.sign(body), "FeedbackRequest")
    assert refused.value.code == "bad_verification_method"


def test_which_dids_have_their_key_in_their_name() -> None:
    assert is_offline(GUEST.did)
    assert is_offline(did_jwk(HOST.public))
    for other in ("did:web:cottage.example", "https://idv.example", "did:", "did:key", "x"):
        assert not is_offline(other)
    assert method_of("did:web:cottage.example") == "web"
