"""Addresses of clients and networks of proxies."""

import pytest

from ledger.errors import Misconfigured
from ledger.net.addresses import parse_address, parse_proxies, site, subscriber, too_wide


@pytest.mark.parametrize(
    ("text", "networks"),
    [
        ("", []),
        ("10.0.0.1, 192.0.2.0/24", ["10.0.0.1/32", "192.0.2.0/24"]),
        ("2001:db8::/32", ["2001:db8::/32"]),
        ("::ffff:10.0.0.1", ["10.0.0.1/32"]),
        ("::ffff:10.0.0.0/104", ["10.0.0.0/8"]),
        ("::ffff:a00:0/104", ["10.0.0.0/8"]),
        ("::ffff:0:0/96", ["0.0.0.0/0"]),
        # It has IPv6 addresses too.
        ("::/80", ["::/80"]),
    ],
)
def test_reads_mapped_networks_as_ipv4(text: str, networks: list[str]) -> None:
    assert [str(each) for each in parse_proxies(text)] == networks


def test_rejects_a_network_with_host_bits() -> None:
    for text in ("10.0.0.1/8", "::ffff:10.0.0.1/104", "everyone", "10.0.0.0/33"):
        with pytest.raises(Misconfigured, match="separated by commas"):
            parse_proxies(text)


def test_names_networks_that_hold_every_address() -> None:
    assert too_wide(parse_proxies("10.0.0.0/8,0.0.0.0/0,::/0,::ffff:0.0.0.0/96")) == ["0.0.0.0/0", "::/0", "0.0.0.0/0"]
    assert too_wide(parse_proxies("10.0.0.0/8,::1")) == []


def test_what_counts_as_one_client() -> None:
    for text, one, wide in (
        ("192.0.2.1", "192.0.2.1", None),
        ("::ffff:192.0.2.1", "192.0.2.1", None),
        ("2001:db8:1:2:3::9", "2001:db8:1:2::/64", "2001:db8:1::/48"),
    ):
        address = parse_address(text)
        assert address is not None
        assert (subscriber(address), site(address)) == (one, wide)
