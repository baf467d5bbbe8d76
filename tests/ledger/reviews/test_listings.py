"""Where listings are, and where to ask about their bookings."""

import pytest

from ledger.errors import BadDID, Misconfigured
from ledger.reviews.listings import Listing, add_listing, all_listings, listing
from tests.running import HOST, OTHER, Running


def test_a_listing_has_the_time_zone_that_was_said_last(running: Running) -> None:
    with running.ledger.store.write() as connection:
        for zone in ("Europe/London", "Europe/Lisbon"):
            add_listing(connection, HOST, "rose-cottage", zone, "operator")
        add_listing(connection, OTHER, "rose-cottage", "Asia/Tokyo", "crawl")
    with running.ledger.store.read() as connection:
        assert str(listing(connection, HOST, "rose-cottage").zone) == "Europe/Lisbon"
        assert listing(connection, HOST, "loft") == Listing()
        assert [tuple(row) for row in all_listings(connection)] == [
            (HOST, "rose-cottage", "Europe/Lisbon", None, "operator"),
            (OTHER, "rose-cottage", "Asia/Tokyo", None, "crawl"),
        ]


@pytest.mark.parametrize(
    ("name", "zone"),
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
def test_what_is_no_listing_or_no_zone_is_refused(running: Running, name: str, zone: str) -> None:
    with pytest.raises(Misconfigured) as refused, running.ledger.store.write() as connection:
        add_listing(connection, HOST, name, zone, "operator")
    assert refused.value.code == "listing_invalid"


def test_a_host_is_a_did(running: Running) -> None:
    with pytest.raises(BadDID), running.ledger.store.write() as connection:
        add_listing(connection, "cottage.example", "a", "UTC", "operator")


# Where to ask


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("https://cottage.example/openstr/booking", "https://cottage.example/openstr/booking"),
        ("https://COTTAGE.example:443/openstr/booking/", "https://cottage.example/openstr/booking"),
        ("https://cottage.example", "https://cottage.example"),
        ("https://cottage.example/" + "a" * 376, "https://cottage.example/" + "a" * 376),
    ],
)
def test_a_booking_endpoint_has_one_spelling(running: Running, said: str, kept: str) -> None:
    with running.ledger.store.write() as connection:
        add_listing(connection, HOST, "rose-cottage", None, "operator", said)
        assert listing(connection, HOST, "rose-cottage") == Listing(None, kept)


@pytest.mark.parametrize(
    "endpoint",
    [
        "http://cottage.example/booking",
        "https://cottage.example:8443/booking",
        "https://127.0.0.1/booking",
        "https://localhost/booking",
        "https://guest:secret@cottage.example/booking",
        "https://cottage.example/booking?a=b",
        "https://cottage.example/booking#a",
        "https://cottage.example/" + "a" * 377,
        "cottage.example",
        "",
    ],
)
def test_what_cannot_be_asked_is_no_booking_endpoint(running: Running, endpoint: str) -> None:
    with pytest.raises(Misconfigured) as refused, running.ledger.store.write() as connection:
        add_listing(connection, HOST, "rose-cottage", "UTC", "operator", endpoint)
    assert refused.value.code == "listing_invalid"


def test_a_listing_has_one_or_the_other(running: Running) -> None:
    with pytest.raises(Misconfigured) as refused, running.ledger.store.write() as connection:
        add_listing(connection, HOST, "rose-cottage", None, "operator")
    assert refused.value.code == "listing_invalid"
