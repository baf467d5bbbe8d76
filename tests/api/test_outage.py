"""A database that goes away: the service says so, loses nothing, and goes on by itself when it is back."""

from collections.abc import Iterator
from pathlib import Path
from time import monotonic, sleep

import psycopg
import pytest

from ledger.errors import Unavailable
from tests.api.conftest import Service, run_service
from tests.engines import PostgresServer
from tests.running import Writer


@pytest.fixture
def remote(tmp_path: Path, postgres: PostgresServer) -> Iterator[Service]:
    url = postgres.url("outage")
    yield from run_service(tmp_path, url, lambda service: service.grow(*([service.world.review] * 3)))
    postgres.drop("outage")


def test_an_outage_is_told_and_survived(remote: Service, postgres: PostgresServer) -> None:
    sequencer, writer = remote.ledger.sequencer, Writer()
    before = remote.get("/log/checkpoint").text
    admin = psycopg.connect(host=str(postgres.directory), user="postgres", dbname="postgres", autocommit=True)
    admin.execute("ALTER DATABASE outage WITH ALLOW_CONNECTIONS false")
    admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'outage'")
    with pytest.raises(Unavailable) as refused:
        sequencer.submit(writer.review()).result(20)
    assert refused.value.code == "storage_unavailable"
    problem = wait_for(remote, "/health", 503)
    assert problem["code"] == "storage_unavailable"
    answer = remote.get("/v1/hosts/did:web:nobody.example/reputation")
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")
    assert answer.headers["retry-after"] == "5"
    # What is known without the database is still served.
    assert remote.get("/log/checkpoint").text == before
    admin.execute("ALTER DATABASE outage WITH ALLOW_CONNECTIONS true")
    admin.close()
    assert wait_for(remote, "/health", 200)["status"] == "ok"
    assert sequencer.halted is None
    done = sequencer.submit(writer.review()).result(20)
    assert done.published.note == remote.get("/log/checkpoint").text
    assert remote.get("/v1/hosts/did:web:nobody.example/reputation").status_code == 200


def wait_for(service: Service, path: str, status: int) -> dict[str, str]:
    deadline = monotonic() + 20
    while (response := service.get(path)).status_code != status:
        assert monotonic() < deadline, response.text
        sleep(0.05)
    return dict(response.json())
