"""Evidence that comes later: the guest of an unconfirmed review hands in a stay receipt, and the review counts.

Only the guest can raise a level. A host knows by now what the review says, so no answer or notice raises anything.
"""

from collections.abc import Mapping
from typing import Any

from ledger import metrics
from ledger.canon import did
from ledger.errors import BadForm, BrokenRule, Done, NotAccepted
from ledger.identity import statements
from ledger.identity.resolution import HostKeys
from ledger.log.drafts import Author, Draft, make_draft
from ledger.log.face import Event
from ledger.log.openings import SALT_SIZE, commitment
from ledger.log.sequencer import Integrated
from ledger.reviews import evidence, verification
from ledger.reviews.admission import Submission, booking_key, stay_key
from ledger.reviews.desk import Desk, counted
from ledger.reviews.receipts import Accepted, keys_seen, known_receipt, receipt_of

KIND = "EvidenceSupplement"
_STAY = ("host_did", "listing_id", "check_in", "check_out")


async def supplement(desk: Desk, review_id: str, data: bytes) -> Accepted:
    """The receipt of the upgrade of a review."""
    with counted("supplement"):
        body = _read(data, review_id)
        submission = Submission.of(desk, body)
        unseal = submission.unsealing(desk)
        review = desk.reader.review(review_id, desk.reader.published.size)[0]
        if (receipt := known_receipt(desk.reader, submission.replay_key, unseal)) is not None:
            return _accepted(receipt, repeated=True)
        if review.entry.members["level"] != "unconfirmed":
            raise Done("already_verified", "this review needs no more evidence")
        guest = statements.claimed(body, KIND, domain=desk.domain, now=desk.clock())
        # What the receipt is held against: the review in the log, and the guest and booking that are claimed.
        stay = {name: review.entry.members[name] for name in _STAY}
        stay |= {"booking_reference": body["booking_reference"], "booking_evidence": body["booking_evidence"]}
        host = await _judge_receipt(desk, stay, guest)
        # Only now that the host has vouched for it, as an issuer does for others: a stranger's word sends us nowhere.
        keys = await desk.asked(desk.dids.guest(guest))
        statements.authenticate(body, keys)
        who = [ref.encode() for ref in await desk.references.guest_refs(stay["host_did"], guest)]
        _require_author(desk, stay, who, review)
        with desk.signing_refusals(submission.data):
            verification.require_not_cancelled(desk, stay, guest)
            by_host = evidence.signed_by_host(body["booking_evidence"], stay["host_did"], host)
            draft = _draft(desk, submission, stay, review, guest, {"keys_seen": keys_seen((body, keys), *by_host)})
            placed = await _place(desk, draft)
        return _accepted(receipt_of(desk.reader, placed, draft, unseal), repeated=placed.repeated)


def _read(data: bytes, review_id: str) -> dict[str, Any]:
    body: dict[str, Any] = statements.parse(data)
    statements.check(body, KIND)
    if body["review_id"] != review_id:
        message = f"the evidence is for {body['review_id']}, and was sent to {review_id}"
        raise BadForm("schema_invalid", f"review_id: {message}", errors=[("review_id", message)])
    evidence.check_form(body["booking_evidence"])
    did.check(body["proof"]["verificationMethod"].partition("#")[0])
    return body


async def _judge_receipt(desk: Desk, stay: Mapping[str, Any], guest: str) -> HostKeys:
    """The keys of the host who signed the receipt."""
    receipt = evidence.receipt_of(stay, guest)
    if receipt is None:
        raise BadForm("schema_invalid", "booking_evidence: a StayReceipt expected")
    host = await desk.asked(desk.dids.host(stay["host_did"]))
    evidence.judge(receipt, host, domain=desk.domain, now=desk.clock())
    await desk.dids.remember(host)
    return host


def _require_author(desk: Desk, stay: Mapping[str, Any], who: list[bytes], review: Event) -> None:
    """Nothing of the guest is kept but a reference: whoever has the right DID and booking gives the same one."""
    if desk.reader.known(*(booking_key(desk, stay, each) for each in who)) != review.index:
        raise NotAccepted("holder_mismatch", "this review is another guest's, or of another booking")


def _draft(
    desk: Desk,
    submission: Submission,
    stay: Mapping[str, Any],
    review: Event,
    guest: str,
    beside: Mapping[str, Any],
) -> Draft:
    salt, before = desk.random(SALT_SIZE), review.entry.members
    members = {
        "review_id": before["review_id"],
        "review": review.index,
        "host_did": before["host_did"],
        "level": "guest_verified",
        "evidence": {
            **{name: before["evidence"][name] for name in ("issuer", "idv_level")},
            "booking": "stay_receipt",
            "commitment": commitment(salt, b'{"booking":null,"submission":%s}' % submission.data),
        },
    }
    author = Author(
        stay=stay_key(desk, stay),
        denials=(verification.denial_key(desk, stay, guest),),
        booking=verification.booking_commitment(desk, stay, guest),
    )
    sealed = submission.seal(desk, beside)
    return make_draft("upgrade", members, key=submission.replay_key, salt=salt, author=author, beside=sealed)


async def _place(desk: Desk, draft: Draft) -> Integrated:
    try:
        return await desk.placed(desk.sequencer.submit(draft))
    except BrokenRule as broken:
        if broken.code == "upgrade_not_unconfirmed":
            raise Done("already_verified", "this review needs no more evidence") from broken
        raise


def _accepted(receipt: dict[str, Any], *, repeated: bool) -> Accepted:
    metrics.SUBMISSIONS.labels("supplement", "repeated" if repeated else "accepted").inc()
    return Accepted(receipt, repeated)
