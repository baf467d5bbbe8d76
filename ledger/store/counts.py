"""Where the limiter's numbers are: tables of key, until when it is needed, and a time. Each statement is a transaction
of its own, seen by all processes.

Limits of minutes and hours need not survive a crash, and are counted at every request: they are kept where that costs
least. Limits of a day are counted once for a submission, and a crash does not reset them.
"""

import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from ledger.store.engine import Store
from ledger.store.rows import run

# How long the file may be in other processes' hands, which have it for microseconds.
BUSY_SECONDS = 0.2
# The tables of either kind, on both engines; on SQLite each is in a file of its own.
SHORT, LASTING = "rate", "day_rate"

_TABLE = "CREATE TABLE IF NOT EXISTS {} (key BLOB PRIMARY KEY, until INTEGER NOT NULL, paid INTEGER NOT NULL)"
_INDEX = "CREATE INDEX IF NOT EXISTS ix_{0}_until ON {0} (until)"
# A file that is no database, or a damaged one, or one without our table.
_UNUSABLE = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR}


class Counts(Protocol):
    table: str

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]: ...

    def close(self) -> None: ...


def counts_of(store: Store, *, lasting: bool) -> Counts:
    """For limits of a day and more, or for shorter ones."""
    table = LASTING if lasting else SHORT
    if not store.is_sqlite:
        return PostgresCounts(store, table)
    suffix = "day-limits" if lasting else "limits"
    return SqliteCounts(f"{store.url.database}-{suffix}", table, lasting=lasting)


class SqliteCounts:
    """A file of its own, since nobody who reads should wait for who writes the log, and one connection, which serves
    all threads in turn. Rows are overwritten where they stand.

    Without `lasting` no journal tells what was there before; a crash may damage the file, and then it is made anew.
    With it, a process may be killed at any moment: a journal restores what it left half written. Only a power cut may
    still damage the file, since nothing waits for the disk.
    """

    def __init__(self, path: str, table: str, *, lasting: bool) -> None:
        self.table = table
        self._path = Path(path)
        self._journal = "TRUNCATE" if lasting else "MEMORY"
        self._turn = Lock()
        self._connection: sqlite3.Connection | None = None

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._turn:
            try:
                return self._run(statement, values)
            except sqlite3.DatabaseError as error:
                self._drop()
                if error.sqlite_errorcode & 0xFF not in _UNUSABLE:
                    raise
                for suffix in ("", "-journal"):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
                return self._run(statement, values)

    def close(self) -> None:
        with self._turn:
            self._drop()

    def _run(self, statement: str, values: Sequence[Any]) -> list[Any]:
        if self._connection is None:
            self._connection = self._connect()
        return self._connection.execute(statement, values).fetchall()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        for pragma in (f"journal_mode = {self._journal}", "synchronous = OFF", "secure_delete = ON"):
            connection.execute(f"PRAGMA {pragma}")
        # In the order of the keys, which is none, and not in the order in which they came.
        connection.execute(f"{_TABLE.format(self.table)} WITHOUT ROWID")
        connection.execute(_INDEX.format(self.table))
        return connection

    def _drop(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None


class PostgresCounts:
    """A table made by the migrations. The one for short limits is not logged, so that a commit that touches no other
    does not wait for the disk, and is empty after a crash of the server; the other one is logged and replicated."""

    def __init__(self, store: Store, table: str) -> None:
        self.table = table
        self._store = store

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._store.read() as connection:
            return run(connection, statement, values)

    def close(self) -> None:
        """The store is not ours."""
