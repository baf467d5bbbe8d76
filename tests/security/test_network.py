"""The rows of the attack table that are about what others publish (spec/credentials.md 10): each with its code, through
every way by which a stranger can name an address. That nothing inside is connected whatever the resolver says is in
test_ssrf.py."""

import asyncio
import gzip
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon.times import format_time
from ledger.errors import NotAccepted, StaylogError, Unavailable
from ledger.identity.host_credentials import Failed, HostJudge
from ledger.identity.published import issuer_keys
from ledger.identity.resolution import Resolution
from ledger.identity.status import StatusLists
from ledger.net.fetch import Fetcher
from tests.identities import (
    HOST,
    IDV,
    ISSUER,
    NOW,
    STATUS,
    TRUST,
    Speaker,
    canonize,
    credential,
    did_document,
    judge,
    packed,
    signed,
    status_list,
)
from tests.network import Neighbourhood
from tests.running import SetClock

LIST = STATUS["statusListCredential"]
DOCUMENT = "https://cottage.example/.well-known/did.json"
CREDENTIAL = f"{IDV}/credentials/55"
COTTAGE = Speaker(3, "did:web:cottage.example", "#key-1")
KEY = {"id": ISSUER.method, "type": "Multikey", "controller": IDV, "publicKeyMultibase": ISSUER.multikey}


class Asker:
    """Everything here that asks somebody."""

    def __init__(self, hood: Neighbourhood) -> None:
        self.hood = hood
        self.clock = SetClock(format_time(NOW))
        self.fetcher = Fetcher("staylog/test", hood.development)
        self.dids = Resolution(self.fetcher, self.clock)
        self.statuses = StatusLists(self.fetcher, self.clock, lambda: TRUST)

    async def did(self, name: str) -> Any:
        return await self.dids.guest(name)

    async def host_did(self, name: str) -> Any:
        return (await self.dids.host(name)).now()

    async def key(self, method: str) -> Any:
        return await issuer_keys(self.fetcher, IDV, method, NOW)

    async def status(self, url: str) -> Any:
        held = judge(signed({**credential(), "credentialStatus": {**STATUS, "statusListCredential": url}}))
        await self.statuses.require_good(held)

    async def host_credential(self, url: str) -> Any:
        found = await HostJudge(self.fetcher, TRUST, self.statuses, self.clock, canonize).judge(url, "rose-cottage")
        if isinstance(found, Failed):
            raise found.reason
        return found

    def refused(self, question: Awaitable[Any]) -> StaylogError:
        async def ask() -> Any:
            return await question

        with pytest.raises(StaylogError) as refused:
            asyncio.run(ask())
        return refused.value


@pytest.fixture
def asker(neighbourhood: Neighbourhood) -> Asker:
    """One for whom all is well: a host, an issuer with its key, its list, and a credential."""
    neighbourhood.put(DOCUMENT, did_document(COTTAGE))
    neighbourhood.put(ISSUER.method, KEY)
    neighbourhood.put(LIST, status_list())
    neighbourhood.put(CREDENTIAL, credential("host"))
    return Asker(neighbourhood)


def test_all_is_well(asker: Asker) -> None:
    assert asyncio.run(asker.did(COTTAGE.did)) == {COTTAGE.method: COTTAGE.public}
    assert asyncio.run(asker.host_did(COTTAGE.did)) == {COTTAGE.method: COTTAGE.public}
    assert asyncio.run(asker.key(ISSUER.method)) == {ISSUER.method: ISSUER.public}
    assert asyncio.run(asker.host_credential(CREDENTIAL)).subject == HOST.did
    asyncio.run(asker.status(LIST))


# SSRF through did:web, verificationMethod, statusListCredential, credential_uri

INSIDE = (
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "10.0.0.5",
    "169.254.169.254",
    "192.168.1.1",
    "localhost",
    "metadata",
)


@pytest.mark.parametrize("host", INSIDE)
@pytest.mark.parametrize("way", ["did", "host_did", "key", "status", "host_credential"])
def test_addresses_inside_are_not_asked_by_any_way(asker: Asker, way: str, host: str) -> None:
    """A key's address must be the issuer's own, and so must a list's: those are other issuers, at such addresses."""
    questions: dict[str, Callable[[], Awaitable[Any]]] = {
        "did": lambda: asker.did(f"did:web:{host}"),
        "host_did": lambda: asker.host_did(f"did:web:{host}"),
        "key": lambda: issuer_keys(asker.fetcher, f"https://{host}", f"https://{host}/keys/1", NOW),
        "status": lambda: asker.status(f"https://{host}/status/1"),
        "host_credential": lambda: asker.host_credential(f"https://{host}/credentials/1"),
    }
    before = asker.hood.connections
    refused = asker.refused(questions[way]())
    assert refused.code == "address_not_allowed"
    assert isinstance(refused, NotAccepted)
    assert asker.hood.connections == before


@pytest.mark.parametrize("url", ["http://idv.example/1", "https://idv.example:8443/1", "https://u:p@idv.example/1"])
def test_other_schemes_ports_and_users_are_not_asked(asker: Asker, url: str) -> None:
    assert asker.refused(asker.host_credential(url)).code == "address_not_allowed"
    assert asker.hood.connections == 0


# Slow or huge remote answers, redirects, packed bodies

WAYS = {
    "did": (DOCUMENT, COTTAGE.did, "guest_did_unavailable"),
    "host_did": (DOCUMENT, COTTAGE.did, "host_did_unavailable"),
    "key": (ISSUER.method, ISSUER.method, "issuer_unavailable"),
    "status": (LIST, LIST, "status_unavailable"),
    "host_credential": (CREDENTIAL, CREDENTIAL, "credential_unavailable"),
}
TROUBLES: dict[str, Callable[[Neighbourhood, str], None]] = {
    "slow": lambda hood, url: hood.put(url, {}, delay=20),
    "huge": lambda hood, url: hood.put(url, b'"%s"' % (b"x" * (1 << 20))),
    "redirected inside": lambda hood, url: hood.put(url, b"", status=302, location="https://127.0.0.1/"),
    "redirected elsewhere": lambda hood, url: hood.put(url, b"", status=307, location="https://cottage.example/x"),
    "packed": lambda hood, url: hood.put(url, gzip.compress(b"{}" * 9), content_encoding="gzip"),
    "down": lambda hood, url: hood.take_down(url.split("/")[2]),
    "broken": lambda hood, url: hood.put(url, b"", status=500),
    "a page": lambda hood, url: hood.put(url, b"<p>", media_type="text/html"),
}


# The fetcher is one for all: it is enough if one of them waits for its three seconds.
@pytest.mark.parametrize(
    ("way", "trouble"), [(way, trouble) for way in WAYS for trouble in TROUBLES if trouble != "slow" or way == "status"]
)
def test_what_cannot_be_had_is_unavailable_and_never_valid(asker: Asker, way: str, trouble: str) -> None:
    """503, worth another try; and nobody was asked but whom it was about."""
    url, name, code = WAYS[way]
    TROUBLES[trouble](asker.hood, url)
    refused = asker.refused(getattr(asker, way)(name))
    assert refused.code == code
    assert isinstance(refused, Unavailable)
    assert refused.retry_after > 0
    assert set(asker.hood.requests) <= {url}


# A status list of another issuer, of another purpose, too short


@pytest.mark.parametrize("which", ["of another issuer", "of another purpose", "too short"])
def test_a_list_that_is_not_the_one(asker: Asker, which: str) -> None:
    document = status_list(purpose="suspension" if which == "of another purpose" else "revocation")
    if which == "of another issuer":
        document["issuer"] = "https://other.example"
    if which == "too short":
        document["credentialSubject"]["encodedList"] = packed(bytes(16_383))
    asker.hood.put(LIST, signed(document))
    refused = asker.refused(asker.status(LIST))
    assert refused.code == "status_invalid"
    assert isinstance(refused, NotAccepted)


# Keys that are not the issuer's, or not any more


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"controller": "https://other.example"}, "issuer_key_mismatch"),
        ({"id": f"{IDV}/keys/2"}, "bad_verification_method"),
        ({"expires": format_time(NOW - timedelta(seconds=1))}, "bad_verification_method"),
        ({"revoked": format_time(NOW - timedelta(seconds=1))}, "bad_verification_method"),
        ({"secretKeyMultibase": "z3u2"}, "bad_verification_method"),
    ],
    ids=["of another controller", "of another address", "expired", "revoked", "with its secret"],
)
def test_keys_that_are_not_the_issuers(asker: Asker, change: dict[str, str], code: str) -> None:
    asker.hood.put(ISSUER.method, {**KEY, **change})
    assert asker.refused(asker.key(ISSUER.method)).code == code


@pytest.mark.parametrize("change", [{"expires": "2026-06-01T11:59:59Z"}, {"revoked": "2026-06-01T12:00:00Z"}], ids=str)
def test_keys_of_a_did_expire_and_are_revoked(asker: Asker, change: dict[str, str]) -> None:
    document = did_document(COTTAGE)
    document["verificationMethod"][0] |= change
    asker.hood.put(DOCUMENT, document)
    assert asyncio.run(asker.did(COTTAGE.did)) == {}


def test_a_key_that_expires_while_its_document_is_kept(asker: Asker) -> None:
    document = did_document(COTTAGE)
    document["verificationMethod"][0]["expires"] = format_time(NOW + timedelta(minutes=2))
    asker.hood.put(DOCUMENT, document)
    assert asyncio.run(asker.did(COTTAGE.did)) == {COTTAGE.method: COTTAGE.public}
    asker.clock.forward(minutes=2)
    assert asyncio.run(asker.did(COTTAGE.did)) == {}
    assert asker.hood.requests[DOCUMENT] == 1
