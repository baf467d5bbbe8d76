"""Ed25519 (RFC 8032) as libsodium reads it: the strict way, in which a signature binds one message to one key.

Guests choose their own keys. Under a key of small order one signature holds for many messages, and about signatures
under a key of mixed order verifiers disagree; no honest key is either. Other libraries accept both.
"""

from functools import lru_cache

from nacl.bindings import crypto_core_ed25519_is_valid_point, crypto_sign_open
from nacl.exceptions import BadSignatureError
from nacl.signing import SigningKey

from ledger.errors import BadKey

KEY_SIZE = 32
SIGNATURE_SIZE = 64


@lru_cache(maxsize=4096)
def check_key(public_key: bytes) -> bytes:
    """`public_key` itself if it is the one spelling of a point of the large subgroup, else BadKey."""
    if len(public_key) != KEY_SIZE or not crypto_core_ed25519_is_valid_point(public_key):
        raise BadKey("not an Ed25519 public key that binds its owner: no honest key generation makes it")
    return public_key


def verify(public_key: bytes, message: bytes, signature: bytes) -> bool:
    if len(signature) != SIGNATURE_SIZE:
        return False
    try:
        crypto_sign_open(signature + message, public_key)
    except BadSignatureError:
        return False
    return True


def sign(key: SigningKey, message: bytes) -> bytes:
    return key.sign(message).signature
