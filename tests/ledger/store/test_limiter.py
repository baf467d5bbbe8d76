"""Limits: exact whoever counts, and nothing in them tells who was counted."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from itertools import count
from multiprocessing import get_context
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prometheus_client import REGISTRY

from ledger.errors import TooMany
from ledger.store.engine import Store
from ledger.store.limiter import DAY, Limit, Limiter
from tests.running import SetClock

SECRET = bytes(range(32))
LIMIT = Limit("reviews", 30, 60, 10, "rate_limited", "30 in a minute")
DAILY = Limit("daily", 20, DAY, 20, "quota_exceeded", "20 in a day")
# Examples share a database.
SUBJECTS = count()


class Counting:
    """Several limiters, as in several processes, on one database."""

    def __init__(self, url: str) -> None:
        self.clock = SetClock()
        self.stores = [Store(url), Store(url)]
        self.limiters = [Limiter(store, SECRET, self.clock) for store in self.stores]

    def allowed(self, limit: Limit, subject: str, tries: int) -> int:
        """How many of so many tries, each by the next limiter, are let through."""
        return sum(self.wait(limit, subject, place) == 0 for place in range(tries))

    def wait(self, limit: Limit, subject: str, place: int = 0) -> int:
        try:
            self.limiters[place % 2].take(limit, subject)
        except TooMany as refusal:
            return refusal.retry_after
        return 0

    def rows(self) -> list[tuple[bytes, int, int]]:
        return [tuple(row) for row in self.limiters[0]._rows.run("SELECT key, day, paid FROM rate")]

    def close(self) -> None:
        for limiter in self.limiters:
            limiter.close()
        for store in self.stores:
            store.close()


@pytest.fixture
def counting(database_url: str) -> Iterator[Counting]:
    made = Counting(database_url)
    yield made
    made.close()


def test_a_burst_and_then_the_rate(counting: Counting) -> None:
    assert counting.allowed(LIMIT, "a", 25) == 10
    assert counting.allowed(LIMIT, "b", 25) == 10
    counting.clock.forward(seconds=2)
    assert counting.allowed(LIMIT, "a", 5) == 1
    counting.clock.forward(seconds=60)
    assert counting.allowed(LIMIT, "a", 25) == 10


def test_waiting_as_long_as_told_is_enough_and_no_less(counting: Counting) -> None:
    counting.allowed(LIMIT, "a", 10)
    wait = counting.wait(LIMIT, "a")
    assert wait == 2
    counting.clock.forward(seconds=wait - 0.001)
    assert counting.wait(LIMIT, "a") == 1
    counting.clock.forward(seconds=0.001)
    assert counting.wait(LIMIT, "a") == 0


def test_a_refusal_says_what_is_allowed(counting: Counting) -> None:
    counting.allowed(DAILY, "a", 20)
    with pytest.raises(TooMany) as refused:
        counting.limiters[0].take(DAILY, "a")
    assert (refused.value.code, refused.value.retry_after) == ("quota_exceeded", DAY // 20)
    assert str(refused.value) == "20 in a day; try again in 4320 s"


def test_limits_of_other_names_are_counted_apart(counting: Counting) -> None:
    counting.allowed(LIMIT, "a", 25)
    assert counting.wait(DAILY, "a") == 0


def test_a_new_day_brings_a_new_key_and_no_new_burst(counting: Counting) -> None:
    counting.clock.now = datetime(2026, 6, 1, 23, 59, 59, tzinfo=UTC)
    assert counting.allowed(DAILY, "a", 25) == 20
    before = {key for key, _, _ in counting.rows()}
    counting.clock.forward(seconds=2)
    assert counting.allowed(DAILY, "a", 25) == 0
    assert counting.wait(DAILY, "a") == DAY // 20 - 2
    counting.clock.forward(hours=2.4)
    assert counting.allowed(DAILY, "a", 25) == 2
    assert {key for key, _, _ in counting.rows()} - before
    assert counting.wait(DAILY, "a") == DAY // 20 - 2


def test_nothing_is_kept_beyond_the_day_before(counting: Counting) -> None:
    counting.wait(LIMIT, "a")
    counting.clock.forward(days=2)
    counting.wait(LIMIT, "b")
    assert len(counting.rows()) == 1


def test_neither_subjects_nor_times_can_be_read(counting: Counting) -> None:
    """Two subjects that were counted at the same moment have nothing in common."""
    counting.wait(LIMIT, "a")
    counting.wait(LIMIT, "b")
    now = int(counting.clock.now.timestamp() * 1e6)
    [(one, _, paid_one), (other, _, paid_other)] = counting.rows()
    assert one[:4] != other[:4]
    assert min(abs(paid_one - now), abs(paid_other - now), abs(paid_one - paid_other)) > 1e12


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(st.tuples(st.integers(0, 90_000), st.integers(0, 1)), min_size=1, max_size=40),
    times=st.integers(1, 50),
    seconds=st.sampled_from([1, 60, 3600, DAY]),
    burst=st.integers(1, 30),
    start=st.integers(0, DAY - 1),
)
def test_it_is_the_algorithm(
    counting: Counting, steps: list[tuple[int, int]], times: int, seconds: int, burst: int, start: int
) -> None:
    """Against the definition: at most one step paid per request, at most `burst` steps ahead of the clock."""
    limit = Limit("x", times, seconds, burst, "rate_limited", "")
    if limit.step * burst > DAY * 1_000_000:
        return
    subject = str(next(SUBJECTS))
    counting.clock.now = datetime(2027, 1, 1, tzinfo=UTC)
    counting.clock.forward(days=3 * int(subject), seconds=start)
    paid = 0
    for pause, place in steps:
        counting.clock.forward(milliseconds=pause)
        now = int(counting.clock.now.timestamp() * 1_000_000)
        begins = max(now, paid)
        expected = begins + limit.step <= now + burst * limit.step
        paid = begins + limit.step if expected else paid
        assert (counting.wait(limit, subject, place) == 0) == expected


def _take_many(url: str, tries: int) -> int:
    store = Store(url)
    limiter = Limiter(store, SECRET, lambda: datetime(2026, 6, 1, tzinfo=UTC))

    def one(_: int) -> bool:
        try:
            limiter.take(DAILY, "somebody")
        except TooMany:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        allowed = sum(threads.map(one, range(tries)))
    limiter.close()
    store.close()
    return allowed


def test_exact_across_processes(database_url: str) -> None:
    """Three processes of four threads each try 40 times at once: 20 are let through, not 21."""
    with get_context("spawn").Pool(3) as processes:
        allowed = processes.starmap(_take_many, [(database_url, 40)] * 3)
    assert sum(allowed) == DAILY.burst


def test_who_cannot_count_lets_everybody_through(tmp_path: Path) -> None:
    """Reading goes on when nothing can be written."""
    counting = Counting(f"sqlite:///{tmp_path}/ledger.db")
    assert counting.allowed(LIMIT, "a", 25) == 10
    before = REGISTRY.get_sample_value("staylog_uncounted_requests_total") or 0
    with sqlite3.connect(tmp_path / "ledger.db-limits") as other:
        other.execute("DROP TABLE rate")
    other.close()
    assert counting.allowed(LIMIT, "a", 5) == 5
    assert REGISTRY.get_sample_value("staylog_uncounted_requests_total") == before + 5
    counting.close()


def test_no_commit_of_the_log_waits_for_limits(tmp_path: Path) -> None:
    """They are in a file of their own on SQLite: counting goes on while somebody writes the log."""
    counting = Counting(f"sqlite:///{tmp_path}/ledger.db")
    with counting.stores[0].write():
        assert counting.allowed(LIMIT, "a", 25) == 10
    assert (tmp_path / "ledger.db-limits").exists()
    counting.close()
