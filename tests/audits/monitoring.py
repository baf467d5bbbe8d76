"""A monitor that looks when it is told to, with a clock that tests set; a webhook that can be broken; two logs of one key."""

import json
import re
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from audits.monitor.alerts import Teller
from audits.monitor.gossip import Gossip, find_places
from audits.monitor.kept import KeptReplay
from audits.monitor.memory import Memory
from audits.monitor.rounds import Monitor, Watch
from audits.monitor.webhook import Webhook
from audits.reading import Reading
from audits.source import Source, WebSource
from ledger.errors import StaylogError, Unavailable
from ledger.folder import open_ledger
from ledger.log.add_checkpoint import AddCheckpoint
from ledger.log.note import Verifier
from ledger.log.tiles import TileTree
from ledger.settings import Settings
from tests.api.conftest import BASE, serve
from tests.audits.forger import Forger, serving
from tests.audits.live import Live
from tests.running import Writer
from tests.world import LOG

Alert = dict[str, Any]

DOWN = Unavailable("ledger_unreachable", "nobody answers")


class Switched:
    """A source that can be made to fail, and tells what it was asked; by its name it is always the same one."""

    def __init__(self, source: Source, name: str = "https://ledger.example") -> None:
        self.source = source
        self.name, self.far = name, source.far
        self.asked: list[str] = []
        # What fails, and how often it is served before.
        self.failing: tuple[str, StaylogError] | None = None
        self.spare = 0

    def get(self, path: str) -> bytes:
        self.asked.append(path)
        if self.failing is not None and re.search(self.failing[0], path):
            if not self.spare:
                raise self.failing[1]
            self.spare -= 1
        return self.source.get(path)


class Watcher:
    """One monitor in a folder; `look` is one round: its status, and what it told. Lines of `looked` are none of it."""

    def __init__(
        self,
        source: Source,
        folder: Path,
        clock: Callable[[], datetime],
        log: Verifier = LOG,
        *,
        gossip: Sequence[str] = (),
        webhook: Webhook | None = None,
        seconds: float = 10,
        **watch: Any,
    ) -> None:
        self.source = source
        self.folder = folder
        self.lines: list[str] = []
        self._clock = clock
        self._log = log
        self._webhook = webhook
        self._watch = Watch(**watch)
        self._gossip = Gossip(find_places(gossip, self._watch.policy, log), log, seconds)
        self._open()

    def _open(self) -> None:
        self.replay = KeptReplay(self.folder, self._log, clock=self._clock, pause=0)
        self.memory = Memory.open(self.folder)
        given = (self.source.name, self.memory, self.lines.append, self._clock, self._webhook)
        self.teller = Teller(self._log.name, *given, as_json=True)
        watched = (self._watch, self._gossip, self.teller, self._clock)
        self.monitor = Monitor(self.source, self._log, self.replay, self.memory, *watched)

    def __enter__(self) -> "Watcher":
        return self

    def __exit__(self, *_: object) -> None:
        self.replay.close()

    def restart(self) -> None:
        """All that a new process would have is what is in the folder."""
        self.replay.close()
        self._open()

    def look(self) -> tuple[int, list[Alert]]:
        before = len(self.lines)
        status = self.monitor.round()
        return status, [json.loads(line) for line in self.lines[before:]]

    def codes(self) -> tuple[int, list[str]]:
        status, told = self.look()
        return status, [ended_or_code(each) for each in told]

    def proofs(self) -> list[Path]:
        return sorted(self.folder.glob("findings/*.json"))


def ended_or_code(alert: Alert) -> str:
    return f"recovered {alert['ended']}" if alert["code"] == "recovered" else str(alert["code"])


class Receiver:
    """What came by HTTP to `url`, and with which token; it answers `status`."""

    def __init__(self) -> None:
        self.status = 204
        self.got: list[Alert] = []
        self.tokens: list[str | None] = []
        self.url = ""


@contextmanager
def receiving() -> Iterator[Receiver]:
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.tokens.append(self.headers.get("Authorization"))
            if receiver.status < 300:
                receiver.got.append(json.loads(body))
            self.send_response(receiver.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True)
    thread.start()
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hooks/a-secret-path"
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def twin(live: Live, folder: Path) -> Iterator[Live]:
    """A second service with all that the first one has, its keys too; from here on each goes its own way."""
    data = Path(shutil.copytree(live.ledger.settings.data, folder / "ledger"))
    ledger = open_ledger(Settings.of(data, None, BASE))
    server, thread, port = serve(ledger)
    try:
        made = Live(ledger, f"http://127.0.0.1:{port}")
        made.writer = Writer(2)
        yield made
    finally:
        server.should_exit = True
        thread.join()


def add_checkpoint(live: Live, old: int = 0) -> str:
    """What a witness is asked when it has cosigned `old` entries: the newest checkpoint, by what the service serves."""
    source = live.source()
    note = source.get("log/checkpoint").decode()
    size = int(note.split("\n")[1])
    proof = TileTree(Reading(source, size)).consistency(old, size) if 0 < old < size else []
    return str(AddCheckpoint(old, tuple(proof), note))


def web(url: str) -> WebSource:
    return WebSource(url, pause=0)


def closed_port() -> str:
    """An address at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def watching(forger: Forger, folder: Path, **options: Any) -> Iterator[Watcher]:
    with serving(forger) as url, Watcher(Switched(web(url)), folder, forger.clock, **options) as watcher:
        yield watcher


def switch(watcher: Watcher) -> Switched:
    assert isinstance(watcher.source, Switched)
    return watcher.source
