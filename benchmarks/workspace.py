"""Sizes and rounds of a run, and the databases its rows share."""

import random
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from benchmarks.engines import Engine, Sqlite, find_postgres, start_engines
from benchmarks.loaded import hosts_loaded, load_reviews
from benchmarks.measure import Step
from benchmarks.tile_log import build, make_entries
from ledger.settings import Settings


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything a run does: `grouped` and `single` entries with `waiting` submitters in a round of row 3,
    `lone` entries in row 4, `submissions` in each of `submission_rounds` of row 5, `answers` about hosts among
    `reviewed_hosts` in a round of row 6, `audited` events of at most `audited_hosts` in row 9."""

    leaves: int
    small_leaves: int
    append_rounds: int
    process_rounds: int
    rounds: int
    warm_up: int
    hot: int
    hosts: int
    waiting: int
    grouped: int
    single: int
    lone: int
    submissions: int
    submission_rounds: int
    reviewed_hosts: int
    answers: int
    audited: tuple[int, int]
    audited_hosts: int
    audit_rounds: int


FULL = Plan(
    leaves=1_000_000,
    small_leaves=10_000,
    append_rounds=5,
    process_rounds=9,
    rounds=15,
    warm_up=800,
    hot=128,
    hosts=100_000,
    waiting=64,
    grouped=512,
    single=64,
    lone=500,
    submissions=100,
    submission_rounds=10,
    reviewed_hosts=10_000,
    answers=300,
    audited=(100_000, 1_000_000),
    audited_hosts=30_000,
    audit_rounds=3,
)
QUICK = Plan(
    leaves=10_000,
    small_leaves=1_000,
    append_rounds=1,
    process_rounds=2,
    rounds=3,
    warm_up=100,
    hot=32,
    hosts=1_000,
    waiting=64,
    grouped=128,
    single=8,
    lone=20,
    submissions=8,
    submission_rounds=2,
    reviewed_hosts=200,
    answers=30,
    audited=(600, 2_000),
    audited_hosts=300,
    audit_rounds=1,
)


@dataclass(frozen=True)
class Workspace:
    """`running` is closed at the end of the run; `notes` say what this run could not measure."""

    directory: Path
    plan: Plan
    step: Step
    running: ExitStack
    notes: list[str] = field(default_factory=list)
    _entries: dict[int, list[bytes]] = field(default_factory=dict)
    _loaded: dict[str, Settings] = field(default_factory=dict)

    @cached_property
    def engines(self) -> list[Engine]:
        wheel = find_postgres()
        if wheel is None:
            self.notes.append("No PostgreSQL was measured: its wheel is not installed or has none for this platform.")
        return start_engines(self.directory, wheel, self.step, self.running)

    def hosts_ledger(self, engine: Engine) -> Settings:
        """A ledger with one review of each of `plan.hosts` hosts; to be copied before it is written to."""
        if engine.name not in self._loaded:
            settings = self._loaded[engine.name] = engine.new("hosts")
            with hosts_loaded(settings, self.plan.hosts, self.step):
                pass
        return self._loaded[engine.name]

    @cached_property
    def reviews_ledger(self) -> Settings:
        """A ledger with 24 reviews of each of `plan.reviewed_hosts` hosts, in SQLite."""
        return load_reviews(Sqlite(self.directory), self.plan.reviewed_hosts, self.step)

    def entries(self, count: int) -> list[bytes]:
        if count not in self._entries:
            self.step(f"making {count:,} entries")
            self._entries[count] = make_entries(count)
        return self._entries[count]

    def path(self, side: str, count: int) -> Path:
        return self.directory / f"{side}-{count}.db"

    def our_database(self, count: int) -> Path:
        """A database of ours with `count` leaves, built unless an earlier row left one."""
        path = self.path("ours", count)
        if not path.exists():
            entries = self.entries(count)
            self.step(f"appending {count:,} leaves")
            build(path, entries)
        return path

    def clear(self, side: str, count: int) -> Path:
        """The path of a database that does not exist (any more)."""
        path = self.path(side, count)
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return path

    def draw(self, count: int, size: int, seed: int) -> list[int]:
        """Leaves or hosts at random, the same in every run."""
        return random.Random(seed).sample(range(size), min(count, size))
