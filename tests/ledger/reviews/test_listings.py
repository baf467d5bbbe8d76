"""Where listings are."""

import pytest

from ledger.errors import BadDID, Misconfigured
from ledger.reviews.listings import add_listing, all_listings, time_zone
from tests.running import HOST, OTHER, Running


def test_a_listing_has_the_time_zone_that_was_said_last(running: Running) -> None:
    with running.ledger.store.write() as connection:
        for zone in ("Europe/London", "Europe/Lisbon"):
            add_listing(connection, HOST, "rose-cottage", zone, "operator")
        add_listing(connection, OTHER, "rose-cottage", "Asia/Tokyo", "crawl")
    with running.ledger.store.read() as connection:
        assert str(time_zone(connection, HOST, "rose-cottage")) == "Europe/Lisbon"
        assert time_zone(connection, HOST, "loft") is None
        assert [tuple(row) for row in all_listings(connection)] == [
            (HOST, "rose-cottage", "Europe/Lisbon", "operator"),
            (OTHER, "rose-cottage", "Asia/Tokyo", "crawl"),
        ]


@pytest.mark.parametrize(
    ("listing", "zone"),
    [
        ("rose cottage", "UTC"),
        ("", "UTC"),
        ("a", "Mars/Base"),
        ("a", ""),
        ("a", "../UTC"),
        ("a", "/etc"),
        ("a", "Europe"),
        ("a", "localtime"),
    ],
)
def test_what_is_no_listing_or_no_zone_is_refused(running: Running, listing: str, zone: str) -> None:
    with pytest.raises(Misconfigured) as refused, running.ledger.store.write() as connection:
        add_listing(connection, HOST, listing, zone, "operator")
    assert refused.value.code == "listing_invalid"


def test_a_host_is_a_did(running: Running) -> None:
    with pytest.raises(BadDID), running.ledger.store.write() as connection:
        add_listing(connection, "cottage.example", "a", "UTC", "operator")
