"""A host's one response: by the host alone, once, within 30 days."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from audits.receipts import verify_receipt
from ledger.canon import base64, jcs
from ledger.errors import Refused, StaylogError
from ledger.log.drafts import make_draft
from ledger.log.openings import commitment
from ledger.reviews.responses import RESPONSES_PER_HOST
from tests.identities import THIEF
from tests.reviewing import GUESTS, HOST, OTHER_HOST, Reviewing, encoded, resigned, respond, response, review
from tests.running import Writer


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(StaylogError) as refused:
        call()
    return refused.value.code


def reviewed(reviewing: Reviewing) -> str:
    return str(reviewing.submit(review()).receipt["review_id"])


def test_a_response_is_shown_with_the_review_and_has_a_receipt(reviewing: Reviewing) -> None:
    body = response(reviewed(reviewing))
    accepted = reviewing.respond(body)
    entry = json.loads(accepted.receipt["entry"])
    salt = base64.decode(accepted.receipt["openings"]["statement"]["salt"])
    assert entry["statement"] == commitment(salt, jcs.dumps(body))
    report = verify_receipt(encoded(accepted.receipt), reviewing.ledger.verifier, submission=encoded(body))
    assert "the response rests on exactly this signed submission" in report.proved
    [listed] = json.loads(reviewing.answer(HOST.did))["review_history"]
    assert listed["host_response"] == {"response_text": "Thank you.", "submitted_at": entry["at"]}
    assert reviewing.fsck().findings == []


def test_the_same_again_gets_the_same_receipt(reviewing: Reviewing) -> None:
    body = response(reviewed(reviewing))
    first = reviewing.respond(body)
    reviewing.clock.forward(days=100)
    reviewing.reopen()
    again = reviewing.respond(body)
    assert (again.repeated, again.receipt) == (True, first.receipt)


def test_there_is_one_response(reviewing: Reviewing) -> None:
    review_id = reviewed(reviewing)
    reviewing.respond(response(review_id))
    with pytest.raises(Refused) as refused:
        reviewing.respond(response(review_id, text="On second thoughts."))
    assert refused.value.code == refused.value.refusal["code"] == "already_responded"


def test_of_two_at_once_one_is_taken(reviewing: Reviewing) -> None:
    review_id = reviewed(reviewing)

    def attempt(text: str) -> str:
        try:
            reviewing.respond(response(review_id, text=text))
        except StaylogError as refusal:
            return refusal.code
        return "accepted"

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(attempt, "abcd")) == ["accepted"] + ["already_responded"] * 3


def test_within_30_days(reviewing: Reviewing) -> None:
    """To the second, by the times in the log."""
    first, second = (reviewing.submit(review(guest)).receipt["review_id"] for guest in GUESTS[:2])
    reviewing.clock.forward(days=30)
    reviewing.respond(response(first, now=reviewing.clock.now))
    reviewing.clock.forward(seconds=1)
    late = response(second, now=reviewing.clock.now)
    assert code_of(lambda: reviewing.respond(late)) == "response_window_closed"


def test_only_the_host_responds(reviewing: Reviewing) -> None:
    review_id = reviewed(reviewing)
    assert code_of(lambda: reviewing.respond(response(review_id, OTHER_HOST))) == "not_the_host"
    assert code_of(lambda: reviewing.respond(resigned(response(review_id), THIEF))) == "not_the_host"
    changed = {**response(review_id), "response_text": "Terrible guest."}
    assert code_of(lambda: reviewing.respond(changed)) == "proof_invalid"
    stale = response(review_id)
    reviewing.clock.forward(minutes=6)
    assert code_of(lambda: reviewing.respond(stale)) == "stale_proof"
    assert code_of(lambda: reviewing.respond(response(review_id, domain="https://other.example"))) == "wrong_domain"


def test_the_address_and_the_body_name_the_same_review(reviewing: Reviewing) -> None:
    review_id = reviewed(reviewing)
    elsewhere = "rev-" + "a" * 26
    body = encoded(response(review_id))
    assert code_of(lambda: respond(reviewing.desk, elsewhere, body)) == "schema_invalid"
    assert code_of(lambda: reviewing.respond(response(elsewhere))) == "review_not_found"


def test_hosts_have_a_quota(reviewing: Reviewing) -> None:
    """Only of what they signed: nobody uses up another's."""
    drafts = [Writer(seed).review(HOST.did) for seed in range(RESPONSES_PER_HOST.count + 1)]
    placed = reviewing.add(*drafts)
    ids = [each.entry.members["review_id"] for each in placed]
    for _ in range(3):
        code_of(lambda: reviewing.respond(resigned(response(ids[0]), THIEF)))
    for review_id in ids[:-1]:
        reviewing.respond(response(review_id))
    with pytest.raises(Refused) as refused:
        reviewing.respond(response(ids[-1]))
    assert refused.value.code == "quota_exceeded"
    reviewing.clock.forward(minutes=1)
    reviewing.respond(response(ids[-1], now=reviewing.clock.now))


def test_a_redacted_response_has_a_receipt_without_its_text(reviewing: Reviewing, writer: Any) -> None:
    accepted = reviewing.submit(review())
    reviewing.respond(body := response(accepted.receipt["review_id"]))
    event = reviewing.ledger.reader.event(accepted.receipt["index"])
    about = {"review_id": accepted.receipt["review_id"], "review": event.index, "host_did": HOST.did}
    redaction = {**about, "part": "response", "basis": "gdpr_17", "decision": writer.hash()}
    reviewing.add(make_draft("redaction", redaction))
    assert reviewing.respond(body).receipt["openings"]["text"] is None
