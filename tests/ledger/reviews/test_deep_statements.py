"""Statements that nest as deeply as they may: the ledger can read again what it keeps of them, and verifiers can read
the receipts that they stand in."""

from typing import Any

import pytest

from audits import standalone_receipts
from audits.receipts import verify_receipt
from ledger.canon import strict_json
from ledger.errors import StaylogError
from ledger.identity import statements
from ledger.reviews.claims import Claimed
from tests.hosting import BOOKED, Hosted, claim
from tests.outcomes import become, silent, waits
from tests.reviewing import GUESTS, encoded


def nested(levels: int) -> Any:
    """Evidence of another kind, by which a statement that holds it nests so many levels."""
    inner: Any = 1
    for _ in range(levels - 2):
        inner = [inner]
    return {"type": "Else", "seen": inner}


def test_waits_and_is_decided_with_others(hosted: Hosted) -> None:
    first = silent(hosted, booking_evidence=nested(statements.MAX_DEPTH))
    second = silent(hosted, guest=GUESTS[1], reference="B-2")
    hosted.site.down = None
    hosted.site.book()
    hosted.site.book(GUESTS[1], "B-2")
    assert hosted.go_on(minutes=1) == 2
    for waiting in (first, second):
        assert not waits(hosted, waiting)
        assert become(hosted, waiting)["status"] == "accepted"


def test_a_claim_stands_in_a_receipt_that_verifiers_read(hosted: Hosted) -> None:
    hosted.site.book()
    hosted.clock.now, now = BOOKED, hosted.clock.now
    taken = hosted.book(claim(hosted.site.speaker, booking_evidence=nested(statements.MAX_DEPTH)))
    assert isinstance(taken, Claimed)
    hosted.clock.now = now
    body = hosted.review()
    receipt: Any = hosted.take(body)
    answer = encoded({"status": "accepted", "receipt": receipt.receipt})
    assert strict_json.loads(answer)["receipt"]["booking"]["type"] == "BookingClaim"
    log, data = hosted.reviewing.ledger.verifier, encoded(receipt.receipt)
    assert verify_receipt(data, log, submission=encoded(body)).proved
    assert standalone_receipts.verify(data.decode(), str(log), encoded(body).decode())


def test_refuses_what_is_nested_deeper(hosted: Hosted) -> None:
    deeper = nested(statements.MAX_DEPTH + 1)
    for take, body in (
        (hosted.take, hosted.review(booking_evidence=deeper)),
        (hosted.book, claim(hosted.site.speaker, booking_evidence=deeper)),
    ):
        with pytest.raises(StaylogError) as refused:
            take(body)
        assert refused.value.code == "too_deep"
