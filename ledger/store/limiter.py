"""How often somebody may do something: GCRA, the generic cell rate algorithm (ITU-T I.371), kept in the database.

Each limit and subject has one number: the time up to which what was done so far is paid for. One statement looks at it
and moves it on, so that a limit is exact whichever processes share it. On SQLite the numbers have a file of their own,
since nobody who reads should wait for who writes the log; they need not survive a power cut.

Nothing here tells who did what. Subjects are known by a key that changes every day, and times are moved by an offset
that this key gives.
"""

import hmac
import logging
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Protocol

from sqlalchemy.exc import DBAPIError

from ledger import metrics
from ledger.clock import Clock
from ledger.errors import TooMany, Unavailable
from ledger.store.engine import Store
from ledger.store.rows import run

DAY = 86_400
# How long the file of limits may be in others' hands. Whoever would wait longer is let through.
BUSY_SECONDS = 1

_logger = logging.getLogger(__name__)
_MICROSECONDS = 1_000_000
_TABLE = "rate (key {bytes} PRIMARY KEY, day INTEGER NOT NULL, paid BIGINT NOT NULL)"
# Who was counted today already: paid up to now at least, and then a step further, unless that is too far ahead.
_AGAIN = "UPDATE rate SET paid = {max}(paid, ?) + ? WHERE key = ? AND {max}(paid, ?) <= ? RETURNING paid"
# Whoever else: the same, from where yesterday ended. Another process may have been here just now.
_FIRST = (
    "INSERT INTO rate (key, day, paid) SELECT ?, ?, since.paid + ? FROM (SELECT {max}(?, coalesce((SELECT paid FROM "
    "rate WHERE key = ?) + ?, 0)) AS paid) AS since WHERE since.paid <= ? "
    "ON CONFLICT (key) DO UPDATE SET paid = {max}(rate.paid, ?) + ? WHERE {max}(rate.paid, ?) <= ? RETURNING paid"
)
_PAID = "SELECT paid FROM rate WHERE key = ? UNION ALL SELECT paid + ? FROM rate WHERE key = ?"


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` times in `seconds`, of which `burst` may come at once. At most a day may be used up ahead."""

    name: str
    count: int
    seconds: int
    burst: int
    code: str
    what: str

    @property
    def step(self) -> int:
        """What one costs, in microseconds."""
        return self.seconds * _MICROSECONDS // self.count


class Rows(Protocol):
    """Where the numbers are. Each statement is a transaction of its own, seen by all processes."""

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]: ...

    def create(self) -> None: ...

    def close(self) -> None: ...


class Limiter:
    """Shared by all threads of a process, and exact across processes on one database."""

    def __init__(self, store: Store, secret: bytes, clock: Clock) -> None:
        # Whether counting is too quick to be worth a thread.
        self.is_local = store.is_sqlite
        self._rows: Rows = SqliteRows(f"{store.url.database}-limits") if store.is_sqlite else PostgresRows(store)
        self._secret = secret
        self._clock = clock
        self._today: int | None = None
        greater = "max" if store.is_sqlite else "greatest"
        self._again, self._first = _AGAIN.format(max=greater), _FIRST.format(max=greater)

    def take(self, limit: Limit, subject: str | bytes) -> None:
        """Count one more of `subject`, or TooMany. A limiter that cannot count lets everybody through: what it guards
        has its own ways to refuse, and reading must go on when nothing can be written."""
        try:
            wait = self._count(limit, subject.encode() if isinstance(subject, str) else subject)
        except (sqlite3.Error, DBAPIError, Unavailable) as error:
            metrics.UNCOUNTED.inc()
            _logger.warning("limits are not counted: %s", type(error).__name__)
            return
        if wait > 0:
            seconds = -(-wait // _MICROSECONDS)
            raise TooMany(limit.code, f"{limit.what}; try again in {seconds} s", retry_after=seconds)

    def close(self) -> None:
        self._rows.close()

    def _count(self, limit: Limit, subject: bytes) -> int:
        """Microseconds to wait; 0 when it was counted."""
        now = int(self._clock().timestamp() * _MICROSECONDS)
        today = now // (DAY * _MICROSECONDS)
        if today != self._today:
            self._begin(today)
        key, offset = self._hidden(limit, subject, today)
        here, step = now + offset, limit.step
        latest = here + (limit.burst - 1) * step
        if self._rows.run(self._again, (here, step, key, here, latest)):
            return 0
        before, before_offset = self._hidden(limit, subject, today - 1)
        shift = offset - before_offset
        if self._rows.run(self._first, (key, today, step, here, before, shift, latest, here, step, here, latest)):
            return 0
        paid = max(each for (each,) in self._rows.run(_PAID, (key, shift, before)))
        return int(paid) - latest

    def _begin(self, today: int) -> None:
        """A new day, or the first: nothing of the day before yesterday is kept."""
        if self._today is None:
            self._rows.create()
        self._rows.run("DELETE FROM rate WHERE day < ?", (today - 1,))
        self._today = today

    def _hidden(self, limit: Limit, subject: bytes, day: int) -> tuple[bytes, int]:
        """What a subject is called on a day, and by how much its times are moved then."""
        mac = hmac.digest(_daily_key(self._secret, day), b"%s %s" % (limit.name.encode(), subject), "sha256")
        # 2^56 microseconds are two thousand years, and fit into the column with any time of this millennium.
        return mac[:16], int.from_bytes(mac[16:23])


@lru_cache(maxsize=4)
def _daily_key(secret: bytes, day: int) -> bytes:
    return hmac.digest(secret, b"staylog/limits/v1 %d" % day, "sha256")


class SqliteRows:
    """A file of its own and one connection, which serves all threads in turn: a statement takes ten microseconds."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._turn = Lock()
        self._connection: sqlite3.Connection | None = None

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._turn:
            if self._connection is None:
                self._connection = self._connect()
            return self._connection.execute(statement, values).fetchall()

    def create(self) -> None:
        self.run(f"CREATE TABLE IF NOT EXISTS {_TABLE.format(bytes='BLOB')}")

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        return connection


class PostgresRows:
    """A table that is not logged: a commit that touches no other does not wait for the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._store.read() as connection:
            return run(connection, statement, values)

    def create(self) -> None:
        with self._store.write() as connection:
            run(connection, f"CREATE UNLOGGED TABLE IF NOT EXISTS {_TABLE.format(bytes='bytea')}")

    def close(self) -> None:
        """The store is not ours."""
