"""Who asks: the peer, or whom a trusted proxy had it from."""

import json
from typing import Any

import pytest

from api.clients import BOOKINGS, READS, REVIEWS, client, limit_of
from ledger import policy
from ledger.errors import Misconfigured
from ledger.net.addresses import parse_proxies
from ledger.reviews.admission import REVIEWS_PER_PERSON, UNCONFIRMED_PER_PERSON
from ledger.reviews.callback import CALLBACKS_PER_TARGET
from ledger.reviews.claims import CLAIMS_PER_PERSON
from ledger.reviews.crossplatform import CROSS_PLATFORM_PER_HOST
from ledger.reviews.feedback import REQUESTS_PER_HOST
from ledger.reviews.guests import HOSTS_PER_PERSON
from ledger.reviews.notices import NOTICES_PER_HOST
from ledger.reviews.pending import MOST_PENDING
from ledger.reviews.responses import RESPONSES_PER_HOST

PROXIES = parse_proxies("10.0.0.0/8, 192.0.2.1,2001:db8:ffff::/48")


def scope(peer: str | None, *forwarded: str, method: str = "GET", path: str = "/") -> Any:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded]
    return {"client": (peer, 1234) if peer else None, "headers": headers, "method": method, "path": path}


@pytest.mark.parametrize(
    ("peer", "forwarded", "expected"),
    [
        ("203.0.113.9", [], "203.0.113.9"),
        # Nobody's word counts but a trusted proxy's.
        ("203.0.113.9", ["198.51.100.1"], "203.0.113.9"),
        ("10.1.2.3", ["198.51.100.1"], "198.51.100.1"),
        # What the client itself said stands on the left.
        ("10.1.2.3", ["6.6.6.6, 198.51.100.1"], "198.51.100.1"),
        ("10.1.2.3", ["6.6.6.6", "198.51.100.1, 192.0.2.1"], "198.51.100.1"),
        ("10.1.2.3", ["198.51.100.1,10.9.9.9 , 192.0.2.1"], "198.51.100.1"),
        # Only proxies: the first of them.
        ("10.1.2.3", ["10.0.0.7"], "10.0.0.7"),
        ("10.1.2.3", [], "10.1.2.3"),
        # What is no address ends the way back.
        ("10.1.2.3", ["198.51.100.1, unknown"], "10.1.2.3"),
        ("10.1.2.3", [""], "10.1.2.3"),
        # One subscriber has a whole network of 64 bits.
        ("2001:db8:1:2:3:4:5:6", [], "2001:db8:1:2::/64"),
        ("2001:db8:ffff::1", ["2001:db8:1:2:ffff::9"], "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", [], "203.0.113.9"),
        ("10.1.2.3", ["[2001:db8:1:2::9]"], "2001:db8:1:2::/64"),
        # Some proxies add the port.
        ("10.1.2.3", ["198.51.100.1:5123"], "198.51.100.1"),
        ("10.1.2.3", ["[2001:db8:1:2::9]:443"], "2001:db8:1:2::/64"),
        (None, ["198.51.100.1"], ""),
    ],
)
def test_client(peer: str | None, forwarded: list[str], expected: str) -> None:
    assert client(scope(peer, *forwarded), PROXIES) == expected


def test_what_a_request_counts_as() -> None:
    assert limit_of(scope("", method="GET")) is limit_of(scope("", method="HEAD")) is READS
    assert limit_of(scope("", method="POST", path="/v1/reviews")) is REVIEWS
    assert limit_of(scope("", method="POST", path="/v1/bookings")) is BOOKINGS
    for path in ("/v1/reviews/cross-platform", "/v1/feedback", "/v1/bookings/", "/v1/Bookings"):
        assert limit_of(scope("", method="POST", path=path)) is REVIEWS
    assert limit_of(scope("", method="GET", path="/v1/bookings")) is READS
    assert limit_of(scope("", method="OPTIONS")) is None
    assert limit_of(scope("", path="/health")) is limit_of(scope("", path="/metrics")) is None
    assert (READS.count, READS.seconds, READS.burst) == (600, 60, 200)
    assert (REVIEWS.count, REVIEWS.seconds, REVIEWS.burst) == (30, 60, 10)


def test_a_network_that_is_none_is_refused() -> None:
    assert parse_proxies("") == []
    with pytest.raises(Misconfigured, match="separated by commas"):
        parse_proxies("10.0.0.1/8")


def test_the_policy_names_the_limits_that_hold() -> None:
    said = json.loads(policy.DOCUMENT)["limits"]
    assert said == {
        "reviews_per_person_and_day": REVIEWS_PER_PERSON.count,
        "responses_per_host_and_hour": RESPONSES_PER_HOST.count,
        "lookups_of_hosts_per_person_and_hour": HOSTS_PER_PERSON.count,
        "unconfirmed_reviews_per_person_and_day": UNCONFIRMED_PER_PERSON.count,
        # A slot that is unique in the database: tests/api/test_codes_of_limits.py.
        "pending_reviews_per_person_and_host": 1,
        "claims_per_person_and_day": CLAIMS_PER_PERSON.count,
        "notices_per_host_and_hour": NOTICES_PER_HOST.count,
        "reviews_of_other_platforms_per_host_and_day": CROSS_PLATFORM_PER_HOST.count,
        "requests_for_feedback_per_host_and_hour": REQUESTS_PER_HOST.count,
        "callbacks_per_domain_and_hour": CALLBACKS_PER_TARGET.count,
        "notices_and_claims_per_address_and_minute": BOOKINGS.count,
        "reviews_and_responses_per_address_and_minute": REVIEWS.count,
        "reads_per_address_and_minute": READS.count,
    }
    by_day = (REVIEWS_PER_PERSON, UNCONFIRMED_PER_PERSON, CLAIMS_PER_PERSON, CROSS_PLATFORM_PER_HOST)
    by_hour = (RESPONSES_PER_HOST, HOSTS_PER_PERSON, NOTICES_PER_HOST, REQUESTS_PER_HOST, CALLBACKS_PER_TARGET)
    assert {limit.seconds for limit in by_day} == {86_400}
    assert {limit.seconds for limit in by_hour} == {3600}


def test_the_limits_are_those_of_the_design() -> None:
    """Section 7 has them in words; where it names no burst, all of them may come at once, but for addresses."""
    designed = {
        UNCONFIRMED_PER_PERSON: (3, 3),
        CROSS_PLATFORM_PER_HOST: (50, 50),
        NOTICES_PER_HOST: (600, 600),
        REQUESTS_PER_HOST: (12, 12),
        CALLBACKS_PER_TARGET: (60, 60),
        BOOKINGS: (60, 20),
    }
    assert {limit: (limit.count, limit.burst) for limit in designed} == designed
    assert MOST_PENDING == 100_000
