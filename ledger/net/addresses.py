"""Addresses of clients: how they are read, and which networks count as one client. For the service and the witness."""

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from ledger.errors import Misconfigured

Network = IPv4Network | IPv6Network
Address = IPv4Address | IPv6Address

# Bits of ::ffff:0:0/96, under which IPv6 sockets show IPv4 peers.
_MAPPED = 96


def parse_proxies(text: str) -> list[Network]:
    """Addresses or networks, separated by commas. An IPv4-mapped one (::ffff:a.b.c.d) is the IPv4 network that it
    means, as peers are read too. Raises Misconfigured when a part is neither."""
    try:
        return [_unmapped(ip_network(part.strip())) for part in text.split(",") if part.strip()]
    except ValueError as error:
        raise Misconfigured(
            "settings_invalid", f"trusted proxies are addresses or networks separated by commas: {error}"
        ) from None


def too_wide(networks: Sequence[Network]) -> list[str]:
    """The networks that hold every address of their kind. As trusted proxies they let any client claim any address."""
    return [str(network) for network in networks if network.prefixlen == 0]


def parse_address(text: str) -> Address | None:
    """An address, with a port or without (proxies differ), an IPv4-mapped one as IPv4; None when it is none."""
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


def subscriber(address: Address) -> str:
    """What counts as one client: an IPv4 address, or the IPv6 network of 64 bits that one subscriber gets."""
    return str(address) if isinstance(address, IPv4Address) else _network(address, 64)


def site(address: Address) -> str | None:
    """The IPv6 network of 48 bits, which one customer of a provider may have; None for IPv4."""
    return None if isinstance(address, IPv4Address) else _network(address, 48)


def _network(address: IPv6Address, bits: int) -> str:
    return str(IPv6Network((int(address) >> 128 - bits << 128 - bits, bits)))


def _unmapped(network: Network) -> Network:
    if isinstance(network, IPv6Network) and network.prefixlen >= _MAPPED:
        address = network.network_address.ipv4_mapped
        if address is not None:
            return IPv4Network((address, network.prefixlen - _MAPPED))
    return network
