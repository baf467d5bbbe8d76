"""What shows that a stay was booked, the strongest first (design: a host must not be able to veto in silence).

Evidence is taken when the host still wants to give it: a receipt in the guest's hands, a claim or a notice from before
check-in. Only without any of these the host is asked, and its silence is neither yes nor no.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ledger.canon import jcs
from ledger.errors import NotAccepted, NotYet, StaylogError, Unavailable
from ledger.identity import statements
from ledger.identity.resolution import HostKeys
from ledger.log.drafts import make_draft
from ledger.log.openings import SALT_SIZE, commitment
from ledger.reviews import bookings, callback, evidence
from ledger.reviews.desk import Desk
from ledger.reviews.guests import Guest
from ledger.reviews.stays import begins

UNVERIFIABLE = (
    "nothing shows that this stay was booked: ask the host for a stay receipt, and submit the review with it as "
    "booking_evidence"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The kind of evidence, and the notice, claim or answer itself where it is not part of the submission."""

    kind: str
    statement: Mapping[str, Any] | None
    host: HostKeys


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody can say yet, and why; `asked` unless it is our own doing that the host could not."""

    heard: str
    asked: bool = True


async def host_of(desk: Desk, stay: Mapping[str, Any], guest: Guest) -> HostKeys:
    """The keys of the host that a guest speaks of, who is somebody else."""
    host = await desk.asked(desk.dids.host(stay["host_did"]))
    # A change of its keys is seen, whatever becomes of the review.
    if desk.is_host(stay["host_did"]):
        await desk.dids.remember(host)
    if not host.shares(guest.keys.values()):
        return host
    _require_another(evidence.receipt_of(stay, guest.did), guest)
    return _without(host, guest)


def _require_another(said: Mapping[str, Any] | None, guest: Guest) -> None:
    """Whoever signed the receipt or notice is not the guest."""
    if said is None:
        return
    try:
        statements.signed_by(said, guest.keys.values())
    except NotAccepted:
        return
    raise NotAccepted("self_review", "guest and host have the same key")


def _without(host: HostKeys, guest: Guest) -> HostKeys:
    """The host's keys but for those of the guest, by which nobody speaks for the host to this guest.

    That they are in its document shows nothing: a host knows the keys of its guests, and could keep them all from
    reviewing it by writing these down. Whoever signs by one as the host has shown that it is theirs.
    """
    own, current = set(guest.keys.values()), host.current
    if not isinstance(current, StaylogError):
        current = {method: key for method, key in current.items() if key not in own}
    return replace(host, current=current, remembered=[each for each in host.remembered if each.key not in own])


async def verify(
    desk: Desk, stay: Mapping[str, Any], guest: Guest, before_asking: Callable[[], None] = lambda: None
) -> Shown | Unknown:
    """What shows that the guest of a review booked. Refuses what was cancelled or denied, what is forged, and what
    nobody could ever verify. `before_asking` is called when nothing that is at hand shows it."""
    receipt = evidence.receipt_of(stay, guest.did)
    host = await host_of(desk, stay, guest)
    require_not_cancelled(desk, stay, guest.did)
    doubt: StaylogError = NotYet("booking_unverifiable", UNVERIFIABLE)
    if receipt is not None:
        reason = await judge_receipt(desk, receipt, host)
        if reason is None:
            return Shown("stay_receipt", None, host)
        doubt = reason
    return _on_file(desk, stay, guest, host) or await by_answer(desk, stay, guest, host, doubt, before_asking)


async def judge_receipt(desk: Desk, receipt: Mapping[str, Any], host: HostKeys) -> StaylogError | None:
    """Why nobody can say whether a receipt counts; None if it does. Refuses what is forged."""
    try:
        evidence.judge(receipt, host, domain=desk.domain, now=desk.clock())
    except (NotYet, Unavailable) as reason:
        return reason
    except NotAccepted as reason:
        # Whoever lets its name lead where nobody may ask is silent, and no more.
        if reason.code != "address_not_allowed":
            raise
        return reason
    await desk.dids.remember(host)
    return None


def require_not_cancelled(desk: Desk, stay: Mapping[str, Any], guest_did: str) -> None:
    """A cancellation that came before the day of check-in voids receipt, claim and notice."""
    notice = bookings.notice_about(desk, stay, guest_did)
    if notice is not None and notice.statement["status"] == "cancelled":
        first = min(stay["check_in"], notice.statement["check_in"])
        if notice.received < begins(first, desk.listing(stay["host_did"], stay["listing_id"]).zone):
            raise NotAccepted("booking_cancelled", "the host said before check-in that this booking was cancelled")


def _on_file(desk: Desk, stay: Mapping[str, Any], guest: Guest, host: HostKeys) -> Shown | None:
    claim = bookings.claim_about(desk, stay, guest)
    if claim is not None:
        return Shown("booking_claim", claim.statement, host)
    # One that came after check-in is as good as an answer that the host would give now.
    for kind, notice in (
        ("booking_notice", bookings.notice_about(desk, stay, guest.did)),
        ("callback", bookings.late_notice_about(desk, stay, guest.did)),
    ):
        if notice is not None and notice.statement["status"] == "confirmed" and notice.is_about(stay):
            _require_another(notice.statement, guest)
            return Shown(kind, notice.statement, host)
    return None


async def by_answer(
    desk: Desk,
    stay: Mapping[str, Any],
    guest: Guest,
    host: HostKeys,
    doubt: StaylogError,
    before_asking: Callable[[], None] = lambda: None,
) -> Shown | Unknown:
    """What the host says when it is asked. `doubt` is why nothing else shows the stay."""
    listing = desk.listing(stay["host_did"], stay["listing_id"])
    askable = listing.booking_endpoint is not None and callback.can_ask(stay["booking_reference"])
    # A receipt that could not be looked into may still hold.
    if not guest.is_identified or not askable and not isinstance(doubt, Unavailable):
        raise doubt
    before_asking()
    if listing.booking_endpoint is None or not askable:
        return Unknown(doubt.message, asked=doubt.code not in callback.OURS)
    answer = await callback.ask(desk, stay, guest.did, listing.booking_endpoint, listing.zone, host)
    if answer.outcome == callback.UNKNOWN:
        return Unknown(answer.heard, answer.asked)
    # Whoever signs an answer at the endpoint of a listing has shown to be a host.
    await desk.dids.remember(host)
    if answer.outcome == callback.OTHER_DATES:
        raise NotAccepted("booking_dates_mismatch", answer.heard)
    if answer.outcome == callback.DENIED:
        raise NotAccepted("booking_denied", answer.heard)
    return Shown("callback", answer.statement, host)


async def tell(desk: Desk, stay: Mapping[str, Any], guest: Guest, outcome: str) -> int:
    """That a host denied or did not answer, as an entry: one of each kind per person and host for ever, so that
    invented references cannot fill an honest host's record. Its index."""
    members = {
        "host_did": stay["host_did"],
        "outcome": outcome,
        "booking": booking_commitment(desk, stay, guest.did),
    }
    key = desk.key("check", outcome, stay["host_did"], desk.person(stay["host_did"], guest.person))
    placed = await desk.placed(desk.sequencer.submit(make_draft("booking_check", members, key=key)))
    return placed.index


async def tell_denial(desk: Desk, stay: Mapping[str, Any], guest: Guest) -> None:
    """The same of a denial, which is remembered for each booking: a receipt may come to contradict it."""
    index = await tell(desk, stay, guest, "denied")
    await desk.aside(lambda: desk.note((denial_key(desk, stay, guest.did),), index))


def denial_key(desk: Desk, stay: Mapping[str, Any], guest_did: str) -> bytes:
    """By what a denial of a booking is known again: of the DID that the host was asked about. It cannot know the others
    of a person, who by the one without and the one with a receipt would make a liar of it."""
    return desk.key("denial", stay["host_did"], stay["booking_reference"], guest_did)


def booking_commitment(desk: Desk, stay: Mapping[str, Any], guest_did: str) -> str:
    """Its salt is nobody's: who booked what is the business of guest and host."""
    booking = {
        "booking_reference": stay["booking_reference"],
        "guest_did": guest_did,
        "host_did": stay["host_did"],
    }
    return commitment(desk.random(SALT_SIZE), jcs.dumps(booking))
