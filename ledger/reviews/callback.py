"""The signed callback (RFC-005 7.3.2): a host's booking endpoint is asked whether it knows a booking.

The question is signed by the ledger (RFC 9421) and says nothing of the review: no rating, no text, and of the guest
only a salted hash. What the host signs for an answer counts; whatever else comes is neither yes nor no.
"""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any
from urllib.parse import quote

from ledger import metrics
from ledger.canon import jcs
from ledger.canon.http_signatures import sign_request
from ledger.canon.times import parse_moment
from ledger.errors import BadDID, BadForm, NotAccepted, NotFetched, TooMany, Unavailable
from ledger.identity import statements
from ledger.identity.resolution import HostKeys
from ledger.net.guard import check_url
from ledger.net.profiles import CALLBACK
from ledger.reviews import questions
from ledger.reviews.desk import Desk
from ledger.reviews.stays import begins, lies_within
from ledger.store.limiter import HOUR, Limit

KIND = "BookingVerification"
CALLBACKS_PER_TARGET = Limit(
    "callbacks/target", 60, HOUR, 60, "quota_exceeded", "one domain is asked about 60 bookings in an hour"
)

CONFIRMED, DENIED, OTHER_DATES, UNKNOWN = "confirmed", "denied", "dates_mismatch", "unknown"
_DENIALS = ("declined", "expired")
# We ask too much, of this host or at all.
OURS = ("quota_exceeded", "fetch_too_often", "busy")


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of asking: an outcome, in words what was heard, and the host's signed answer if it said something.
    `asked` is False where it was our own doing that it could not: that is not the host's silence."""

    outcome: str
    heard: str
    statement: Mapping[str, Any] | None = None
    asked: bool = True


def can_ask(reference: str) -> bool:
    """Whether a reference can stand in an address: these two would lead elsewhere."""
    return reference not in (".", "..")


async def ask(
    desk: Desk, stay: Mapping[str, Any], guest_did: str, endpoint: str, zone: tzinfo | None, host: HostKeys
) -> Answer:
    """What the host says of the booking of a review or claim. Never raises because of the host."""
    answer = await _ask(desk, stay, guest_did, endpoint, zone, host)
    metrics.CALLBACKS.labels(answer.outcome).inc()
    return answer


async def _ask(
    desk: Desk, stay: Mapping[str, Any], guest_did: str, endpoint: str, zone: tzinfo | None, host: HostKeys
) -> Answer:
    try:
        # An answer could not be verified: then nobody is asked.
        keys = host.now()
        url = f"{endpoint}/{quote(stay['booking_reference'], safe='')}/verify"
        desk.limiter.spend(CALLBACKS_PER_TARGET, check_url(url).host)
        nonce, request_id = _random_text(desk), f"bvr-{_random_text(desk)}"
        question = questions.make(stay, guest_did, ledger=desk.domain, request_id=request_id, nonce=nonce)
        data = jcs.dumps(question)
        headers = _signed(desk, url, data, nonce)
        answer = (await desk.asked(desk.fetcher.fetch(url, CALLBACK, data, headers))).json()
        _check(answer, question)
        statements.claimed(
            answer, KIND, domain=desk.domain, now=desk.clock(), speaker=stay["host_did"], challenge=nonce
        )
        statements.authenticate(answer, keys)
    except (NotFetched, NotAccepted, BadForm, BadDID, Unavailable, TooMany) as reason:
        return Answer(UNKNOWN, f"{reason.code}: {reason.message}", asked=reason.code not in OURS)
    return judge(answer, stay, zone)


def judge(answer: Mapping[str, Any], stay: Mapping[str, Any], zone: tzinfo | None) -> Answer:
    """What a host's signed answer means (the decision table of the design)."""
    if not answer["known"]:
        return Answer(DENIED, "the host does not know this booking", answer)
    if not answer["guest_matches"]:
        return Answer(DENIED, "the host knows this booking as another guest's", answer)
    if answer["status"] in _DENIALS:
        return Answer(DENIED, f"the host says that the booking was {answer['status']}", answer)
    if answer["status"] == "cancelled":
        # Before either day of check-in: a host that moves the day gains nothing.
        first = begins(min(stay["check_in"], answer["check_in"]), zone)
        cancelled = answer.get("cancelled_at")
        if cancelled is not None and parse_moment(cancelled) < first:
            return Answer(DENIED, "the host says that the booking was cancelled before check-in", answer)
        # Whoever names days before those that were booked makes no silence of an honest answer.
        if lies_within(stay, answer):
            return Answer(UNKNOWN, "the host says that the booking was cancelled, and not that it was before check-in")
    elif answer["status"] != "confirmed":
        return Answer(UNKNOWN, f"the host says that the booking is {answer['status']}")
    if not lies_within(stay, answer):
        booked = f"{answer['check_in']} to {answer['check_out']}"
        return Answer(OTHER_DATES, f"the host says that {booked} was booked, and this is of other dates", answer)
    return Answer(CONFIRMED, "the host confirms the booking", answer)


def _signed(desk: Desk, url: str, question: bytes, nonce: str) -> dict[str, str]:
    return sign_request(
        desk.keys.statements,
        method="POST",
        target_uri=url,
        content_type="application/json",
        body=question,
        keyid=f"{desk.domain}/.well-known/did.json#statements",
        created=int(desk.clock().timestamp()),
        nonce=nonce,
    )


def _check(answer: Any, question: Mapping[str, Any]) -> None:
    """It has the form of an answer, and answers this question."""
    statements.check(answer, KIND)
    for name in ("request_id", "booking_reference", "listing_id"):
        if answer[name] != question[name]:
            raise NotAccepted("wrong_challenge", f"the answer is about another {name}")
    try:
        if answer.get("cancelled_at") is not None:
            parse_moment(answer["cancelled_at"])
    except ValueError as error:
        raise BadForm("date_invalid", f"cancelled_at: {error}") from None


def _random_text(desk: Desk) -> str:
    return urlsafe_b64encode(desk.random(16)).decode().rstrip("=")
