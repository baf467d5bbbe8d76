"""A ledger that is served on a socket, for commands that send something to it; and folders of guests and hosts."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from api.app import create_app
from api.server import Server, config
from ledger.canon import multikey
from ledger.cli import main
from ledger.clock import utc_now
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.reviews.hostkit import BookingVerifier
from ledger.reviews.listings import add_listing
from ledger.settings import Settings
from tests.hosting import HostSite
from tests.identities import IDV, ISSUER, Speaker
from tests.network import Authority, Neighbourhood
from tests.reviewing import HOST, credential, stay_receipt
from tests.waiting import until

TODAY = utc_now().date()
RATED = ["--overall", "4.5", "--accuracy", "5", "--cleanliness", "4.0", "--communication", "5", "--value", "4"]


def days_ago(days: int) -> str:
    return str(TODAY - timedelta(days=days))


def write_key(path: Path, speaker: Speaker) -> str:
    path.touch(mode=0o600)
    path.write_text(multikey.encode_secret(speaker.key) + "\n")
    return str(path)


class Ahead:
    """The real time, or some time after it: whoever signs with a command has the real one."""

    ahead = timedelta()

    def __call__(self) -> datetime:
        return utc_now() + self.ahead


class Place:
    """A ledger that is served, the world outside of it, and what guests and hosts have in their folders."""

    def __init__(self, ledger: Ledger, url: str, outside: Neighbourhood, clock: Ahead) -> None:
        self.ledger = ledger
        self.url = url
        self.outside = outside
        self.clock = clock
        self._bookings = 0

    def guest_of(self, folder: Path, guest: Speaker, host: Speaker = HOST, **changes: Any) -> list[str]:
        """The options of a review of a booking that nobody else has."""
        self._bookings += 1
        stay = {"check_in": days_ago(14), "check_out": days_ago(10), **changes}
        receipt = stay_receipt(guest, host, f"B-{self._bookings}", now=utc_now(), **stay)
        (folder / "stay-receipt.json").write_text(json.dumps(receipt))
        return [*self.identified(folder, guest), "--receipt", str(folder / "stay-receipt.json"), *RATED]

    def identified(self, folder: Path, guest: Speaker) -> list[str]:
        """The options that say who a guest is: a person whom nobody has seen before."""
        self._bookings += 1
        shown = credential(guest, f"person-{self._bookings}", now=utc_now())
        (folder / "credential.json").write_text(json.dumps(shown))
        return ["--key", write_key(folder / "guest.key", guest), "--credential", str(folder / "credential.json")]

    def host(self, name: str) -> HostSite:
        """A host with a domain, whom the ledger can ask."""
        key = multikey.encode(bytes(self.ledger.keys.statements.verify_key))
        site = HostSite(self.outside, key, self.clock, name)
        secret, find = site.speaker.key, site.bookings.get
        names = (site.endpoint, site.speaker.did, site.speaker.method)
        site.kit = BookingVerifier(*names, secret, find, {self.url: key}, clock=self.clock)
        with self.ledger.store.write() as connection:
            add_listing(connection, site.speaker.did, "rose-cottage", "Europe/London", "operator", site.endpoint)
        return site

    def work(self, **ahead: float) -> None:
        """What is due after some time. The service has a worker of its own, which may be faster."""
        self.clock.ahead += timedelta(**ahead)
        asyncio.run(self.ledger.worker(self.url).work())

    @property
    def size(self) -> int:
        return self.ledger.reader.refresh().size


@contextmanager
def serving(folder: Path, authority: Authority) -> Iterator[Place]:
    clock, outside = Ahead(), Neighbourhood(folder, authority)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = Settings.of(folder / "data", None, url)
        init_folder(settings)
        ledger = open_ledger(settings, clock=clock, development=outside.development)
        for role in ("guest", "host"):
            draft = trust(ledger.issuers(), role, IDV, [ISSUER.multikey], None)
            assert draft is not None
            ledger.sequencer.append([draft])
        server = Server(config(create_app(ledger, limits=False), "127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started, 20)
        yield Place(ledger, url, outside, clock)
        server.should_exit = True
        thread.join()
    outside.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, authority: Authority) -> Iterator[Place]:
    with serving(tmp_path_factory.mktemp("served"), authority) as made:
        yield made


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place) -> Path:
    """A guest's own folder; the ledger is named by the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAYLOG_LEDGER", place.url)
    return tmp_path


def staylog(*arguments: str, text: str | None = None, group: str = "review") -> Result:
    done = CliRunner().invoke(main, [group, *arguments], input=text)
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def booking(*arguments: str) -> Result:
    return staylog(*arguments, group="booking")


def accepted(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.output


def refused(done: Result, code: str, status: int = 1) -> str:
    assert done.exit_code == status, done.output
    assert f"({code})" in done.output
    return done.output
