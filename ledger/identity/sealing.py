"""Private words for a host: sealed at intake, so that nobody but the host can read them, the ledger included (libsodium
sealed boxes over X25519, RFC 7748).

Texts are padded before (ISO/IEC 7816-4): a sealed box is as long as what is in it, and a short complaint and a long
one shall not differ from outside.
"""

from nacl.bindings import crypto_scalarmult, crypto_sign_ed25519_pk_to_curve25519, sodium_pad, sodium_unpad
from nacl.exceptions import CryptoError
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import SigningKey

from ledger.errors import BadKey, NotProved

KEY_SIZE = 32
BLOCK = 256
_PRIME = 2**255 - 19
_ANY_SCALAR = bytes([1]) * KEY_SIZE


def check_key(public: bytes) -> bytes:
    """`public` itself if it is an X25519 key for which somebody may have the secret, else BadKey."""
    # A box is bound to the spelling of its key: who has the secret of another spelling does not open it.
    if len(public) != KEY_SIZE or int.from_bytes(public, "little") >= _PRIME:
        raise BadKey("not an X25519 public key: 32 bytes expected that spell a number below the prime")
    try:
        crypto_scalarmult(_ANY_SCALAR, public)
    except CryptoError:
        raise BadKey("an X25519 public key of small order: whatever is sealed to it, everybody can read") from None
    return public


def converted(public: bytes) -> bytes:
    """The X25519 key whose secret follows from that of an Ed25519 key."""
    try:
        return crypto_sign_ed25519_pk_to_curve25519(public)
    except CryptoError:
        raise BadKey("no Ed25519 public key that has a counterpart in X25519") from None


def seal(text: str, public: bytes) -> bytes:
    """For whoever has the secret of this X25519 key."""
    return SealedBox(PublicKey(check_key(public))).encrypt(sodium_pad(text.encode(), BLOCK))


def unseal(sealed: bytes, key: SigningKey | PrivateKey) -> str:
    """What was sealed to this key, or to the one that an Ed25519 key is converted to."""
    secret = key.to_curve25519_private_key() if isinstance(key, SigningKey) else key
    try:
        return sodium_unpad(SealedBox(secret).decrypt(sealed), BLOCK).decode()
    except (CryptoError, UnicodeDecodeError):
        raise NotProved("feedback_unreadable", "these words are sealed to another key, or were changed") from None
