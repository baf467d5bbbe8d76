"""Processes that submit and work at the same moment, on one database: what two services do for whoever wants more than
is allowed."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from typing import Any

from ledger.errors import StaylogError
from ledger.folder import Ledger, open_ledger
from ledger.net.development import Development
from ledger.reviews import admission, intake
from ledger.reviews.desk import Desk
from ledger.reviews.pending import Waiting
from ledger.reviews.worker import Worker
from ledger.settings import Settings
from tests.hosting import Hosted
from tests.running import SetClock

THREADS = 4
# A server of its own forks the processes, from a memory that has everything imported and nothing opened.
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["tests.security.griefers"])
# What a process does with an open ledger, with what it is given; what came of it.
Job = Callable[[Ledger, Any], list[str]]


def review(ledger: Ledger, bodies: Sequence[bytes]) -> list[str]:
    """All at once, by threads of which each has a desk of its own."""
    return _each(ledger, bodies, admission.submit)


def claim(ledger: Ledger, bodies: Sequence[bytes]) -> list[str]:
    return _each(ledger, bodies, intake.take_booking)


def work(ledger: Ledger, rounds: int) -> list[str]:
    """A service's worker; how much it did."""
    return [str(asyncio.run(Worker(ledger.desk()).work())) for _ in range(rounds)]


def _each(ledger: Ledger, bodies: Sequence[bytes], take: Callable[..., Any]) -> list[str]:
    def some(number: int) -> list[str]:
        desk = ledger.desk()
        return [_outcome(take, desk, body) for body in bodies[number::THREADS]]

    with ThreadPoolExecutor(THREADS) as threads:
        return [outcome for outcomes in threads.map(some, range(THREADS)) for outcome in outcomes]


def _outcome(take: Callable[..., Any], desk: Desk, body: bytes) -> str:
    try:
        return "waits" if isinstance(asyncio.run(take(desk, body)), Waiting) else "taken"
    except StaylogError as refusal:
        return refusal.code


def _run(
    job: Job, given: Any, settings: Settings, development: Development, now: datetime, start: Barrier, out: Connection
) -> None:
    clock = SetClock()
    clock.now = now
    with closing(open_ledger(settings, clock=clock, development=development)) as ledger:
        ledger.sequencer.start()
        start.wait(60)
        out.send(job(ledger, given))


def together(hosted: Hosted, job: Job, *given: Any) -> list[str]:
    """What as many processes did as there is given something to do, beginning at the same moment."""
    start, ends = _processes.Barrier(len(given)), []
    development = Development(dict(hosted.outside.development.hosts), hosted.outside.development.ca)
    around = (hosted.reviewing.settings, development, hosted.clock())
    for each in given:
        mine, theirs = _processes.Pipe()
        process = _processes.Process(target=_run, args=(job, each, *around, start, theirs), daemon=True)
        process.start()
        theirs.close()
        ends.append((mine, process))
    done = [outcome for channel, _ in ends for outcome in channel.recv()]
    for _, process in ends:
        process.join(60)
        assert process.exitcode == 0
    hosted.reviewing.ledger.reader.refresh()
    return done
