"""Status lists over real sockets: what is looked up, for how long it is believed, and that nothing else is ever good."""

import asyncio
import gc
import gzip
import tracemalloc
import zlib
from base64 import urlsafe_b64encode
from collections.abc import Callable
from datetime import timedelta
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import metrics
from ledger.canon import proofs
from ledger.canon.times import format_time
from ledger.errors import BadForm, NotAccepted, StaylogError, Unavailable
from ledger.identity.credentials import Credential
from ledger.identity.issuers import Issuer, Registry
from ledger.identity.issuing import pack
from ledger.identity.status import MAX_BYTES, MIN_BYTES, StatusList, StatusLists, unpack
from ledger.net.fetch import Fetcher
from tests.identities import (
    GUEST_CLAIMS,
    IDV,
    ISSUER,
    NOW,
    STATUS,
    THIEF,
    TRUST,
    Speaker,
    credential,
    judge,
    packed,
    signed,
    status_list,
)
from tests.network import Neighbourhood
from tests.running import SetClock

URL = STATUS["statusListCredential"]


def holding(*statuses: dict[str, Any], issuer: Speaker = ISSUER) -> Credential:
    """A verified credential that names these lists."""
    return Credential("guest", f"{IDV}/1", issuer.did, GUEST_CLAIMS, NOW, proofs.EDDSA_JCS, issuer.public, statuses)


HELD = holding(STATUS)


class Outside:
    """Where lists are published, and somebody who looks them up."""

    def __init__(self, hood: Neighbourhood, trust: Registry = TRUST) -> None:
        self.hood = hood
        self.clock = SetClock(format_time(NOW))
        self.trust = trust
        self.lists = StatusLists(Fetcher("staylog/test", hood.development), self.clock, lambda: self.trust)

    def publish(self, document: Any = None, url: str = URL, **options: Any) -> None:
        self.hood.put(url, status_list(url=url) if document is None else document, **options)

    def verdict(self, held: Credential = HELD) -> str:
        try:
            asyncio.run(self.lists.require_good(held))
        except StaylogError as refused:
            return refused.code
        return "good"

    @property
    def asked(self) -> int:
        return self.hood.requests[URL]


@pytest.fixture
def outside(neighbourhood: Neighbourhood) -> Outside:
    return Outside(neighbourhood)


def test_a_credential_is_good_until_its_place_is_marked(outside: Outside) -> None:
    outside.publish(status_list([76, 78, 0, 131_071]))
    assert outside.verdict() == "good"
    outside.clock.forward(hours=1)
    outside.publish(status_list([77]))
    assert outside.verdict() == "credential_revoked"


def test_a_real_credential_by_its_issuer(outside: Outside) -> None:
    outside.publish(status_list([77]))
    assert outside.verdict(judge(credential())) == "credential_revoked"
    assert outside.verdict(judge(credential("host"), "host")) == "credential_revoked"


def test_a_credential_without_a_status_is_not_looked_up(outside: Outside) -> None:
    assert outside.verdict(holding()) == "good"
    assert outside.hood.connections == 0


@pytest.mark.parametrize("suite", proofs.SUITES)
def test_lists_by_every_suite(outside: Outside, suite: str) -> None:
    outside.publish(status_list([77], suites=(suite,)))
    assert outside.verdict() == "credential_revoked"


def test_suspension_is_for_now(outside: Outside) -> None:
    entry = {**STATUS, "statusPurpose": "suspension"}
    outside.publish(status_list([77], purpose="suspension"))
    assert outside.verdict(holding(entry)) == "credential_suspended"
    outside.publish(status_list([], purpose="suspension"))
    outside.clock.forward(hours=1)
    assert outside.verdict(holding(entry)) == "good"


def test_every_entry_counts(outside: Outside) -> None:
    """Whichever comes first, and though it is in a list of its own."""
    other = f"{IDV}/status/2"
    suspended = {**STATUS, "statusPurpose": "suspension", "statusListCredential": other, "id": f"{other}#77"}
    outside.publish()
    outside.publish(status_list([77], url=other, purpose="suspension"), url=other)
    assert outside.verdict(holding(STATUS, suspended)) == "credential_suspended"
    assert outside.verdict(holding(suspended, STATUS)) == "credential_suspended"
    both = status_list([])
    both["credentialSubject"]["statusPurpose"] = ["suspension", "revocation"]
    outside.clock.forward(hours=1)
    outside.publish(signed(both))
    assert outside.verdict() == "good"


# How long a list is believed


@pytest.mark.parametrize(
    ("options", "headers", "seconds"),
    [
        ({}, {}, 3600),
        ({"ttl_seconds": 300}, {}, 300),
        ({"ttl_seconds": 86_400}, {}, 3600),
        ({"ttl_seconds": 0}, {}, 60),
        ({"valid_until": NOW + timedelta(minutes=7)}, {}, 420),
        ({"valid_until": NOW + timedelta(seconds=7)}, {"cache_control": "max-age=90"}, 7),
        ({}, {"cache_control": "max-age=90"}, 90),
        ({}, {"cache_control": "no-store"}, 60),
        ({"ttl_seconds": 100}, {"cache_control": "max-age=9999"}, 100),
    ],
)
def test_a_list_is_kept_for_an_hour_at_most(
    outside: Outside, options: dict[str, Any], headers: dict[str, str], seconds: int
) -> None:
    outside.publish(status_list([], **options), **headers)
    assert outside.verdict() == "good"
    outside.publish(status_list([77], **{**options, "valid_until": None}), **headers)
    outside.clock.forward(seconds=seconds - 1)
    assert (outside.verdict(), outside.asked) == ("good", 1)
    outside.clock.forward(seconds=1)
    assert (outside.verdict(), outside.asked) == ("credential_revoked", 2)


def test_a_thousand_ask_at_once_and_one_is_sent(outside: Outside) -> None:
    outside.publish(delay=0.1)

    async def ask() -> None:
        await asyncio.gather(*(outside.lists.require_good(HELD) for _ in range(1000)))

    asyncio.run(ask())
    assert outside.asked == 1


# What cannot be looked up is never good


def other_signer(document: dict[str, Any]) -> dict[str, Any]:
    return signed(document, speaker=Speaker(4, IDV, "/keys/1"))


def changed(document: dict[str, Any]) -> dict[str, Any]:
    """A bit was unset after signing."""
    document["credentialSubject"]["encodedList"] = pack([], 131_072)
    return document


LIES: dict[str, Callable[[Outside], Any]] = {
    "down": lambda outside: outside.hood.take_down("idv.example"),
    "not there": lambda outside: outside.publish({}, status=404),
    "broken": lambda outside: outside.publish({}, status=500),
    "too busy": lambda outside: outside.publish({}, status=503, retry_after="7"),
    "elsewhere": lambda outside: outside.publish(b"", status=302, location="https://other.example/"),
    "a page": lambda outside: outside.publish(b"<html>", media_type="text/html"),
    "no JSON": lambda outside: outside.publish(b"{"),
    "twice": lambda outside: outside.publish(b'{"id":1,"id":2}'),
    "too deep": lambda outside: outside.publish(b"[" * 50 + b"]" * 50),
    "too large": lambda outside: outside.publish(b'"%s"' % (b"x" * (1 << 20))),
    "packed": lambda outside: outside.publish(gzip.compress(b"{}"), content_encoding="gzip"),
    "a list": lambda outside: outside.publish([]),
    "something else": lambda outside: outside.publish(credential()),
    "without a proof": lambda outside: outside.publish(
        {name: value for name, value in status_list().items() if name != "proof"}
    ),
    "by another key": lambda outside: outside.publish(other_signer(status_list())),
    "changed after signing": lambda outside: outside.publish(changed(status_list([77]))),
    "by a key of another origin": lambda outside: outside.publish(
        signed(status_list(), speaker=Speaker(1, "https://other.example", "/keys/1"))
    ),
    "for another purpose of proof": lambda outside: outside.publish(
        signed(status_list(), proofPurpose="authentication")
    ),
    "expired": lambda outside: outside.publish(
        status_list(valid_from=NOW - timedelta(days=9), valid_until=NOW - timedelta(seconds=1))
    ),
    "not yet valid": lambda outside: outside.publish(signed({**status_list(), "validFrom": "2026-06-01T12:05:01Z"})),
    "signed in the future": lambda outside: outside.publish(signed(status_list(), created="2026-06-01T12:05:01Z")),
    "an expired proof": lambda outside: outside.publish(signed(status_list(), expires="2026-06-01T11:00:00Z")),
    "another context": lambda outside: outside.publish(
        signed({**status_list(), "@context": ["https://www.w3.org/ns/credentials/v2", "https://evil.example"]})
    ),
    "a member more": lambda outside: outside.publish(signed({**status_list(), "note": "trust me"})),
    "a status of its own": lambda outside: outside.publish(signed({**status_list(), "credentialStatus": STATUS})),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_that_is_down_or_lies_is_asked_again_and_never_believed(outside: Outside, lie: str) -> None:
    """503, nothing valid meanwhile, and it is over when it is over: nobody restarts anything."""
    LIES[lie](outside)
    counted = metrics.STATUSES.labels("status_unavailable")._value.get()
    with pytest.raises(Unavailable) as refused:
        asyncio.run(outside.lists.require_good(HELD))
    assert refused.value.code == "status_unavailable"
    assert 1 <= refused.value.retry_after <= 30
    assert metrics.STATUSES.labels("status_unavailable")._value.get() == counted + 1
    outside.publish()
    outside.hood.bring_back("idv.example")
    assert outside.verdict() == "status_unavailable"
    outside.clock.forward(seconds=30)
    assert outside.verdict() == "good"


def test_a_slow_server_is_given_three_seconds(outside: Outside) -> None:
    outside.publish(delay=20)
    assert outside.verdict() == "status_unavailable"


def test_a_kept_list_outlives_its_server_for_its_hour_and_no_longer(outside: Outside) -> None:
    outside.publish()
    assert outside.verdict() == "good"
    outside.hood.take_down("idv.example")
    outside.clock.forward(minutes=59)
    assert outside.verdict() == "good"
    outside.clock.forward(minutes=1)
    assert outside.verdict() == "status_unavailable"


def test_a_clock_that_is_set_back_makes_no_list_last_longer(outside: Outside) -> None:
    outside.publish()
    assert outside.verdict() == "good"
    outside.clock.forward(minutes=-10)
    outside.publish(status_list([77], valid_from=NOW - timedelta(days=1)))
    assert outside.verdict() == "credential_revoked"


# What cannot be a list for this credential


def subject(**changes: Any) -> dict[str, Any]:
    document = status_list()
    document["credentialSubject"] |= changes
    return signed(document)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(signed({**status_list(), "issuer": "https://other.example"}), id="of another issuer"),
        pytest.param(signed({**status_list(), "id": f"{IDV}/status/2"}), id="of another address"),
        pytest.param(subject(encodedList=packed(bytes(MIN_BYTES - 1))), id="too short"),
        pytest.param(subject(encodedList=packed(bytes(MAX_BYTES + 1))), id="too long"),
        pytest.param(subject(encodedList="u" + packed(bytes(MIN_BYTES))[1:-20]), id="cut off"),
        pytest.param(subject(encodedList="uAAAA"), id="not gzip"),
        pytest.param(subject(encodedList="uAAAAA"), id="not base64url"),
    ],
)
def test_a_list_that_cannot_be_the_one(outside: Outside, document: dict[str, Any]) -> None:
    outside.publish(document)
    assert outside.verdict() == "status_invalid"
    outside.publish()
    outside.clock.forward(seconds=30)
    assert outside.verdict() == "good"


@pytest.mark.parametrize("purpose", ["suspension", ["refresh", "message"]])
def test_a_list_about_something_else(outside: Outside, purpose: Any) -> None:
    outside.publish(subject(statusPurpose=purpose))
    assert outside.verdict() == "status_invalid"


def test_a_list_of_another_issuer_that_is_signed_by_it(neighbourhood: Neighbourhood) -> None:
    """Both are trusted, and neither speaks for the other."""
    other = Speaker(9, "https://other.example", "/keys/1")
    trust = Registry([*TRUST, Issuer("guest", other.did, "trusted", (other.multikey,))])
    outside = Outside(neighbourhood, trust)
    outside.publish(signed({**status_list(), "issuer": other.did}, speaker=other))
    assert outside.verdict() == "status_invalid"


def test_places_beyond_the_list(outside: Outside) -> None:
    outside.publish()
    assert outside.verdict(holding({**STATUS, "statusListIndex": "131071"})) == "good"
    assert outside.verdict(holding({**STATUS, "statusListIndex": "131072"})) == "status_invalid"
    assert outside.verdict(holding({**STATUS, "statusListIndex": "9999999999"})) == "status_invalid"


@pytest.mark.parametrize("url", ["https://other.example/status/1", "https://idv.example.evil.example/status/1"])
def test_a_list_is_at_the_issuers_own_origin(outside: Outside, url: str) -> None:
    outside.publish(status_list(), url=url)
    assert outside.verdict(holding({**STATUS, "statusListCredential": url})) == "status_invalid"
    assert outside.hood.connections == 0


@pytest.mark.parametrize("url", ["https://127.0.0.1/1", "http://idv.example/1", "https://idv.example:8443/1", "urn:x"])
def test_lists_at_addresses_that_are_never_asked(outside: Outside, url: str) -> None:
    assert outside.verdict(holding({**STATUS, "statusListCredential": url})) == "address_not_allowed"
    assert outside.hood.connections == 0


@pytest.mark.parametrize(
    ("issuer", "url"),
    [
        (Speaker(9, "did:web:idv.example:guests", "#key-1"), f"{IDV}/status/9"),
        (Speaker(9), "https://anywhere.example/status/9"),
    ],
)
def test_issuers_that_are_dids(neighbourhood: Neighbourhood, issuer: Speaker, url: str) -> None:
    """A did:web has a domain. A did:key has none: the list is signed by that very key, wherever it is."""
    outside = Outside(neighbourhood, Registry([Issuer("guest", issuer.did, "trusted", (issuer.multikey,))]))
    held = holding({**STATUS, "statusListCredential": url}, issuer=issuer)
    outside.publish(status_list([77], url=url, issuer=issuer), url=url)
    assert outside.verdict(held) == "credential_revoked"
    if issuer.did.startswith("did:web:"):
        elsewhere = holding({**STATUS, "statusListCredential": "https://b.example/9"}, issuer=issuer)
        assert outside.verdict(elsewhere) == "status_invalid"


def test_trust_is_looked_at_each_time(outside: Outside) -> None:
    """A list that was signed by a key that is trusted no more does not count, though it is kept."""
    outside.publish()
    assert outside.verdict() == "good"
    outside.trust = Registry([Issuer("guest", IDV, "trusted", (THIEF.multikey,))])
    assert outside.verdict() == "status_unavailable"
    outside.trust = Registry([])
    outside.clock.forward(seconds=30)
    assert outside.verdict() == "issuer_not_trusted"


def test_an_issuer_with_a_new_key_is_heard_at_once(outside: Outside) -> None:
    """Though the list by its old one is kept for an hour."""
    outside.publish()
    assert outside.verdict() == "good"
    new = Speaker(31, IDV, "/keys/2")
    outside.trust = Registry([Issuer("guest", IDV, "trusted", (new.multikey,))])
    outside.publish(status_list([77], issuer=new))
    assert outside.verdict() == "credential_revoked"
    assert outside.asked == 2


# Size


def test_a_bomb_is_refused_at_little_cost(outside: Outside) -> None:
    """Half a gigabyte of zeros in half a megabyte."""
    packer, parts = zlib.compressobj(9, wbits=31), []
    for _ in range(512):
        parts.append(packer.compress(bytes(1 << 20)))
    bomb = b"".join([*parts, packer.flush()])
    document = status_list()
    document["credentialSubject"]["encodedList"] = "u" + urlsafe_b64encode(bomb).rstrip(b"=").decode()
    outside.publish(signed(document))
    tracemalloc.start()
    began = process_time()
    with pytest.raises(NotAccepted) as refused:
        unpack(document["credentialSubject"]["encodedList"])
    taken, (_, peak) = process_time() - began, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refused.value.code == "status_invalid"
    assert peak < 8 << 20
    assert taken < 1
    assert outside.verdict() == "status_invalid"


def test_a_list_of_a_million_is_kept_as_its_bits(outside: Outside) -> None:
    """The last of them revoked; of a megabyte of JSON an eighth of a megabyte stays."""
    places, marked = 1_000_000, range(1, 1_000_000, 3)
    outside.publish(status_list(marked, places=places))
    outside.verdict(holding())
    gc.collect()
    tracemalloc.start()
    last = holding({**STATUS, "statusListIndex": str(places - 1)})
    assert outside.verdict(last) == ("credential_revoked" if places - 1 in marked else "good")
    gc.collect()
    kept = sum(trace.size for trace in tracemalloc.take_snapshot().traces if trace.size > 1024)
    tracemalloc.stop()
    assert kept < places / 8 + (64 << 10)
    assert outside.verdict(holding({**STATUS, "statusListIndex": "4"})) == "credential_revoked"
    assert outside.verdict(holding({**STATUS, "statusListIndex": "5"})) == "good"
    assert outside.asked == 1


@given(st.sets(st.integers(0, 131_071), max_size=50))
def test_places_are_bits_from_the_left(marked: set[int]) -> None:
    found = StatusList(("revocation",), unpack(pack(marked, 131_072)), b"")
    assert {place for place in range(131_072) if found.bits[place >> 3] and found.is_set(place)} == marked
    number = int.from_bytes(found.bits)
    assert all(number >> (131_071 - place) & 1 for place in marked)


@pytest.mark.parametrize(
    ("marked", "places"), [([5], 100), ([], 131_071), ([131_072], 131_072), ([-1], 131_072), ([], 1 << 25)]
)
def test_lists_that_nobody_makes(marked: list[int], places: int) -> None:
    with pytest.raises(BadForm):
        pack(marked, places)
