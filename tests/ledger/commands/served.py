"""A ledger that is served on a socket, for commands that send something to it; and folders of guests and hosts."""

import json
import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from threading import Thread
from time import monotonic, sleep
from typing import Any

import pytest
import uvicorn
from click.testing import CliRunner, Result

from api.app import create_app
from api.server import config
from ledger.canon import multikey
from ledger.cli import main
from ledger.clock import utc_now
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.settings import Settings
from tests.identities import IDV, ISSUER, Speaker
from tests.reviewing import HOST, credential, stay_receipt

TODAY = utc_now().date()
RATED = ["--overall", "4.5", "--accuracy", "5", "--cleanliness", "4.0", "--communication", "5", "--value", "4"]


def days_ago(days: int) -> str:
    return str(TODAY - timedelta(days=days))


def write_key(path: Path, speaker: Speaker) -> str:
    path.touch(mode=0o600)
    path.write_text(multikey.encode_secret(speaker.key) + "\n")
    return str(path)


class Place:
    """A ledger that is served, and what guests and hosts have in their folders."""

    def __init__(self, ledger: Ledger, url: str) -> None:
        self.ledger = ledger
        self.url = url
        self._bookings = 0

    def guest_of(self, folder: Path, guest: Speaker, host: Speaker = HOST, **changes: Any) -> list[str]:
        """The options of a review of a booking that nobody else has."""
        self._bookings += 1
        stay = {"check_in": days_ago(14), "check_out": days_ago(10), **changes}
        receipt = stay_receipt(guest, host, f"B-{self._bookings}", now=utc_now(), **stay)
        (folder / "stay-receipt.json").write_text(json.dumps(receipt))
        (folder / "credential.json").write_text(
            json.dumps(credential(guest, f"person-{self._bookings}", now=utc_now()))
        )
        files = ["--credential", str(folder / "credential.json"), "--receipt", str(folder / "stay-receipt.json")]
        return ["--key", write_key(folder / "guest.key", guest), *files, *RATED]

    @property
    def size(self) -> int:
        return self.ledger.reader.refresh().size


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        settings = Settings.of(tmp_path_factory.mktemp("served") / "data", None, url)
        init_folder(settings)
        ledger = open_ledger(settings)
        draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
        assert draft is not None
        ledger.sequencer.append([draft])
        server = uvicorn.Server(config(create_app(ledger, limits=False), "127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        deadline = monotonic() + 20
        while not server.started and monotonic() < deadline:
            sleep(0.01)
        yield Place(ledger, url)
        server.should_exit = True
        thread.join()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: Place) -> Path:
    """A guest's own folder; the ledger is named by the environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STAYLOG_LEDGER", place.url)
    return tmp_path


def staylog(*arguments: str, text: str | None = None) -> Result:
    done = CliRunner().invoke(main, ["review", *arguments], input=text)
    assert "Traceback" not in done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def accepted(done: Result) -> str:
    assert done.exit_code == 0, done.output
    return done.output


def refused(done: Result, code: str, status: int = 1) -> str:
    assert done.exit_code == status, done.output
    assert f"({code})" in done.output
    return done.output
