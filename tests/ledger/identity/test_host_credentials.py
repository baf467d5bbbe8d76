"""The nine steps of a host's credential (OpenSTR RFC-004): what fails at each, and by which code."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon.times import format_time
from ledger.errors import Unavailable
from ledger.identity.credentials import Credential
from ledger.identity.host_credentials import STEPS, Failed, HostJudge
from ledger.identity.issuers import Issuer, Registry
from ledger.identity.status import StatusLists
from ledger.net.fetch import Fetcher
from tests.identities import (
    HOST,
    IDV,
    ISSUER,
    NOW,
    STATUS,
    THIEF,
    TRUST,
    Speaker,
    canonize,
    credential,
    signed,
    status_list,
)
from tests.network import Neighbourhood
from tests.running import SetClock

URL = f"{IDV}/credentials/55"
LIST = STATUS["statusListCredential"]


class Judge:
    """A credential that passes, at its address, until a test changes something."""

    def __init__(self, hood: Neighbourhood) -> None:
        self.hood = hood
        self.trust = TRUST
        self.clock = SetClock(format_time(NOW))
        self.document = credential("host")
        hood.put(LIST, status_list())

    def verdict(self, listing: str | None = "rose-cottage", url: str = URL, **options: Any) -> Credential | Failed:
        if url == URL and "handled" not in options:
            self.hood.put(URL, self.document)
        fetcher = Fetcher("staylog/test", self.hood.development)
        statuses = StatusLists(fetcher, self.clock, lambda: self.trust)
        return asyncio.run(HostJudge(fetcher, self.trust, statuses, self.clock, canonize).judge(url, listing))

    def failed(self, **options: Any) -> tuple[int, str]:
        found = self.verdict(**options)
        assert isinstance(found, Failed)
        assert found.reason.message
        return found.step, found.reason.code


@pytest.fixture
def judge(neighbourhood: Neighbourhood) -> Judge:
    return Judge(neighbourhood)


def test_a_credential_passes_all_nine(judge: Judge) -> None:
    found = judge.verdict()
    assert isinstance(found, Credential)
    assert found.subject == HOST.did
    assert len(STEPS) == 9
    assert isinstance(judge.verdict("loft-2"), Credential)
    assert isinstance(judge.verdict(None), Credential)


def test_step_1_the_document_is_fetched(judge: Judge) -> None:
    assert judge.failed(url="https://10.0.0.5/credentials/1") == (1, "address_not_allowed")
    assert judge.failed(url="http://idv.example/credentials/1") == (1, "address_not_allowed")
    judge.hood.put(URL, b"<html>", media_type="text/html")
    found = judge.verdict(handled=True)
    assert isinstance(found, Failed)
    assert (found.step, found.reason.code) == (1, "credential_unavailable")
    assert isinstance(found.reason, Unavailable)
    judge.hood.put(URL, b'{"id":1,"id":2}')
    assert judge.failed(handled=True) == (1, "credential_unavailable")
    judge.hood.take_down("idv.example")
    assert judge.failed(handled=True) == (1, "credential_unavailable")


def changed(**members: Any) -> Callable[[Judge], None]:
    """Signed as it is by a careless issuer; None leaves a member out."""

    def change(judge: Judge) -> None:
        document = {**judge.document, **members}
        judge.document = signed({name: value for name, value in document.items() if value is not None})

    return change


def listing(**members: Any) -> Callable[[Judge], None]:
    def change(judge: Judge) -> None:
        claims = judge.document["credentialSubject"]
        places = [{**place, **members} for place in claims["properties"][:1]]
        judge.document = signed({**judge.document, "credentialSubject": {**claims, "properties": places}})

    return change


def proved(**options: Any) -> Callable[[Judge], None]:
    def change(judge: Judge) -> None:
        judge.document = signed(judge.document, **options)

    return change


def trusting(*issuers: Issuer) -> Callable[[Judge], None]:
    def change(judge: Judge) -> None:
        judge.trust = Registry(issuers)

    return change


def status(marked: tuple[int, ...] = (), **options: Any) -> Callable[[Judge], None]:
    return lambda judge: judge.hood.put(LIST, status_list(marked), **options)


def forged(judge: Judge) -> None:
    judge.document["credentialSubject"]["host_type"] = "individual"


@pytest.mark.parametrize(
    ("step", "code", "change"),
    [
        (2, "wrong_credential_type", lambda judge: setattr(judge, "document", credential())),
        (2, "context_not_allowed", changed(**{"@context": ["https://www.w3.org/ns/credentials/v2"]})),
        (2, "undefined_term", changed(note="believe me")),
        (2, "schema_invalid", changed(credentialSubject=[])),
        (2, "jwt_not_acceptable", lambda judge: setattr(judge, "document", "a.b.c")),
        (3, "missing_expiry", changed(validUntil=None)),
        (3, "expired", changed(validUntil=format_time(NOW))),
        (3, "not_yet_valid", changed(validFrom=format_time(NOW + timedelta(minutes=6)))),
        (4, "issuer_not_trusted", trusting()),
        (4, "issuer_not_trusted", trusting(Issuer("guest", IDV, "trusted", (ISSUER.multikey,)))),
        (4, "issuer_not_trusted", trusting(Issuer("host", IDV, "removed", (ISSUER.multikey,)))),
        (4, "self_issued", changed(issuer=HOST.did)),
        (5, "issuer_key_mismatch", proved(verificationMethod="https://other.example/keys/1")),
        (5, "bad_verification_method", proved(verificationMethod="https://idv.example@evil.example/keys/1")),
        (6, "proof_invalid", forged),
        (6, "proof_invalid", proved(speaker=Speaker(4, IDV, "/keys/1"))),
        (6, "proof_invalid", trusting(Issuer("host", IDV, "trusted", (THIEF.multikey,)))),
        (6, "wrong_proof_purpose", proved(proofPurpose="authentication")),
        (6, "proof_time_invalid", proved(created=format_time(NOW + timedelta(minutes=6)))),
        (6, "proof_type_not_supported", changed()),
        (7, "missing_status", changed(credentialStatus=None)),
        (7, "credential_revoked", status((77,))),
        (7, "status_unavailable", status(status=503)),
        (7, "status_invalid", changed(credentialStatus={**STATUS, "statusPurpose": "suspension"})),
        (7, "address_not_allowed", changed(credentialStatus={**STATUS, "statusListCredential": "https://10.0.0.1/1"})),
        (8, "listing_not_covered", listing(listing_id="castle")),
        (9, "listing_not_covered", listing(right_to_let_verified=False)),
    ],
)
def test_a_step_that_fails(judge: Judge, step: int, code: str, change: Callable[[Judge], None]) -> None:
    change(judge)
    if code == "proof_type_not_supported":
        judge.document["proof"]["type"] = "RsaSignature2018"
    assert judge.failed() == (step, code)


def test_without_a_listing_nothing_is_asked_of_one(judge: Judge) -> None:
    listing(right_to_let_verified=False)(judge)
    assert isinstance(judge.verdict(None), Credential)
    assert judge.failed() == (9, "listing_not_covered")
