"""Private words reach the host and nobody else, and their length tells little."""

from hashlib import sha512

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from nacl.public import PrivateKey, PublicKey, SealedBox
from nacl.signing import SigningKey

from ledger.errors import BadKey, NotProved
from ledger.identity.sealing import BLOCK, check_key, converted, seal, unseal
from tests.identities import HOST, THIEF
from tests.ledger.canon.test_ed25519 import SMALL
from tests.ledger.identity.test_documents import RESPELLED_X25519, WEAK_X25519

SECRET = PrivateKey(bytes([21] * 32))
PUBLIC = bytes(SECRET.public_key)
WORDS = "The boiler rattles at night; I did not want to write that in public."
# An ephemeral key and an authenticator.
OVERHEAD = 48


def refused(sealed: bytes, key: SigningKey | PrivateKey = SECRET) -> str:
    with pytest.raises(NotProved) as failure:
        unseal(sealed, key)
    return failure.value.code


@given(st.text(max_size=1200))
def test_what_is_sealed_is_opened(text: str) -> None:
    assert unseal(seal(text, PUBLIC), SECRET) == text


@given(st.binary(min_size=32, max_size=32))
def test_the_key_of_a_host_is_converted_as_its_definition_says(seed: bytes) -> None:
    """RFC 8032, section 5.1.5: the scalar is the first half of SHA-512 of the seed, which X25519 clamps in the same
    way. By another library."""
    scalar = sha512(seed).digest()[:32]
    public = X25519PrivateKey.from_private_bytes(scalar).public_key().public_bytes_raw()
    signing = SigningKey(seed)
    assert converted(bytes(signing.verify_key)) == check_key(public) == public
    # And so either form of the secret opens it.
    assert unseal(seal(WORDS, public), signing) == unseal(seal(WORDS, public), PrivateKey(scalar)) == WORDS


def test_nobody_else_opens_it() -> None:
    assert refused(seal(WORDS, PUBLIC), PrivateKey(bytes([22] * 32))) == "feedback_unreadable"
    assert refused(seal(WORDS, converted(HOST.public)), THIEF.key) == "feedback_unreadable"
    # The seed itself is not the secret that it is converted to.
    assert refused(seal(WORDS, converted(HOST.public)), PrivateKey(bytes(HOST.key))) == "feedback_unreadable"


def test_no_byte_of_it_can_be_changed() -> None:
    sealed = seal(WORDS, PUBLIC)
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert refused(bytes(changed)) == "feedback_unreadable"


@pytest.mark.parametrize("length", [0, 1, 31, OVERHEAD - 1, OVERHEAD, OVERHEAD + BLOCK - 1])
def test_a_part_of_it_says_nothing(length: int) -> None:
    assert refused(seal(WORDS, PUBLIC)[:length]) == "feedback_unreadable"


@pytest.mark.parametrize(
    "inside",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"words", id="not padded"),
        pytest.param(bytes(BLOCK), id="no mark"),
        pytest.param(b"\xff\x80" + bytes(BLOCK - 2), id="not UTF-8"),
        pytest.param(b"a" * BLOCK, id="no padding at the end"),
    ],
)
def test_a_box_that_opens_and_holds_no_words(inside: bytes) -> None:
    """Anybody can seal to a host."""
    assert refused(SealedBox(PublicKey(PUBLIC)).encrypt(inside)) == "feedback_unreadable"


@pytest.mark.parametrize(
    ("text", "blocks"),
    [("", 1), ("a", 1), ("a" * 255, 1), ("a" * 256, 2), ("a" * 511, 2), ("a" * 512, 3), ("é" * 127, 1), ("é" * 128, 2)],
)
def test_only_blocks_of_its_length_are_seen(text: str, blocks: int) -> None:
    assert len(seal(text, PUBLIC)) == OVERHEAD + blocks * BLOCK


def test_padding_is_a_mark_and_zeros() -> None:
    """As any other reader of ISO/IEC 7816-4 takes it off."""
    opened = SealedBox(SECRET).decrypt(seal(WORDS, PUBLIC))
    assert opened == WORDS.encode() + b"\x80" + bytes(BLOCK - len(WORDS) - 1)
    for text in ("\0", "a\0\0", "\x80", "\x80\0"):
        assert unseal(seal(text, PUBLIC), SECRET) == text


def test_the_same_words_are_never_sealed_alike() -> None:
    assert seal(WORDS, PUBLIC) != seal(WORDS, PUBLIC)


@pytest.mark.parametrize("key", [*WEAK_X25519, *RESPELLED_X25519, b"", PUBLIC[1:], PUBLIC + b"\0"], ids=bytes.hex)
def test_nothing_is_sealed_to_what_is_no_key(key: bytes) -> None:
    for take in (check_key, lambda public: seal(WORDS, public)):
        with pytest.raises(BadKey):
            take(key)


def test_another_spelling_of_a_key_would_lock_its_owner_out() -> None:
    """Why it is refused: libsodium takes it, and the box that it makes does not open."""
    respelled = PUBLIC[:-1] + bytes([PUBLIC[-1] | 0x80])
    assert refused(SealedBox(PublicKey(respelled)).encrypt(b"\x80" + bytes(BLOCK - 1))) == "feedback_unreadable"
    assert respelled in RESPELLED_X25519


@pytest.mark.parametrize("key", [*SMALL, b"", HOST.public[1:]], ids=bytes.hex)
def test_what_has_no_counterpart_is_not_converted(key: bytes) -> None:
    with pytest.raises(BadKey):
        converted(key)
