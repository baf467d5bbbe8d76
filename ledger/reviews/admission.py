"""Admission of a review (RFC-005 7.2, 7.3), the cheapest check first; Argon2, which is nearly all of the CPU, last.

A refused submission occupies nothing: whoever mends it may come again. One of which nobody can say yet whether the stay
was booked waits (`pending`), and is decided by the worker.
"""

from base64 import b32encode
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from hashlib import sha256
from typing import Any

from ledger import metrics
from ledger.canon import jcs
from ledger.errors import Done, NotAccepted, Outdated, Unavailable
from ledger.identity import statements
from ledger.identity.credentials import Chosen
from ledger.identity.did import Keys, is_offline
from ledger.identity.sealing import seal
from ledger.log.drafts import Author, Draft, Feedback, make_draft
from ledger.log.openings import SALT_SIZE, Opening, commitment, is_blank
from ledger.log.sequencer import Integrated
from ledger.reviews import evidence, guests, pending, stays, verification
from ledger.reviews.desk import Desk, counted
from ledger.reviews.guests import Guest
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted, Unseal, keys_seen, known_receipt, receipt_of
from ledger.reviews.verification import Shown, Unknown
from ledger.store.limiter import DAY, Limit

KIND = "ReviewSubmission"
REVIEWS_PER_PERSON = Limit(
    "reviews/person", 20, DAY, 20, "quota_exceeded", "one person may submit 20 reviews in a day, at all hosts together"
)
UNCONFIRMED_PER_PERSON = Limit(
    "unconfirmed/person",
    3,
    DAY,
    3,
    "quota_exceeded",
    "one person may submit 3 reviews in a day of which nothing is shown",
)
FEEDBACK_KEPT = timedelta(days=365)
# Trust in issuers changes a few times a year; that it changes again and again under one review is no accident.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Submission:
    """A review as it was signed, its bytes in JCS, and by what it is known again."""

    body: Mapping[str, Any]
    data: bytes
    replay_key: bytes

    @classmethod
    def of(cls, desk: Desk, body: Mapping[str, Any]) -> "Submission":
        data = jcs.dumps(body)
        return cls(body, data, desk.key("submission", data))

    @property
    def digest(self) -> str:
        return sha256(self.data).hexdigest()

    def unsealing(self, desk: Desk) -> Unseal:
        """What is kept for its receipt opens with the submission alone."""
        return lambda sealed: desk.vault.open("beside", sealed, self.data)

    def seal(self, desk: Desk, beside: Mapping[str, Any]) -> bytes:
        """What is kept for its receipt, for `unsealing`."""
        return desk.vault.seal("beside", beside, self.data)


async def submit(desk: Desk, data: bytes) -> Accepted | Waiting:
    """The receipt of a review, once it is durable, integrated and under a signed checkpoint; or that it waits."""
    with counted("review"):
        body, chosen = _read(data)
        now, submission = desk.clock(), Submission.of(desk, body)
        if not stays.is_over(body, now):
            zone = desk.listing(body["host_did"], body["listing_id"]).zone
            stays.require_over(body, now, zone or stays.EVERYWHERE)
        unseal = submission.unsealing(desk)
        if (receipt := known_receipt(desk.reader, submission.replay_key, unseal)) is not None:
            return _accepted(receipt, repeated=True)
        if (waiting := pending.find(desk, submission.replay_key)) is not None:
            return _waits(waiting)
        guest = await guests.identify(desk, body, KIND, chosen)
        with desk.signing_refusals(submission.data):
            require_new(desk, submission, guest)
            with desk.limiter.spending(REVIEWS_PER_PERSON, jcs.dumps(list(guest.person))):
                shown = await _shown(desk, submission, guest)
                if isinstance(shown, Unknown):
                    return _waits(await _wait(desk, submission, guest))
                return await admit(desk, submission, guest, shown)


def _read(data: bytes) -> tuple[dict[str, Any], Chosen]:
    """The body, and the proof of the credential in it: form, and everything that is plain from the body alone."""
    body: dict[str, Any] = statements.parse(data)
    statements.check(body, KIND)
    evidence.check_form(body.get("booking_evidence"))
    return body, guests.check(body, KIND, body["host_did"])


def require_new(desk: Desk, submission: Submission, guest: Guest) -> None:
    """This guest has not reviewed this booking, as far as the person tells; the sequencer knows for sure."""
    body = submission.body
    persons = desk.references.persons(body["host_did"], *guest.person)
    earlier = desk.reader.known(*(booking_key(desk, body, person) for person in persons))
    # This very submission may be in the log already, and not under a checkpoint yet.
    if earlier is not None and earlier != desk.reader.known(submission.replay_key):
        raise Done("already_reviewed", "this guest has reviewed this booking already")


async def _shown(desk: Desk, submission: Submission, guest: Guest) -> Shown | Unknown:
    """What shows the booking. Whoever has nothing to show may have hosts asked a few times a day."""
    body = submission.body
    if not is_offline(body["host_did"]):
        desk.limiter.spend(guests.HOSTS_PER_PERSON, jcs.dumps(list(guest.person)))
    spent: list[bytes | None] = []

    def before_asking() -> None:
        pending.require_free(desk, "review", body, guest, submission.replay_key)
        spent.append(desk.limiter.spend(UNCONFIRMED_PER_PERSON, jcs.dumps(list(guest.person))))

    try:
        shown = await verification.verify(desk, body, guest, before_asking)
    except NotAccepted as refusal:
        if refusal.code == "booking_denied":
            await verification.tell_denial(desk, body, guest)
        raise
    if isinstance(shown, Shown):
        for key in spent:
            desk.limiter.give_back(key)
    return shown


async def _wait(desk: Desk, submission: Submission, guest: Guest) -> Waiting:
    end = desk.clock() + pending.PATIENCE
    # It waits for whoever writes the log.
    work = partial(pending.wait, desk, "review", submission.body, submission.digest, guest, submission.replay_key, end)
    return await desk.aside(work)


async def admit(desk: Desk, submission: Submission, guest: Guest, shown: Shown | None) -> Accepted:
    """The review in the log; `unconfirmed` where nothing but the guest's word shows the stay."""
    with desk.sequencer.coming():
        author = await _author(desk, submission.body, guest, shown)
        draft = _draft(desk, submission, guest, shown, author)
        queued = desk.sequencer.submit(draft)
    placed = await place(desk, draft, queued, lambda: guests.require_trusted(desk, guest))
    return _accepted(receipt_of(desk.reader, placed, draft, submission.unsealing(desk)), repeated=placed.repeated)


def booking_key(desk: Desk, body: Mapping[str, Any], who: bytes) -> bytes:
    return desk.key("booking", body["host_did"], body["booking_reference"], who)


def stay_key(desk: Desk, body: Mapping[str, Any]) -> bytes:
    return desk.key("stay", body["host_did"], body["booking_reference"])


async def _author(desk: Desk, body: Mapping[str, Any], guest: Guest, shown: Shown | None) -> Author:
    """Neither another DID of the same person nor another issuer of the same DID gets a second review of a booking."""
    who = await everyone(desk, body["host_did"], guest)
    denial = verification.denial_key(desk, body, guest.did)
    return Author(
        bookings=tuple(booking_key(desk, body, each) for each in who),
        guests=tuple(who),
        # What nobody confirms is in conflict with nothing.
        stay=stay_key(desk, body) if shown is not None else None,
        # A host that changes its mind contradicts nobody; its receipt from before does.
        denials=(denial,) if shown is not None and shown.kind == "stay_receipt" else (),
        booking=verification.booking_commitment(desk, body, guest.did),
        trusted_at=guest.trusted_at,
    )


async def everyone(desk: Desk, host_did: str, guest: Guest) -> list[bytes]:
    """All that a guest is known by at a host: the person and the DID, under every pepper."""
    refs = [ref.encode() for ref in await desk.references.guest_refs(host_did, guest.did)]
    return [*desk.references.persons(host_did, *guest.person), *refs]


def _draft(desk: Desk, submission: Submission, guest: Guest, shown: Shown | None, author: Author) -> Draft:
    body, salt = submission.body, desk.random(SALT_SIZE)
    statement = shown.statement if shown is not None else None
    feedback = _feedback(desk, body, shown)
    # Of every guest, so that no row tells whose DID is a domain. Which hosts have one is no secret.
    signed = [(body, guest.keys), *_signed_by_host(body, shown)]
    beside: dict[str, Any] = {"keys_seen": keys_seen(*signed)}
    if statement is not None:
        beside["booking"] = statement
    if body.get("private_feedback"):
        beside["private_feedback"] = "undeliverable" if feedback is None else "sealed"
    # In JCS as well.
    resting_on = b'{"booking":%s,"submission":%s}' % (jcs.dumps(statement), submission.data)
    members = {
        **{name: body[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")},
        "level": "guest_verified" if shown is not None else "unconfirmed",
        "evidence": {
            "booking": shown.kind if shown is not None else "none",
            "issuer": guest.issuer,
            "idv_level": guest.level,
            "commitment": commitment(salt, resting_on),
        },
    }
    return review_draft(
        desk,
        members,
        body.get("review_text"),
        key=submission.replay_key,
        salt=salt,
        author=author,
        beside=submission.seal(desk, beside),
        feedback=feedback,
    )


def _signed_by_host(body: Mapping[str, Any], shown: Shown | None) -> list[tuple[Mapping[str, Any], Keys]]:
    """What the host signed of the booking. A claim is the guest's own."""
    if shown is None or shown.kind == "booking_claim":
        return []
    said = body["booking_evidence"] if shown.statement is None else shown.statement
    return evidence.signed_by_host(said, body["host_did"], shown.host)


def review_draft(desk: Desk, members: Mapping[str, Any], text: str | None, **options: Any) -> Draft:
    """A review with a new id, whether it is a repeated one, which the sequencer knows, and its text. White
    space only is none."""
    opening = None if text is None or is_blank(text) else Opening(text, desk.random(SALT_SIZE))
    given = {
        "review_id": "rev-" + b32encode(desk.random(16)).decode().rstrip("=").lower(),
        **members,
        "repeat": False,
        "text": commitment(opening.salt, opening.text.encode()) if opening else None,
    }
    return make_draft("review", given, opening=opening, **options)


def _feedback(desk: Desk, body: Mapping[str, Any], shown: Shown | None) -> Feedback | None:
    """The guest's private words, which from now on only the host can read."""
    sealing = shown.host.sealing() if shown is not None and body.get("private_feedback") else None
    if sealing is None:
        return None
    method, public = sealing
    until = str(desk.clock().date() + FEEDBACK_KEPT)
    return Feedback(seal(body["private_feedback"], public), method, until)


async def place(desk: Desk, draft: Draft, queued: "Future[Integrated]", trusted_still: Callable[[], int]) -> Integrated:
    """The draft in the log, by issuers that are still trusted when it gets there."""
    for left in reversed(range(TRIES)):
        try:
            return await desk.placed(queued)
        except Outdated:
            trusted_at = trusted_still()
            if left:
                queued = desk.sequencer.submit(draft.trusted(trusted_at))
    raise Unavailable("busy", "whom this ledger trusts keeps changing; try again in a moment")


def _accepted(receipt: dict[str, Any], *, repeated: bool) -> Accepted:
    metrics.SUBMISSIONS.labels("review", "repeated" if repeated else "accepted").inc()
    return Accepted(receipt, repeated)


def _waits(waiting: Waiting) -> Waiting:
    metrics.SUBMISSIONS.labels("review", "pending").inc()
    return waiting
