"""What can be redacted, and what the entry says."""

from collections.abc import Callable

import pytest

from ledger.canon import base64
from ledger.errors import BrokenRule, Done, NotFound, StaylogError
from ledger.log.drafts import Draft, make_draft
from ledger.log.openings import commitment
from ledger.reviews.redaction import find_part, redaction_draft, withdraw
from tests.running import HOST, Running, Writer, about

SALT = bytes(range(32))
DECISION = b"%PDF-1.7 The court decides."


def refused(call: Callable[[], object]) -> StaylogError:
    with pytest.raises(StaylogError) as caught:
        call()
    return caught.value


def draft_of(running: Running, review_id: str, part: str = "text", decision: bytes = DECISION) -> Draft:
    return redaction_draft(running.ledger.reader, review_id, part, "court_order", decision, SALT)


def test_the_entry_names_the_review_and_commits_to_the_decision(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review(text="A lie."))
    review_id = review.entry.members["review_id"]
    placed = withdraw(running.ledger.sequencer, draft_of(running, review_id))
    members = {name: value for name, value in placed.entry.members.items() if name not in ("at", "type", "v")}
    assert members == {
        "review_id": review_id,
        "review": review.index,
        "host_did": HOST,
        "part": "text",
        "basis": "court_order",
        "decision": commitment(SALT, DECISION),
    }
    assert running.ledger.reader.event(review.index).opening is None
    assert running.fsck().findings == []


def test_text_and_response_go_one_by_one(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review())
    [response] = running.add(writer.response(review, "Sorry, Ms Jones."))
    review_id, reader = review.entry.members["review_id"], running.ledger.reader
    withdraw(running.ledger.sequencer, draft_of(running, review_id, "response"))
    texts = [event.opening and event.opening.text for event in reader.review(review_id, reader.published.size)]
    assert texts == ["Quiet.", None, None]
    assert find_part(reader, review_id, "text").said.index == review.index
    assert isinstance(refused(lambda: find_part(reader, review_id, "response")), Done)
    withdraw(running.ledger.sequencer, draft_of(running, review_id))
    assert all(reader.event(index).opening is None for index in (review.index, response.index))
    assert running.fsck().findings == []


def test_what_is_not_there_cannot_be_redacted(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review(text=None))
    review_id = review.entry.members["review_id"]
    for part in ("text", "response"):
        error = refused(lambda part=part: draft_of(running, review_id, part))  # type: ignore[misc]
        assert isinstance(error, NotFound)
        assert (error.code, error.message) == ("nothing_to_redact", f"{review_id} has no {part}")
    for unknown in (writer.review().members["review_id"], "", "rev-", "../rev", "rev-\udcff", review_id + "\n"):
        error = refused(lambda unknown=unknown: draft_of(running, unknown))  # type: ignore[misc]
        assert (type(error), error.code) == (NotFound, "review_not_found")


def test_it_is_done_once(running: Running, writer: Writer) -> None:
    """Two that start at the same time find nothing in their way; the second is told so by the log."""
    first, second, plain = running.add(writer.review(), writer.review(), writer.review())
    ids = [review.entry.members["review_id"] for review in (first, second)]
    both = [draft_of(running, ids[0], decision=decision) for decision in (b"one", b"other")]
    assert both[0].key == both[1].key
    assert both[0].key != draft_of(running, ids[1]).key
    withdraw(running.ledger.sequencer, both[0])
    size = running.ledger.reader.refresh().size
    for late in (lambda: withdraw(running.ledger.sequencer, both[1]), lambda: draft_of(running, ids[0])):
        error = refused(late)
        assert (type(error), error.code) == (Done, "already_redacted")
        assert ids[0] in error.message
    # By hand there is no key to know it by.
    draft = draft_of(running, ids[1])
    running.add(writer.redaction(second))
    assert refused(lambda: withdraw(running.ledger.sequencer, draft)).code == "already_redacted"
    assert running.ledger.reader.refresh().size == size + 2
    wrong = {**about(plain), "review": first.index, "part": "text", "basis": "gdpr_17"}
    draft = make_draft("redaction", {**wrong, "decision": base64.encode(SALT)})
    assert isinstance(refused(lambda: withdraw(running.ledger.sequencer, draft)), BrokenRule)


def test_the_level_is_that_of_today(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review(level="unconfirmed"))
    review_id = review.entry.members["review_id"]
    assert find_part(running.ledger.reader, review_id, "text").level == "unconfirmed"
    running.add(writer.upgrade(review))
    assert find_part(running.ledger.reader, review_id, "text").level == "guest_verified"
