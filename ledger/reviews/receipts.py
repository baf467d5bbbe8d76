"""Receipts (protocol.md 6): what a speaker keeps to prove offline, for ever, that what they said is in the log."""

from dataclasses import dataclass
from typing import Any

from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.log.drafts import Draft
from ledger.log.face import Event
from ledger.log.reader import Reader
from ledger.log.sequencer import Integrated
from ledger.log.tlog_proof import TlogProof
from ledger.store.rows import Published

# The commitment that the speaker alone can open, by the type of the entry.
_OWN = {"review": "evidence", "response": "statement"}


@dataclass(frozen=True, slots=True)
class Accepted:
    """A receipt; `repeated` when the same was submitted before."""

    receipt: dict[str, Any]
    repeated: bool


def receipt_of(reader: Reader, placed: Integrated, draft: Draft) -> dict[str, Any]:
    """The receipt of what was just acknowledged. Of what was submitted before, the one that it got then."""
    if not placed.repeated and draft.salt is not None:
        return _receipt(reader, Event(placed.index, placed.entry, draft.opening), draft.salt, placed.published)
    receipt = stored_receipt(reader, placed.index)
    if receipt is None:
        raise StaylogError("internal_error", f"entry {placed.index} was acknowledged, and no checkpoint covers it")
    return receipt


def known_receipt(reader: Reader, key: bytes) -> dict[str, Any] | None:
    """The receipt of what was submitted before under this key."""
    index = reader.known(key)
    return None if index is None else stored_receipt(reader, index)


def stored_receipt(reader: Reader, index: int) -> dict[str, Any] | None:
    """The receipt of an entry; None while there is no checkpoint that covers it."""
    with reader.session():
        published = reader.first_covering(index)
        if published is None:
            return None
        return _receipt(reader, reader.event(index), reader.receipt_salt(index), published)


def _receipt(reader: Reader, event: Event, salt: bytes, published: Published) -> dict[str, Any]:
    """Under the first checkpoint that covers it, so that it is the same whenever it is made."""
    members = event.entry.members
    level = {"verification_level": members["level"]} if event.entry.type == "review" else {}
    path = reader.tree.inclusion(event.index, published.size)
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
        "checkpoint": published.note,
        "tlog_proof": str(TlogProof(event.index, tuple(path), published.note)),
    }
