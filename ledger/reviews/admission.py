"""Admission of a review (RFC-005 7.2, 7.3), the cheapest check first; Argon2, which is nearly all of the CPU, last.

A refused submission occupies nothing: whoever mends it may come again.
"""

from base64 import b32encode
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any

from ledger import metrics
from ledger.canon import did, jcs, proofs, strict_json
from ledger.errors import Done, NotAccepted, Outdated, Unavailable
from ledger.identity import credentials, statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.credentials import Chosen, Credential
from ledger.identity.did import Keys, is_offline, offline
from ledger.log.drafts import Author, Draft, make_draft
from ledger.log.openings import SALT_SIZE, Opening, commitment
from ledger.log.sequencer import Integrated
from ledger.reviews import evidence, stays
from ledger.reviews.desk import Desk, counted
from ledger.reviews.receipts import Accepted, known_receipt, receipt_of
from ledger.store.limiter import DAY, HOUR, Limit

KIND = "ReviewSubmission"
REVIEWS_PER_PERSON = Limit(
    "reviews/person", 20, DAY, 20, "quota_exceeded", "one person may submit 20 reviews in a day, at all hosts together"
)
# Whoever has a domain has any number of hosts in it, which take long to answer.
HOSTS_PER_PERSON = Limit(
    "hosts/person", 60, HOUR, 60, "quota_exceeded", "one person may have hosts' domains looked up 60 times in an hour"
)
# Trust in issuers changes a few times a year; that it changes again and again under one review is no accident.
TRIES = 3


@dataclass(frozen=True, slots=True)
class Guest:
    """Who has shown to be the guest: the holder of a credential that counts, and what it was found to count by."""

    did: str
    keys: Keys
    credential: Credential
    trusted_at: int

    @property
    def person(self) -> tuple[str, str]:
        """The issuer, and its own reference of the person: the same for all DIDs of theirs."""
        return self.credential.issuer, str(self.credential.claims["issuer_guest_id"])


async def submit(desk: Desk, data: bytes) -> Accepted:
    """The receipt of a review, once it is durable, integrated and under a signed checkpoint."""
    with counted("review"):
        body, chosen = _read(data)
        now, submitted = desk.clock(), jcs.dumps(body)
        replay_key = desk.key("submission", submitted)
        if not stays.is_over(body, now):
            stays.require_over(body, now, desk.time_zone(body["host_did"], body["listing_id"]))
        if (receipt := known_receipt(desk.reader, replay_key)) is not None:
            return _accepted(receipt, body, repeated=True)
        guest = await _identify(desk, body, chosen)
        with desk.signing_refusals(submitted):
            persons = desk.references.persons(body["host_did"], *guest.person)
            bookings = [_booking_key(desk, body, person) for person in persons]
            earlier = desk.reader.known(*bookings)
            # This very submission may be in the log already, and not under a checkpoint yet.
            if earlier is not None and earlier != desk.reader.known(replay_key):
                raise Done("already_reviewed", "this guest has reviewed this booking already")
            booked = await _booked(desk, body, guest)
            with desk.limiter.spending(REVIEWS_PER_PERSON, jcs.dumps(list(guest.person))):
                with desk.sequencer.coming():
                    author = await _author(desk, body, guest, persons)
                    draft = _draft(desk, body, submitted, guest, booked, replay_key, author)
                    queued = desk.sequencer.submit(draft)
                placed = await _place(desk, draft, queued, guest)
        return _accepted(receipt_of(desk.reader, placed, draft), body, repeated=placed.repeated)


def _read(data: bytes) -> tuple[dict[str, Any], Chosen]:
    """The body, and the proof of the credential in it: form, and everything that is plain from the body alone."""
    body: dict[str, Any] = strict_json.loads(data)
    statements.check(body, KIND)
    evidence.check_form(body.get("booking_evidence"))
    guest, host = str(statements.speaker_of(body, KIND)), body["host_did"]
    did.check(guest)
    if guest == host or _keys_of(guest) & _keys_of(host):
        raise NotAccepted("self_review", "guest and host are the same, or have the same key")
    return body, credentials.check(body["guest_credential"], "guest")


def _keys_of(name: str) -> set[bytes]:
    """As far as they are in the name: nobody is asked before anybody has shown who they are."""
    return set(offline(name).values()) if is_offline(name) else set()


async def _identify(desk: Desk, body: Mapping[str, Any], chosen: Chosen) -> Guest:
    """The guest signed the body, and is the subject of a credential that counts, and still does."""
    now = desk.clock()
    guest = statements.claimed(body, KIND, domain=desk.domain, now=now)
    keys = offline(guest) if is_offline(guest) else None
    if keys is not None:
        statements.authenticate(body, keys)
    registry, shown = desk.registries.newest(), body["guest_credential"]
    verify = partial(credentials.verify, shown, "guest", registry, now, canonicaliser().canonize, chosen)
    # To bring a graph into its canonical form takes as long as Argon2.
    credential = verify() if chosen[0] == proofs.EDDSA_JCS else await desk.aside(verify)
    if keys is None:
        # Only now that an issuer has vouched for it: a stranger's word sends us nowhere.
        keys = await desk.asked(desk.dids.guest(guest))
        statements.authenticate(body, keys)
    await desk.asked(desk.statuses.require_good(credential))
    return Guest(guest, keys, credential, registry.newest)


async def _booked(desk: Desk, body: Mapping[str, Any], guest: Guest) -> str:
    """The kind of evidence for the stay. The host is asked for its keys only where they are needed."""
    receipt = evidence.receipt_of(body, guest.did)
    if not is_offline(body["host_did"]):
        desk.limiter.spend(HOSTS_PER_PERSON, jcs.dumps(list(guest.person)))
    host = await desk.asked(desk.dids.host(body["host_did"]))
    # A change of its keys is seen, whatever becomes of the review.
    if desk.is_host(body["host_did"]):
        await desk.dids.remember(host)
    if host.shares(guest.keys.values()):
        raise NotAccepted("self_review", "guest and host have the same key")
    booked = evidence.judge(receipt, host, domain=desk.domain, now=desk.clock())
    await desk.dids.remember(host)
    return booked


def _booking_key(desk: Desk, body: Mapping[str, Any], who: bytes) -> bytes:
    return desk.key("booking", body["host_did"], body["booking_reference"], who)


async def _author(desk: Desk, body: Mapping[str, Any], guest: Guest, persons: list[bytes]) -> Author:
    """Neither another DID of the same person nor another issuer of the same DID gets a second review of a booking."""
    refs = [ref.encode() for ref in await desk.references.guest_refs(body["host_did"], guest.did)]
    bookings = [_booking_key(desk, body, who) for who in (*persons, *refs)]
    stay = desk.key("stay", body["host_did"], body["booking_reference"])
    booking = {"booking_reference": body["booking_reference"], "guest_did": guest.did, "host_did": body["host_did"]}
    return Author(
        bookings=tuple(bookings),
        guests=(*persons, *refs),
        stay=stay,
        conflict=commitment(desk.random(SALT_SIZE), jcs.dumps(booking)),
        trusted_at=guest.trusted_at,
    )


def _draft(
    desk: Desk, body: Mapping[str, Any], submitted: bytes, guest: Guest, booked: str, replay_key: bytes, author: Author
) -> Draft:
    text, salt = body.get("review_text"), desk.random(SALT_SIZE)
    opening = Opening(text, desk.random(SALT_SIZE)) if text else None
    # In JCS as well. The stay receipt is part of the submission: there is no booking statement beside it.
    shown = b'{"booking":null,"submission":%s}' % submitted
    members = {
        "review_id": "rev-" + b32encode(desk.random(16)).decode().rstrip("=").lower(),
        **{name: body[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")},
        "level": "guest_verified",
        "evidence": {
            "booking": booked,
            "issuer": guest.credential.issuer,
            "idv_level": guest.credential.claims["idv_level"],
            "commitment": commitment(salt, shown),
        },
        # The sequencer knows.
        "repeat": False,
        "text": commitment(opening.salt, opening.text.encode()) if opening else None,
    }
    return make_draft("review", members, opening=opening, key=replay_key, salt=salt, author=author)


async def _place(desk: Desk, draft: Draft, queued: "Future[Integrated]", guest: Guest) -> Integrated:
    """The draft in the log, by an issuer that is still trusted when it gets there."""
    for left in reversed(range(TRIES)):
        try:
            return await desk.placed(queued)
        except Outdated:
            trusted_at = _trusted_still(desk, guest.credential)
            if left:
                queued = desk.sequencer.submit(draft.trusted(trusted_at))
    raise Unavailable("busy", "whom this ledger trusts keeps changing; try again in a moment")


def _trusted_still(desk: Desk, credential: Credential) -> int:
    desk.reader.refresh()
    registry = desk.registries.newest()
    if credential.key not in registry.keys("guest", credential.issuer, str(credential.claims["idv_level"])):
        raise NotAccepted("issuer_not_trusted", f"the key of {credential.issuer} is not trusted any more")
    return registry.newest


def _accepted(receipt: dict[str, Any], body: Mapping[str, Any], *, repeated: bool) -> Accepted:
    metrics.SUBMISSIONS.labels("review", "repeated" if repeated else "accepted").inc()
    if body.get("private_feedback"):
        # Nobody could fetch it yet, so it is not kept.
        receipt["private_feedback"] = "undeliverable"
    return Accepted(receipt, repeated)
