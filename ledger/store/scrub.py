"""What erased rows have left in the files of a database, and how it goes.

SQLite moves its whole write-ahead log into the file and cuts it off. PostgreSQL vacuums the tables: the rows of a page
are moved together over the old ones. In both, some bytes of a row that was moved may stay in free space until that is
used. A table that is written anew leaves nothing; the log's writer waits meanwhile, so that is for tables of few rows.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from time import sleep
from typing import Protocol

from sqlalchemy import Connection, Table
from sqlalchemy.exc import DBAPIError

from ledger.errors import Unavailable
from ledger.store.deadlines import PATIENT, Deadlines
from ledger.store.erasure import erasing
from ledger.store.rows import insert_rows, run
from ledger.store.tables import metadata

# What is erased in the course of things, and scrubbed by every service's worker; texts of entries go by hand.
ERASED = ("submission", "booking", "feedback")
# Rows of a table that is written anew, every minute or seldom: of 3 kB each, 2,000 take 0.15 s and 10,000 take 0.7 s on
# both engines, and the log's writer waits for it.
FEW_REWRITTEN, MOST_REWRITTEN = 2_000, 10_000
# How often SQLite is asked to empty its write-ahead log, and for how long each time: writers wait meanwhile.
TRIES, TRY_SECONDS = 5, 0.2
# For how long PostgreSQL may wait for a table: reviews wait behind that.
LOCK_MILLISECONDS = 50

_LOCK_NOT_AVAILABLE = "55P03"
# Where an older view of the database still shows what was erased, no vacuum takes it away.
_OLDER_VIEWS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_xmin IS NOT NULL AND xact_start < now() - interval '1 second'"
)


class Database(Protocol):
    """What of `ledger.store.engine.Store` is needed."""

    is_sqlite: bool
    deadlines: Deadlines

    def read(self) -> AbstractContextManager[Connection]: ...

    def write(self) -> AbstractContextManager[Connection]: ...

    def patient(self, connection: Connection, seconds: float = PATIENT) -> AbstractContextManager[None]: ...


def scrub(store: Database, tables: Sequence[str], *, rewrite: int, busy_seconds: float) -> bool:
    """Takes away what erased rows of `tables` have left in the database's files. False when others are in the way, and
    it is to be tried again. Tables of at most `rewrite` rows are written anew."""
    try:
        if store.is_sqlite:
            for table in tables if rewrite else ():
                _write_anew(store, metadata.tables[table], rewrite)
            return _empty_wal(store, busy_seconds)
        done = [_vacuum(store, table, rewrite) for table in tables]
    except Unavailable:
        return False
    return all(done)


def _write_anew(store: Database, table: Table, most: int) -> None:
    """All rows out, whose pages are overwritten, and in again."""
    with store.write() as connection, erasing(connection):
        if not has_at_most(connection, table.name, most):
            return
        names = ", ".join(column.name for column in table.columns)
        rows = run(connection, f"SELECT {names} FROM {table.name}")  # noqa: S608 (names of our own)
        run(connection, f"DELETE FROM {table.name}")  # noqa: S608 (names of our own)
        insert_rows(connection, table, [tuple(row) for row in rows])


def has_at_most(connection: Connection, table: str, most: int) -> bool:
    query = f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {most + 1}) AS few"  # noqa: S608
    return int(run(connection, query)[0][0]) <= most


def _empty_wal(store: Database, busy_seconds: float) -> bool:
    with store.read() as connection:
        run(connection, f"PRAGMA busy_timeout = {int(TRY_SECONDS * 1000)}")
        try:
            for _ in range(TRIES):
                [(busy, _, _)] = run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
                if not busy:
                    return True
                # SQLite waits for readers and writers, but not for another checkpoint, whatever the timeout.
                sleep(TRY_SECONDS)
        finally:
            run(connection, f"PRAGMA busy_timeout = {int(busy_seconds * 1000)}")
    return False


def _vacuum(store: Database, table: str, rewrite: int) -> bool:
    with store.read() as connection:
        is_small = rewrite > 0 and has_at_most(connection, table, rewrite)
        [(older,)] = run(connection, _OLDER_VIEWS)
    done = _vacuum_now(store, table, "VACUUM", PATIENT)
    if is_small:
        # No review is being written meanwhile: it would wait for the table. Later the server ends this transaction.
        with store.write():
            done = _vacuum_now(store, table, "VACUUM (FULL)", store.deadlines.idle) and done
    return done and not older


def _vacuum_now(store: Database, table: str, how: str, seconds: float) -> bool:
    with store.read() as connection, store.patient(connection, seconds):
        [(before,)] = run(connection, "SHOW lock_timeout")
        run(connection, f"SET lock_timeout = {LOCK_MILLISECONDS}")
        try:
            connection.exec_driver_sql(f"{how} {table}")
        except DBAPIError as error:
            if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                raise
            return False
        finally:
            if not connection.invalidated:
                run(connection, f"SET lock_timeout = '{before}'")
    return True
