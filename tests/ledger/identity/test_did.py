"""Which keys may speak for a DID. What is refused stands in tests/security/test_speakers.py."""

from base64 import urlsafe_b64encode

import pytest

from ledger.canon import jcs
from ledger.errors import NotAccepted
from ledger.identity.did import OFFLINE, Methods, did_key, method_of, offline
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


def test_a_did_jwk_speaks_by_that_name_only() -> None:
    host = Speaker(3, did_jwk(HOST.public), "#0")
    body = {"type": "FeedbackRequest", "host_did": host.did}
    assert hear(host.sign(body), "FeedbackRequest").method == f"{host.did}#0"
    other = Speaker(3, host.did, "#1")
    with pytest.raises(NotAccepted) as refused:
        hear(other.sign(body), "FeedbackRequest")
    assert refused.value.code == "bad_verification_method"


def test_another_method_joins_by_the_same_protocol() -> None:
    name = "did:web:cottage.example"
    resolve = Methods({**OFFLINE, "web": lambda did: {f"{did}#key-1": HOST.public}})
    assert resolve(name) == {f"{name}#key-1": HOST.public}
    assert resolve(GUEST.did) == offline(GUEST.did)
    assert method_of(name) == "web"
    with pytest.raises(NotAccepted) as refused:
        offline(name)
    assert refused.value.code == "did_method_not_supported"
