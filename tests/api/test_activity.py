"""Counts by day over HTTP: how an issuer's id stands in an address, what is refused, conditional requests."""

import json
from collections import Counter
from urllib.parse import quote

import msgspec
import pytest

from api.shapes import HostEvents, IssuerActivity
from tests.api.conftest import HOSTS, Service
from tests.api.test_census import entries_of
from tests.world import ISSUERS

URL, DID = ISSUERS[0] or "", ISSUERS[1] or ""
PORT = "did:web:idv.example%3A8443"


def of_issuer(issuer: str, query: str = "") -> str:
    return f"/v1/issuers/{quote(issuer, safe='')}/activity{query}"


def of_host(host: str, query: str = "") -> str:
    return f"/v1/hosts/{quote(host, safe=':')}/events{query}"


@pytest.mark.parametrize("issuer", [URL, DID])
def test_an_issuer_is_one_segment_of_the_path(service: Service, issuer: str) -> None:
    response = service.get(of_issuer(issuer))
    assert response.status_code == 200, response.text
    msgspec.json.decode(response.content, type=IssuerActivity)
    reviews = [entry for entry in entries_of(service) if entry["type"] == "review"]
    came_in = Counter(entry["level"] for entry in reviews if entry["evidence"]["issuer"] == issuer)
    counted = Counter[str]()
    for day in response.json()["days"]:
        counted.update({level: day[level] for level in came_in})
    assert counted == came_in


def test_small_letters_in_escapes_are_the_same_issuer(service: Service) -> None:
    same = of_issuer(URL).replace("%2F", "%2f").replace("%3A", "%3a")
    status, _, body = service.raw(same)
    assert (status, json.loads(body)) == (200, service.get(of_issuer(URL)).json())


def test_an_issuer_whose_did_has_a_percent_sign_is_decoded_once(fresh: Service) -> None:
    evidence = {**fresh.world.evidence("stay_receipt"), "issuer": PORT}
    fresh.grow(lambda: fresh.world.review(level="guest_verified", evidence=evidence))
    for address in (of_issuer(PORT), f"/v1/issuers/{quote(PORT, safe=':')}/activity"):
        status, _, body = fresh.raw(address)
        assert (status, [day["guest_verified"] for day in json.loads(body)["days"]]) == (200, [1])
    # As it stands it decodes to another DID: it is refused, and how to spell it is said.
    status, _, body = fresh.raw(f"/v1/issuers/{PORT}/activity")
    assert (status, json.loads(body)["code"]) == (400, "parameter_invalid")
    assert quote(PORT, safe=":") in body.decode()


def test_slashes_that_are_not_escaped_lead_nowhere(service: Service) -> None:
    status, _, body = service.raw(f"/v1/issuers/{URL}/activity")
    assert (status, json.loads(body)["code"]) == (404, "not_found")
    status, _, body = service.raw(of_issuer(URL) + "/more")
    assert (status, json.loads(body)["code"]) == (404, "not_found")


@pytest.mark.parametrize("issuer", ["idv.example", "http://idv.example", "did:web:", "https://", "x" * 3000])
def test_refuses_an_id_that_is_no_issuer(service: Service, issuer: str) -> None:
    response = service.get(of_issuer(issuer))
    assert (response.status_code, response.json()["code"]) == (400, "parameter_invalid")


@pytest.mark.parametrize("host", HOSTS)
def test_a_host_has_its_entries_by_type(service: Service, host: str) -> None:
    response = service.get(of_host(host))
    assert response.status_code == 200, response.text
    msgspec.json.decode(response.content, type=HostEvents)
    types = Counter(entry["type"] for entry in entries_of(service) if entry.get("host_did") == host)
    counted = Counter[str]()
    for day in response.json()["days"]:
        counted.update({name: number for name, number in day.items() if name != "date"})
    assert counted == types


def test_refuses_a_host_in_another_spelling(service: Service) -> None:
    response = service.get("/v1/hosts/did:web:Cottage.example/events")
    assert (response.status_code, response.json()["code"]) == (400, "did_not_canonical")


@pytest.mark.parametrize("query", ["?before=2026-02-30", "?before=2026", "?before=", "?after=2026-01-01"])
@pytest.mark.parametrize("address", [of_host(HOSTS[0]), of_issuer(URL)])
def test_refuses_an_impossible_date(service: Service, address: str, query: str) -> None:
    response = service.get(address + query)
    assert (response.status_code, response.json()["code"]) == (400, "parameter_invalid")


@pytest.mark.parametrize("address", [of_host(HOSTS[0]), of_issuer(URL)])
def test_an_answer_is_asked_for_again_with_its_tag(service: Service, address: str) -> None:
    first = service.get(address)
    assert first.headers["cache-control"] == "public, max-age=30, must-revalidate"
    again = service.get(address, if_none_match=first.headers["etag"])
    assert (again.status_code, again.content) == (304, b"")
    assert service.client.head(address).status_code == 200


def test_a_new_entry_is_counted_at_once(fresh: Service) -> None:
    def today() -> int:
        return sum(day["review"] for host in HOSTS for day in fresh.get(of_host(host)).json()["days"])

    for _ in range(3):
        before = today()
        fresh.grow(lambda: fresh.world.review(HOSTS[0]))
        assert today() == before + 1
