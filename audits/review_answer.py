"""The answer about one review, held against the proved events of its host."""

from typing import Any

from audits.basis import Basis, brief
from audits.face import Part
from ledger.canon import strict_json
from ledger.errors import Malformed, NotProved
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.face import Event
from ledger.log.note import Verifier
from ledger.log.openings import Opening
from ledger.log.tlog_proof import TlogProof

CODE = "review_mismatch"


def require_review(
    said: bytes, review_id: str, text: str, basis: Basis, log: Verifier, hidden: set[Part] | None
) -> None:
    """All entries about the review, each with a proof that holds. Later ones may have come since: they are believed by
    their proofs. Raises NotProved, or Malformed where the answer cannot be read."""
    value = strict_json.loads(said)
    try:
        note, entries = str(value["checkpoint"]), list(value["entries"])
        told = (value["review_id"], value["host_did"], value["verification_level"])
        size = open_checkpoint(note, log).size
        listed = [_read(each, note, log) for each in entries]
    except (KeyError, TypeError) as error:
        raise Malformed("answer_malformed", f"the answer about a review cannot be read: {error!r}") from None
    [index] = [event.index for event in basis.events if event.entry.members.get("review_id") == review_id
               and event.entry.type == "review"]  # fmt: skip
    about = [event for event in basis.shown(text) if event.entry.members.get("review", event.index) == index]
    if size < basis.size:
        # Else what came last about the review could be hidden behind an older checkpoint.
        raise Malformed("wrong_size", f"it is of {size} entries; {basis.size} were published before")
    known = [(event.index, event.entry.data) for event in about]
    if [(each.index, each.entry.data) for each in listed[: len(known)]] != known:
        raise NotProved(CODE, f"the entries about {review_id} are {[each for each, _ in known]}, others are shown")
    for each in listed[len(known) :]:
        if each.index < basis.size or each.entry.members.get("review") != index:
            raise NotProved(CODE, f"entry {each.index} is not about {review_id}")
    level = next(each.entry.members["level"] for each in reversed(listed) if "level" in each.entry.members)
    if told != (review_id, basis.host, level):
        raise NotProved(CODE, f"it is said to be {brief(told)}, and is {(review_id, basis.host, level)!r}")
    for each, right in zip(listed, about, strict=False):
        _compare_texts(each, right, index, text == "none" or level == "unconfirmed" and text != "all", hidden)


def _read(value: Any, note: str, log: Verifier) -> Event:
    entry, index = parse_entry(value["entry"].encode()), value["index"]
    proof = TlogProof.parse(value["tlog_proof"])
    if proof.index != index or proof.checkpoint != note or value["type"] != entry.type:
        raise NotProved(CODE, f"the proof of entry {index} is of another place, checkpoint or type")
    proof.verify(entry.leaf_hash, log)
    opening = None if value["opening"] is None else Opening.parse(value["opening"])
    if opening is not None:
        opening.require(entry.members.get("text") or "")
    return Event(index, entry, opening)


def _compare_texts(given: Event, right: Event, review: int, is_hidden: bool, hidden: set[Part] | None) -> None:
    if given.opening is None and right.opening is not None:
        if hidden is None:
            raise NotProved("opening_missing", f"the text of entry {given.index} was asked for, and is not shown")
        hidden.add((review, "text" if given.entry.type == "review" else "response"))
    elif given.opening is not None and is_hidden:
        raise NotProved("opening_unexpected", f"the text of entry {given.index} was not asked for, and is shown")
