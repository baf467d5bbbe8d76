"""Where the keys of an issuer are looked up by whoever has no ledger: its own document, or the address of the key."""

import asyncio
from typing import Any

import pytest

from ledger.errors import StaylogError
from ledger.identity.published import issuer_keys
from ledger.net.fetch import Fetcher
from tests.identities import IDV, ISSUER, NOW, Speaker, did_document
from tests.network import Neighbourhood

SECOND = Speaker(31, IDV, "#key-2")
KEY = {"id": ISSUER.method, "type": "Multikey", "controller": IDV, "publicKeyMultibase": ISSUER.multikey}
WEB = Speaker(32, "did:web:idv.example:guests", "#key-1")


def keys(hood: Neighbourhood, issuer: str, method: str) -> Any:
    try:
        return asyncio.run(issuer_keys(Fetcher("staylog/test", hood.development), issuer, method, NOW))
    except StaylogError as refused:
        return refused.code


def test_a_key_at_its_own_address(neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(ISSUER.method, KEY)
    assert keys(neighbourhood, IDV, ISSUER.method) == {ISSUER.method: ISSUER.public}


def test_all_keys_of_the_issuers_document(neighbourhood: Neighbourhood) -> None:
    """One of them may have signed the status list."""
    neighbourhood.put(f"{IDV}/", did_document(SECOND, ISSUER))
    found = {SECOND.method: SECOND.public, ISSUER.method: ISSUER.public}
    assert keys(neighbourhood, IDV, SECOND.method) == found
    assert keys(neighbourhood, IDV, f"{IDV}#key-9") == "bad_verification_method"


def test_a_did_web(neighbourhood: Neighbourhood) -> None:
    neighbourhood.put("https://idv.example/guests/did.json", did_document(WEB))
    assert keys(neighbourhood, WEB.did, WEB.method) == {WEB.method: WEB.public}
    assert keys(neighbourhood, WEB.did, f"{WEB.did}#key-2") == "bad_verification_method"


def test_a_did_key_has_it_in_its_name(neighbourhood: Neighbourhood) -> None:
    issuer = Speaker(33)
    assert keys(neighbourhood, issuer.did, issuer.method) == {issuer.method: issuer.public}
    assert neighbourhood.connections == 0


def test_whoever_has_another_place_at_the_origin_does_not_speak_for_the_issuer(neighbourhood: Neighbourhood) -> None:
    """A document that says it is the issuer's is believed at the issuer's address alone."""
    method = f"{IDV}/users/mallory#key-1"
    posing = {**did_document(Speaker(4, IDV, "/users/mallory#key-1"))}
    neighbourhood.put(f"{IDV}/users/mallory", posing)
    assert keys(neighbourhood, IDV, method) == "bad_verification_method"


@pytest.mark.parametrize("method", [ISSUER.method, SECOND.method])
def test_an_issuer_that_is_down(neighbourhood: Neighbourhood, method: str) -> None:
    neighbourhood.host("idv.example")
    assert keys(neighbourhood, IDV, method) == "issuer_unavailable"
    neighbourhood.take_down("idv.example")
    assert keys(neighbourhood, IDV, method) == "issuer_unavailable"
