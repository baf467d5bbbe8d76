"""The long crash test: `python -m tests.crash.hammer --help`."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from signal import SIGKILL
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import click

from ledger.folder import init_folder, open_ledger
from ledger.settings import Settings
from tests.crash.child import Ack, Work
from tests.crash.harness import Worker, examine, state_of
from tests.engines import PostgresServer, postgres_wheel

STEPS = ("committed", "marked", "signed", "stored")
ENGINES = ("sqlite", "postgresql")
# The examination reads everything: from here on a new ledger is begun.
LONGEST = 10_000


@dataclass(slots=True)
class Tally:
    """`inside` counts the crashes that left a committed head without its signature."""

    kills: int = 0
    inside: int = 0
    entries: int = 0

    def __str__(self) -> str:
        return f"{self.kills} kills, {self.inside} left a commit unsigned, {self.entries:,} acknowledged entries kept"


class Hammered:
    """One ledger that is written to by two processes, killed, examined, and so on until it is long enough."""

    def __init__(self, settings: Settings, random: Random, tally: Tally) -> None:
        self._settings = settings
        self._random = random
        self._tally = tally
        self._acks: list[Ack] = []
        init_folder(settings)

    def crash(self) -> int:
        """The size of the log after all writers were killed. One may outlive the other for a while, and repairs what
        that one left."""
        workers = [Worker(self._work()) for _ in range(2)]
        for worker in workers:
            worker.follow(self._random.randrange(1, 60))
        sleep(self._random.uniform(0, 0.03))
        for worker in self._random.sample(workers, 2):
            worker.kill()
            sleep(self._random.choice((0, 0.1)))
        for worker in workers:
            status = worker.end()
            assert status == -SIGKILL, f"a writer ended by itself with status {status}"
            self._acks += worker.acks
            self._tally.entries += len(worker.acks)
        self._tally.kills += len(workers)
        return self._reopen()

    def _reopen(self) -> int:
        committed, published = state_of(self._settings)
        self._tally.inside += committed != published
        with closing(open_ledger(self._settings)) as ledger:
            size = examine(ledger, self._acks)
        assert size == committed, f"{committed} entries were committed, {size} are signed"
        return size

    def _work(self) -> Work:
        """Every other process dies at a step of a batch, if nobody kills it before."""
        step = self._random.choice(("",) * len(STEPS) + STEPS)
        callers, times = self._random.choice((1, 4, 16)), self._random.randrange(1, 40)
        return Work(self._settings, self._random.randrange(1 << 40), callers, die_at=step, times=times)


@contextmanager
def ledgers(engine: str) -> Iterator[Iterator[Settings]]:
    """Folders for new ledgers."""
    with TemporaryDirectory() as folder, TemporaryDirectory(prefix="staylog-", dir="/tmp") as home:
        places = (Path(folder) / f"ledger{number}" for number in range(1 << 30))
        if engine == "sqlite":
            yield (Settings.of(place) for place in places)
            return
        server = PostgresServer(postgres_wheel(), Path(home))
        try:
            yield (Settings.of(place, server.url("hammered")) for place in places)
        finally:
            server.stop()


@click.command()
@click.option("--engine", type=click.Choice(["both", *ENGINES]), default="both", show_default=True)
@click.option("--seconds", type=click.FloatRange(1), default=60, show_default=True, help="How long, on each engine.")
@click.option("--kills", type=click.IntRange(2), default=10_000, show_default=True, help="At most, on each engine.")
@click.option("--seed", type=int, default=1, show_default=True, help="What is written, and where it is killed.")
def main(engine: str, seconds: float, kills: int, seed: int) -> None:
    """Two processes write to one ledger without pause; one or both are killed, at a random moment or at a random step
    of a batch; then the ledger must pass the whole examination, and it goes on. The first broken promise ends it.
    """
    for name in ENGINES if engine == "both" else (engine,):
        random, tally, end = Random(seed), Tally(), monotonic() + seconds
        with ledgers(name) as places:
            while monotonic() < end and tally.kills < kills:
                ledger, size = Hammered(next(places), random, tally), 0
                while size < LONGEST and monotonic() < end and tally.kills < kills:
                    size = ledger.crash()
                    click.echo(f"{name}: {tally}; size {size:,}")
        click.echo(f"{name}: done, {tally}")


if __name__ == "__main__":
    main()
