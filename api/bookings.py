"""`/v1/bookings`, `/v1/submissions`, `/v1/feedback`: what hosts and guests say of bookings, what waits for a
decision, and private words for hosts."""

from typing import Any

import msgspec
from litestar import Request, Response, get, post
from litestar.datastructures import State

from api.identity_codes import IDENTITY
from api.intake import json_body
from api.openapi import responses
from api.parameters import SubmissionId
from api.reviews import NOT_OF_A_GUEST, STATEMENT_CODES, waiting_answer
from api.shapes import BookingKept, FeedbackItems, Intake, SubmissionState
from ledger.reviews import bookings, pending
from ledger.reviews.claims import Claimed
from ledger.reviews.desk import Desk
from ledger.reviews.feedback import collect
from ledger.reviews.intake import take_booking
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import stored_receipt

PRIVATE = {"Cache-Control": "no-store"}


@post(
    "/v1/bookings",
    responses=responses(
        *STATEMENT_CODES,
        *(IDENTITY.keys() - NOT_OF_A_GUEST),
        "not_the_host",
        "self_review",
        "too_late",
        "claim_too_late",
        "notice_outdated",
        "booking_evidence_invalid",
        "booking_unverifiable",
        "booking_denied",
        "booking_cancelled",
        "booking_dates_mismatch",
        "status_unavailable",
        "guest_did_unavailable",
        "host_did_unavailable",
        created=BookingKept,
        waiting=Intake,
    ),
    tags=["reputation"],
)
async def submit_booking(request: Request[None, None, State]) -> Response[bytes]:
    """A host's notice that a stay is booked or cancelled, or a guest's claim that it is booked: evidence from before
    check-in, kept encrypted until 90 days after check-out. A claim without a stay receipt may wait for the host."""
    state = request.app.state
    taken = await state.intake.run(take_booking, state.desk, await json_body(request))
    if isinstance(taken, Waiting):
        return waiting_answer(state.base_url, taken)
    if isinstance(taken, Claimed):
        kept, told = taken.claim, {"status": "verified"}
    else:
        kept, told = taken.notice, {"status": "kept", "before_check_in": taken.before_check_in}
    body = {
        "type": kept.statement["type"],
        **told,
        "received_at": kept.received_at,
        "kept_until": bookings.forget_on(kept.statement),
    }
    return _answer(body, 200 if taken.repeated else 201)


@get(
    "/v1/submissions/{submission_id:str}",
    responses=responses("submission_not_found", body=SubmissionState),
    sync_to_thread=True,
    tags=["reputation"],
)
def submission(state: State, submission_id: SubmissionId) -> Response[bytes]:
    """What became of a submission that had to wait: pending, accepted with its receipt, or rejected with its code and
    the ledger's signed refusal. Kept for 90 days after the decision."""
    desk: Desk = state.desk
    found = pending.look_up(desk, submission_id)
    if isinstance(found, Waiting):
        return _answer({"status": "pending", "decide_by": found.decide_by, "intake": found.intake})
    told = {name: found[name] for name in ("status", "decide_by", "code", "detail", "refusal") if name in found}
    if "index" in found:
        receipt = stored_receipt(desk.reader, found["index"])
        # It is under a checkpoint: nobody was told before.
        told["receipt"] = {**(receipt or {}), **found["beside"]}
    return _answer(told)


@post(
    "/v1/feedback",
    responses=responses(*STATEMENT_CODES, "not_the_host", "host_did_unavailable", body=FeedbackItems),
    status_code=200,
    tags=["reputation"],
)
async def collect_feedback(request: Request[None, None, State]) -> Response[bytes]:
    """The private words that guests have left for a host, each sealed to a key of the host. What the request
    acknowledges is erased first."""
    state = request.app.state
    items = await state.intake.run(collect, state.desk, await json_body(request))
    return _answer({"items": [{"review_id": each.review_id, "sealed": each.sealed, "key": each.key} for each in items]})


def _answer(body: dict[str, Any], status: int = 200) -> Response[bytes]:
    """Nobody else's."""
    return Response(msgspec.json.encode(body), status_code=status, media_type="application/json", headers=PRIVATE)


HANDLERS = [submit_booking, submission, collect_feedback]
