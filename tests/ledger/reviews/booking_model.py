"""What guests and hosts are told of bookings and reviews, foretold: the rules of the design, without a ledger."""

import json
from collections import Counter
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ledger.clock import Clock
from ledger.reviews.pending import Waiting
from ledger.reviews.stays import ANYWHERE, EVERYWHERE
from tests.hosting import HostSite
from tests.identities import THIEF, Speaker
from tests.reviewing import GUESTS, HOST, STAY

# One host is a key and has no booking endpoint; the others have domains, and say there who has booked.
NAMES = ("cottage.example", "harbour.example")
DIDS = (HOST.did, *(f"did:web:{name}" for name in NAMES))
# One stay is over when the story begins, the others are to come.
STAYS: dict[str, dict[str, Any]] = {
    "B-1": STAY,
    "B-2": {**STAY, "check_in": "2026-06-04", "check_out": "2026-06-06"},
    "B-3": {**STAY, "check_in": "2026-06-20", "check_out": "2026-06-22"},
}
# Two of the guests are one person.
PERSONS = {GUESTS[0].did: "p-1", GUESTS[1].did: "p-1", GUESTS[2].did: "p-2", THIEF.did: "p-3"}
LONDON = ZoneInfo("Europe/London")
Body = dict[str, Any]
Booking = tuple[str, str, str]


@dataclass
class Reviewed:
    """A review in the log, as the model has it."""

    body: Body
    guest: Speaker
    booking: Booking
    receipt: Body
    at: str
    level: str
    kind: str
    response: tuple[Body, Body] | None = None
    redacted: frozenset[str] = frozenset()

    @property
    def review_id(self) -> str:
        return str(self.receipt["review_id"])


@dataclass(frozen=True)
class Sent:
    """What waits for a decision."""

    body: Body
    guest: Speaker
    booking: Booking
    waiting: Waiting
    asked_before: int


class Model:
    """`reviewed` has who reviewed which booking, `waiting` and `claiming` what is not decided of a person and host,
    `claims` and `notices` what is on file, `denied` what hosts denied, `checks` what the log tells of them, `spent` when
    hosts were asked in vain, `receipts` what was acknowledged."""

    def __init__(self, clock: Clock, sites: dict[str, HostSite]) -> None:
        self.clock = clock
        self.sites = sites
        self.reviewed: dict[Booking, Reviewed] = {}
        self.waiting: dict[tuple[str, str], Sent] = {}
        self.claiming: dict[tuple[str, str], Sent] = {}
        self.claims: dict[Booking, Body] = {}
        self.notices: dict[tuple[str, str], tuple[str, str, datetime]] = {}
        self.denied: set[tuple[str, str, str]] = set()
        self.told: set[tuple[str, str, str]] = set()
        self.checks = {host: Counter[str]() for host in DIDS}
        self.spent: list[tuple[str, datetime]] = []
        self.receipts: list[tuple[Body, dict[str, Any]]] = []

    @property
    def now(self) -> datetime:
        return self.clock()

    def calendar(self, host: str, reference: str) -> str | None:
        today = self.now.astimezone(LONDON if host in self.sites else EVERYWHERE).date()
        left = date.fromisoformat(STAYS[reference]["check_out"])
        return "stay_not_over" if today <= left else "too_late" if today - left > timedelta(days=365) else None

    def is_before(self, host: str, reference: str) -> bool:
        """Whether the stay has not begun."""
        zone = LONDON if host in self.sites else ANYWHERE
        return self.now < datetime.combine(date.fromisoformat(STAYS[reference]["check_in"]), time(), zone)

    def next_stay(self, host: str) -> str | None:
        # A second passes before anything is said of it.
        soon = [reference for reference in STAYS if self.is_before(host, reference)]
        return soon[0] if soon else None

    def verdict(self, guest: Speaker, booking: Booking, *, shown: bool, on_file: bool = True) -> tuple[str, str]:
        """What shows a stay at this moment, the strongest first."""
        _, host, reference = booking
        if self.is_cancelled(guest, host, reference):
            return "refused", "booking_cancelled"
        if (kind := self.at_hand(guest, booking, shown=shown, on_file=on_file)) is not None:
            return "shown", kind
        if host not in self.sites:
            return "refused", "booking_unverifiable"
        site = self.sites[host]
        if site.down is not None:
            return "unknown", "none"
        booked = site.bookings.get(reference)
        if booked is None or booked.guest_did != guest.did:
            return "refused", "booking_denied"
        return "shown", "callback"

    def foretell(self, guest: Speaker, booking: Booking, *, shown: bool) -> tuple[str, str]:
        """The same of a review that is submitted now. What a host is asked in vain is counted."""
        refusal = self.calendar(*booking[1:]) or ("already_reviewed" if booking in self.reviewed else None)
        if refusal is not None:
            return "refused", refusal
        verdict, what = self.verdict(guest, booking, shown=shown)
        if self.is_asked(guest, booking, shown=shown):
            if booking[:2] in self.waiting or self.has_asked_enough(booking[0]):
                return "refused", "quota_exceeded"
            if verdict != "shown":
                self.spent.append((booking[0], self.now))
        return verdict, what

    def at_hand(self, guest: Speaker, booking: Booking, *, shown: bool, on_file: bool) -> str | None:
        if shown:
            return "stay_receipt"
        claimed, noticed = self.claims.get(booking), self.notices.get(booking[1:])
        if on_file and claimed is not None and claimed["guest_credential"]["credentialSubject"]["id"] == guest.did:
            return "booking_claim"
        if on_file and noticed is not None and noticed[:2] == (guest.did, "confirmed"):
            return "booking_notice"
        return None

    def is_asked(self, guest: Speaker, booking: Booking, *, shown: bool) -> bool:
        _, host, reference = booking
        at_hand = self.at_hand(guest, booking, shown=shown, on_file=True) is not None
        return host in self.sites and not at_hand and not self.is_cancelled(guest, host, reference)

    def is_cancelled(self, guest: Speaker, host: str, reference: str) -> bool:
        noticed = self.notices.get((host, reference))
        return noticed is not None and noticed[:2] == (guest.did, "cancelled")

    def is_outdated(self, booking: Booking, body: Body) -> bool:
        """Whether a claim that was made later is on file."""
        known = self.claims.get(booking)
        return known is not None and known["proof"]["created"] >= body["proof"]["created"]

    def has_asked_enough(self, person: str) -> bool:
        """Three at once, then one in eight hours."""
        paid = self.now - timedelta(days=3)
        for who, moment in self.spent:
            if who == person and timedelta() <= self.now - moment < timedelta(days=2):
                paid = max(paid, moment) + timedelta(hours=8)
        return paid - timedelta(hours=16) > self.now

    def tell_refusal(self, guest: Speaker, booking: Booking, code: str) -> None:
        if code == "booking_denied":
            self.denied.add((guest.did, *booking[1:]))
            self.tell_once(booking, "denied")

    def tell_once(self, booking: Booking, outcome: str) -> None:
        """Of each kind one of a person and host for ever."""
        person, host, _ = booking
        self.checks[host][outcome] += (person, host, outcome) not in self.told
        self.told.add((person, host, outcome))

    def enter(self, body: Body, guest: Speaker, booking: Booking, receipt: Body, level: str, kind: str) -> None:
        entry = json.loads(receipt["entry"])
        assert (entry["level"], entry["evidence"]["booking"]) == (level, kind)
        assert entry["repeat"] == any(key[:2] == booking[:2] for key in self.reviewed)
        assert booking not in self.reviewed
        made = Reviewed(body, guest, booking, receipt, entry["at"], level, kind)
        self.reviewed[booking] = made
        self.receipts.append((body, receipt))
        if level == "guest_verified":
            self.count_shown(made)

    def count_shown(self, review: Reviewed) -> None:
        """Two guests of one booking are in conflict, once both are shown; what a host denied, its receipt contradicts."""
        _, host, reference = review.booking
        others = [each for key, each in self.reviewed.items() if key[1:] == (host, reference) and each is not review]
        self.checks[host]["conflict"] += any(each.level == "guest_verified" for each in others)
        denied = (review.guest.did, host, reference) in self.denied
        self.checks[host]["contradicted"] += denied and review.kind == "stay_receipt"
