"""What is sent in: as JSON, so many at once, and finished though nobody waits for it."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

from api.intake import Intake
from ledger.canon import proofs
from ledger.errors import Done, Unavailable
from ledger.identity.contexts import canonicaliser
from tests.api.conftest import Service
from tests.api.hosts_and_guests import attest, attestation, trust_hosts
from tests.api.site import serving
from tests.identities import credential as usual_credential
from tests.reviewing import GUESTS, HOST, credential, review
from tests.waiting import until


@pytest.fixture
def intake() -> Iterator[Intake]:
    made = Intake(most=5)
    made.start()
    yield made
    made.close()


def test_whoever_comes_when_all_places_are_taken_is_told_to_come_back(intake: Intake) -> None:
    go = Event()

    async def wait(number: int) -> int:
        await asyncio.to_thread(go.wait, 10)
        return number

    async def crowd() -> tuple[list[int], Unavailable]:
        inside = [asyncio.ensure_future(intake.run(wait, number)) for number in range(5)]
        await asyncio.sleep(0)
        with pytest.raises(Unavailable) as refused:
            await intake.run(wait, 5)
        go.set()
        done = await asyncio.gather(*inside)
        # Their places are free again.
        assert await intake.run(wait, 7) == 7
        return done, refused.value

    done, refusal = asyncio.run(crowd())
    assert done == [0, 1, 2, 3, 4]
    assert (refusal.code, refusal.retry_after) == ("busy", 5)


def test_what_is_refused_inside_is_refused_outside(intake: Intake) -> None:
    async def refuse() -> None:
        raise Done("already_reviewed", "again")

    with pytest.raises(Done, match="again"):
        asyncio.run(intake.run(refuse))


@pytest.mark.parametrize("close", [False, True])
def test_what_was_begun_is_finished_though_nobody_waits(close: bool) -> None:
    """When whoever asked has gone, and when the service shuts down."""
    intake = Intake(most=100)
    intake.start()
    began, go, finished = Event(), Event(), Event()

    async def work() -> None:
        began.set()
        await asyncio.to_thread(go.wait, 10)
        finished.set()

    async def leave() -> bool:
        task = asyncio.ensure_future(intake.run(work))
        await asyncio.to_thread(began.wait, 10)
        task.cancel()
        if close:
            closing = asyncio.ensure_future(asyncio.to_thread(intake.close))
            await asyncio.sleep(0.05)
            assert not closing.done()
            go.set()
            await closing
            return finished.is_set()
        go.set()
        return await asyncio.to_thread(finished.wait, 10)

    assert asyncio.run(leave())
    if not close:
        intake.close()


def test_nobody_waits_for_who_is_with_the_canonicaliser(tmp_path: Path, database_url: str) -> None:
    """A credential that has a JSON-LD signature only has to wait for its turn; the next guest does not."""
    graph, plain = GUESTS[:2]
    with serving(tmp_path, database_url) as site, ThreadPoolExecutor(1) as pool:
        shown = credential(graph, suites=(proofs.EDDSA_RDFC,))
        with canonicaliser()._turns:
            waiting = pool.submit(site.submit, review(graph, reference="B-1", guest_credential=shown))
            until(lambda: canonicaliser()._turns._places._value == 7)
            assert site.submit(review(plain, reference="B-2")).status_code == 201
            assert not waiting.done()
        assert waiting.result(30).status_code == 201


def test_nor_for_a_host_who_is(tmp_path: Path) -> None:
    """The same of a host's credential, with a review of another platform."""
    with serving(tmp_path) as site, ThreadPoolExecutor(1) as pool:
        trust_hosts(site)
        shown = usual_credential("host", suites=(proofs.EDDSA_RDFC,), id=HOST.did)
        with canonicaliser()._turns:
            waiting = pool.submit(attest, site, attestation(host_credential=shown))
            until(lambda: canonicaliser()._turns._places._value == 7)
            assert site.submit(review(GUESTS[1], reference="B-2")).status_code == 201
            assert not waiting.done()
        assert waiting.result(30).status_code == 201


@pytest.mark.parametrize(
    ("content_type", "status", "code"),
    [
        ("application/json", 400, "schema_invalid"),
        ("application/json; charset=utf-8", 400, "schema_invalid"),
        ("APPLICATION/JSON", 400, "schema_invalid"),
        ("text/plain", 415, "unsupported_media_type"),
        ("application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        ("", 415, "unsupported_media_type"),
    ],
)
@pytest.mark.parametrize(
    "path",
    [
        "/v1/reviews",
        f"/v1/reviews/rev-{'a' * 26}/response",
        f"/v1/reviews/rev-{'a' * 26}/evidence",
        "/v1/bookings",
        "/v1/feedback",
    ],
)
def test_the_body_is_json(service: Service, path: str, content_type: str, status: int, code: str) -> None:
    response = post(service, path, b"{}", content_type)
    assert (response.status_code, response.json()["code"]) == (status, code)


def test_a_body_has_an_end(service: Service) -> None:
    response = post(service, "/v1/reviews", b" " * (256 * 1024 + 1), "application/json")
    assert (response.status_code, response.json()["code"]) == (413, "too_large")
    assert post(service, "/v1/reviews", b" " * (256 * 1024), "application/json").json()["code"] == "malformed_json"


def test_parameters_are_refused(service: Service) -> None:
    assert post(service, "/v1/reviews?draft=1", b"{}", "application/json").json()["code"] == "parameter_invalid"


def post(service: Service, path: str, body: bytes, content_type: str) -> Any:
    headers = {"content-type": content_type} if content_type else {}
    response: httpx.Response = service.client.post(path, content=body, headers=headers)
    return response
