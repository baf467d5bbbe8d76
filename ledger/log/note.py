"""Signed notes and their keys (c2sp.org/signed-note 1.0.0)."""

import re
from dataclasses import dataclass
from hashlib import sha256

from nacl.signing import SigningKey

from ledger.canon import base64, ed25519, mldsa
from ledger.errors import BadBase64, BadKey, BadNote, NotProved

ED25519 = 0x01
COSIGNATURE = 0x04
ML_DSA_44 = 0x06
# The specification asks readers to take 16 signatures at least, each of nearly 5,000 bytes: 16 of these are 105,000
# characters of base64. A note cannot make a reader check thousands.
MAX_SIGNATURES = 64
MAX_CHARACTERS = 1 << 17

# A lone surrogate is no character of UTF-8; text from a command line may bring one.
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\ud800-\udfff]")
_SIGNATURE_LINE = re.compile(r"— (\S+) (\S+)\n")


@dataclass(frozen=True, slots=True)
class Verifier:
    """A public key with the name it signs under, as a vkey line spells it."""

    name: str
    algorithm: int
    public_key: bytes

    def __post_init__(self) -> None:
        check_key_name(self.name)
        size = mldsa.KEY_SIZE if self.algorithm == ML_DSA_44 else 32
        if self.algorithm not in (ED25519, COSIGNATURE, ML_DSA_44) or len(self.public_key) != size:
            raise BadNote(
                "vkey_malformed",
                "only Ed25519 keys of type 01 (log) and 04 (cosignature), and ML-DSA-44 keys of type 06, are supported",
            )
        if self.algorithm == ML_DSA_44:
            return
        try:
            ed25519.check_key(self.public_key)
        except BadKey as error:
            raise BadNote("vkey_malformed", str(error)) from None

    @classmethod
    def parse(cls, vkey: str) -> "Verifier":
        # Only the first two plus signs separate: base64 has plus signs of its own.
        name, _, rest = vkey.partition("+")
        key_id, _, key_text = rest.partition("+")
        try:
            key = base64.decode(key_text)
        except BadBase64 as error:
            raise BadNote("vkey_malformed", f"the key of the vkey is {error}") from None
        verifier = cls(name, key[0] if key else 0, key[1:])
        if verifier.key_id.hex() != key_id:
            raise BadNote(
                "vkey_malformed", f"the vkey's key ID is {key_id[:16]!r}, its key has {verifier.key_id.hex()}"
            )
        return verifier

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64.encode(bytes([self.algorithm]) + self.public_key)}"

    @property
    def key_id(self) -> bytes:
        return sha256(self.name.encode() + b"\n" + bytes([self.algorithm]) + self.public_key).digest()[:4]

    @property
    def can_verify(self) -> bool:
        """False for ML-DSA-44 keys where the extra `pq` is not installed."""
        return self.algorithm != ML_DSA_44 or mldsa.CAN_VERIFY

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Whether the signature is valid. Only for keys that `can_verify`."""
        verify = mldsa.verify if self.algorithm == ML_DSA_44 else ed25519.verify
        return verify(self.public_key, message, signature)


@dataclass(frozen=True, slots=True)
class Signature:
    name: str
    key_id: bytes
    value: bytes

    def line(self) -> str:
        return f"— {self.name} {base64.encode(self.key_id + self.value)}\n"

    def is_by(self, verifier: Verifier) -> bool:
        return self.name == verifier.name and self.key_id == verifier.key_id


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in a line feed, and signatures over it."""

    text: str
    signatures: tuple[Signature, ...]

    def __str__(self) -> str:
        return f"{self.text}\n{''.join(signature.line() for signature in self.signatures)}"

    @classmethod
    def parse(cls, note: str) -> "Note":
        """Split at the LAST blank line: the text may have blank lines of its own."""
        if len(note) > MAX_CHARACTERS or _CONTROL.search(note):
            raise BadNote(
                "note_malformed", f"a note must have no control characters and at most {MAX_CHARACTERS} in all"
            )
        text, blank, tail = note.rpartition("\n\n")
        if not blank or not text or not note.endswith("\n"):
            raise BadNote(
                "note_malformed", "a note must be text, a blank line and signature lines, each ended by a line feed"
            )
        lines = tail.splitlines(keepends=True) if tail.count("\n") <= MAX_SIGNATURES else []
        if not lines:
            raise BadNote("note_malformed", f"a note must have 1 to {MAX_SIGNATURES} signature lines")
        return cls(text + "\n", tuple(map(_parse_signature, lines)))

    def require(self, log: Verifier) -> None:
        """Raise unless `log` signed: unknown signers are ignored, one bad signature of a known one is fatal."""
        if log.algorithm != ED25519:
            raise NotProved("signer_unknown", f"{log.name} is a witness, its key signs no notes")
        signatures = [signature for signature in self.signatures if signature.is_by(log)]
        if not signatures:
            raise NotProved("signer_unknown", f"no signature by {log.name}+{log.key_id.hex()}")
        if not all(log.verify(self.text.encode(), signature.value) for signature in signatures):
            raise NotProved("signature_invalid", f"the signature by {log.name} is not valid for this text")


def sign(text: str, name: str, key: SigningKey) -> Note:
    """A note with one Ed25519 signature, read back before it is handed out: nothing is signed that no reader takes."""
    verifier = Verifier(name, ED25519, bytes(key.verify_key))
    Note.parse(f"{text}\n{Signature(name, verifier.key_id, bytes(64)).line()}")
    return Note(text, (Signature(name, verifier.key_id, key.sign(text.encode()).signature),))


def check_key_name(name: str) -> None:
    if name.split() != [name] or "+" in name or _CONTROL.search(name):
        raise BadNote("vkey_malformed", f"a key name must not be empty or contain spaces or plus signs: {name[:60]!r}")


def _parse_signature(line: str) -> Signature:
    match = _SIGNATURE_LINE.fullmatch(line)
    if not match or "+" in match[1]:
        raise BadNote("note_malformed", f"not a signature line: {line[:60]!r}")
    try:
        value = base64.decode(match[2])
    except BadBase64 as error:
        raise BadNote("note_malformed", f"the signature line is {error}") from None
    if len(value) <= 4:
        raise BadNote("note_malformed", "a signature line without a signature")
    return Signature(match[1], value[:4], value[4:])
