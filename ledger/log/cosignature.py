"""Cosignatures (c2sp.org/tlog-cosignature): a witness says when it saw a checkpoint and its consistency.

Two kinds are read: Ed25519 (type 04), and ML-DSA-44 (type 06) where that can be verified.
"""

from dataclasses import dataclass

from nacl.signing import SigningKey

from ledger.canon import mldsa
from ledger.errors import BadNote, NotProved
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import COSIGNATURE, ML_DSA_44, Note, Signature, Verifier

MAX_TIMESTAMP = 2**63 - 1

# Of an ML-DSA-44 message: it signs the tree from entry 0 on.
_SUBTREE = b"subtree/v1\n\0"
_SIGNATURE_SIZES = {COSIGNATURE: 64, ML_DSA_44: mldsa.SIGNATURE_SIZE}


@dataclass(frozen=True, slots=True)
class Cosignature:
    """Proof that `witness` had seen the checkpoint at `timestamp` (seconds since 1970)."""

    witness: Verifier
    timestamp: int


def cosign(checkpoint_text: str, name: str, key: SigningKey, timestamp: int) -> Signature:
    """One key serves one witness: the signed message does not say its name."""
    if not 0 <= timestamp <= MAX_TIMESTAMP:
        raise ValueError("a cosignature's time is between 0 and 2^63 - 1")
    witness = Verifier(name, COSIGNATURE, bytes(key.verify_key))
    value = key.sign(_message(checkpoint_text, timestamp, name)).signature
    return Signature(name, witness.key_id, timestamp.to_bytes(8) + value)


def cosignatures(note: Note, witnesses: list[Verifier]) -> list[Cosignature]:
    """The valid cosignatures of known witnesses whose signatures can be verified here. Raises NotProved
    `cosignature_invalid` when a known witness has a bad one: that rejects the whole note."""
    found = []
    for witness in witnesses:
        for signature in note.signatures:
            if signature.is_by(witness):
                timestamp = _timestamp(signature, witness)
                if witness.can_verify:
                    found.append(_open(note.text, timestamp, signature, witness))
    return found


def unchecked(note: Note, witnesses: list[Verifier]) -> list[str]:
    """The names of known witnesses that have signed the note in a way that cannot be verified here."""
    return [each.name for each in witnesses if not each.can_verify and any(s.is_by(each) for s in note.signatures)]


def _timestamp(signature: Signature, witness: Verifier) -> int:
    size, timestamp = _SIGNATURE_SIZES[witness.algorithm], int.from_bytes(signature.value[:8])
    if len(signature.value) != 8 + size or timestamp > MAX_TIMESTAMP:
        raise NotProved("cosignature_invalid", f"the cosignature by {witness.name} is not a time and {size} bytes")
    return timestamp


def _open(text: str, timestamp: int, signature: Signature, witness: Verifier) -> Cosignature:
    kind = _subtree_message if witness.algorithm == ML_DSA_44 else _message
    if not witness.verify(kind(text, timestamp, witness.name), signature.value[8:]):
        raise NotProved("cosignature_invalid", f"the cosignature by {witness.name} is not valid for this checkpoint")
    return Cosignature(witness, timestamp)


def _message(checkpoint_text: str, timestamp: int, _name: str) -> bytes:
    return f"cosignature/v1\ntime {timestamp}\n{checkpoint_text}".encode()


def _subtree_message(checkpoint_text: str, timestamp: int, name: str) -> bytes:
    """What an ML-DSA-44 witness signs of a checkpoint: its own name, and the tree from entry 0 to its size."""
    try:
        checkpoint = Checkpoint.parse(checkpoint_text)
    except BadNote as error:
        raise NotProved("cosignature_invalid", f"{name} cosigned what is no checkpoint: {error}") from None
    signer, origin = name.encode(), checkpoint.origin.encode()
    if max(len(signer), len(origin)) > 255:
        raise NotProved("cosignature_invalid", "an ML-DSA-44 cosignature has names of at most 255 bytes")
    return (
        _SUBTREE
        + bytes([len(signer)])
        + signer
        + timestamp.to_bytes(8)
        + bytes([len(origin)])
        + origin
        + bytes(8)
        + checkpoint.size.to_bytes(8)
        + checkpoint.root
    )
