"""Logs with a lie in them, sources that break off, and audits as processes that are killed."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Timer
from typing import Any

from audits.source import Source
from ledger.canon import base64
from ledger.errors import BrokenRule
from ledger.log.entries import Entry, make_entry
from ledger.log.memory import MemoryLog
from tests.audits.honest import Honest, Served, web_server
from tests.world import KEY, LOG, ORIGIN, START

# As `staylog`, but that what was replayed is saved at every map head.
STAYLOG = (
    "from audits.replayer import Replayer; Replayer.__init__.__kwdefaults__['save_seconds'] = 0; "
    "from ledger.cli import main; main()"
)


class Forger(MemoryLog):
    """Signs whatever it is given. `wrong` are the numbers of the batches that get another map root."""

    def __init__(self) -> None:
        self.wrong: set[int] = set()
        super().__init__(ORIGIN, KEY, bytes(32), START)

    def _integrate(self, entry: Entry) -> None:
        if entry.type == "map_head" and len(self.published) in self.wrong:
            said = {name: entry.members[name] for name in ("size", "at")}
            entry = make_entry("map_head", root=base64.encode(bytes(32)), **said)
        self._rules._on_break = lambda _index, _rule: None
        with suppress(BrokenRule):
            self._rules.add(entry.data)
        self.entries.append(entry)
        self._appender.append(entry.leaf_hash)


class Liar(Honest):
    """Honest but for what it is told to do."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.log = self.forger = Forger()
        self.take("issuer", "issuer", "issuer")

    def wrong_head(self) -> None:
        self.forger.wrong.add(len(self.log.published))

    def stranger(self) -> None:
        """A review by the word of somebody whom nobody trusts."""
        strange = {"booking": "callback", "idv_level": None, "issuer": "https://nobody.example"}
        self._add("review", self._new_review("guest_verified", {**strange, "commitment": self.hash()}))

    def backwards(self) -> None:
        self._batch.append(make_entry("policy", policy=self.hash(), at=START))

    def nonsense(self) -> None:
        """A response to what is no review, by a host that nobody heard of before, after one that is new too."""
        new = "did:web:new.example"
        self._add("booking_check", {"host_did": new, "outcome": "denied", "booking": self.hash()})
        about = {"review": 1, "review_id": f"rev-{'a' * 26}", "host_did": "did:web:newer.example"}
        self._add("response", {**about, "text": self.hash(), "statement": self.hash()})

    def _new_review(self, level: str, evidence: dict[str, Any]) -> dict[str, Any]:
        stay = {"listing_id": "listing-1", "check_in": "2025-12-01", "check_out": "2025-12-04"}
        said = {"ratings": self.ratings(), "repeat": False, "text": None, "level": level, "evidence": evidence}
        id_ = "rev-" + "".join(self.random.choices("abcdefghijklmnopqrstuvwxyz", k=25)) + "a"
        return {"review_id": id_, "host_did": self.random.choice(self.hosts), **stay, **said}


LIES: dict[str, Callable[[Liar], None]] = {
    "none": lambda _: None,
    "wrong_head": Liar.wrong_head,
    "stranger": Liar.stranger,
    "backwards": Liar.backwards,
    "nonsense": Liar.nonsense,
}


def lying(lie: str, seed: int = 1, batches: int = 44) -> MemoryLog:
    """A log with this lie about in its middle."""
    world = Liar(seed)
    world.grow(batches // 2, 13)
    world.take("review")
    LIES[lie](world)
    world.publish()
    world.grow(batches // 2, 13)
    return world.log


class Breaking:
    """A source that breaks off, with `error`, at the call of this number."""

    def __init__(self, source: Source, at: int, error: BaseException) -> None:
        self.name, self.far = source.name, source.far
        self.calls = 0
        self._source = source
        self._at = at
        self._error = error

    def get(self, path: str) -> bytes:
        self.calls += 1
        if self.calls == self._at:
            raise self._error
        return self._source.get(path)


class Rewriting:
    """A source that changes what it serves under one path."""

    def __init__(self, source: Source, path: str, change: Callable[[bytes], bytes], times: int = 1 << 30) -> None:
        self.name, self.far = source.name, source.far
        self._source = source
        self._path = path
        self._change = change
        self._times = times

    def get(self, path: str) -> bytes:
        data = self._source.get(path)
        if path.partition("?")[0] != self._path or not self._times:
            return data
        self._times -= 1
        return self._change(data)


class Killer:
    """Kills a process some seconds after the service was asked for so many things."""

    def __init__(self) -> None:
        self.asked = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._left, self._seconds = 0, 0.0

    def aim(self, process: subprocess.Popen[bytes], requests: int, seconds: float) -> None:
        self._process, self._left, self._seconds = process, requests, seconds

    def count(self) -> None:
        self.asked += 1
        self._left -= 1
        if self._left == 0 and self._process is not None:
            Timer(self._seconds, self._process.kill).start()


@contextmanager
def deadly_service(log: MemoryLog) -> Iterator[tuple[str, Killer]]:
    """The log over HTTP, by who kills those that ask."""
    killer, served = Killer(), Served(log)

    def respond(path: str, query: dict[str, str]) -> bytes:
        killer.count()
        return served.get(path, query)

    with web_server(respond) as url:
        yield url, killer


def staylog(*arguments: str | Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", STAYLOG, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def key() -> list[str]:
    return ["--key", str(LOG)]
