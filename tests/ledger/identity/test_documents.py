"""What a DID document, an issuer's document and a key's document say, and what they do not."""

from base64 import urlsafe_b64encode
from datetime import timedelta
from typing import Any

import pytest
from nacl.public import PrivateKey

from ledger.canon import base58
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


# Keys to which something is sealed

AGREED, SECOND = (bytes(PrivateKey(bytes([seed] * 32)).public_key) for seed in (21, 22))


def multibase(data: bytes, prefix: bytes = b"\xec\x01") -> str:
    return "z" + base58.encode(prefix + data)


def x25519_jwk(key: bytes = AGREED, **changes: Any) -> dict[str, Any]:
    return {"kty": "OKP", "crv": "X25519", "x": urlsafe_b64encode(key).rstrip(b"=").decode(), **changes}


def agreeing(name: str = "#seal-1", key: bytes = AGREED, **changes: Any) -> dict[str, Any]:
    """A method for key agreement; None leaves a member out."""
    usual = {"id": f"{NAME}{name}", "type": "Multikey", "controller": NAME, "publicKeyMultibase": multibase(key)}
    return {member: value for member, value in {**usual, **changes}.items() if value is not None}


def by_jwk(kind: str = "JsonWebKey", **changes: Any) -> dict[str, Any]:
    return agreeing(type=kind, publicKeyMultibase=None, publicKeyJwk=x25519_jwk(**changes))


def listing(*methods: Any, **changes: Any) -> dict[str, Any]:
    """A document that names these for agreement, and describes them among its methods."""
    names = [method["id"] for method in methods]
    return did_document(HOST, **{"verificationMethod": [METHOD, *methods], "keyAgreement": names, **changes})


def embedding(*methods: Any, **changes: Any) -> dict[str, Any]:
    return did_document(HOST, **{"keyAgreement": list(methods), **changes})


def agreements(document: Any) -> list[tuple[str, bytes]]:
    """What may be sealed to, in order. Whatever the document says of that, its host signs."""
    read = read_document(document, NAME)
    assert read.keys(NOW) == {HOST.method: HOST.public}
    return list(read.agreement_keys(NOW).items())


@pytest.mark.parametrize("write", [listing, embedding])
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(agreeing(), id="Multikey"),
        pytest.param(agreeing(type="X25519KeyAgreementKey2020"), id="X25519KeyAgreementKey2020"),
        pytest.param(by_jwk(), id="JsonWebKey"),
        pytest.param(by_jwk("JsonWebKey2020", alg="ECDH-ES+A256KW", use="enc", key_ops=[]), id="JsonWebKey2020"),
        pytest.param(agreeing(id="#seal-1"), id="relative"),
        pytest.param(agreeing(expires=FUTURE, revoked=FUTURE), id="not expired yet"),
    ],
)
def test_a_key_to_seal_to_in_every_form(write: Any, method: dict[str, Any]) -> None:
    assert agreements(write(method)) == [(f"{NAME}#seal-1", AGREED)]


def test_keys_to_seal_to_stand_in_the_order_of_their_list() -> None:
    one, other = agreeing(), agreeing("#seal-2", SECOND)
    first, second = (one["id"], AGREED), (other["id"], SECOND)
    assert agreements(listing(one, other)) == [first, second]
    assert agreements(listing(one, other, keyAgreement=["#seal-2", "#seal-1"])) == [second, first]
    assert agreements(listing(one, keyAgreement=[other, "#seal-1", "#seal-1"])) == [second, first]
    # Described twice, and the same.
    assert agreements(listing(one, keyAgreement=[one, "#seal-1"])) == [first]
    # The first that counts.
    assert agreements(listing({**one, "revoked": PAST}, other)) == [second]
    # Listed, but for nothing that is asked here.
    assert agreements(listing(one, keyAgreement=[])) == []
    assert agreements(did_document(HOST)) == []


def test_keys_that_assert_keep_the_order_of_their_list() -> None:
    document = did_document(HOST, NEXT, assertionMethod=[NEXT.method, HOST.method])
    assert list(keys(document)) == [NEXT.method, HOST.method]


P = 2**255 - 19
# u of the points of order 1 or 2, 4 and 8, on the curve or its twist (RFC 7748, section 7), as libsodium lists them.
WEAK_X25519 = [
    *(u.to_bytes(32, "little") for u in (0, 1, P - 1)),
    bytes.fromhex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800"),
    bytes.fromhex("5f9c95bca3508c24b1d0b1559c83ef5b04445cc4581c8e86d8224eddd09f1157"),
]
# The same once more, and an honest key, each in a second spelling.
RESPELLED_X25519 = [
    *(u.to_bytes(32, "little") for u in (P, P + 1, P + 9)),
    *(key[:-1] + bytes([key[-1] | 0x80]) for key in (*WEAK_X25519, AGREED)),
]


@pytest.mark.parametrize("write", [listing, embedding])
@pytest.mark.parametrize(
    "method",
    [
        pytest.param(agreeing(controller=THIEF.did), id="of another"),
        pytest.param(agreeing(controller=None), id="of nobody"),
        pytest.param(agreeing(id=f"{THIEF.did}#seal-1"), id="under another name"),
        pytest.param(agreeing(id=f"{NAME}#a\0b"), id="named with what no database keeps"),
        pytest.param(agreeing(id=f"{NAME}#{'a' * 500}"), id="named at length"),
        pytest.param(agreeing(type="Ed25519VerificationKey2020"), id="of a type for signatures"),
        pytest.param(agreeing(type="X25519KeyAgreementKey2019"), id="of another type"),
        pytest.param(agreeing(type=None), id="of no type"),
        pytest.param(agreeing(publicKeyMultibase=HOST.multikey), id="for signatures"),
        pytest.param(agreeing(publicKeyMultibase=multibase(AGREED, b"\xec\x02")), id="of another codec"),
        pytest.param(agreeing(publicKeyMultibase=multibase(AGREED, b"\x82\x26")), id="a secret"),
        pytest.param(agreeing(publicKeyMultibase=multibase(AGREED[1:])), id="short"),
        pytest.param(agreeing(publicKeyMultibase=multibase(AGREED + b"\1")), id="long"),
        pytest.param(agreeing(publicKeyMultibase="z1" + multibase(AGREED)[1:]), id="with a zero before it"),
        pytest.param(agreeing(publicKeyMultibase="f" + (b"\xec\x01" + AGREED).hex()), id="in another base"),
        pytest.param(agreeing(publicKeyMultibase=5), id="no text"),
        pytest.param(agreeing(publicKeyMultibase=["z"]), id="a list"),
        pytest.param(agreeing(publicKeyMultibase=None), id="missing"),
        pytest.param(agreeing(type="JsonWebKey"), id="JWK that is missing"),
        pytest.param(agreeing(secretKeyMultibase="z3we"), id="with its secret"),
        pytest.param(agreeing(privateKeyMultibase="z3we"), id="with its secret, by its older name"),
        pytest.param(agreeing(privateKeyJwk={}), id="with its secret as a JWK"),
        pytest.param(by_jwk(d="AAAA"), id="JWK with its secret"),
        pytest.param(by_jwk(crv="Ed25519"), id="JWK of another curve"),
        pytest.param(by_jwk(key=AGREED[1:]), id="JWK that is short"),
        pytest.param(by_jwk(x=x25519_jwk()["x"] + "="), id="JWK in a second spelling"),
        pytest.param(agreeing(expires=PAST), id="expired"),
        pytest.param(agreeing(revoked=PAST), id="revoked"),
        pytest.param(agreeing(expires="one day"), id="expires at no time"),
    ],
)
def test_what_nothing_is_sealed_to(write: Any, method: dict[str, Any]) -> None:
    assert agreements(write(method)) == []
    # And it does not stand in the way of a key that is one.
    other = agreeing("#seal-2", SECOND)
    assert agreements(write(method, other)) == [(other["id"], SECOND)]


@pytest.mark.parametrize("key", [*WEAK_X25519, *RESPELLED_X25519], ids=bytes.hex)
def test_nothing_is_sealed_to_a_key_that_everybody_or_nobody_opens(key: bytes) -> None:
    assert agreements(embedding(agreeing(key=key))) == []
    assert agreements(embedding(by_jwk(key=key))) == []


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(listing(agreeing(), keyAgreement="#seal-1"), id="one name, not a list"),
        pytest.param(listing(agreeing(), keyAgreement=None), id="null"),
        pytest.param(embedding(keyAgreement=agreeing()), id="one key, not a list"),
        pytest.param(listing(agreeing(), keyAgreement=["#seal-1"] * (MAX_METHODS + 1)), id="too many"),
        pytest.param(listing(agreeing(), keyAgreement=["#seal-9", 5, None, {}, [], True]), id="nonsense"),
        pytest.param(embedding(agreeing(), agreeing(key=SECOND)), id="one name for two keys"),
        pytest.param(embedding(agreeing(), agreeing(id="#seal-1", key=SECOND)), id="one name for two, one relative"),
        pytest.param(listing(agreeing(), keyAgreement=[agreeing(key=SECOND)]), id="one name for two, one listed"),
        pytest.param(embedding(agreeing("#key-1")), id="the name of a key that signs"),
        pytest.param(
            embedding(agreeing("#key-1"), verificationMethod=[], assertionMethod=[METHOD]),
            id="the name of a key that signs, embedded",
        ),
        pytest.param(
            listing(agreeing(secretKeyMultibase="z3we"), keyAgreement=[agreeing()]), id="one name, once with its secret"
        ),
        pytest.param(listing(agreeing(revoked=PAST), keyAgreement=[agreeing()]), id="one name, once revoked"),
    ],
)
def test_a_list_that_cannot_be_meant_leaves_the_keys_that_assert(document: Any) -> None:
    assert agreements(document) == []


def test_as_many_keys_to_seal_to_as_methods() -> None:
    """None of them is remembered, and the first is used."""
    assert len(agreements(embedding(*(agreeing(f"#seal-{number}") for number in range(MAX_METHODS))))) == MAX_METHODS


def test_a_key_to_seal_to_does_not_assert() -> None:
    assert keys(listing(agreeing(), assertionMethod=["#seal-1", "#key-1"])) == {HOST.method: HOST.public}
    assert keys(did_document(HOST, assertionMethod=[agreeing()])) == {}


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
