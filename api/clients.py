"""Who asks, as far as that must be known to limit how often: an address, which is not kept and never written down."""

from collections.abc import Sequence

from litestar.types import HTTPScope

from ledger.net.addresses import Network, parse_address, subscriber
from ledger.store.limiter import Limit

READS = Limit("reads/address", 600, 60, 200, "rate_limited", "one address may read 600 times in a minute")
REVIEWS = Limit(
    "reviews/address", 30, 60, 10, "rate_limited", "one address may send 30 reviews and responses in a minute"
)
BOOKINGS = Limit(
    "bookings/address", 60, 60, 20, "rate_limited", "one address may send 60 notices and claims of bookings in a minute"
)
# Whoever watches the service must see it when others ask too much of it.
UNLIMITED = {"/health", "/metrics"}


def limit_of(scope: HTTPScope) -> Limit | None:
    """What a request counts as."""
    if scope["method"] == "OPTIONS" or scope["path"] in UNLIMITED:
        return None
    if scope["method"] != "POST":
        return READS
    return BOOKINGS if scope["path"] == "/v1/bookings" else REVIEWS


def client(scope: HTTPScope, proxies: Sequence[Network]) -> str:
    """The peer or, behind proxies that are trusted, the last address that they had from somebody else. An IPv6 network
    of 64 bits counts as one: it is what one subscriber gets."""
    peer = scope.get("client")
    found = parse_address(peer[0]) if peer else None
    if found is None:
        return ""
    # What a client says of itself stands on the left; each proxy adds whom it had it from on the right.
    for hop in reversed(_forwarded(scope)):
        if not any(found in network for network in proxies):
            break
        before = parse_address(hop)
        if before is None:
            break
        found = before
    return subscriber(found)


def _forwarded(scope: HTTPScope) -> list[str]:
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [hop.strip() for line in lines for hop in line.split(",")]
