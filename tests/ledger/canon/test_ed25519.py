"""Keys that bind their owners, in every form in which a key may come."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha512

import pytest
from nacl.signing import SigningKey

from ledger.canon import base58, ed25519, multikey
from ledger.errors import BadEntry, BadKey, BadNote, StaylogError
from ledger.identity.did import offline
from ledger.identity.issuers import Registry, trust
from ledger.log.drafts import make_draft
from ledger.log.note import COSIGNATURE, ED25519, Verifier

P = 2**255 - 19
ORDER_8 = "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"
ORDER_8_B = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"
SMALL = [
    *(y.to_bytes(32, "little") for y in (0, 1, P - 1)),
    *(bytes.fromhex(point) for point in (ORDER_8, ORDER_8_B)),
    # The same points with the sign bit, and with y not reduced.
    *((y + (1 << 255)).to_bytes(32, "little") for y in (0, 1, P - 1)),
    *(bytes.fromhex(point[:-2]) + bytes([int(point[-2:], 16) | 0x80]) for point in (ORDER_8, ORDER_8_B)),
    *((y).to_bytes(32, "little") for y in (P, P + 1)),
    *((y + (1 << 255)).to_bytes(32, "little") for y in (P, P + 1)),
]


def did_jwk(key: bytes) -> str:
    x = urlsafe_b64encode(key).rstrip(b"=").decode()
    return "did:jwk:" + urlsafe_b64encode(f'{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}'.encode()).rstrip(b"=").decode()


def pin(key: bytes) -> object:
    members = {"role": "guest", "issuer": "https://idv.example", "action": "trusted", "max_idv_level": None}
    return make_draft("issuer", {**members, "since": None, "keys": [multikey.encode(key)]})


@pytest.mark.parametrize("key", SMALL, ids=bytes.hex)
@pytest.mark.parametrize(
    "take",
    [
        pytest.param(ed25519.check_key, id="bytes"),
        pytest.param(lambda key: multikey.decode(multikey.encode(key)), id="multikey"),
        pytest.param(lambda key: offline("did:key:" + multikey.encode(key)), id="did:key"),
        pytest.param(lambda key: offline(did_jwk(key)), id="did:jwk"),
        pytest.param(
            lambda key: trust(Registry([]), "guest", "https://idv.example", [multikey.encode(key)], None), id="issuer"
        ),
        pytest.param(pin, id="entry"),
        pytest.param(lambda key: Verifier("ledger.example/log", ED25519, key), id="vkey"),
        pytest.param(lambda key: Verifier("witness.example", COSIGNATURE, key), id="witness"),
    ],
)
def test_keys_of_small_order_are_refused_everywhere(take: Callable[[bytes], object], key: bytes) -> None:
    with pytest.raises(StaylogError) as refused:
        take(key)
    assert isinstance(refused.value, BadKey | BadEntry | BadNote)
    if isinstance(refused.value, BadKey):
        assert refused.value.code == "key_not_acceptable"


@pytest.mark.parametrize("key", SMALL, ids=bytes.hex)
def test_no_signature_holds_under_a_key_of_small_order(key: bytes) -> None:
    """R = the key or the identity, S = 0: one of these verifies for some or all messages where nobody looks."""
    for r in (key, (1).to_bytes(32, "little"), bytes(32)):
        assert not any(ed25519.verify(key, b"message %d" % number, r + bytes(32)) for number in range(16))


@pytest.mark.parametrize("length", [0, 31, 33, 64])
def test_keys_have_their_length(length: int) -> None:
    with pytest.raises(BadKey):
        ed25519.check_key(b"\1" * length)


def test_a_signature_has_one_form() -> None:
    """S plus the order of the group gives the same equation."""
    key = SigningKey(sha512(b"test").digest()[:32])
    public, message = bytes(key.verify_key), b"a message"
    signature = ed25519.sign(key, message)
    assert ed25519.verify(public, message, signature)
    order = 2**252 + 27742317777372353535851937790883648493
    other = int.from_bytes(signature[32:], "little") + order
    assert not ed25519.verify(public, message, signature[:32] + other.to_bytes(32, "little"))
    assert not ed25519.verify(public, message, signature[:63])
    assert not ed25519.verify(public, message, signature + b"\0")
    assert not ed25519.verify(public, b"another", signature)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "z",
        "6Mk",
        "z6Mk",
        "m7QEm",
        "f01",
        "z0OIl",
        "z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQgQjQC23ZCit6F",
        "zQ3shokFTS3brHcDQrn82RUDfCZESWL1ZdCEJwekUDPQiYBme",
        "z1" + base58.encode(b"\xed\x01" + bytes(range(32))),
    ],
)
def test_what_is_not_a_multikey_is_refused(text: str) -> None:
    with pytest.raises(BadKey):
        multikey.decode(text)


def test_secret_keys_come_back() -> None:
    key = SigningKey(bytes(range(32)))
    assert multikey.decode_secret(multikey.encode_secret(key)) == key
    for wrong in (multikey.encode(bytes(key.verify_key)), "z", "", "zzz"):
        with pytest.raises(BadKey):
            multikey.decode_secret(wrong)
