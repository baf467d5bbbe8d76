"""Redaction (reviews.md 5): the one way in which something said goes away again. The log tells that it went, by which
law and by whose decision; the ratings stay, and stay counted."""

from dataclasses import dataclass

from ledger.errors import BrokenRule, Done, NotFound
from ledger.log.drafts import Draft, make_draft
from ledger.log.face import Event
from ledger.log.integrate import SomeRefused
from ledger.log.members import check_review_id
from ledger.log.openings import commitment
from ledger.log.reader import Reader
from ledger.log.sequencer import Integrated, Sequencer


@dataclass(frozen=True, slots=True)
class Redactable:
    """A review, its level by now, and the entry that commits to the text: its own, or that of the response."""

    review: Event
    level: str
    said: Event


def find_part(reader: Reader, review_id: str, part: str) -> Redactable:
    """What a redaction of the part would withdraw."""
    try:
        check_review_id(review_id)
    except ValueError:
        raise NotFound("review_not_found", f"{review_id[:40]!r} is not the id of a review") from None
    review, *later = reader.review(review_id, reader.published.size)
    if any(event.entry.members["part"] == part for event in later if event.entry.type == "redaction"):
        raise _done(review_id, part)
    if part == "text":
        said = [review] if review.entry.members["text"] is not None else []
    else:
        said = [event for event in later if event.entry.type == "response"]
    if not said:
        raise NotFound("nothing_to_redact", f"{review_id} has no {part}")
    levels = [event.entry.members["level"] for event in (review, *later) if "level" in event.entry.members]
    return Redactable(review, levels[-1], said[0])


def redaction_draft(reader: Reader, review_id: str, part: str, basis: str, decision: bytes, salt: bytes) -> Draft:
    """The entry that withdraws the part. It commits to the decision, which stays with the operator."""
    review = find_part(reader, review_id, part).review
    members = {
        "review_id": review_id,
        "review": review.index,
        "host_did": review.entry.host,
        "part": part,
        "basis": basis,
        "decision": commitment(salt, decision),
    }
    return make_draft("redaction", members, key=f"redaction {review_id} {part}".encode())


def withdraw(sequencer: Sequencer, draft: Draft) -> Integrated:
    """Append the entry; text and salt go in the same transaction."""
    try:
        [placed] = sequencer.append([draft])
    except SomeRefused as error:
        [reason] = error.refusals.values()
        if isinstance(reason, BrokenRule) and reason.code == "redaction_repeated":
            raise _done(draft.members["review_id"], draft.members["part"]) from None
        raise reason from None
    if placed.repeated:
        # Somebody was faster, and the entry tells of the decision that they had.
        raise _done(draft.members["review_id"], draft.members["part"])
    return placed


def _done(review_id: str, part: str) -> Done:
    return Done("already_redacted", f"the {part} of {review_id} is redacted already")
