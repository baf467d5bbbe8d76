"""Reviews from other platforms (RFC-005 7.6): the host attests them, with the booking's document and, where there is
one, the guest's own consent. Of the document only the hash is kept, in a commitment."""

import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from ledger import metrics
from ledger.canon import strict_json
from ledger.errors import BadForm, BadJSON, NotAccepted, StaylogError
from ledger.identity import credentials, statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.credentials import Credential
from ledger.identity.did import Keys
from ledger.identity.resolution import HostKeys
from ledger.log.drafts import Author, Draft
from ledger.log.openings import SALT_SIZE, commitment
from ledger.reviews import guests, stays, verification
from ledger.reviews.admission import Submission, booking_key, everyone, place, review_draft, stay_key
from ledger.reviews.desk import Desk, counted
from ledger.reviews.guests import Guest
from ledger.reviews.receipts import Accepted, keys_seen, known_receipt, receipt_of
from ledger.store.limiter import DAY, Limit

KIND, CONSENT = "CrossPlatformReview", "GuestConsent"
CROSS_PLATFORM_PER_HOST = Limit(
    "crossplatform/host", 50, DAY, 50, "quota_exceeded", "one host may submit 50 reviews of other platforms in a day"
)
MAX_DOCUMENT = 5 * 1024 * 1024
PDF, JSON = "application/pdf", "application/json"


@dataclass(frozen=True, slots=True)
class Attested:
    """What a review rests on: the host's credential, the guest if they consented, and whom was trusted then."""

    credential: Credential
    guest: Guest | None
    trusted_at: int


async def attest(desk: Desk, attestation: bytes, document: bytes) -> Accepted:
    """The receipt of a review that was given elsewhere. The document is looked at last: to parse it can take a second,
    which only a host that signed, and has a credential, may cost."""
    with counted("crossplatform"):
        body = _read(attestation, document)
        submission = Submission.of(desk, body)
        unseal = submission.unsealing(desk)
        zone = desk.listing(body["host_did"], body["listing_id"]).zone
        stays.require_left(body, desk.clock(), zone or stays.EVERYWHERE)
        if (receipt := known_receipt(desk.reader, submission.replay_key, unseal)) is not None:
            _require_same(body, document)
            return _accepted(receipt, repeated=True)
        host = statements.claimed(body, KIND, domain=desk.domain, now=desk.clock())
        keys = await desk.asked(desk.dids.host(host))
        current = keys.now()
        statements.authenticate(body, current)
        with desk.signing_refusals(submission.data):
            attested = await _attested(desk, body, keys)
            await desk.aside(partial(_check_document, body, document))
            await desk.dids.remember(keys)
            with desk.limiter.spending(CROSS_PLATFORM_PER_HOST, host):
                draft = await _draft(desk, submission, attested, current)
                queued = desk.sequencer.submit(draft)
                placed = await place(desk, draft, queued, lambda: _trusted_still(desk, attested))
        return _accepted(receipt_of(desk.reader, placed, draft, unseal), repeated=placed.repeated)


def _read(attestation: bytes, document: bytes) -> dict[str, Any]:
    """The attestation by its form, and both by their size. Nothing of the document is read."""
    if len(attestation) > statements.MAX_BYTES:
        raise BadForm("too_large", f"the attestation has more than {statements.MAX_BYTES // 1024} KiB")
    if len(document) > MAX_DOCUMENT:
        raise BadForm("too_large", f"the document has more than {MAX_DOCUMENT // 1024 // 1024} MiB")
    body: dict[str, Any] = statements.parse(attestation)
    statements.check(body, KIND)
    if "guest_statement" in body:
        _check_consent(body)
    return body


def _check_document(body: Mapping[str, Any], document: bytes) -> None:
    """Raises BadForm when the document is another one than the attestation names, or not of the type that it says."""
    _require_same(body, document)
    found = type_of(document)
    if found != body["document_type"]:
        raise BadForm(
            "document_invalid", f"the document is said to be {body['document_type']}, and is {found or 'not'}"
        )


def _require_same(body: Mapping[str, Any], document: bytes) -> None:
    if not hmac.compare_digest(sha256(document).hexdigest(), body["document_sha256"]):
        raise BadForm("document_mismatch", "the document is another one than the attestation names by its hash")


def type_of(document: bytes) -> str | None:
    """What a document is by its content, whatever anybody calls it."""
    if document.startswith(b"%PDF-") and b"%%EOF" in document[-1024:]:
        return PDF
    try:
        return JSON if isinstance(strict_json.loads(document), dict) else None
    except BadJSON:
        return None


def _check_consent(body: Mapping[str, Any]) -> None:
    """A guest's word is about exactly this review."""
    consent = body["guest_statement"]
    try:
        statements.check(consent, CONSENT)
    except BadForm as error:
        errors = [(f"guest_statement.{field}".rstrip("."), message) for field, message in error.errors]
        raise BadForm(error.code, f"guest_statement: {error.message}", errors=errors) from None
    for name in ("document_sha256", "ratings", "review_text"):
        if consent.get(name) != body.get(name):
            raise NotAccepted("consent_mismatch", f"the guest consents to another {name} than the host submits")


async def _attested(desk: Desk, body: Mapping[str, Any], host: HostKeys) -> Attested:
    registry = desk.registries.newest()
    shown = body.get("host_credential")
    if shown is None:
        raise NotAccepted("host_credential_required", "a review of another platform comes with the HostCredential")
    # To bring a graph into its canonical form takes as long as Argon2.
    verify = partial(credentials.verify, shown, "host", registry, desk.clock(), canonicaliser().canonize)
    credential = await desk.aside(verify)
    if credential.subject != body["host_did"]:
        raise NotAccepted("not_the_host", "the credential is another host's")
    credential.require_listing(body["listing_id"])
    await desk.asked(desk.statuses.require_good(credential))
    guest = await _consenting(desk, body, host) if "guest_statement" in body else None
    return Attested(credential, guest, registry.newest)


async def _consenting(desk: Desk, body: Mapping[str, Any], host: HostKeys) -> Guest:
    consent = body["guest_statement"]
    try:
        guest = await guests.identify(desk, consent, CONSENT, guests.check(consent, CONSENT, body["host_did"]))
    except StaylogError as refusal:
        refusal.message = f"guest_statement: {refusal.message}"
        raise
    if host.shares(guest.keys.values()):
        raise NotAccepted("self_review", "guest and host have the same key")
    return guest


async def _draft(desk: Desk, submission: Submission, attested: Attested, host: Keys) -> Draft:
    body, guest, salt = submission.body, attested.guest, desk.random(SALT_SIZE)
    signed = [(body, host)] if guest is None else [(body, host), (body["guest_statement"], guest.keys)]
    members = {
        **{name: body[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")},
        "level": "guest_verified" if guest is not None else "host_attested",
        "evidence": {
            "booking": "attestation",
            "issuer": guest.issuer if guest is not None else None,
            "idv_level": guest.level if guest is not None else None,
            "commitment": commitment(salt, b'{"booking":null,"submission":%s}' % submission.data),
        },
    }
    author = await _author(desk, body, attested)
    return review_draft(
        desk,
        members,
        body.get("review_text"),
        key=submission.replay_key,
        salt=salt,
        author=author,
        beside=submission.seal(desk, {"keys_seen": keys_seen(*signed)}),
    )


async def _author(desk: Desk, body: Mapping[str, Any], attested: Attested) -> Author:
    """One for each booking of a platform; and where the guest is known, one for each booking of theirs, and one for
    each document: a consent names no booking, and a host could hand it in for as many as it likes to invent."""
    there = desk.key("crossplatform", body["host_did"], body["platform"], body["booking_reference"])
    if attested.guest is None:
        return Author(bookings=(there,), trusted_at=attested.trusted_at)
    who = await everyone(desk, body["host_did"], attested.guest)
    return Author(
        bookings=(there, *(key for each in who for key in _guest_keys(desk, body, each))),
        guests=tuple(who),
        stay=stay_key(desk, body),
        booking=verification.booking_commitment(desk, body, attested.guest.did),
        trusted_at=attested.trusted_at,
    )


def _guest_keys(desk: Desk, body: Mapping[str, Any], who: bytes) -> tuple[bytes, bytes]:
    return booking_key(desk, body, who), desk.key("consent", body["host_did"], body["document_sha256"], who)


def _trusted_still(desk: Desk, attested: Attested) -> int:
    if attested.guest is not None:
        guests.require_trusted(desk, attested.guest)
    desk.reader.refresh()
    registry, credential = desk.registries.newest(), attested.credential
    if credential.key not in registry.keys("host", credential.issuer):
        raise NotAccepted("issuer_not_trusted", f"the key of {credential.issuer} is not trusted any more")
    return registry.newest


def _accepted(receipt: dict[str, Any], *, repeated: bool) -> Accepted:
    metrics.SUBMISSIONS.labels("crossplatform", "repeated" if repeated else "accepted").inc()
    return Accepted(receipt, repeated)
