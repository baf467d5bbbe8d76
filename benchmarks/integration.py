"""Row 3: durable integration with the host map while 64 submitters wait, against the same code one entry at a time."""

import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from itertools import islice
from statistics import mean
from threading import Event

from benchmarks.engines import Engine
from benchmarks.loaded import Drafts, hosts_loaded
from benchmarks.measure import Pace, Samples, alternate, require
from benchmarks.report import Row, at_most, times_less
from benchmarks.workspace import Workspace
from ledger.folder import Ledger
from ledger.log.drafts import Draft
from ledger.log.replay import MAX_BATCH
from ledger.log.sequencer import Integrated

MAX_CPU = 200e-6
# Short rounds, and more of them than in other rows: the pace of a shared core changes within a second.
ROUNDS = 4
NOTES = (
    "Row 3: reviews with texts, of hosts at random. An acknowledgement means: committed with fsync, integrated (tree, "
    "map, host record), and under a signed checkpoint that is stored. Each submitter submits its next draft from the "
    "acknowledgement of the one before; drafts are made before the clock starts. Both sides have taken in the "
    "same hosts before, in the same process, so that their caches are those of a service that runs.",
    "Row 3: CPU is that of our process, submitters included, per review: map heads cost but do not count. A core that "
    "others share swings by half from one second to the next, and the CPU clock counts that as ours. So a fixed loop "
    "is timed before and after each round: it is at full pace when both took at most 1.1 of the quickest one.",
    "Row 3, wall: 4x is asked for where fdatasync takes at most 0.5 ms; a slower disk makes the gap wider.",
)


def rows(work: Workspace) -> list[Row]:
    return [row for engine in work.engines for row in engine_rows(work, engine)]


def engine_rows(work: Workspace, engine: Engine) -> list[Row]:
    plan = work.plan
    what = f"integrate, {plan.waiting} waiting, {plan.hosts:,} hosts, {engine.name}"
    with ExitStack() as stack:
        grouped, single = (
            stack.enter_context(hosts_loaded(engine.new(name), plan.hosts, work.step, max_batch=max_batch))
            for name, max_batch in (("grouped", MAX_BATCH), ("single", 1))
        )
        ours, peer = Submitters(grouped, work, plan.grouped), Submitters(single, work, plan.single)
        for side in (ours, peer):
            side.sample()
            side.cpu.clear()
        rounds, pace = ROUNDS * plan.rounds, Pace()
        sides = {"ours": lambda: pace.beside(ours.sample), "peer": peer.sample}
        wall = alternate(rounds, sides, work.step, what)
    require(ours.batches < 1.2 * (rounds + 1) * plan.grouped / plan.waiting, "that all who wait are one batch")
    require(peer.batches == (rounds + 1) * plan.single, "that the other side has batches of one")
    calm, bound = pace.full(ours.cpu), [MAX_CPU]
    work.notes.append(
        f"Row 3, {engine.name}: {len(calm)} of {rounds} rounds were at full pace. The mean of all is "
        f"{mean(ours.cpu) * 1e6:.0f} us of CPU; in it is what few rounds see, such as moving the write-ahead log."
    )
    return [
        Row(3, f"{what}: wall", "batch limit 1", "us", wall, times_less(4), gates=False),
        Row(3, f"{what}: CPU", "bound", "us", {"ours": ours.cpu, "peer": bound}, at_most(1)),
        Row(
            3,
            f"{what}: CPU at full pace",
            "bound",
            "us",
            {"ours": calm, "peer": bound},
            at_most(1),
            gates=False,
        ),
        Row(3, f"{what}: CPU", "batch limit 1", "us", {"ours": ours.cpu, "peer": peer.cpu}, None),
    ]


class Submitters:
    """`waiting` at a time, without threads of their own: these would be measured too."""

    def __init__(self, ledger: Ledger, work: Workspace, entries: int) -> None:
        self._sequencer = ledger.sequencer
        self._plan = work.plan
        self._entries = entries
        self._drafts = Drafts(seed=3)
        self._left: Iterator[Draft] = iter(())
        self._missing = 0
        self._done = Event()
        self._clocks = (0.0, 0.0)
        self._last_size = 0
        self.batches = 0
        self.cpu: Samples = []

    def sample(self) -> float:
        """Wall seconds per entry of a round; the CPU seconds go to `cpu`."""
        first, *drafts = self._drafts.reviews(1 + self._entries, self._plan.hosts)
        self._left, self._missing = iter(drafts), len(drafts)
        self._done.clear()
        # One entry is not counted: its acknowledgement starts the round in the writer's thread, so that the writer
        # finds all who wait in its queue and not only the first of them.
        self._sequencer.submit(first).add_done_callback(lambda _: self._begin())
        require(self._done.wait(600) and not self._missing, "that every draft is acknowledged")
        wall, cpu = self._clocks
        self.cpu.append(cpu / self._entries)
        return wall / self._entries

    def _begin(self) -> None:
        self._clocks = time.perf_counter(), time.process_time()
        for draft in list(islice(self._left, self._plan.waiting)):
            self._submit(draft)

    def _submit(self, draft: Draft) -> None:
        self._sequencer.submit(draft).add_done_callback(self._acknowledged)

    def _acknowledged(self, future: "Future[Integrated]") -> None:
        """Called by the writer."""
        if future.exception() is not None:
            self._done.set()
            return
        size = future.result().published.size
        if size != self._last_size:
            self._last_size = size
            self.batches += 1
        self._missing -= 1
        if not self._missing:
            self._clocks = time.perf_counter() - self._clocks[0], time.process_time() - self._clocks[1]
            self._done.set()
        elif draft := next(self._left, None):
            self._submit(draft)
