"""Booking claims: a guest says before check-in that a stay is booked, and has that verified while nobody knows how it
will be: by the host's receipt, or by asking the host. A review may rest on it later, whatever the host then does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any, TypeVar

from ledger import metrics
from ledger.canon import jcs
from ledger.errors import NotYet, StaylogError
from ledger.identity import statements
from ledger.identity.did import is_offline
from ledger.reviews import bookings, evidence, guests, pending, verification
from ledger.reviews.bookings import OnFile
from ledger.reviews.desk import Desk, counted
from ledger.reviews.guests import Guest
from ledger.reviews.pending import Waiting
from ledger.reviews.stays import begins, require_foreseeable
from ledger.reviews.verification import Shown, Unknown
from ledger.store.limiter import DAY, Limit

KIND = "BookingClaim"
CLAIMS_PER_PERSON = Limit(
    "claims/person", 20, DAY, 20, "quota_exceeded", "one person may claim 20 bookings in a day, at all hosts together"
)
UNANSWERED = "the host did not confirm this booking in time, and nothing else shows it: ask the host for a stay receipt"


@dataclass(frozen=True, slots=True)
class Claimed:
    """A verified claim on file; `repeated` when it was there before."""

    claim: OnFile
    repeated: bool


Taken = TypeVar("Taken", Claimed, Waiting)


async def submit(desk: Desk, body: Mapping[str, Any]) -> Claimed | Waiting:
    """A claim on file, once it is verified; or that it waits for the host's answer."""
    with counted("claim"):
        statements.check(body, KIND)
        evidence.check_form(body.get("booking_evidence"))
        chosen = guests.check(body, KIND, body["host_did"])
        now, data = desk.clock(), jcs.dumps(body)
        require_foreseeable(body, now)
        first = begins(body["check_in"], desk.listing(body["host_did"], body["listing_id"]).zone)
        replay_key = desk.key("submission", data)
        if (waiting := pending.find(desk, replay_key)) is not None:
            return _counted(waiting)
        guest = await guests.identify(desk, body, KIND, chosen)
        with desk.signing_refusals(data):
            if (known := bookings.claim_about(desk, body, guest)) is not None and jcs.dumps(known.statement) == data:
                return _counted(Claimed(known, repeated=True))
            if now >= first:
                raise NotYet("claim_too_late", "a booking is claimed before the day of check-in, and that has begun")
            # Whatever comes of it: what is refused may have had a host asked.
            desk.limiter.spend(CLAIMS_PER_PERSON, jcs.dumps(list(guest.person)))
            shown = await verify(desk, body, guest)
            if isinstance(shown, Unknown):
                end, digest = min(first, now + pending.PATIENCE), sha256(data).hexdigest()
                wait = partial(pending.wait, desk, "claim", body, digest, guest, replay_key, end)
                return _counted(await desk.aside(wait))
            return _counted(Claimed(*await desk.aside(lambda: bookings.keep_claim(desk, body, guest, now))))


async def verify(desk: Desk, claim: Mapping[str, Any], guest: Guest) -> Shown | Unknown:
    """What shows that the booking is there, or that the host has not said."""
    receipt = evidence.receipt_of(claim, guest.did)
    if not is_offline(claim["host_did"]):
        desk.limiter.spend(guests.HOSTS_PER_PERSON, jcs.dumps(list(guest.person)))
    host = await verification.host_of(desk, claim, guest)
    verification.require_not_cancelled(desk, claim, guest.did)
    doubt: StaylogError = NotYet("booking_unverifiable", verification.UNVERIFIABLE)
    if receipt is not None:
        reason = await verification.judge_receipt(desk, receipt, host)
        if reason is None:
            return Shown("stay_receipt", None, host)
        doubt = reason
    return await verification.by_answer(desk, claim, guest, host, doubt)


def _counted(taken: Taken) -> Taken:
    outcome = "pending" if isinstance(taken, Waiting) else "repeated" if taken.repeated else "accepted"
    metrics.SUBMISSIONS.labels("claim", outcome).inc()
    return taken
