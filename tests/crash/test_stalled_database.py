"""A PostgreSQL that stands still, and a lock that a frozen service holds: submissions are refused in good time,
/health says so without waiting, and the services recover by themselves."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGCONT, SIGSTOP
from time import sleep
from typing import Any

import httpx
import pytest

from audits.verify import verify_answer
from ledger.errors import Unavailable
from ledger.folder import open_ledger
from ledger.log.note import Verifier
from ledger.settings import Settings
from ledger.store.deadlines import Deadlines
from ledger.store.engine import Store
from tests.crash.harness import Child, examine
from tests.crash.services import Service, begin, service, written
from tests.engines import PostgresServer
from tests.reviewing import GUESTS, HOST
from tests.waiting import until

# In seconds; a service's own is 4.
DEADLINE = 1.0
BASE = "http://127.0.0.1:8080"


def settings_for(folder: Path, url: str) -> Settings:
    return Settings.of(folder, url, BASE)


@pytest.fixture
def pair(tmp_path: Path, postgres: PostgresServer) -> Iterator[tuple[Settings, Verifier, list[Service]]]:
    """Two services on one database."""
    settings = settings_for(tmp_path / "data", postgres.url("stalled"))
    log = begin(settings)
    with ExitStack() as stack:
        services = [stack.enter_context(service(settings, STAYLOG_DATABASE_DEADLINE=str(DEADLINE))) for _ in range(2)]
        yield settings, log, services
    postgres.drop("stalled")


def test_a_stalled_server_is_told_in_time_and_the_services_recover(
    pair: tuple[Settings, Verifier, list[Service]], postgres: PostgresServer
) -> None:
    settings, log, services = pair
    bodies = [written(GUESTS[number % len(GUESTS)], number, BASE) for number in range(24)]
    first = accepted(services[0], bodies[0])
    with ThreadPoolExecutor(len(bodies)) as threads:
        with postgres.frozen():
            sent = [threads.submit(services[number % 2].review, body) for number, body in enumerate(bodies)]
            for each in services:
                assert each.wait_for_health(503).json()["code"] == "storage_unavailable"
            for answer, seconds in (each.result() for each in sent):
                assert answer.status_code == 503, answer.text
                assert answer.json()["code"] in ("storage_unavailable", "busy")
                assert "refusal" not in answer.json() or answer.json()["code"] == "storage_unavailable"
                assert int(answer.headers["Retry-After"]) > 0
                assert seconds < 10
            assert services[0].get("/log/checkpoint").status_code == 200
        for each in services:
            each.wait_for_health(200)
        again = list(threads.map(lambda pair: accepted(services[pair[0] % 2], pair[1]), enumerate(bodies)))
    assert again[0].status_code == 200
    assert again[0].json() == first.json()
    # A service learns of the other's checkpoints within a second.
    until(lambda: json.loads(answer_of(services[1]))["verified_reviews"] == len(bodies))
    shown = answer_of(services[1])
    verify_answer(shown, log, HOST.did, kind="full")
    ledger = open_ledger(settings)
    examine(ledger)
    ledger.close()


def answer_of(service: Service) -> bytes:
    return service.get(f"/v1/hosts/{HOST.did}/reputation?proof=full").content


def accepted(service: Service, body: dict[str, Any]) -> httpx.Response:
    """Sent again as long as the service says so."""
    for _ in range(40):
        answer, _ = service.review(body)
        if answer.status_code != 503:
            break
        sleep(0.25)
    assert answer.status_code in (200, 201), answer.text
    return answer


def freeze(url: str, channel: Connection) -> None:
    """A process that stands still in the midst of a transaction; then what became of it."""
    store = Store(url, Deadlines(DEADLINE))
    try:
        with store.write():
            channel.send_bytes(b"inside")
            os.kill(os.getpid(), SIGSTOP)
    except Unavailable as error:
        channel.send_bytes(error.code.encode())
    else:
        channel.send_bytes(b"written")
    store.close()


def test_a_frozen_service_that_holds_the_lock_is_thrown_out(tmp_path: Path, postgres: PostgresServer) -> None:
    """By the server, which rolls back what it did; the other one goes on."""
    settings = settings_for(tmp_path / "data", postgres.url("frozen"))
    begin(settings)
    with service(settings, STAYLOG_DATABASE_DEADLINE=str(DEADLINE)) as other:
        child = Child(freeze, settings.database_url)
        assert child.channel.recv_bytes() == b"inside"
        body = written(GUESTS[0], 1, BASE)
        answer, seconds = other.review(body)
        assert seconds < 10
        assert answer.status_code == 201 or answer.json()["code"] == "busy", answer.text
        accepted(other, body)
        other.wait_for_health(200)
        assert child.process.pid
        os.kill(child.process.pid, SIGCONT)
        assert child.channel.recv_bytes() == b"storage_unavailable"
        assert child.wait() == 0
    postgres.drop("frozen")


def test_with_sqlite_a_frozen_process_is_waited_for_and_told_of(tmp_path: Path) -> None:
    """Nothing can end its lock but its own end; it is never waited for longer than the deadline."""
    settings = settings_for(tmp_path / "data", f"sqlite:///{tmp_path}/ledger.db")
    begin(settings)
    with service(settings, STAYLOG_DATABASE_DEADLINE=str(DEADLINE)) as other:
        child = Child(freeze, settings.database_url)
        assert child.channel.recv_bytes() == b"inside"
        body = written(GUESTS[0], 1, BASE)
        answer, seconds = other.review(body)
        assert (answer.status_code, answer.json()["code"]) == (503, "busy")
        assert seconds < 10
        assert other.wait_for_health(503).json()["code"] == "busy"
        assert child.process.pid
        os.kill(child.process.pid, SIGCONT)
        assert child.channel.recv_bytes() == b"written"
        assert child.wait() == 0
        other.wait_for_health(200)
        accepted(other, body)
