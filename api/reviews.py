"""`/v1/reviews`: reviews and responses come in and get receipts; a review is shown with its proofs (protocol.md 6)."""

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, cast

import msgspec
from litestar import Request, Response, get, post
from litestar.concurrency import sync_to_thread
from litestar.datastructures import State
from litestar.di import NamedDependency

from api.caching import SECOND
from api.clients import client
from api.identity_codes import IDENTITY
from api.intake import json_body
from api.log import inclusion_path
from api.openapi import responses
from api.parameters import ReviewId, Text
from api.parts import MAX_OVERHEAD, two_parts
from api.shapes import EntryType, Level, OpeningShape, Receipt, ResponseReceipt, Review, ReviewEntry, UpgradeReceipt
from api.shapes import Intake as IntakeShape
from ledger.canon import base64
from ledger.errors import NotStored, Unavailable
from ledger.folder import Ledger
from ledger.identity.statements import MAX_BYTES
from ledger.log.face import Event
from ledger.log.tlog_proof import TlogProof
from ledger.reviews.admission import submit
from ledger.reviews.crossplatform import MAX_DOCUMENT, attest
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted, witnessed_receipt
from ledger.reviews.responses import respond
from ledger.reviews.supplement import supplement
from ledger.store.rows import Published

# What may be wrong with anything that is signed and sent in.
STATEMENT_CODES = (
    "malformed_json",
    "duplicate_key",
    "too_deep",
    "not_utf8",
    "number_out_of_range",
    "schema_invalid",
    "text_too_long",
    "date_invalid",
    "did_not_canonical",
    "key_not_acceptable",
    "proof_type_not_supported",
    "wrong_proof_purpose",
    "proof_value_invalid",
    "proof_invalid",
    "bad_verification_method",
    "address_not_allowed",
    "wrong_domain",
    "stale_proof",
    "too_large",
    "unsupported_media_type",
    "quota_exceeded",
    "busy",
    "storage_full",
    "clock_unconfirmed",
    "commit_not_replicated",
    "log_behind",
    "log_forked",
    "log_damaged",
    "mark_missing",
    "mark_unreadable",
    "database_changed",
)
NOT_OF_A_GUEST = {"listing_not_covered", "wrong_challenge", "not_the_host"}


@post(
    "/v1/reviews",
    responses=responses(
        *STATEMENT_CODES,
        *(IDENTITY.keys() - NOT_OF_A_GUEST),
        "self_review",
        "stay_not_over",
        "too_late",
        "already_reviewed",
        "booking_evidence_invalid",
        "booking_unverifiable",
        "booking_denied",
        "booking_cancelled",
        "booking_dates_mismatch",
        "status_unavailable",
        "guest_did_unavailable",
        "host_did_unavailable",
        created=Receipt,
        waiting=IntakeShape,
    ),
    tags=["reputation"],
)
async def submit_review(request: Request[None, None, State]) -> Response[bytes]:
    """A guest's review of a completed stay. The receipt comes when the review is durable, in the log and under a signed
    checkpoint. The same body sent again gets the same receipt. Whoever has shown who they are gets a signed refusal.
    Where only the host could say that the stay was booked, and has not, the answer is 202 with a signed intake
    receipt."""
    return await _taken_in(request, submit, await json_body(request))


@post(
    "/v1/reviews/{review_id:str}/response",
    responses=responses(
        *STATEMENT_CODES,
        "review_not_found",
        "not_the_host",
        "response_window_closed",
        "log_time_ahead",
        "already_responded",
        "host_did_unavailable",
        created=ResponseReceipt,
    ),
    tags=["reputation"],
)
async def submit_response(request: Request[None, None, State], review_id: ReviewId) -> Response[bytes]:
    """The host's one public response to a review, within 30 days of it."""
    return await _taken_in(request, respond, review_id, await json_body(request))


@post(
    "/v1/reviews/{review_id:str}/evidence",
    responses=responses(
        *STATEMENT_CODES,
        "review_not_found",
        "holder_mismatch",
        "booking_evidence_invalid",
        "booking_unverifiable",
        "booking_cancelled",
        "already_verified",
        "guest_did_unavailable",
        "host_did_unavailable",
        created=UpgradeReceipt,
    ),
    tags=["reputation"],
)
async def submit_evidence(request: Request[None, None, State], review_id: ReviewId) -> Response[bytes]:
    """A stay receipt for an unconfirmed review, from its guest: from then on the review counts as verified."""
    return await _taken_in(request, supplement, review_id, await json_body(request))


@post(
    "/v1/reviews/cross-platform",
    request_max_body_size=MAX_DOCUMENT + MAX_BYTES + MAX_OVERHEAD,
    responses=responses(
        *STATEMENT_CODES,
        *(IDENTITY.keys() - {"wrong_challenge"}),
        "self_review",
        "stay_not_over",
        "already_reviewed",
        "document_invalid",
        "document_mismatch",
        "host_credential_required",
        "consent_mismatch",
        "status_unavailable",
        "guest_did_unavailable",
        "host_did_unavailable",
        created=Receipt,
    ),
    tags=["reputation"],
)
async def submit_cross_platform(request: Request[None, None, State]) -> Response[bytes]:
    """A review that was given on another platform, attested by the host: the signed CrossPlatformReview in the part
    `attestation`, the booking's document, PDF or JSON, in the part `document`, of which only the hash is kept."""
    state = request.app.state
    with state.documents.held(client(request.scope, state.proxies)) as hold:
        attestation, document = await two_parts(request, hold)
        return await _taken_in(request, attest, attestation, document)


async def _taken_in(
    request: Request[None, None, State], work: Callable[..., Coroutine[Any, Any, Accepted | Waiting]], *arguments: Any
) -> Response[bytes]:
    """Created, or what was created before; the way to the review either way. A receipt is nobody else's."""
    # Two dependencies would be resolved side by side by tasks of their own, which takes longer than all else here.
    state = request.app.state
    accepted = await state.intake.run(work, state.desk, *arguments)
    if isinstance(accepted, Waiting):
        return waiting_answer(state.base_url, accepted)
    receipt = await _witnessed(state.ledger, accepted)
    headers = {"Location": f"/v1/reviews/{receipt['review_id']}", "Cache-Control": "no-store"}
    status = 200 if accepted.repeated else 201
    body = msgspec.json.encode(receipt)
    return Response(body, status_code=status, media_type="application/json", headers=headers)


async def _witnessed(ledger: Ledger, accepted: Accepted) -> dict[str, Any]:
    """The receipt, with its witnesses if they are prompt: it is in the log in any case."""
    if ledger.witnesses.policy is None or accepted.repeated:
        return accepted.receipt
    await ledger.witnesses.settled(accepted.receipt["index"] + 1)
    try:
        return await sync_to_thread(witnessed_receipt, ledger.reader, accepted.receipt)
    except (NotStored, Unavailable):
        # It was acknowledged, and this receipt is as good as it was a moment ago.
        return accepted.receipt


def waiting_answer(base_url: str, waiting: Waiting) -> Response[bytes]:
    """It is taken in and not decided: where to look, and the ledger's signed word that it will be."""
    path = f"/v1/submissions/{waiting.id}"
    body = {"submission_id": waiting.id, "status_url": f"{base_url}{path}", "intake": waiting.intake}
    headers = {"Location": path, "Cache-Control": "no-store"}
    return Response(msgspec.json.encode(body), status_code=202, media_type="application/json", headers=headers)


@get(
    "/v1/reviews/{review_id:str}",
    response_headers={"Cache-Control": SECOND},
    responses=responses("review_not_found"),
    sync_to_thread=True,
    tags=["reputation"],
)
def review(ledger: NamedDependency[Ledger], review_id: ReviewId, text: Text = "verified") -> Review:
    """All entries about a review, each with proof that it is under the newest checkpoint."""
    state = ledger.reader.published
    events = ledger.reader.review(review_id, state.size)
    level = _level(events)
    shown = text == "all" or (text == "verified" and level != "unconfirmed")
    return Review(
        review_id,
        str(events[0].entry.host),
        level,
        state.note,
        [_entry(ledger, state, event, shown) for event in events],
    )


def _level(events: Sequence[Event]) -> Level:
    """The level after an upgrade, if there was one."""
    return next(event.entry.members["level"] for event in reversed(events) if "level" in event.entry.members)


def _entry(ledger: Ledger, state: Published, event: Event, shown: bool) -> ReviewEntry:
    opening = event.opening if shown else None
    path = inclusion_path(ledger.reader, event.entry.leaf_hash, event.index, state)
    return ReviewEntry(
        event.index,
        cast("EntryType", event.entry.type),
        event.entry.data.decode(),
        OpeningShape(opening.text, base64.encode(opening.salt)) if opening else None,
        str(TlogProof(event.index, tuple(path), state.note)),
    )


HANDLERS = [review, submit_review, submit_response, submit_evidence, submit_cross_platform]
