"""Sizes and rounds of a run, and the databases its rows share."""

import random
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import Step
from benchmarks.tile_log import build, make_entries


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of everything a run does."""

    leaves: int
    small_leaves: int
    append_rounds: int
    process_rounds: int
    rounds: int
    warm_up: int
    hot: int


FULL = Plan(leaves=1_000_000, small_leaves=10_000, append_rounds=5, process_rounds=9, rounds=15, warm_up=800, hot=128)
QUICK = Plan(leaves=10_000, small_leaves=1_000, append_rounds=1, process_rounds=2, rounds=3, warm_up=100, hot=32)


@dataclass(frozen=True, slots=True)
class Workspace:
    directory: Path
    plan: Plan
    step: Step
    _entries: dict[int, list[bytes]] = field(default_factory=dict)

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
        """Leaf indices at random, the same in every run."""
        return random.Random(seed).sample(range(size), min(count, size))
