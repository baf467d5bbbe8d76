"""What is known of listings: in which time zone a stay there ends, and where to ask whether it was booked. Filled by
the operator, and later by the crawler."""

from dataclasses import dataclass
from datetime import tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import Connection

from ledger.canon import did
from ledger.errors import Misconfigured, NotAccepted
from ledger.log.members import check_listing_id
from ledger.net.guard import check_url
from ledger.store.rows import run

# A reference of a booking, which may be long, goes behind it.
MAX_ENDPOINT = 400

_ADD = (
    "INSERT INTO host_listing (host_did, listing_id, timezone, booking_endpoint, source) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (host_did, listing_id) DO UPDATE SET timezone = excluded.timezone, "
    "booking_endpoint = excluded.booking_endpoint, source = excluded.source"
)
_ONE = "SELECT timezone, booking_endpoint FROM host_listing WHERE host_did = ? AND listing_id = ?"
_ALL = "SELECT host_did, listing_id, timezone, booking_endpoint, source FROM host_listing ORDER BY host_did, listing_id"
# What a machine has beside the time zones of places.
_NOWHERE = {"localtime", "posixrules", "Factory"}


@cache
def _zones() -> set[str]:
    """Once: it takes a walk through a thousand files."""
    return available_timezones() - _NOWHERE


@dataclass(frozen=True, slots=True)
class Listing:
    """Either may not be known."""

    zone: tzinfo | None = None
    booking_endpoint: str | None = None


def add_listing(
    connection: Connection,
    host_did: str,
    listing_id: str,
    zone: str | None,
    source: str,
    booking_endpoint: str | None = None,
) -> None:
    """Say what is known of a listing; what was said before is replaced."""
    did.check(host_did)
    try:
        check_listing_id(listing_id)
    except ValueError as error:
        raise Misconfigured("listing_invalid", f"{listing_id!r} is not a listing id: {error}") from None
    if zone is not None and zone not in _zones():
        raise Misconfigured("listing_invalid", f"{zone!r} is not a time zone of the IANA database, as Europe/London")
    endpoint = None if booking_endpoint is None else _checked(booking_endpoint)
    if zone is None and endpoint is None:
        raise Misconfigured("listing_invalid", "say the time zone, the booking endpoint, or both")
    run(connection, _ADD, (host_did, listing_id, zone, endpoint, source))


def all_listings(connection: Connection) -> list[tuple[str, str, str | None, str | None, str]]:
    """Host, listing, time zone, booking endpoint, and who says so."""
    return run(connection, _ALL)


def listing(connection: Connection, host_did: str, listing_id: str) -> Listing:
    rows = run(connection, _ONE, (host_did, listing_id))
    if not rows:
        return Listing()
    zone, endpoint = rows[0]
    return Listing(ZoneInfo(zone) if zone is not None else None, endpoint)


def _checked(endpoint: str) -> str:
    """In one spelling, to which a reference can be added."""
    try:
        url = check_url(endpoint).url.rstrip("/")
    except NotAccepted as refusal:
        raise Misconfigured("listing_invalid", f"the booking endpoint cannot be asked: {refusal.message}") from None
    if "?" in url or len(url) > MAX_ENDPOINT:
        raise Misconfigured(
            "listing_invalid", f"a booking endpoint has no query, and at most {MAX_ENDPOINT} characters"
        )
    return url
