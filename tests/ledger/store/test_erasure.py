"""What is erased is in no file of the database any more."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from time import monotonic

import pytest
from sqlalchemy import Connection

from ledger.store.deadlines import Deadlines
from ledger.store.engine import Store
from ledger.store.erasure import erasing
from ledger.store.rows import run
from ledger.store.schema import migrate
from ledger.store.scrub import MOST_REWRITTEN
from tests.database_bytes import Files

ERASE = "UPDATE entry SET text = NULL, salt = NULL WHERE idx = ?"
INSERT = "INSERT INTO entry (idx, data, text, salt) VALUES (?, ?, ?, ?)"


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    made = Store(database_url)
    migrate(made)
    yield made
    made.close()


@pytest.fixture
def files(database_url: str) -> Files:
    return Files(database_url)


def overwrite(connection: Connection, what: str) -> None:
    """Builds of SQLite differ in what they overwrite when they are not asked: Debian's everything, others nothing."""
    if connection.dialect.name == "sqlite":
        run(connection, f"PRAGMA secure_delete = {what}")


def fill(store: Store, count: int = 60) -> dict[int, tuple[bytes, bytes]]:
    """Entries with texts of all lengths, by index; some need pages of their own, and none can be packed."""
    random, told = Random(3), {}
    with store.write() as connection:
        # Pages that are written in any case; without this, a table's first page keeps a copy of the rows that moved out.
        overwrite(connection, "FAST")
        for index in range(count):
            text = f"secret {index:04}" + random.randbytes(random.choice((8, 100, 700, 2500))).hex()
            salt = random.randbytes(32)
            run(connection, INSERT, (index, random.randbytes(500), text, salt))
            told[index] = (text[:60].encode(), salt)
    return told


def test_what_was_erased_is_in_no_file(store: Store, files: Files) -> None:
    told = fill(store)
    if not store.is_sqlite:
        # It keeps samples of what it sees, of columns where it may.
        with store.read() as connection:
            run(connection, "ANALYZE entry")
    gone = [needle for index in range(0, 60, 7) for needle in told[index]]
    kept = [needle for index in range(60) if index % 7 for needle in told[index]]
    with store.write() as connection, erasing(connection):
        for index in range(0, 60, 7):
            run(connection, ERASE, (index,))
    # As long as old versions are there, it is.
    assert files.count(*gone) > len(gone) // 2
    assert store.scrub("entry", rewrite=MOST_REWRITTEN)
    assert files.count(*gone) == 0
    assert files.count(*kept) == len(kept)


def test_deleted_rows_are_in_no_file(store: Store, files: Files) -> None:
    """Of a table where they come and go, and some stay."""
    random, live, gone = Random(5), {}, []
    for _ in range(40):
        with store.write() as connection, erasing(connection):
            for _ in range(random.randrange(8)):
                did, secret = f"did:web:{random.randbytes(8).hex()}.example", random.randbytes(random.choice((20, 900)))
                run(connection, "INSERT INTO did_document (did, fingerprint) VALUES (?, ?)", (did, secret))
                live[did] = secret[:20]
            for did in random.sample(sorted(live), len(live) // 4):
                run(connection, "DELETE FROM did_document WHERE did = ?", (did,))
                gone.append(live.pop(did))
    assert store.scrub("did_document", rewrite=MOST_REWRITTEN)
    assert len(gone) > 100
    assert files.count(*gone) == 0
    assert files.count(*live.values()) == len(live)


def test_who_does_not_erase_leaves_it(store: Store, files: Files) -> None:
    """Otherwise nothing would be shown by not finding it."""
    told = fill(store)
    gone = [needle for index in range(0, 60, 7) for needle in told[index]]
    with store.write() as connection:
        overwrite(connection, "OFF")
        for index in range(0, 60, 7):
            run(connection, ERASE, (index,))
    if store.is_sqlite:
        assert store.scrub("entry")
    assert files.count(*gone) > 0


def test_old_rows_go_without_rewriting(store: Store, files: Files) -> None:
    """PostgreSQL may leave some of them in what it takes for free space."""
    told = fill(store)
    gone = [needle for index in range(0, 60, 7) for needle in told[index]]
    with store.write() as connection, erasing(connection):
        for index in range(0, 60, 7):
            run(connection, ERASE, (index,))
    before = files.count(*gone)
    assert store.scrub("entry")
    assert files.count(*gone) <= (0 if store.is_sqlite else before // 2)


def test_erasing_is_over_when_it_is_over(store: Store) -> None:
    """However it ends: the connection is used again."""
    if not store.is_sqlite:
        with store.write() as connection, erasing(connection):
            return
    for before, name in enumerate(("OFF", "ON", "FAST")):
        with store.write() as connection:
            run(connection, f"PRAGMA secure_delete = {name}")
            with erasing(connection):
                assert run(connection, "PRAGMA secure_delete") == [(1,)]
            assert run(connection, "PRAGMA secure_delete") == [(before,)]
        with pytest.raises(KeyError), store.write() as connection, erasing(connection):
            raise KeyError
        with store.write() as connection:
            assert run(connection, "PRAGMA secure_delete") == [(before,)]


def test_scrubbing_gives_up_when_somebody_is_in_the_way(store: Store, database_url: str) -> None:
    """Who reads or writes is not held up for long, and it works later."""
    fill(store)
    others = Store(database_url)
    with others.snapshot() as reading:
        run(reading, "SELECT count(*) FROM entry")
        started = monotonic()
        # An old view keeps SQLite's log; PostgreSQL cannot rewrite the table under it.
        assert not store.scrub("entry", rewrite=MOST_REWRITTEN)
        assert monotonic() - started < 10
        with store.write() as connection:
            run(connection, ERASE, (1,))
    if store.is_sqlite:
        with others.write():
            assert not store.scrub("entry")
        with store.read() as connection:
            assert run(connection, "PRAGMA busy_timeout") == [(store.deadlines.lock * 1000,)]
    else:
        with store.read() as connection:
            assert run(connection, "SHOW lock_timeout") == [("1s",)]
    others.close()
    assert store.scrub("entry", rewrite=MOST_REWRITTEN)


def test_an_empty_log_is_as_good_as_an_emptied_one(tmp_path: Path) -> None:
    store = Store(f"sqlite:///{tmp_path}/ledger.db")
    migrate(store)
    assert store.scrub("entry")
    assert store.scrub("entry")
    assert (tmp_path / "ledger.db-wal").stat().st_size == 0
    store.close()


def test_the_pragma_is_heeded_inside_of_a_transaction(tmp_path: Path) -> None:
    """Of SQLite itself: what it does in the midst of a transaction is not written anywhere."""
    path = tmp_path / "plain.db"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA secure_delete = 0")
        connection.execute("CREATE TABLE told (id INTEGER PRIMARY KEY, text TEXT)")
        connection.execute("INSERT INTO told VALUES (1, 'left behind'), (2, 'kept'), (3, 'overwritten')")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM told WHERE id = 1")
        connection.execute("PRAGMA secure_delete = 1")
        connection.execute("DELETE FROM told WHERE id = 3")
        connection.execute("PRAGMA secure_delete = 0")
        connection.execute("COMMIT")
    data = path.read_bytes()
    assert [text in data for text in (b"left behind", b"overwritten", b"kept")] == [True, False, True]


def test_no_table_is_written_anew_beside_a_review(store: Store, database_url: str) -> None:
    """While another process writes, and where a table has more rows than the bound."""
    impatient = Store(database_url, Deadlines(0.4))
    with store.erase("feedback") as connection:
        for index in range(3):
            run(connection, "INSERT INTO feedback VALUES (?, ?, ?, ?, ?)", (index, b"h", b"s", "m", "2027-01-01"))
    file = relation(store, "feedback")
    with store.write():
        assert not impatient.scrub("feedback", rewrite=MOST_REWRITTEN)
        assert "feedback" in impatient.traces
    impatient.close()
    assert store.scrub("feedback", rewrite=2)
    assert relation(store, "feedback") == file
    assert store.scrub("feedback", rewrite=3)
    assert (relation(store, "feedback") == file) == store.is_sqlite
    assert "feedback" not in store.traces


def relation(store: Store, table: str) -> str:
    """PostgreSQL writes a table anew into another file."""
    if store.is_sqlite:
        return table
    with store.read() as connection:
        return str(run(connection, "SELECT pg_relation_filepath(to_regclass(?))", (table,))[0][0])
