"""Processes that decide on what waits, made to be killed, and the time that they share."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from mmap import mmap
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGKILL

from ledger.folder import open_ledger
from ledger.net.development import from_environment
from ledger.reviews import worker
from ledger.settings import Settings
from ledger.store.engine import Store
from ledger.store.rows import run
from tests.crash.child import READY

_SIZE = 8


class SharedClock:
    """The time of all processes of a test, in a file: it stands still until one of them moves it on."""

    def __init__(self, path: Path) -> None:
        with path.open("r+b") as file:
            self._seconds = mmap(file.fileno(), _SIZE)

    @classmethod
    def at(cls, path: Path, now: datetime) -> "SharedClock":
        path.write_bytes(bytes(_SIZE))
        made = cls(path)
        made.set(now)
        return made

    def __call__(self) -> datetime:
        return datetime.fromtimestamp(int.from_bytes(self._seconds[:_SIZE]), UTC)

    def set(self, now: datetime) -> None:
        self._seconds[:_SIZE] = int(now.timestamp()).to_bytes(_SIZE)


@dataclass(frozen=True, slots=True)
class Shift:
    """Where a process works, and by which clock; `environment` leads to the hosts. It kills itself at the step `die_at`
    of the log, once so many reviews are in it."""

    settings: Settings
    clock: Path
    environment: Mapping[str, str]
    die_at: str = ""
    reviews: int = 1


def decide(shift: Shift, channel: Connection) -> None:
    """Works as a service does, from the moment that it says so until it is told to stop or is killed."""
    # A second of a test is hours of the clock.
    worker.WAKE_SECONDS = 0.05
    store = Store(shift.settings.database_url)

    def on_step(step: str) -> None:
        if step == shift.die_at:
            with store.read() as connection:
                [(reviews,)] = run(connection, "SELECT count(review_id) FROM entry")
            if reviews >= shift.reviews:
                os.kill(os.getpid(), SIGKILL)

    ledger = open_ledger(
        shift.settings,
        clock=SharedClock(shift.clock),
        on_step=on_step,
        development=from_environment(shift.environment, shift.settings.base_url),
    )
    ledger.sequencer.start()
    working = ledger.worker()
    working.start()
    channel.send_bytes(READY)
    channel.recv_bytes()
    working.close()
    ledger.close()
    store.close()
