"""Both engines are durable on every connection, and say what is wrong with them."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import QueuePool

from ledger.errors import Misconfigured, Unavailable, Unconfirmed
from ledger.store import engine, postgresql, sqlite, tables
from ledger.store.deadlines import Deadlines
from ledger.store.engine import Store
from ledger.store.rows import insert_rows, run
from ledger.store.schema import migrate
from tests.engines import PostgresServer

DURABLE: dict[str, dict[str, str | int]] = {
    "sqlite": {"PRAGMA journal_mode": "wal", "PRAGMA synchronous": 2},
    "postgresql": {"SHOW synchronous_commit": "on", "SHOW fsync": "on", "SHOW full_page_writes": "on"},
}


@pytest.fixture
def store(database_url: str) -> Any:
    made = Store(database_url)
    migrate(made)
    yield made
    made.close()


def test_every_connection_is_durable(store: Store) -> None:
    for connect in (store.read, store.write, store.snapshot):
        with connect() as connection:
            for question, answer in DURABLE[connection.dialect.name].items():
                assert connection.exec_driver_sql(question).scalar() == answer


def test_a_setting_that_does_not_hold_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a build or a server that takes the setting and keeps its own."""
    monkeypatch.setitem(sqlite.DURABLE, "synchronous", 3)
    monkeypatch.setitem(postgresql.DURABLE, "fsync", "maybe")
    store = Store(database_url)
    with pytest.raises(Misconfigured) as refused, store.read():
        pass
    assert refused.value.code == "database_not_durable"
    assert "could be lost" in refused.value.message
    store.close()


def test_postgresql_without_fsync_is_refused(postgres: PostgresServer) -> None:
    url = postgres.url("careless")
    store = Store(url)
    admin = Store(url)
    with admin.read() as connection:
        connection.execute(text("ALTER SYSTEM SET fsync = off"))
        connection.execute(text("SELECT pg_reload_conf()"))
    try:
        with pytest.raises(Misconfigured, match="fsync = off"):
            _connect_until_refused(store)
    finally:
        with admin.read() as connection:
            connection.execute(text("ALTER SYSTEM RESET fsync"))
            connection.execute(text("SELECT pg_reload_conf()"))
        admin.close()
        store.close()


def _connect_until_refused(store: Store) -> None:
    """The server reads its settings again when it gets to it."""
    for _ in range(50):
        with store.read() as connection:
            connection.execute(text("SELECT pg_sleep(0.1)"))
        store.close()


def test_a_write_that_raises_leaves_nothing(store: Store) -> None:
    with pytest.raises(ZeroDivisionError):
        _add_tiles(store, 1, 2, lambda: 1 // 0)
    with store.read() as connection:
        assert connection.execute(select(tables.tile)).all() == []


def _add_tiles(store: Store, *ids: Any) -> None:
    with store.write() as connection:
        for id_ in ids:
            connection.execute(insert(tables.tile).values(id=id_() if callable(id_) else id_, data=b"x"))


def test_writers_take_turns_and_readers_do_not_wait(store: Store) -> None:
    inside, leave, order = Event(), Event(), []

    def first() -> None:
        with store.write() as connection:
            connection.execute(insert(tables.tile).values(id=1, data=b"x"))
            inside.set()
            leave.wait(10)
            order.append("first")

    def second() -> None:
        with store.write():
            order.append("second")

    threads = [Thread(target=first), Thread(target=second)]
    threads[0].start()
    assert inside.wait(10)
    threads[1].start()
    with store.read() as connection:
        assert connection.execute(select(tables.tile)).all() == []
    leave.set()
    for thread in threads:
        thread.join(10)
    assert order == ["first", "second"]


def test_a_thread_that_waits_too_long_for_its_turn_is_refused(store: Store) -> None:
    store.deadlines = Deadlines(0.1)
    with store.write(), ThreadPoolExecutor() as pool:
        refusal = pool.submit(_add_tiles, store, 1).exception()
    assert isinstance(refusal, Unavailable)
    assert refusal.code == "busy"
    _add_tiles(store, 1)


def test_all_threads_write_through_one_connection(store: Store) -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda id_: _add_tiles(store, id_), range(20)))
    assert isinstance(store._writing.pool, QueuePool)
    assert store._writing.pool.checkedout() == 1
    with store.read() as connection:
        assert len(connection.execute(select(tables.tile)).all()) == 20


def test_a_snapshot_does_not_change(store: Store) -> None:
    with store.snapshot() as snapshot:
        before = snapshot.execute(select(tables.tile)).all()
        with store.write() as connection:
            connection.execute(insert(tables.tile).values(id=1, data=b"x"))
        assert snapshot.execute(select(tables.tile)).all() == before == []
    with store.read() as connection:
        assert len(connection.execute(select(tables.tile)).all()) == 1


def test_a_mistake_of_ours_is_not_called_an_outage(store: Store) -> None:
    with pytest.raises(IntegrityError):
        _add_tiles(store, 1, 1)


def test_a_mistake_in_a_statement_for_the_driver_is_not_called_an_outage(store: Store) -> None:
    for connect in (store.read, store.write):
        with pytest.raises(DBAPIError, match="no_such_table"), connect() as connection:
            run(connection, "SELECT * FROM no_such_table")
        with connect() as connection:
            assert run(connection, "SELECT 1") == [(1,)]


def test_rows_that_do_not_fit_undo_everything_before_them(store: Store) -> None:
    with pytest.raises(DBAPIError), store.write() as connection:
        insert_rows(connection, tables.page, [(1, b"kept?"), (2, b"twice"), (2, b"twice")])
    with store.read() as connection:
        assert run(connection, "SELECT * FROM page") == []


def test_a_text_has_its_salt(store: Store) -> None:
    for text_and_salt in (("Quiet.", None), (None, bytes(32))):
        with pytest.raises(DBAPIError, match="entry_opening"), store.write() as connection:
            insert_rows(connection, tables.entry, [(0, b"", None, None, None, *text_and_salt)])


def test_threads_that_end_give_their_connections_back(store: Store) -> None:
    def read() -> None:
        with store.read() as connection:
            found.append(run(connection, "SELECT 1"))

    found: list[Any] = []
    for _ in range(engine.READERS + engine.MORE_READERS + 5):
        thread = Thread(target=read)
        thread.start()
        thread.join()
    assert len(found) == engine.READERS + engine.MORE_READERS + 5


def test_a_thread_with_sqlite_reads_through_one_connection_while_it_is_sound(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path / 'a.db'}")
    with store.read() as first, store.read() as second:
        assert first is second
    with pytest.raises(DBAPIError), store.read() as broken:
        run(broken, "SELECT * FROM no_such_table")
    with store.read() as third:
        assert third is not first
        assert run(third, "SELECT 1") == [(1,)]
    store.close()
    assert third.closed
    with store.read() as again:
        assert run(again, "SELECT 1") == [(1,)]
    store.close()


def test_a_database_that_cannot_be_reached_is_unavailable(tmp_path: Path) -> None:
    for url in (f"sqlite:///{tmp_path}/nowhere/ledger.db", f"postgresql://postgres@/ledger?host={tmp_path}"):
        store = Store(url)
        with pytest.raises(Unavailable) as refused, store.read():
            pass
        assert refused.value.code == "storage_unavailable"
        store.close()


@pytest.mark.parametrize("url", ["", "ledger.db", "mysql://localhost/ledger", "sqlite://", "x://"])
def test_a_url_of_no_engine_is_refused(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        Store(url)
    assert refused.value.code == "settings_invalid"


def _put_back(database: Path) -> None:
    """As an operator restores a copy, with the service still running."""
    copy = shutil.copy(database, database.with_name("copy"))
    Path(copy).replace(database)


def _delete_wal(database: Path) -> None:
    database.with_name(f"{database.name}-wal").unlink()


REPLACED: list[Callable[[Path], None]] = [_put_back, _delete_wal, Path.unlink]


@pytest.mark.parametrize("replace", REPLACED)
def test_refuses_to_write_into_files_that_were_replaced(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    """SQLite would go on in the deleted files, and what it takes in would be gone at the next start."""
    database = tmp_path / "ledger.db"
    store = Store(f"sqlite:///{database}")
    migrate(store)
    with closing(store):
        _add_tiles(store, 1)
        replace(database)
        for _ in range(2):
            with pytest.raises(Unavailable, match="were replaced") as refused:
                _add_tiles(store, 2)
            assert refused.value.code == "storage_unavailable"
        assert store.health.reason() is not None


@pytest.mark.parametrize("replace", REPLACED)
def test_confirms_no_write_during_which_files_were_replaced(tmp_path: Path, replace: Callable[[Path], None]) -> None:
    database = tmp_path / "ledger.db"
    store = Store(f"sqlite:///{database}")
    migrate(store)
    with closing(store), pytest.raises(Unconfirmed, match="were replaced"), store.write():
        replace(database)


def test_other_processes_that_come_and_go_replace_no_files(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    store = Store(url)
    migrate(store)
    with closing(store):
        for number in range(3):
            with closing(Store(url)) as other:
                _add_tiles(other, 2 * number)
            _add_tiles(store, 2 * number + 1)
            store.tidy()
            assert store.scrub("submission", rewrite=100)
