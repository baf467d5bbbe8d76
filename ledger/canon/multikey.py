"""Multikeys: keys as DID documents and key files write them (W3C Controlled Identifiers 1.0, section 2.2.2).

Ed25519 for what is signed, X25519 for what is sealed.
"""

from functools import lru_cache

from nacl.signing import SigningKey

from ledger.canon import base58, ed25519
from ledger.errors import BadKey, Malformed

_PUBLIC = b"\xed\x01"
_AGREEMENT = b"\xec\x01"
_SECRET = b"\x80\x26"


def encode(public_key: bytes) -> str:
    return "z" + base58.encode(_PUBLIC + public_key)


@lru_cache(maxsize=4096)
def decode(text: str) -> bytes:
    """The public key, which is one that can be trusted to bind its owner. Remembered, as nothing else is: a review
    names three keys twice each."""
    data = _decode(text)
    if data[:2] == _SECRET:
        # And it is not repeated.
        raise BadKey("this is a secret key: give the public one (z6Mk...)")
    if data[:2] != _PUBLIC or len(data) != 2 + ed25519.KEY_SIZE:
        raise BadKey(f"not the multikey of an Ed25519 key (z6Mk...): {text[:60]!r}")
    return ed25519.check_key(data[2:])


def decode_agreement(text: str) -> bytes:
    """The 32 bytes of an X25519 public key. Whether anybody can open what is sealed to it is not looked at here."""
    data = _decode(text)
    if data[:2] != _AGREEMENT or len(data) != 2 + ed25519.KEY_SIZE:
        # It may be a secret, and is not repeated.
        raise BadKey("not the multikey of an X25519 public key (z6LS...)")
    return data[2:]


def encode_secret(key: SigningKey) -> str:
    return "z" + base58.encode(_SECRET + bytes(key))


def decode_secret(text: str) -> SigningKey:
    data = _decode(text)
    if data[:2] != _SECRET or len(data) != 2 + ed25519.KEY_SIZE:
        raise BadKey("not the multikey of an Ed25519 secret key (z3u2...)")
    return SigningKey(data[2:])


def _decode(text: str) -> bytes:
    if text[:1] != "z":
        raise BadKey("a multikey is z and base58btc")
    try:
        return base58.decode(text[1:])
    except Malformed as error:
        raise BadKey(f"a multikey is z and base58btc: {error}") from None
