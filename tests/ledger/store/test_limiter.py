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
from ledger.store.schema import migrate
from tests.engines import PostgresServer
from tests.running import SetClock
from tests.waiting import until

SECRET = bytes(range(32))
LIMIT = Limit("reviews", 30, 60, 10, "rate_limited", "30 in a minute")
DAILY = Limit("daily", 20, DAY, 20, "quota_exceeded", "20 in a day")
# Examples share a database.
SUBJECTS = count()


class Counting:
    """Several limiters, as in several processes, on one database."""

    def __init__(self, url: str, how: str = "take") -> None:
        self.clock = SetClock()
        self.stores = [Store(url), Store(url)]
        self.how = how
        migrate(self.stores[0])
        self.limiters = [Limiter(store, SECRET, self.clock) for store in self.stores]

    def allowed(self, limit: Limit, subject: str, tries: int) -> int:
        """How many of so many tries, each by the next limiter, are let through."""
        return sum(self.wait(limit, subject, place) == 0 for place in range(tries))

    def wait(self, limit: Limit, subject: str, place: int = 0) -> int:
        try:
            getattr(self.limiters[place % 2], self.how)(limit, subject)
        except TooMany as refusal:
            return refusal.retry_after
        return 0

    def rows(self) -> list[tuple[bytes, int, int]]:
        limiter = self.limiters[0]
        kept = (limiter._counts, limiter._day_counts)
        return [tuple(row) for each in kept for row in each.run(f"SELECT key, until, paid FROM {each.table}")]

    def close(self) -> None:
        for limiter in self.limiters:
            limiter.close()
        for store in self.stores:
            store.close()


@pytest.fixture(params=["take", "spend"])
def counting(database_url: str, request: pytest.FixtureRequest) -> Iterator[Counting]:
    """Both ways to count, on each engine."""
    made = Counting(database_url, request.param)
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
        getattr(counting.limiters[0], counting.how)(DAILY, "a")
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


def test_nothing_is_kept_beyond_the_next_period(counting: Counting) -> None:
    """Whoever comes takes up to three away."""
    for name in "abcdefg":
        counting.wait(LIMIT, name)
    counting.clock.forward(seconds=2 * LIMIT.seconds)
    for left in (5, 3, 3):
        counting.wait(LIMIT, f"later {left}")
        assert len(counting.rows()) == left


def test_what_does_not_come_about_is_given_back(counting: Counting) -> None:
    limiter = counting.limiters[0]
    for _ in range(50):
        with pytest.raises(ZeroDivisionError), limiter.spending(LIMIT, "a"):
            raise ZeroDivisionError
    for _ in range(LIMIT.burst):
        with limiter.spending(LIMIT, "a"):
            pass
    with pytest.raises(TooMany), limiter.spending(LIMIT, "a"):
        pass


def test_what_is_spent_by_one_has_nothing_in_common(database_url: str) -> None:
    """No row is ever changed, so that no old version of one tells what belongs together."""
    counting = Counting(database_url, "spend")
    seen: set[tuple[bytes, int, int]] = set()
    for number in range(10):
        counting.wait(LIMIT, "ab"[number % 2])
        rows = set(counting.rows())
        assert seen < rows
        assert len(rows) == number + 1
        seen = rows
    assert len({key[:4] for key, _, _ in seen}) == len({paid >> 32 for _, _, paid in seen}) == 10
    counting.close()


def test_neither_subjects_nor_times_can_be_read(counting: Counting) -> None:
    """Two subjects that were counted at the same moment have nothing in common but the end of the period."""
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
    if burst > times:
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


def _take_many(url: str, how: str, tries: int) -> int:
    store = Store(url)
    limiter = Limiter(store, SECRET, lambda: datetime(2026, 6, 1, tzinfo=UTC))

    def one(_: int) -> bool:
        try:
            getattr(limiter, how)(DAILY, "a guest")
        except TooMany:
            return False
        return True

    with ThreadPoolExecutor(4) as threads:
        allowed = sum(threads.map(one, range(tries)))
    limiter.close()
    store.close()
    return allowed


@pytest.mark.parametrize("how", ["take", "spend"])
def test_exact_across_processes(database_url: str, how: str) -> None:
    """Three processes of four threads each try 40 times at once: 20 are let through, not 21."""
    Counting(database_url).close()
    with get_context("spawn").Pool(3) as processes:
        allowed = processes.starmap(_take_many, [(database_url, how, 40)] * 3)
    assert sum(allowed) == DAILY.burst


def test_who_cannot_count_lets_everybody_through(tmp_path: Path) -> None:
    """Reading goes on when nothing can be written."""
    counting = Counting(f"sqlite:///{tmp_path}/ledger.db")
    assert counting.allowed(LIMIT, "a", 25) == 10
    before = REGISTRY.get_sample_value("staylog_uncounted_requests_total") or 0
    other = sqlite3.connect(tmp_path / "ledger.db-limits", isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    assert counting.allowed(LIMIT, "a", 3) == 3
    assert REGISTRY.get_sample_value("staylog_uncounted_requests_total") == before + 3
    other.close()
    assert counting.allowed(LIMIT, "a", 3) == 0
    counting.close()


@pytest.mark.parametrize("damage", ["a page", "the head", "no table", "no file"])
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: str) -> None:
    """It may be damaged by a power cut, since it is not synced."""
    counting = Counting(f"sqlite:///{tmp_path}/ledger.db", "spend")
    for number in range(200):
        counting.wait(LIMIT, str(number))
    counting.close()
    path = tmp_path / "ledger.db-limits"
    if damage == "no table":
        with sqlite3.connect(path) as other:
            other.execute("DROP TABLE rate")
        other.close()
    elif damage == "no file":
        path.unlink()
    else:
        data = bytearray(path.read_bytes())
        start = 0 if damage == "the head" else 4096
        data[start : start + 4096] = b"\xa5" * 4096
        path.write_bytes(data)
    again = Counting(f"sqlite:///{tmp_path}/ledger.db", "spend")
    assert again.allowed(LIMIT, "another guest", 25) == 10
    again.close()


def test_no_commit_of_the_log_waits_for_limits(tmp_path: Path) -> None:
    """They are in a file of their own on SQLite: counting goes on while somebody writes the log."""
    counting = Counting(f"sqlite:///{tmp_path}/ledger.db")
    with counting.stores[0].write():
        assert counting.allowed(LIMIT, "a", 25) == 10
    # And no journal beside it, which would tell what was in a row before.
    assert {path.name for path in tmp_path.glob("*-limits*")} == {"ledger.db-limits"}
    counting.close()


def test_a_crash_of_the_server_resets_no_limit_of_a_day(postgres: PostgresServer) -> None:
    """Shorter ones are: their table is not logged."""
    counting = Counting(postgres.url("crashed_limits"), "spend")
    assert counting.allowed(DAILY, "a guest", 15) == 15
    assert counting.allowed(LIMIT, "a guest", 25) == 10
    postgres.restart(immediate=True)
    for limiter in counting.limiters:
        until(lambda limiter=limiter: limiter.spend(LIMIT, "first after the crash") is not None)  # type: ignore[misc]
    assert counting.allowed(DAILY, "a guest", 15) == 5
    assert counting.allowed(LIMIT, "a guest", 25) == 10
    counting.close()
    postgres.drop("crashed_limits")


def _spend_until_killed(url: str) -> None:
    limiter = Limiter(Store(url), SECRET, lambda: datetime(2026, 6, 1, 12, tzinfo=UTC))
    for number in count():
        limiter.spend(DAILY, f"guest {number}")


def test_a_killed_process_resets_no_limit_of_a_day(tmp_path: Path) -> None:
    """At any moment, with SQLite."""
    url = f"sqlite:///{tmp_path}/ledger.db"
    counting = Counting(url, "spend")
    assert counting.allowed(DAILY, "a guest", 15) == 15
    file = tmp_path / "ledger.db-day-limits"
    for _ in range(5):
        size = file.stat().st_size
        process = get_context("fork").Process(target=_spend_until_killed, args=(url,))
        process.start()
        until(lambda size=size: file.stat().st_size > size + 16384)  # type: ignore[misc]
        process.kill()
        process.join()
    assert counting.allowed(DAILY, "a guest", 15) == 5
    counting.close()
