"""Which addresses may be asked at all: https on its own port, by name, on the public internet.

URLs come from strangers: in DIDs, credentials, listings. Python's `is_global` is not the measure: to it NAT64 and
multicast are global, and its tables differ between versions. The lists here are IANA's registries of special addresses
as of 2026, and what leads from IPv6 back into IPv4.
"""

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import NamedTuple

from ledger.errors import NotAccepted

MAX_URL = 2048

_URL = re.compile(
    r"https://(?P<host>[A-Za-z0-9.-]{1,253})(?::443)?"
    r"(?P<rest>(?:[/?](?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2})*)?)"
)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
# 127.0.0.1, 2130706433, 0x7f.1, 0177.1: whatever ends in a number is an address to some reader (WHATWG URL, 3.5).
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

_SPECIAL_V4 = [
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
        # Public by number, but answered by the cloud that the machine stands in.
        "168.63.129.16/32",
    )
]
# Of IPv6 only what is handed out to networks: no NAT64, no mapped, compatible, local or multicast addresses.
_UNICAST_V6 = ip_network("2000::/3")
_SPECIAL_V6 = [
    # Protocols of the IETF, with Teredo; documentation; 6to4.
    ip_network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
]


class Target(NamedTuple):
    """A URL in one spelling: the host is in lower case, the default port is left out."""

    url: str
    host: str

    @property
    def origin(self) -> str:
        return f"https://{self.host}"


def check_url(url: str) -> Target:
    """Where `url` leads, if it may be asked: https, port 443, a name, nobody's password, no fragment."""
    match = _URL.fullmatch(url) if len(url) <= MAX_URL else None
    if match is None:
        raise NotAccepted(
            "address_not_allowed",
            f"{url[:200]!r} is not asked: only https on port 443, without user name and fragment, in at most {MAX_URL} "
            "characters, each of which a URL may have",
        )
    host = match["host"].lower()
    labels = host.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        raise NotAccepted("address_not_allowed", f"{host} is not asked: a name is, a number is not")
    if len(labels) < 2 or not all(map(_LABEL.fullmatch, labels)):
        raise NotAccepted("address_not_allowed", f"{host} is not asked: it is not a full domain name")
    rest = match["rest"]
    return Target(f"https://{host}{rest if rest.startswith('/') else '/' + rest}", host)


def is_public(address: str) -> bool:
    """Whether an address, as the resolver spells it, is one of the public internet."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if isinstance(found, IPv4Address):
        return not any(found in network for network in _SPECIAL_V4)
    return _is_public_v6(found)


def _is_public_v6(address: IPv6Address) -> bool:
    return (
        address.scope_id is None and address in _UNICAST_V6 and not any(address in network for network in _SPECIAL_V6)
    )


def require_public(host: str, addresses: Sequence[str]) -> None:
    """All of them: a name with one public address and one of ours waits for us to take the other."""
    for address in addresses:
        if not is_public(address):
            # Which one is nobody's business: it may be a map of the operator's own network.
            raise NotAccepted("address_not_allowed", f"{host} is not asked: it is not on the public internet alone")
