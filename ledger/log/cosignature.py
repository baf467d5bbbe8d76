"""Cosignatures (c2sp.org/tlog-cosignature 1.0.1): a witness says when it saw a checkpoint and its consistency."""

from dataclasses import dataclass

from nacl.signing import SigningKey

from ledger.errors import NotProved
from ledger.log.note import COSIGNATURE, Note, Signature, Verifier

MAX_TIMESTAMP = 2**63 - 1


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
    value = key.sign(_message(checkpoint_text, timestamp)).signature
    return Signature(name, witness.key_id, timestamp.to_bytes(8) + value)


def cosignatures(note: Note, witnesses: list[Verifier]) -> list[Cosignature]:
    """The valid cosignatures of known witnesses; one bad signature of a known witness rejects the whole note."""
    found = []
    for witness in witnesses:
        for signature in note.signatures:
            if signature.is_by(witness):
                found.append(_open(note.text, signature, witness))
    return found


def _open(text: str, signature: Signature, witness: Verifier) -> Cosignature:
    timestamp = int.from_bytes(signature.value[:8])
    if len(signature.value) != 8 + 64 or timestamp > MAX_TIMESTAMP:
        raise NotProved("cosignature_invalid", f"the cosignature by {witness.name} is not a time and 64 bytes")
    if not witness.verify(_message(text, timestamp), signature.value[8:]):
        raise NotProved("cosignature_invalid", f"the cosignature by {witness.name} is not valid for this checkpoint")
    return Cosignature(witness, timestamp)


def _message(checkpoint_text: str, timestamp: int) -> bytes:
    return f"cosignature/v1\ntime {timestamp}\n{checkpoint_text}".encode()
