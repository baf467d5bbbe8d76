"""`staylog listing`, as an operator uses it."""

import json

import pytest

from ledger.reviews.listings import Listing
from tests.ledger.commands.test_operator import staylog
from tests.running import HOST, OTHER, Running


def test_listings_are_added_replaced_and_listed(running: Running) -> None:
    assert "No listing is known" in staylog(running, "listing", "list").output
    assert json.loads(staylog(running, "listing", "list", "--json").output) == []
    desk = running.ledger.desk()
    assert desk.listing(HOST, "rose-cottage").zone is None
    done = staylog(running, "listing", "add", HOST, "rose-cottage", "--timezone", "Europe/London")
    assert done.exit_code == 0, done.output
    assert done.output == f"rose-cottage of {HOST} is in Europe/London\n"
    # A service that runs knows at once.
    assert str(desk.listing(HOST, "rose-cottage").zone) == "Europe/London"
    for host, zone in ((HOST, "America/New_York"), (OTHER, "Asia/Tokyo")):
        assert staylog(running, "listing", "add", host, "rose-cottage", "--timezone", zone).exit_code == 0
    listed = staylog(running, "listing", "list").output
    for shown in (HOST, OTHER, "rose-cottage", "America/New_York", "Asia/Tokyo", "operator"):
        assert shown in listed
    assert "Europe/London" not in listed
    first, second = json.loads(staylog(running, "listing", "list", "--json").output)
    assert first == {
        "host_did": HOST,
        "listing_id": "rose-cottage",
        "timezone": "America/New_York",
        "booking_endpoint": None,
        "source": "operator",
    }
    assert second["host_did"] == OTHER
    endpoint = "https://cottage.example/openstr/booking"
    done = staylog(running, "listing", "add", HOST, "rose-cottage", "--booking-endpoint", f"{endpoint}/")
    assert done.exit_code == 0, done.output
    assert desk.listing(HOST, "rose-cottage") == Listing(None, endpoint)
    assert running.ledger.reader.refresh().size == 2


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (["did:web:UPPER.example", "a", "--timezone", "UTC"], 1, "(did_not_canonical)"),
        ([HOST, "not a listing", "--timezone", "UTC"], 1, "(listing_invalid)"),
        ([HOST, "a", "--timezone", "Europe/Nowhere"], 1, "(listing_invalid)"),
        ([HOST, "a", "--timezone", "../../etc/passwd"], 1, "(listing_invalid)"),
        ([HOST, "a", "--timezone", ""], 1, "(listing_invalid)"),
        ([HOST, "a"], 1, "say the time zone, the booking endpoint, or both"),
        ([HOST, "a", "--booking-endpoint", "http://cottage.example/b"], 1, "(listing_invalid)"),
        ([HOST, "a", "--booking-endpoint", "https://10.0.0.1/b"], 1, "(listing_invalid)"),
        ([HOST, "a", "--booking-endpoint", "https://cottage.example/b?x=1"], 1, "(listing_invalid)"),
        ([HOST], 2, "LISTING_ID"),
    ],
)
def test_what_cannot_be_added_is_explained(running: Running, arguments: list[str], status: int, told: str) -> None:
    done = staylog(running, "listing", "add", *arguments)
    assert done.exit_code == status, done.output
    assert told in done.output
    assert json.loads(staylog(running, "listing", "list", "--json").output) == []
