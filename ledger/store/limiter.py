"""How often somebody may do something: GCRA, the generic cell rate algorithm (ITU-T I.371), kept in the database.

Each limit and subject has one number: the time up to which what was done so far is paid for. One statement looks at it
and moves it on, so that a limit is exact whichever processes share it. On SQLite the numbers have a file of their own,
since nobody who reads should wait for who writes the log; they need not survive a power cut.

Nothing here tells who did what. Subjects are known by a key that changes every day, and times are moved by an offset
that this key gives.
"""

import hmac
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.pool import NullPool

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
# Paid up to now at least, or up to where yesterday ended; and then a step further, unless that is too far ahead.
_TAKE = (
    "INSERT INTO rate (key, day, paid) SELECT ?, ?, start + ? FROM (SELECT {max}(?, coalesce((SELECT paid FROM rate "
    "WHERE key = ?) + ?, 0)) AS start) AS since WHERE start <= ? "
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


class Limiter:
    """Shared by all threads of a process, and exact across processes on one database."""

    def __init__(self, store: Store, secret: bytes, clock: Clock) -> None:
        self._secret = secret
        self._clock = clock
        self._today: int | None = None
        self._turn = Lock()
        self._take = _TAKE.format(max="max" if store.is_sqlite else "greatest")
        self._store = store
        self._engine = _own_engine(store) if store.is_sqlite else None
        # On SQLite one connection serves all threads in turn: a statement takes some twenty microseconds.
        self._connection: Connection | None = None

    @property
    def is_local(self) -> bool:
        """Whether counting is too quick to be worth a thread."""
        return self._engine is not None

    def take(self, limit: Limit, subject: str | bytes) -> None:
        """Count one more of `subject`, or TooMany. A limiter that cannot count lets everybody through: what it guards
        has its own ways to refuse, and reading must go on when nothing can be written."""
        try:
            wait = self._count(limit, subject)
        except (DBAPIError, PoolTimeout, Unavailable) as error:
            metrics.UNCOUNTED.inc()
            _logger.warning("limits are not counted: %s", type(error).__name__)
            return
        if wait > 0:
            seconds = -(-wait // _MICROSECONDS)
            raise TooMany(limit.code, f"{limit.what}; try again in {seconds} s", retry_after=seconds)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        if self._engine is not None:
            self._engine.dispose()

    def _count(self, limit: Limit, subject: str | bytes) -> int:
        """Microseconds to wait; 0 when it was counted."""
        now = round(self._clock().timestamp() * _MICROSECONDS)
        today = now // (DAY * _MICROSECONDS)
        key, offset = self._hidden(limit, subject, today)
        before, before_offset = self._hidden(limit, subject, today - 1)
        here, shift, step = now + offset, offset - before_offset, limit.step
        latest = here + (limit.burst - 1) * step
        values = (key, today, step, here, before, shift, latest, here, step, here, latest)
        if today != self._today:
            self._begin(today)
        with self._connect() as connection:
            if run(connection, self._take, values):
                return 0
            paid = max(each for (each,) in run(connection, _PAID, (key, shift, before)))
        return int(paid) - latest

    def _begin(self, today: int) -> None:
        """A new day, or the first: nothing of the day before yesterday is kept."""
        if self._today is None:
            unlogged, kind = ("", "BLOB") if self._engine else ("UNLOGGED ", "bytea")
            with self._connect() if self._engine else self._store.write() as connection:
                run(connection, f"CREATE {unlogged}TABLE IF NOT EXISTS {_TABLE.format(bytes=kind)}")
        with self._connect() as connection:
            run(connection, "DELETE FROM rate WHERE day < ?", (today - 1,))
        self._today = today

    def _hidden(self, limit: Limit, subject: str | bytes, day: int) -> tuple[bytes, int]:
        """What a subject is called on a day, and by how much its times are moved then."""
        name = subject.encode() if isinstance(subject, str) else subject
        daily = hmac.digest(self._secret, b"staylog/limits/v1 %d" % day, sha256)
        mac = hmac.digest(daily, b"%s %s" % (limit.name.encode(), name), sha256)
        # 2^56 microseconds are two thousand years, and fit into the column with any time of this millennium.
        return mac[:16], int.from_bytes(mac[16:23])

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        if self._engine is None:
            with self._store.read() as connection:
                yield connection
            return
        with self._turn:
            if self._connection is None or self._connection.closed:
                self._connection = self._engine.connect()
            try:
                yield self._connection
            except self._engine.dialect.loaded_dbapi.Error as error:
                self._connection.close()
                raise Unavailable("storage_unavailable", f"limits cannot be written: {error}") from error


def _own_engine(store: Store) -> Engine:
    arguments: dict[str, Any] = {"isolation_level": None, "timeout": BUSY_SECONDS, "check_same_thread": False}
    url = store.url.set(database=f"{store.url.database}-limits")
    engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
    event.listen(engine, "connect", _make_quick)
    return engine


def _make_quick(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = OFF")
