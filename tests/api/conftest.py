"""A real ledger in a temporary folder behind a real server on a socket."""

import logging
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import httpx
import pytest

from api.app import create_app
from api.server import Server, config
from ledger.clock import Clock, utc_now
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.log.drafts import make_draft
from ledger.settings import Settings
from tests.api.refusals import first_review
from tests.api.site import Site, serving
from tests.engines import PostgresServer
from tests.world import World

BASE = "https://ledger.example"
HOSTS = ("did:web:cottage.example", "did:web:host1.example%3A8443", "did:web:host2.example")
BUSY = "did:web:busy.example"


@dataclass(slots=True)
class Service:
    """A running service; `world` is what its ledger holds, index for index."""

    ledger: Ledger
    world: World
    port: int
    client: httpx.Client

    def get(self, path: str, **headers: str) -> httpx.Response:
        return self.client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def raw(self, target: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """A request whose target goes out as it is written: clients tidy paths up."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.putrequest(method, target, skip_host="host" in headers)
            for name, value in headers.items():
                connection.putheader(name.replace("_", "-"), value)
            connection.endheaders()
            response = connection.getresponse()
            return response.status, {name.lower(): value for name, value in response.getheaders()}, response.read()
        finally:
            connection.close()

    def grow(self, *steps: Callable[[], Any]) -> None:
        """What `steps` do to the world, in the world and in the ledger: at the same indices, only the times differ."""
        for step in steps:
            step()
            if self.port:
                self._copy_batch()
        if not self.port:
            self._copy_batch()

    def _copy_batch(self) -> None:
        """Before the service runs a batch of any length; then one entry at a time, as its sequencer would cut it."""
        before, drafts = len(self.world.log.entries), []
        if not self.world.next_index > before:
            return
        self.world.publish()
        for index, entry in enumerate(self.world.log.entries[before:-1], before):
            members = {name: value for name, value in entry.members.items() if name not in ("type", "v", "at")}
            drafts.append(make_draft(entry.type, members, opening=self.world.log.openings.get(index)))
        if self.port:
            for draft in drafts:
                self.ledger.sequencer.submit(draft).result(timeout=10)
        else:
            self.ledger.sequencer.append(drafts)
        assert self.ledger.reader.published.size == len(self.world.log.entries)


def make_ledger(folder: Path, database_url: str | None = None, clock: Clock = utc_now) -> Ledger:
    settings = Settings.of(folder / "ledger", database_url, BASE)
    init_folder(settings, clock=clock)
    return open_ledger(settings, clock=clock)


def serve(ledger: Ledger, **options: Any) -> tuple[Server, Thread, int]:
    """Without limits by address, unless told: all tests come from one."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(config(create_app(ledger, BASE, **{"limits": False, **options}), "127.0.0.1", 0))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    deadline = monotonic() + 20
    while not server.started and monotonic() < deadline:
        sleep(0.01)
    return server, thread, listener.getsockname()[1]


def run_service(folder: Path, database_url: str | None, fill: Callable[[Service], None]) -> Iterator[Service]:
    ledger = make_ledger(folder, database_url)
    world = World(seed=5, hosts=HOSTS)
    with httpx.Client(trust_env=False) as client:
        service = Service(ledger, world, 0, client)
        fill(service)
        server, thread, service.port = serve(ledger)
        client.base_url = httpx.URL(f"http://127.0.0.1:{service.port}")
        yield service
        server.should_exit = True
        thread.join()


def _fill(service: Service) -> None:
    world = service.world
    for _ in range(12):
        service.grow(*([world.step] * 25))
    for _ in range(5):
        service.grow(
            *(
                [lambda: world._add("booking_check", {"host_did": BUSY, "outcome": "denied", "booking": world.hash()})]
                * 201
            )
        )


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def service(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Shared by all tests that only read; about 1,300 entries, one host with 1,005 events; one on each engine."""
    url = None
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = server.url("service")
    yield from run_service(tmp_path_factory.mktemp("service"), url, _fill)


@pytest.fixture
def fresh(tmp_path: Path, database_url: str) -> Iterator[Service]:
    """A service of one's own, on each engine, to write to and to break."""
    yield from run_service(tmp_path, database_url, lambda service: service.grow(*([service.world.review] * 3)))


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that has one review with its response. Nothing of what is refused changes it."""
    with serving(tmp_path_factory.mktemp("codes")) as site:
        first_review(site)
        yield site


@pytest.fixture
def log_records(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.ERROR, logger="staylog.api")
    return caplog
