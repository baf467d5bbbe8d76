"""The count is that of the entries, whoever asks, however often, and wherever it was left off."""

import json
from collections import Counter
from threading import Thread
from typing import Any

import pytest
from sqlalchemy import update

from ledger.errors import NotStored
from ledger.log import census as module
from ledger.log.census import Census, Counted
from ledger.log.drafts import artifact_draft
from ledger.log.members import LEVELS
from ledger.log.reader import Reader
from ledger.store import tables
from tests.running import HOST, OTHER, Running, Writer
from tests.waiting import until


def grow(running: Running, writer: Writer, days: int = 1) -> None:
    """Everything that can happen, on each day; something that has no time stands at the turn of one."""
    for day in range(days):
        running.clock.forward(days=1)
        found = running.add(
            artifact_draft(writer.random.randbytes(32)),
            *(writer.review(host, level) for level in LEVELS for host in (HOST, OTHER)),
            writer.review(level="unconfirmed"),
            writer.check(outcome="unanswered"),
        )
        reviews = {review.entry.members["level"]: review for review in found[1:7]}
        running.add(writer.response(reviews["guest_verified"]), writer.redaction(reviews["host_attested"]))
        if day % 2 == 0:
            running.add(writer.upgrade(reviews["unconfirmed"]), writer.policy())


def naive(running: Running, size: int | None = None) -> dict[str, Any]:
    """By the definition: every entry by itself, in order."""
    entries = running.ledger.reader.entries(0, size or running.ledger.reader.published.size)
    days: dict[str, Counter[str]] = {}
    levels: dict[int, str] = {}
    at = ""
    for index, data in enumerate(entries):
        entry: dict[str, Any] = json.loads(data) if data.startswith(b"{") else {"type": "artifact"}
        at = entry.get("at", at)
        day = days.setdefault(at[:10], Counter())
        day["entries"] += 1
        if entry["type"] == "review":
            levels[index] = entry["level"]
        if entry["type"] == "upgrade":
            levels[entry["review"]] = entry["level"]
        day[":".join((entry["type"], entry.get("level") or entry.get("basis") or entry.get("outcome") or ""))] += 1
    return {"size": len(entries), "at": at, "levels": Counter(levels.values()), "days": days}


def spelled(counted: Counted) -> dict[str, Any]:
    """A count as `naive` has it, without the types that a census does not tell apart."""
    days = {}
    for date, day in counted.days.items():
        named = {"entries": day["entries"], "response:": day["responses"], "upgrade:guest_verified": day["upgrades"]}
        named |= {f"review:{level}": number for level, number in day["reviews"].items()}
        named |= {f"redaction:{basis}": number for basis, number in day["redactions"].items()}
        named |= {f"booking_check:{outcome}": number for outcome, number in day["checks"].items()}
        days[date] = Counter(named)
    return {"size": counted.size, "at": counted.at, "levels": Counter(counted.levels), "days": days}


def assert_true(counted: Counted, running: Running) -> None:
    expected = naive(running, counted.size)
    for day in expected["days"].values():
        for name in [name for name in day if name.startswith(("artifact", "genesis", "map_head", "policy"))]:
            del day[name]
    assert spelled(counted) == expected
    assert counted.total["entries"] == counted.size == sum(day["entries"] for day in counted.days.values())
    for level in LEVELS:
        assert counted.total["reviews"][level] == sum(day["reviews"][level] for day in counted.days.values())
    assert list(counted.days) == sorted(counted.days)


def test_a_new_log_is_counted(running: Running) -> None:
    counted = running.ledger.census.now()
    assert (counted.size, counted.at) == (2, "2026-06-01T12:00:00Z")
    assert_true(counted, running)
    assert counted.levels == dict.fromkeys(LEVELS, 0)


def test_everything_is_counted_on_its_day(running: Running, writer: Writer) -> None:
    grow(running, writer, 3)
    counted = running.ledger.census.now()
    assert_true(counted, running)
    assert counted.size == running.ledger.reader.published.size
    assert counted.at == running.ledger.reader.published.at
    assert counted.days["2026-06-02"]["checks"]["unanswered"] == 1
    # With what stands before it, though that is of the day before.
    assert counted.days["2026-06-01"]["entries"] == 3


def test_an_upgrade_moves_a_review_and_the_day_keeps_how_it_came_in(running: Running, writer: Writer) -> None:
    [review] = running.add(writer.review(level="unconfirmed"))
    assert running.ledger.census.now().levels == {"guest_verified": 0, "host_attested": 0, "unconfirmed": 1}
    running.clock.forward(days=2)
    running.add(writer.upgrade(review))
    counted = running.ledger.census.now()
    assert counted.levels == {"guest_verified": 1, "host_attested": 0, "unconfirmed": 0}
    assert counted.days["2026-06-01"]["reviews"]["unconfirmed"] == 1
    assert (counted.days["2026-06-01"]["upgrades"], counted.days["2026-06-03"]["upgrades"]) == (0, 1)
    assert_true(counted, running)


class Noted(Reader):
    """Notes what is read through it."""

    read = 0

    def entries(self, start: int, stop: int) -> list[bytes]:
        found = super().entries(start, stop)
        self.read += len(found)
        return found


def test_a_call_reads_only_what_is_new(running: Running, writer: Writer) -> None:
    reader = Noted(running.ledger.store)
    census = Census(reader)
    for _ in range(4):
        grow(running, writer)
        reader.refresh()
        for _ in range(3):
            assert_true(census.now(), running)
        assert reader.read == reader.published.size == census.now().size


def test_an_earlier_count_stays_as_it_was(running: Running, writer: Writer) -> None:
    grow(running, writer)
    before = running.ledger.census.now()
    seen = spelled(before)
    grow(running, writer)
    assert running.ledger.census.now() is not before
    assert spelled(before) == seen
    assert running.ledger.census.now() is running.ledger.census.now()


def test_a_restart_counts_the_same(running: Running, writer: Writer) -> None:
    grow(running, writer, 2)
    before = running.ledger.census.now()
    assert running.reopen().census.now() == before


def test_what_is_not_published_is_not_counted(running: Running, writer: Writer) -> None:
    seen: list[int] = []

    def look(step: str) -> None:
        if step == "committed":
            seen.append(running.ledger.census.now().size)

    running.reopen(on_step=look)
    running.add(writer.review())
    assert seen == [2]
    assert running.ledger.census.now().size == 4


def test_threads_count_together(running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """While somebody writes: every count is a true one, and nothing is counted twice."""
    monkeypatch.setattr(module, "CHUNK", 3)
    census = running.ledger.census
    seen: list[Counted] = []
    writing = True

    def ask() -> None:
        while writing:
            seen.append(census.now())

    threads = [Thread(target=ask) for _ in range(4)]
    census.start()
    for thread in threads:
        thread.start()
    grow(running, writer, 4)
    writing = False
    for thread in threads:
        thread.join()
    assert census.now().size == running.ledger.reader.published.size
    for counted in {each.size: each for each in (*seen, census.now())}.values():
        assert_true(counted, running)


def test_much_at_once_is_left_to_the_thread(running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", 4)
    monkeypatch.setattr(module, "MOST_CHUNKS", 2)
    grow(running, writer, 2)
    census, size = running.ledger.census, running.ledger.reader.published.size
    for part in (8, 16):
        counted = census.now()
        assert counted.size == part < size
        assert_true(counted, running)
    census.start()
    until(lambda: census.now().size == size)
    assert_true(census.now(), running)


def test_a_service_counts_without_being_asked(running: Running, writer: Writer) -> None:
    reader = Noted(running.ledger.store)
    grow(running, writer)
    census = Census(reader)
    census.start()
    until(lambda: reader.read == running.ledger.reader.published.size)
    census.close()


@pytest.mark.parametrize("at", ["2026-06-31", "2026-0x-01", "2025-06-01", "2926-06-01", "0000-00-00"])
def test_a_time_that_is_none_is_damage_and_what_was_counted_stays(at: str, running: Running, writer: Writer) -> None:
    census = running.ledger.census
    before = census.now()
    [review] = running.add(writer.review())
    data = review.entry.data.replace(b'"at":"2026-06-01', f'"at":"{at}'.encode())
    assert data != review.entry.data
    with running.ledger.store.write() as connection:
        connection.execute(update(tables.entry).where(tables.entry.c.idx == review.index).values(data=data))
    for _ in range(2):
        with pytest.raises(NotStored, match="from 2 on is damaged"):
            census.now()
        assert census.so_far() == before


def test_damage_is_told_and_counting_goes_on_when_it_is_mended(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "WAKE_SECONDS", 0.001)
    [review] = running.add(writer.review())
    census = running.ledger.census

    def put(data: bytes) -> None:
        with running.ledger.store.write() as connection:
            connection.execute(update(tables.entry).where(tables.entry.c.idx == review.index).values(data=data))

    put(review.entry.data[:-1])
    with pytest.raises(NotStored, match="from 0 on is damaged"):
        census.now()
    census.start()
    until(lambda: "cannot be counted" in caplog.text)
    put(review.entry.data)
    until(lambda: census._size == 4)
    assert_true(census.now(), running)
    # Once, however often it was tried.
    assert caplog.text.count("cannot be counted") == 1
