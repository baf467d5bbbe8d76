"""After a change of the database nothing is signed until something vouches for it; on a real PostgreSQL."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from ledger import metrics
from ledger.canon.times import format_time
from ledger.errors import StaylogError, Unavailable
from ledger.log.mark import Database, Mark
from ledger.log.mark_file import MarkFile
from tests.engines import PostgresServer
from tests.ledger.log.watched_log import policy_of, witness
from tests.ports import free_port
from tests.running import Running, Writer
from tests.waiting import until


@pytest.fixture
def there(tmp_path: Path, postgres: PostgresServer, writer: Writer) -> Iterator[Running]:
    made = Running(tmp_path / "data", postgres.emptied("ledger"))
    made.add(writer.review())
    yield made
    made.ledger.close()


def database_of(running: Running) -> Database:
    found = MarkFile(running.settings.mark).database()
    assert found is not None
    return found


def signed_from(running: Running, seconds: float | None = None, **other: int) -> None:
    """As if the mark was from another database, with a synchronous standby seen so long ago."""
    at = None if seconds is None else format_time(running.clock() - timedelta(seconds=seconds))
    running.ledger.close()
    known = replace(database_of(running), synchronous_at=at, **other)
    MarkFile(running.settings.mark).write_database(known)


def refused_to_open(running: Running) -> StaylogError:
    with pytest.raises(StaylogError) as refused:
        running.open()
    return refused.value


def reopened(running: Running) -> None:
    """It goes on, and has the database of now in its mark."""
    running.open()
    running.add(Writer(77).review())
    assert running.ledger.health.reason() is None


CHANGES = {"timeline": 0, "system": 5, "table": 5}


@pytest.mark.parametrize("changed", CHANGES)
def test_another_database_is_refused_until_the_operator_accepts(there: Running, changed: str) -> None:
    newest = there.ledger.reader.published
    before = metrics.SIGNING_REFUSED.labels("database_changed")._value.get()
    signed_from(there, **{changed: CHANGES[changed]})
    refused = refused_to_open(there)
    assert isinstance(refused, Unavailable)
    assert refused.code == "database_changed"
    accepted = str(Mark(newest.size, newest.root))
    assert refused.message.endswith(f"`staylog serve --accept-checkpoint {accepted}`")
    assert metrics.SIGNING_REFUSED.labels("database_changed")._value.get() == before + 1
    plain = there.settings
    there.settings = replace(plain, accepted=accepted)
    reopened(there)
    there.settings = plain
    there.ledger.close()
    there.open()


@pytest.mark.parametrize(
    ("seconds", "other", "goes_on"),
    [
        (0, {"timeline": 0}, True),
        (60, {"timeline": 0}, True),
        (61, {"timeline": 0}, False),
        # The clock went back: it is not known how long ago that was.
        (-1, {"timeline": 0}, False),
        (None, {"timeline": 0}, False),
        # What is promoted has a later timeline, and the same cluster and tables.
        (1, {"timeline": 9}, False),
        (1, {"timeline": 0, "system": 5}, False),
        (1, {"timeline": 0, "table": 5}, False),
    ],
)
def test_a_standby_that_was_just_synchronous_may_take_over(
    there: Running, seconds: float | None, other: dict[str, int], goes_on: bool
) -> None:
    signed_from(there, seconds, **other)
    if goes_on:
        reopened(there)
        assert database_of(there).timeline > 0
    else:
        assert refused_to_open(there).code == "database_changed"
        there.settings = replace(there.settings, accepted=str(MarkFile(there.settings.mark).read()))
        there.open()


@pytest.mark.parametrize(("passed", "goes_on"), [(59, True), (61, False)])
def test_a_clock_that_is_set_back_makes_the_sight_of_a_standby_no_newer(
    there: Running, writer: Writer, passed: int, goes_on: bool
) -> None:
    """What counts in a process is the time that has really passed since it looked."""
    history = there.ledger.reader._see.__self__  # type: ignore[attr-defined]
    seen_at = format_time(there.clock())
    history._sight = (seen_at, there.clock.elapsed())
    history._file.write_database(replace(database_of(there), timeline=0, synchronous_at=seen_at))
    there.clock.forward(seconds=passed)
    there.clock.jump(seconds=-passed)
    if goes_on:
        there.add(writer.review())
    else:
        with pytest.raises(Unavailable) as refused:
            there.add(writer.review())
        assert refused.value.code == "database_changed"


def test_a_witness_that_agrees_lets_the_log_go_on(there: Running, tmp_path: Path) -> None:
    with witness(there, tmp_path / "witness") as asked:
        there.settings.tlog_policy.write_text(policy_of(there, f"witness w {asked.vkey} {asked.url}"))
        there.reopen()
        signed_from(there, timeline=0)
        reopened(there)
    # The witness is gone.
    signed_from(there, timeline=0)
    assert refused_to_open(there).code == "database_changed"
    there.settings.tlog_policy.unlink()
    there.settings = replace(there.settings, accepted=str(MarkFile(there.settings.mark).read()))
    there.open()


def test_a_running_log_asks_its_witnesses_again_until_one_agrees(
    there: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.log.history.ASK_SECONDS", 0.05)
    port = free_port()
    with witness(there, tmp_path / "witness", port=port) as asked:
        policy = policy_of(there, f"witness w {asked.vkey} {asked.url}")
    there.settings.tlog_policy.write_text(policy)
    with running_log(there) as refused:
        assert refused() == "database_changed"
        with witness(there, tmp_path / "witness", port=port):
            until(lambda: there.ledger.health.reason() is None)
            there.ledger.sequencer.submit(Writer(5).review()).result(60)


@contextmanager
def running_log(there: Running) -> Iterator[Callable[[], str | None]]:
    """Its database changes while it runs."""
    there.reopen()
    there.ledger.sequencer.start()
    known = replace(database_of(there), timeline=0, synchronous_at=None)
    file = there.ledger.reader._see.__self__._file  # type: ignore[attr-defined]
    file.write_database(known)

    def health() -> str | None:
        until(lambda: there.ledger.health.reason() is not None)
        reason = there.ledger.health.reason()
        return reason.code if reason is not None else None

    yield health


def test_sqlite_is_always_the_same_database(tmp_path: Path) -> None:
    running = Running(tmp_path / "data", f"sqlite:///{tmp_path}/ledger.db")
    with closing(running.ledger):
        running.add(Writer(1).review())
        assert MarkFile(running.settings.mark).database() is None


def test_a_reader_does_not_serve_what_cannot_be_noted_down(there: Running, writer: Writer, tmp_path: Path) -> None:
    """Another service publishes, and the mark cannot be written here."""
    here = there.ledger.reader
    known = here.published
    folder = tmp_path / "other"
    folder.mkdir(mode=0o700)
    for path in (there.settings.log_key, there.settings.service_keys, there.settings.mark):
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / path.name).chmod(0o600)
    there.settings.mark.rename(tmp_path / "aside")
    there.settings.mark.mkdir()
    first, there.settings = there.ledger, replace(there.settings, data=folder)
    with closing(there.open()):
        there.add(writer.review())
        newest = there.ledger.reader.published
        for size in (newest.size, newest.size):
            with pytest.raises(StaylogError) as refused:
                here.published_at(size)
            assert refused.value.code == "mark_unreadable"
        assert here.published == known
        assert [each.size for each in here.checkpoints(None, 10)] == [4, 2]
        there.ledger = first
        (tmp_path / "data" / "last-signed").rmdir()
        assert here.published_at(newest.size).size == newest.size
    assert MarkFile(tmp_path / "data" / "last-signed").read() == Mark(newest.size, newest.root)
