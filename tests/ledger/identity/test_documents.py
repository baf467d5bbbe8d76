"""What a DID document, an issuer's document and a key's document say, and what they do not."""

from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon.times import format_time
from ledger.errors import NotAccepted
from ledger.identity.documents import MAX_KEYS, MAX_METHODS, read_document, read_key
from tests.identities import IDV, ISSUER, NOW, THIEF, Speaker, did_document
from tests.ledger.canon.test_ed25519 import SMALL

NAME = "did:web:cottage.example"
HOST = Speaker(3, NAME, "#key-1")
NEXT = Speaker(13, NAME, "#key-2")
METHOD = did_document(HOST)["verificationMethod"][0]
PAST, FUTURE = (format_time(NOW + timedelta(days=days)) for days in (-1, 1))
JWK = {"kty": "OKP", "crv": "Ed25519", "x": urlsafe_b64encode(HOST.public).rstrip(b"=").decode()}


def keys(value: Any, name: str = NAME) -> dict[str, bytes]:
    return dict(read_document(value, name).keys(NOW))


def with_method(**changes: Any) -> dict[str, Any]:
    """A document whose one method is changed; None leaves a member out."""
    method = {name: value for name, value in {**METHOD, **changes}.items() if value is not None}
    return did_document(HOST, verificationMethod=[method])


def test_the_keys_that_may_assert() -> None:
    assert keys(did_document(HOST, NEXT)) == {HOST.method: HOST.public, NEXT.method: NEXT.public}
    # Listed, but for something else.
    both = did_document(HOST, NEXT)
    assert keys({**both, "assertionMethod": [HOST.method], "authentication": [NEXT.method]}) == {
        HOST.method: HOST.public
    }
    assert keys({"id": NAME}) == {}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(with_method(type="Ed25519VerificationKey2020"), id="Ed25519VerificationKey2020"),
        pytest.param(with_method(type="JsonWebKey", publicKeyMultibase=None, publicKeyJwk=JWK), id="JsonWebKey"),
        pytest.param(
            with_method(type="JsonWebKey2020", publicKeyMultibase=None, publicKeyJwk=JWK), id="JsonWebKey2020"
        ),
        pytest.param(did_document(HOST, verificationMethod=[], assertionMethod=[METHOD]), id="embedded"),
        pytest.param(did_document(HOST, assertionMethod=[METHOD]), id="embedded and listed"),
        pytest.param(with_method(id="#key-1"), id="relative"),
        pytest.param(did_document(HOST, assertionMethod=["#key-1"]), id="named relatively"),
        pytest.param(with_method(expires=FUTURE, revoked=FUTURE), id="not expired yet"),
        pytest.param(did_document(HOST, assertionMethod=[HOST.method, HOST.method]), id="named twice"),
        pytest.param(did_document(HOST, service=[{"id": "#x"}], alsoKnownAs=["https://x.example"]), id="more members"),
    ],
)
def test_a_key_in_every_form_that_documents_write_it(document: dict[str, Any]) -> None:
    assert keys(document) == {HOST.method: HOST.public}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(with_method(controller=THIEF.did), id="of another"),
        pytest.param(with_method(controller=None), id="of nobody"),
        pytest.param(with_method(id=f"{THIEF.did}#key-1"), id="under another name"),
        pytest.param(with_method(id=None), id="without a name"),
        pytest.param(with_method(id=5), id="named by a number"),
        pytest.param(with_method(id=f"{NAME}#a\0b"), id="named with what no database keeps"),
        pytest.param(with_method(id=f"{NAME}#{'a' * 500}"), id="named at length"),
        pytest.param(with_method(id=f"{NAME}#schl\u00fcssel"), id="named beyond ASCII"),
        pytest.param(with_method(type="X25519KeyAgreementKey2020"), id="of another type"),
        pytest.param(with_method(publicKeyMultibase="zzzz"), id="unreadable"),
        pytest.param(with_method(publicKeyMultibase=5), id="no text"),
        pytest.param(with_method(publicKeyMultibase=None), id="missing"),
        pytest.param(with_method(secretKeyMultibase="z3u2x"), id="with its secret"),
        pytest.param(with_method(type="JsonWebKey", publicKeyJwk={**JWK, "d": "AAAA"}), id="JWK with its secret"),
        pytest.param(with_method(type="JsonWebKey", publicKeyJwk={**JWK, "crv": "X25519"}), id="JWK of another curve"),
        pytest.param(
            with_method(
                type="JsonWebKey", publicKeyJwk={**JWK, "x": urlsafe_b64encode(SMALL[0]).rstrip(b"=").decode()}
            ),
            id="of small order",
        ),
        pytest.param(with_method(expires=PAST), id="expired"),
        pytest.param(with_method(revoked=PAST), id="revoked"),
        pytest.param(with_method(revoked="yesterday"), id="revoked at no time"),
        pytest.param(with_method(expires=FUTURE, revoked=PAST), id="revoked before it expires"),
        pytest.param(did_document(HOST, assertionMethod=[f"{NAME}#key-9"]), id="named, and not there"),
        pytest.param(did_document(HOST, assertionMethod=[f"{THIEF.did}#{THIEF.multikey}"]), id="in another document"),
        pytest.param(did_document(HOST, assertionMethod=[5, None, {}]), id="nonsense"),
    ],
)
def test_what_is_no_key_of_its_owner_is_left_out(document: dict[str, Any]) -> None:
    assert keys(document) == {}


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(did_document(HOST, id="did:web:other.example"), id="of another"),
        pytest.param(did_document(HOST, id=None), id="of nobody"),
        pytest.param([], id="a list"),
        pytest.param("did:web:cottage.example", id="a text"),
        pytest.param(did_document(HOST, verificationMethod={}), id="methods that are no list"),
        pytest.param(did_document(HOST, assertionMethod="#key-1"), id="one name, not a list"),
        pytest.param(did_document(HOST, assertionMethod=["#key-1"] * (MAX_METHODS + 1)), id="too many"),
        pytest.param(
            did_document(*(Speaker(seed, NAME, f"#key-{seed}") for seed in range(1, MAX_KEYS + 2))), id="too many keys"
        ),
        pytest.param(
            did_document(HOST, verificationMethod=[METHOD, {**METHOD, "publicKeyMultibase": NEXT.multikey}]),
            id="one name for two keys",
        ),
        pytest.param(
            did_document(HOST, assertionMethod=[METHOD["id"], {**METHOD, "publicKeyMultibase": NEXT.multikey}]),
            id="one name for two keys, one embedded",
        ),
        pytest.param(
            did_document(
                HOST, verificationMethod=[METHOD, {**METHOD, "id": "#key-1", "publicKeyMultibase": NEXT.multikey}]
            ),
            id="one name for two keys, one relative",
        ),
    ],
)
def test_a_document_that_cannot_be_meant(document: Any) -> None:
    with pytest.raises(NotAccepted) as refused:
        keys(document)
    assert refused.value.code == "did_document_invalid"


# A key with an https address

KEY = {"id": ISSUER.method, "type": "Multikey", "controller": IDV, "publicKeyMultibase": ISSUER.multikey}


def issuers_key(value: Any, method: str = ISSUER.method) -> str | bytes:
    try:
        return read_key(value, method, IDV, NOW)
    except NotAccepted as refused:
        return refused.code


def test_a_key_at_its_own_address() -> None:
    assert issuers_key(KEY) == ISSUER.public
    assert issuers_key({**KEY, "@context": "https://w3id.org/security/multikey/v1", "expires": FUTURE}) == ISSUER.public


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ({**KEY, "controller": THIEF.did}, "issuer_key_mismatch"),
        ({**KEY, "controller": None}, "issuer_key_mismatch"),
        ({**KEY, "id": f"{IDV}/keys/2"}, "bad_verification_method"),
        ({**KEY, "revoked": PAST}, "bad_verification_method"),
        ({**KEY, "expires": PAST}, "bad_verification_method"),
        ({**KEY, "type": "RsaVerificationKey2018"}, "bad_verification_method"),
        # The issuer's own document is at the issuer's address, and nowhere else.
        ({"id": IDV, "verificationMethod": [KEY], "assertionMethod": [KEY["id"]]}, "bad_verification_method"),
        ([KEY], "bad_verification_method"),
        (None, "bad_verification_method"),
    ],
)
def test_a_key_that_is_not_the_issuers_now(value: Any, code: str) -> None:
    assert issuers_key(value) == code
