"""Who asks, as far as that must be known to limit how often: an address, which is not kept and never written down."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from litestar.types import HTTPScope

from ledger.errors import Misconfigured
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

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address


def parse_proxies(text: str) -> list[Network]:
    """Addresses or networks, separated by commas."""
    try:
        return [ip_network(part.strip()) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise Misconfigured(
            "settings_invalid", f"trusted proxies are addresses or networks separated by commas: {error}"
        ) from None


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
    found = _address(peer[0]) if peer else None
    if found is None:
        return ""
    # What a client says of itself stands on the left; each proxy adds whom it had it from on the right.
    for hop in reversed(_forwarded(scope)):
        if not any(found in network for network in proxies):
            break
        before = _address(hop)
        if before is None:
            break
        found = before
    return str(found if found.version == 4 else IPv6Network((int(found) >> 64 << 64, 64)))


def _forwarded(scope: HTTPScope) -> list[str]:
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == b"x-forwarded-for"]
    return [hop.strip() for line in lines for hop in line.split(",")]


def _address(text: str) -> Address | None:
    """With a port or without: proxies differ."""
    if text.count(":") == 1:
        text = text.partition(":")[0]
    elif text.startswith("["):
        text = text[1:].partition("]")[0]
    try:
        if ":" not in text:
            return IPv4Address(text)
        found = IPv6Address(text)
    except ValueError:
        return None
    return found.ipv4_mapped or found
