import pytest
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.errors import BadNote, NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.note import COSIGNATURE, ED25519, MAX_SIGNATURES, Note, Signature, Verifier, sign

KEY = SigningKey(bytes(range(32)))
LOG = Verifier("log.example", ED25519, bytes(KEY.verify_key))
CHECKPOINT = Checkpoint("log.example", 7, bytes(32))


def test_the_vector_of_the_specification() -> None:
    verifier = Verifier.parse("example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k")
    line = "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
    note = Note.parse(f"This is an example message.\n\n{line}")
    note.require(verifier)
    assert str(note).endswith(line)


@given(
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P"]), max_size=30), st.binary(min_size=32, max_size=32)
)
def test_what_was_signed_is_read_back(text: str, seed: bytes) -> None:
    key = SigningKey(seed)
    note = sign(f"{text}\n\nwith a blank line inside\n", "any.example", key)
    assert Note.parse(str(note)) == note
    Note.parse(str(note)).require(Verifier("any.example", ED25519, bytes(key.verify_key)))


@given(st.integers(0, 200), st.integers(0, 7))
def test_no_changed_byte_of_a_checkpoint_passes(place: int, bit: int) -> None:
    data = bytearray(sign_checkpoint(CHECKPOINT, KEY).encode())
    data[place % len(data)] ^= 1 << bit
    try:
        note = bytes(data).decode()
    except UnicodeDecodeError:
        return
    with pytest.raises((BadNote, NotProved)):
        open_checkpoint(note, LOG)


def test_unknown_signers_are_ignored_and_a_bad_known_one_is_fatal() -> None:
    note = sign(str(CHECKPOINT), "log.example", KEY)
    grease = Signature("grease.example", b"abcd", b"anything")
    same_name = Signature("log.example", b"abcd", b"another key of that name")
    open_checkpoint(str(Note(note.text, (grease, same_name, *note.signatures))), LOG)
    bad = Signature("log.example", LOG.key_id, bytes(64))
    short = Signature("log.example", LOG.key_id, b"short")
    for signature in (bad, short):
        with pytest.raises(NotProved) as refusal:
            open_checkpoint(str(Note(note.text, (*note.signatures, signature))), LOG)
        assert refusal.value.code == "signature_invalid"


def test_a_small_order_key_is_no_key_of_a_log() -> None:
    with pytest.raises(BadNote) as refusal:
        Verifier("log.example", ED25519, b"\x01" + bytes(31))
    assert refusal.value.code == "vkey_malformed"


def test_a_witness_key_is_no_log_key() -> None:
    with pytest.raises(NotProved) as refusal:
        sign(str(CHECKPOINT), "log.example", KEY).require(Verifier("log.example", COSIGNATURE, bytes(KEY.verify_key)))
    assert refusal.value.code == "signer_unknown"


def test_accepts_sixteen_signatures_of_nearly_five_thousand_bytes() -> None:
    """c2sp.org/signed-note: readers accept 16 signatures at least, and those of the future are that long."""
    text = str(CHECKPOINT)
    own = sign(text, "log.example", KEY)
    others = tuple(Signature(f"witness.example/{n}", b"abcd", bytes(4_990)) for n in range(15))
    note = Note.parse(str(Note(text, (*own.signatures, *others))))
    note.require(Verifier("log.example", ED25519, bytes(KEY.verify_key)))
    assert len(note.signatures) == 16


def test_the_number_of_signatures_is_bounded() -> None:
    line = Signature("grease.example", b"abcd", b"x").line()
    assert len(Note.parse("text\n\n" + line * MAX_SIGNATURES).signatures) == MAX_SIGNATURES
    with pytest.raises(BadNote):
        Note.parse("text\n\n" + line * (MAX_SIGNATURES + 1))


@pytest.mark.parametrize(
    "note",
    ["", "\n", "\n\n", "text\n", "text\n\n", "text\n\n\n", "text\n\n— a b\n", "text\n\n— a YWI=\n", "text\n\n— a+b YWJjZGVm\n",
     "text\n\n— a  YWJjZGVm\n", "text\n\n— a YWJjZGVm", "text\n\n- a YWJjZGVm\n", "te\txt\n\n— a YWJjZGVm\n", "te\ud800\n\n— a YWJjZGVm\n",
     "text\n\n— a YWJjZGVm\r\n", "text\n\n— a YWJjZGVm\u2028\n", "x" * 140_000 + "\n\n— a YWJjZGVm\n"],
)  # fmt: skip
def test_malformed_notes(note: str) -> None:
    with pytest.raises(BadNote) as refusal:
        Note.parse(note)
    assert refusal.value.code == "note_malformed"


KEY_TEXT = base64.encode(b"\x01" + bytes(KEY.verify_key))


@pytest.mark.parametrize(
    "vkey",
    ["", "log.example", "log.example+00000000+" + KEY_TEXT, f"log.example+{LOG.key_id.hex().upper()}A+{KEY_TEXT}",
     f"log.example+{LOG.key_id.hex()}+{KEY_TEXT[:-1]}", f"log.example+{LOG.key_id.hex()}+", f"+{LOG.key_id.hex()}+{KEY_TEXT}",
     f"log example+{LOG.key_id.hex()}+{KEY_TEXT}", f"log.example+{LOG.key_id.hex()}+{base64.encode(b'2' + bytes(32))}", "a\ud800+0+" + KEY_TEXT],
)  # fmt: skip
def test_malformed_vkeys(vkey: str) -> None:
    with pytest.raises(BadNote) as refusal:
        Verifier.parse(vkey)
    assert refusal.value.code == "vkey_malformed"


def test_a_note_ends_in_a_line_feed() -> None:
    with pytest.raises(BadNote):
        sign("no line feed", "log.example", KEY)


@pytest.mark.parametrize(
    "body", ["log.example\n7\n", "log.example\n-1\nAA==\n", "log.example\n9007199254740992\n", "a b\n1\n"]
)
def test_malformed_checkpoints(body: str) -> None:
    if body.count("\n") == 2:
        body += base64.encode(bytes(32)) + "\nx\n"
    with pytest.raises(BadNote):
        Checkpoint.parse(body)


def test_a_size_is_at_most_2_to_the_53() -> None:
    assert Checkpoint.parse(str(Checkpoint("a", 2**53 - 1, bytes(32)))).size == 2**53 - 1
    with pytest.raises(BadNote) as refusal:
        Checkpoint.parse(str(Checkpoint("a", 2**53, bytes(32))))
    assert refusal.value.code == "checkpoint_malformed"
