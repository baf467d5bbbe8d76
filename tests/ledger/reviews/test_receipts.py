"""Receipts: the same whenever they are made, and whole only for who has the submission."""

from typing import Any

import pytest

from audits.receipts import verify_receipt
from ledger.errors import NotStored
from ledger.log.drafts import make_draft
from ledger.reviews.admission import Submission
from ledger.reviews.receipts import Accepted, known_receipt, stored_receipt
from ledger.reviews.redaction import redaction_draft
from ledger.store.rows import run
from tests.hosting import Hosted
from tests.reviewing import GUESTS, Reviewing, encoded, review


def called_back(hosted: Hosted, **changes: Any) -> tuple[Submission, Accepted]:
    """A review that the host confirms: the answer is part of the receipt, and not of the submission."""
    hosted.site.book()
    body = hosted.review(**changes)
    taken = hosted.take(body)
    assert isinstance(taken, Accepted)
    return Submission.of(hosted.desk, body), taken


def test_it_is_the_same_whenever_it_is_made(hosted: Hosted) -> None:
    submission, taken = called_back(hosted, private_feedback="The tap drips.")
    reader, unseal = hosted.desk.reader, submission.unsealing(hosted.desk)
    hosted.take(hosted.review(GUESTS[1], booking_evidence=hosted.receipt(GUESTS[1])))
    assert known_receipt(reader, submission.replay_key, unseal) == taken.receipt
    hosted.reviewing.reopen()
    reader, unseal = hosted.desk.reader, submission.unsealing(hosted.desk)
    assert known_receipt(reader, submission.replay_key, unseal) == taken.receipt
    again = hosted.take(submission.body)
    assert isinstance(again, Accepted)
    assert (again.receipt, again.repeated) == (taken.receipt, True)


def test_what_is_beside_it_opens_with_the_submission_alone(hosted: Hosted) -> None:
    """Not by the database and the keys of the service: it names the guest's booking."""
    submission, taken = called_back(hosted)
    assert taken.receipt["booking"]["booking_reference"] == "B-1"
    index = taken.receipt["index"]
    bare = stored_receipt(hosted.desk.reader, index)
    assert bare == {name: value for name, value in taken.receipt.items() if name not in ("booking", "keys_seen")}
    with hosted.desk.store.read() as connection:
        [(beside,)] = run(connection, "SELECT beside FROM receipt_salt WHERE idx = ?", (index,))
    assert b"B-1" not in bytes(beside)
    for bound in ((), (submission.replay_key,), (b"",)):
        with pytest.raises(NotStored):
            hosted.desk.vault.open("beside", bytes(beside), *bound)


def test_without_what_is_beside_it_the_evidence_does_not_open(hosted: Hosted) -> None:
    submission, taken = called_back(hosted)
    verifier = hosted.reviewing.ledger.verifier
    report = verify_receipt(encoded(taken.receipt), verifier, submission=submission.data)
    assert "the review rests on exactly this signed submission" in report.proved
    bare = {name: value for name, value in taken.receipt.items() if name != "booking"}
    with pytest.raises(Exception, match="does not open the evidence"):
        verify_receipt(encoded(bare), verifier, submission=submission.data)


def test_a_text_that_was_redacted_is_not_opened_any_more(reviewing: Reviewing) -> None:
    body = review()
    taken = reviewing.submit(body)
    review_id = taken.receipt["review_id"]
    reviewing.add(redaction_draft(reviewing.ledger.reader, review_id, "text", "gdpr_17", b"A decision.", bytes(32)))
    again = reviewing.submit(body)
    assert taken.receipt["openings"]["text"]["text"] == "Quiet.\nDry."
    assert again.receipt["openings"]["text"] is None
    assert again.receipt["entry"] == taken.receipt["entry"]
    report = verify_receipt(encoded(again.receipt), reviewing.ledger.verifier, submission=encoded(body))
    assert "the review rests on exactly this signed submission" in report.proved


def test_of_what_nobody_submitted_there_is_none(reviewing: Reviewing) -> None:
    assert known_receipt(reviewing.ledger.reader, b"nothing") is None
    reviewing.add(make_draft("policy", {"policy": "A" * 43 + "="}, key=b"no salt"))
    with pytest.raises(NotStored):
        known_receipt(reviewing.ledger.reader, b"no salt")
