"""Ledgers with hosts in them, as rows 3, 4 and 6 find them: filled through the sequencer, file by file."""

import gc
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from api.server import spare_the_collector
from benchmarks.engines import Engine
from benchmarks.measure import Step
from benchmarks.sample_log import some_text
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.log.drafts import Draft
from ledger.log.replay import MAX_BATCH
from ledger.log.sequencer import Integrated
from ledger.settings import Settings
from tests.running import Writer

# An imported file is one transaction.
FILE = 20_000
REVIEWS = 24


def host_name(number: int) -> str:
    return f"did:web:stays.example:hosts:{number}"


class Drafts:
    """Reviews and responses with their texts; the same seed gives the same ones, another seed none of them."""

    def __init__(self, seed: int) -> None:
        self._writer = Writer(seed)

    def review(self, host: int) -> Draft:
        return self._writer.review(host_name(host), text=some_text(self._writer.random))

    def reviews(self, count: int, hosts: int) -> list[Draft]:
        """Of hosts at random."""
        return [self.review(self._writer.random.randrange(hosts)) for _ in range(count)]

    def response(self, review: Integrated) -> Draft:
        return self._writer.response(review, some_text(self._writer.random))


@contextmanager
def opened(settings: Settings, *, max_batch: int = MAX_BATCH) -> Iterator[Ledger]:
    """A ledger whose writer runs, and the garbage collector as in `staylog serve`."""
    ledger = open_ledger(settings, max_batch=max_batch)
    ledger.sequencer.start()
    thresholds = gc.get_threshold()
    spare_the_collector()
    try:
        yield ledger
    finally:
        ledger.close()
        gc.set_threshold(*thresholds)
        gc.unfreeze()


@contextmanager
def hosts_loaded(settings: Settings, hosts: int, step: Step, *, max_batch: int = MAX_BATCH) -> Iterator[Ledger]:
    """A new ledger with one review per host, whose writer runs: with the caches of a service that took them in."""
    init_folder(settings)
    drafts = Drafts(seed=1)
    with opened(settings, max_batch=max_batch) as ledger:
        for start in range(0, hosts, FILE):
            step(f"loading hosts into {settings.data.name}, {start:,} of {hosts:,}")
            ledger.sequencer.append([drafts.review(host) for host in range(start, min(start + FILE, hosts))])
        yield ledger


def load_reviews(engine: Engine, hosts: int, step: Step) -> Settings:
    """`REVIEWS` reviews per host, every third with a response. Nobody's entries are neighbours."""
    settings = engine.new("reviews")
    init_folder(settings)
    drafts, order = Drafts(seed=1), list(range(hosts))
    shuffled = random.Random(1)
    with opened(settings) as ledger:
        made: Sequence[Integrated] = ()
        for place in range(REVIEWS):
            step(f"loading reviews of {hosts:,} hosts, {place + 1} of {REVIEWS}")
            shuffled.shuffle(order)
            responses = [drafts.response(review) for review in made] if place % 3 == 1 else []
            made = ledger.sequencer.append([*map(drafts.review, order), *responses])[:hosts]
    return settings
