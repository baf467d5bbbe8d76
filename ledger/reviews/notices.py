"""Booking notices: a host, or who keeps its calendar by a key of its DID, says that a stay is booked or cancelled.

One that comes before check-in is evidence that the host cannot take back. It names the guest by a salted hash.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from ledger import metrics
from ledger.canon import jcs
from ledger.errors import NotAccepted, NotYet
from ledger.identity import statements
from ledger.identity.resolution import HostKeys
from ledger.reviews import bookings
from ledger.reviews.bookings import OnFile
from ledger.reviews.desk import Desk, counted
from ledger.reviews.stays import ANYWHERE, require_foreseeable
from ledger.store.limiter import HOUR, Limit

KIND = "BookingNotice"
NOTICES_PER_HOST = Limit(
    "bookings/host", 600, HOUR, 600, "quota_exceeded", "one host may send 600 notices of bookings in an hour"
)


@dataclass(frozen=True, slots=True)
class Noticed:
    """A notice on file; whether as one from before check-in; `repeated` when it was there before."""

    notice: OnFile
    before_check_in: bool
    repeated: bool


async def submit(desk: Desk, body: Mapping[str, Any]) -> Noticed:
    with counted("notice"):
        statements.check(body, KIND)
        now = desk.clock()
        _check_dates(body, now)
        host = statements.claimed(body, KIND, domain=desk.domain, now=now)
        keys = await desk.asked(desk.dids.host(host))
        _authenticate(body, keys)
        await desk.dids.remember(keys)
        with desk.signing_refusals(jcs.dumps(body)), desk.limiter.spending(NOTICES_PER_HOST, host):
            kept, early, repeated = await desk.aside(lambda: bookings.keep_notice(desk, body, now))
        metrics.SUBMISSIONS.labels("notice", "repeated" if repeated else "accepted").inc()
        return Noticed(kept, early, repeated)


def _check_dates(body: Mapping[str, Any], now: datetime) -> None:
    """Neither for ever nor over: it would be erased at once."""
    require_foreseeable(body, now)
    today, left = now.astimezone(ANYWHERE).date(), date.fromisoformat(body["check_out"])
    if left + bookings.KEPT_AFTER <= today:
        raise NotYet("too_late", f"the stay ended on {left}: notices are kept until 90 days after that, which is over")


def _authenticate(body: Mapping[str, Any], host: HostKeys) -> None:
    """By a key of now, or one that was seen around the time at which the notice was made."""
    method = body["proof"]["verificationMethod"]
    keys = host.at(method, statements.created_at(body))
    if not keys and method not in host.now():
        raise NotAccepted("bad_verification_method", f"{method} is not a key that may assert for {body['host_did']}")
    statements.signed_by(body, keys)
