"""A host's one public response to a review (RFC-005 7.5), by the key of the host's DID alone: no credential is asked
for, so that a host whose credential has lapsed may still answer."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from ledger import metrics
from ledger.canon.times import parse_time
from ledger.errors import BadForm, BrokenRule, Done, NotAccepted, NotYet
from ledger.identity import statements
from ledger.log.drafts import Draft, make_draft
from ledger.log.openings import SALT_SIZE, Opening, commitment
from ledger.log.record import RESPONSE_WINDOW
from ledger.log.sequencer import Integrated
from ledger.reviews.admission import Submission
from ledger.reviews.desk import Desk, counted
from ledger.reviews.receipts import Accepted, keys_seen, known_receipt, receipt_of
from ledger.store.limiter import Limit

KIND = "HostResponse"
WINDOW = timedelta(seconds=RESPONSE_WINDOW)
RESPONSES_PER_HOST = Limit(
    "responses/host", 60, 3600, 60, "quota_exceeded", "one host may submit 60 responses in an hour"
)


async def respond(desk: Desk, review_id: str, data: bytes) -> Accepted:
    """The receipt of a response to the review."""
    with counted("response"):
        body = _read(data, review_id)
        review = desk.reader.review(review_id, desk.reader.published.size)[0]
        submission = Submission.of(desk, body)
        unseal = submission.unsealing(desk)
        if (receipt := known_receipt(desk.reader, submission.replay_key, unseal)) is not None:
            return _accepted(receipt, repeated=True)
        if body["host_did"] != review.entry.host:
            raise NotAccepted("not_the_host", "this is a review of another host")
        host = statements.claimed(body, KIND, domain=desk.domain, now=desk.clock())
        keys = await desk.asked(desk.dids.host(host))
        current = keys.now()
        statements.authenticate(body, current)
        await desk.dids.remember(keys)
        with desk.signing_refusals(submission.data), desk.limiter.spending(RESPONSES_PER_HOST, body["host_did"]):
            draft = _draft(desk, submission, review.index, {"keys_seen": keys_seen((body, current))})
            placed = await _place(desk, draft, review.entry.members["at"])
        return _accepted(receipt_of(desk.reader, placed, draft, unseal), repeated=placed.repeated)


def _read(data: bytes, review_id: str) -> dict[str, Any]:
    body: dict[str, Any] = statements.parse(data)
    statements.check(body, KIND)
    if body["review_id"] != review_id:
        message = f"the response is to {body['review_id']}, and was sent to {review_id}"
        raise BadForm("schema_invalid", f"review_id: {message}", errors=[("review_id", message)])
    return body


def _draft(desk: Desk, submission: Submission, review: int, beside: Mapping[str, Any]) -> Draft:
    body = submission.body
    opening, salt = Opening(body["response_text"], desk.random(SALT_SIZE)), desk.random(SALT_SIZE)
    members = {
        "review_id": body["review_id"],
        "review": review,
        "host_did": body["host_did"],
        "text": commitment(opening.salt, opening.text.encode()),
        "statement": commitment(salt, submission.data),
    }
    sealed = submission.seal(desk, beside)
    return make_draft("response", members, opening=opening, key=submission.replay_key, salt=salt, beside=sealed)


async def _place(desk: Desk, draft: Draft, reviewed_at: str) -> Integrated:
    """The log's own rules say whether it is the first, and in time. Raises NotYet with `log_time_ahead` where the
    response is in time by the clock, and only the log's time is not."""
    try:
        return await desk.placed(desk.sequencer.submit(draft))
    except BrokenRule as broken:
        if broken.code == "response_repeated":
            raise Done("already_responded", "this review has a response already, and there is one at most") from broken
        if broken.code == "response_late" and desk.clock() - parse_time(reviewed_at) <= WINDOW:
            raise NotYet(
                "log_time_ahead",
                "the response is in time, but the log's time is ahead of the clock: by it the 30 days are over",
            ) from broken
        if broken.code == "response_late":
            raise NotAccepted(
                "response_window_closed", "a review can be answered within 30 days of its submission"
            ) from broken
        raise


def _accepted(receipt: dict[str, Any], *, repeated: bool) -> Accepted:
    metrics.SUBMISSIONS.labels("response", "repeated" if repeated else "accepted").inc()
    return Accepted(receipt, repeated)
