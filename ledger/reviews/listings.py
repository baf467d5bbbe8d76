"""What is known of listings: in which time zone a stay there ends. Filled by the operator, and later by the crawler."""

from datetime import tzinfo
from zoneinfo import ZoneInfo, available_timezones

from sqlalchemy import Connection

from ledger.canon import did
from ledger.errors import Misconfigured
from ledger.log.members import check_listing_id
from ledger.store.rows import run

_ADD = (
    "INSERT INTO host_listing (host_did, listing_id, timezone, source) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (host_did, listing_id) DO UPDATE SET timezone = excluded.timezone, source = excluded.source"
)
_ZONE = "SELECT timezone FROM host_listing WHERE host_did = ? AND listing_id = ?"
_ALL = "SELECT host_did, listing_id, timezone, source FROM host_listing ORDER BY host_did, listing_id"
# What a machine has beside the time zones of places.
_NOWHERE = {"localtime", "posixrules", "Factory"}


def add_listing(connection: Connection, host_did: str, listing_id: str, zone: str, source: str) -> None:
    """Say where a listing is; what was said before is replaced."""
    did.check(host_did)
    try:
        check_listing_id(listing_id)
    except ValueError as error:
        raise Misconfigured("listing_invalid", f"{listing_id!r} is not a listing id: {error}") from None
    if zone not in available_timezones() - _NOWHERE:
        raise Misconfigured("listing_invalid", f"{zone!r} is not a time zone of the IANA database, as Europe/London")
    run(connection, _ADD, (host_did, listing_id, zone, source))


def all_listings(connection: Connection) -> list[tuple[str, str, str, str]]:
    """Host, listing, time zone, and who says so."""
    return run(connection, _ALL)


def time_zone(connection: Connection, host_did: str, listing_id: str) -> tzinfo | None:
    rows = run(connection, _ZONE, (host_did, listing_id))
    return ZoneInfo(rows[0][0]) if rows else None
