"""Notices of hosts and claims of guests (`POST /v1/bookings`): what is said of a booking before anybody knows how it
will be reviewed. Kept sealed, found by a keyed hash of host and reference, and erased 90 days after check-out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from ledger.canon import jcs
from ledger.canon.times import format_time, parse_time
from ledger.errors import Done
from ledger.identity import statements
from ledger.reviews.desk import Desk
from ledger.reviews.guest_binding import matches
from ledger.reviews.guests import Guest
from ledger.reviews.listings import listing
from ledger.reviews.stays import begins, lies_within
from ledger.store.rows import run

KEPT_AFTER = timedelta(days=90)
# What there may be of one booking: a notice from before check-in, one from later, and a claim of each guest.
BEFORE, LATE, CLAIM = "notice", "late notice", "claim"

_FIND = "SELECT sealed FROM booking WHERE stay = ? AND speaker = ?"
_PUT = (
    "INSERT INTO booking (stay, speaker, sealed, forget_on) VALUES (?, ?, ?, ?) ON CONFLICT (stay, speaker) "
    "DO UPDATE SET sealed = excluded.sealed, forget_on = excluded.forget_on"
)
_FORGET = "DELETE FROM booking WHERE forget_on <= ? RETURNING stay"


@dataclass(frozen=True, slots=True)
class OnFile:
    """A notice or claim and when it came. A claim that is here was verified, by a receipt or by the host's answer."""

    statement: Mapping[str, Any]
    received_at: str

    @property
    def received(self) -> datetime:
        return parse_time(self.received_at)

    def is_about(self, stay: Mapping[str, Any]) -> bool:
        return self.statement["listing_id"] == stay["listing_id"] and lies_within(stay, self.statement)


def notice_about(desk: Desk, stay: Mapping[str, Any], guest_did: str) -> OnFile | None:
    """The host's notice of a booking from before check-in, if it is of this guest's: one of another guest is neither
    evidence nor denial."""
    return _notice(desk, stay, guest_did, BEFORE)


def late_notice_about(desk: Desk, stay: Mapping[str, Any], guest_did: str) -> OnFile | None:
    """One that came later, which counts only like the answer to a callback."""
    return _notice(desk, stay, guest_did, LATE)


def claim_about(desk: Desk, stay: Mapping[str, Any], guest: Guest) -> OnFile | None:
    """The guest's own claim, by the same DID: what verified it named that one."""
    with desk.store.read() as connection:
        found = _find(desk, connection, _stay_key(desk, stay), CLAIM, *guest.person)
    if found is None or statements.speaker_of(found.statement, "BookingClaim") != guest.did:
        return None
    return found if found.is_about(stay) else None


def keep_notice(desk: Desk, notice: Mapping[str, Any], now: datetime) -> tuple[OnFile, bool, bool]:
    """The notice on file, whether as one from before check-in, and whether the same was there before; the newer of two
    stays, an older one is refused.

    What was said before check-in stays whatever is said later: a host that has heard how the stay was cannot take it
    back, neither by cancelling nor by moving the days.
    """
    stay = _stay_key(desk, notice)
    with desk.store.erase("booking") as connection:
        known = _find(desk, connection, stay, BEFORE)
        said = (notice, *((known.statement,) if known is not None else ()))
        # Nor by moving it to a listing where it is still the day before.
        zones = [listing(connection, each["host_did"], each["listing_id"]).zone for each in said]
        if now >= min(begins(each["check_in"], zone) for each, zone in zip(said, zones, strict=True)):
            # What is said again is known, though it came before.
            if known is not None and _is_same(notice, known):
                return known, True, True
            kept, repeated = _keep(desk, connection, notice, now, stay, LATE)
            return kept, False, repeated
        kept, repeated = _keep(desk, connection, notice, now, stay, BEFORE)
        return kept, True, repeated


def keep_claim(desk: Desk, claim: Mapping[str, Any], guest: Guest, now: datetime) -> tuple[OnFile, bool]:
    with desk.store.erase("booking") as connection:
        return _keep(desk, connection, claim, now, _stay_key(desk, claim), CLAIM, *guest.person)


def forget(desk: Desk, today: date) -> int:
    """Erase what is of no use any more; how many."""
    with desk.store.erase("booking") as connection:
        return len(run(connection, _FORGET, (str(today),)))


def forget_on(statement: Mapping[str, Any]) -> str:
    return str(date.fromisoformat(statement["check_out"]) + KEPT_AFTER)


def _notice(desk: Desk, stay: Mapping[str, Any], guest_did: str, which: str) -> OnFile | None:
    with desk.store.read() as connection:
        found = _find(desk, connection, _stay_key(desk, stay), which)
    return found if found is not None and matches(found.statement["guest_binding"], guest_did) else None


def _keep(
    desk: Desk, connection: Connection, statement: Mapping[str, Any], now: datetime, stay: bytes, *which: str
) -> tuple[OnFile, bool]:
    known = _find(desk, connection, stay, *which)
    if known is not None and _is_same(statement, known):
        return known, True
    fresh, speaker = OnFile(statement, format_time(now)), _speaker_key(desk, stay, *which)
    value = {"statement": statement, "received_at": fresh.received_at}
    run(connection, _PUT, (stay, speaker, desk.vault.seal("booking", value, stay, speaker), forget_on(statement)))
    return fresh, False


def _is_same(statement: Mapping[str, Any], known: OnFile) -> bool:
    """Whether it is the very one that is on file; what is not, and not newer, is refused."""
    if jcs.dumps(known.statement) == jcs.dumps(statement):
        return True
    if statements.created_at(statement) <= statements.created_at(known.statement):
        raise Done("notice_outdated", "a statement about this booking that was made later is on file")
    return False


def _find(desk: Desk, connection: Connection, stay: bytes, *which: str) -> OnFile | None:
    speaker = _speaker_key(desk, stay, *which)
    rows = run(connection, _FIND, (stay, speaker))
    return OnFile(**desk.vault.open("booking", rows[0][0], stay, speaker)) if rows else None


def _stay_key(desk: Desk, stay: Mapping[str, Any]) -> bytes:
    return desk.key("booking-of", stay["host_did"], stay["booking_reference"])


def _speaker_key(desk: Desk, stay: bytes, *which: str) -> bytes:
    """Of each booking its own: no two rows tell that they are by the same guest, or of the same kind."""
    return desk.key("booking-by", stay, *which)
