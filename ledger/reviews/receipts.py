"""Receipts (protocol.md 6): what a speaker keeps to prove offline, for ever, that what they said is in the log."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ledger.canon import base64, multikey
from ledger.errors import StaylogError
from ledger.identity.did import Keys
from ledger.log.drafts import Draft
from ledger.log.face import Event
from ledger.log.reader import Reader
from ledger.log.sequencer import Integrated
from ledger.log.tlog_proof import TlogProof
from ledger.store.rows import Published

# The commitment that the speaker alone can open, by the type of the entry.
_OWN = {"review": "evidence", "response": "statement", "upgrade": "evidence"}
# Opens what a receipt has beside what follows from the entry, for who has the submission.
Unseal = Callable[[bytes], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A receipt; `repeated` when the same was submitted before."""

    receipt: dict[str, Any]
    repeated: bool


def keys_seen(*signed: tuple[Mapping[str, Any], Keys]) -> dict[str, str]:
    """The keys by which statements were found to be signed, by the names that their proofs give them: what a receipt
    says of a did:web, whose document may be another one by the time that the receipt is verified."""
    methods = [(body["proof"]["verificationMethod"], keys) for body, keys in signed]
    return {method: multikey.encode(keys[method]) for method, keys in methods}


def receipt_of(reader: Reader, placed: Integrated, draft: Draft, unseal: Unseal | None = None) -> dict[str, Any]:
    """The receipt of what was just acknowledged. Of what was submitted before, the one that it got then."""
    if not placed.repeated and draft.salt is not None:
        event = Event(placed.index, placed.entry, draft.opening)
        return _receipt(reader, event, draft.salt, placed.published, _unsealed(draft.beside, unseal))
    receipt = stored_receipt(reader, placed.index, unseal)
    if receipt is None:
        raise StaylogError("internal_error", f"entry {placed.index} was acknowledged, and no checkpoint covers it")
    return receipt


def known_receipt(reader: Reader, key: bytes, unseal: Unseal | None = None) -> dict[str, Any] | None:
    """The receipt of what was submitted before under this key."""
    index = reader.known(key)
    return None if index is None else stored_receipt(reader, index, unseal)


def stored_receipt(reader: Reader, index: int, unseal: Unseal | None = None) -> dict[str, Any] | None:
    """The receipt of an entry; None while there is no checkpoint that covers it."""
    with reader.session():
        published = reader.first_witnessed(index) or reader.first_covering(index)
        if published is None:
            return None
        salt, beside = reader.receipt_salt(index)
        return _receipt(reader, reader.event(index), salt, published, _unsealed(beside, unseal))


def _unsealed(beside: bytes | None, unseal: Unseal | None) -> Mapping[str, Any]:
    return unseal(beside) if beside is not None and unseal is not None else {}


def _receipt(
    reader: Reader, event: Event, salt: bytes, published: Published, beside: Mapping[str, Any]
) -> dict[str, Any]:
    """Under the first checkpoint that covers it and has its witnesses, so that it is the same whenever it is made; with
    none yet, under the first that covers it."""
    members = event.entry.members
    level = {"verification_level": members["level"]} if "level" in members else {}
    return {
        "review_id": members["review_id"],
        "status": "accepted",
        **level,
        "index": event.index,
        "entry": event.entry.data.decode(),
        "openings": {
            # A text that was redacted cannot be opened any more.
            "text": event.opening.as_json() if event.opening else None,
            _OWN[event.entry.type]: {"salt": base64.encode(salt)},
        },
        **_proof(reader, event.index, published),
        **beside,
    }


def witnessed_receipt(reader: Reader, receipt: dict[str, Any]) -> dict[str, Any]:
    """The receipt with its witnesses, if there are enough by now."""
    published = reader.first_witnessed(receipt["index"])
    return receipt if published is None else {**receipt, **_proof(reader, receipt["index"], published)}


def _proof(reader: Reader, index: int, published: Published) -> dict[str, str]:
    path = reader.tree.inclusion(index, published.size)
    return {"checkpoint": published.note, "tlog_proof": str(TlogProof(index, tuple(path), published.note))}
