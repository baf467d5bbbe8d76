"""One database, opened so that what is committed is durable: SQLite in WAL with FULL, or PostgreSQL.

The settings are set on every connection and read back, because builds and servers ship other defaults, and a log that
loses a commit after signing it has forked (protocol.md 8).
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, local
from time import sleep
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, Table, create_engine, event, make_url
from sqlalchemy.engine import URL
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ledger.errors import Misconfigured, Unavailable
from ledger.store.erasure import erasing
from ledger.store.rows import insert_rows, run
from ledger.store.tables import metadata

# Other processes may hold the write lock for as long as a whole imported file takes.
BUSY_SECONDS = 60
# Any number, the same in all replicas: advisory locks are named by numbers, in each database apart.
WRITE_LOCK = 0x57A1106
# As many as a service has threads that read; more than half of them are let go when they are not used.
READERS, MORE_READERS = 16, 32
# How often SQLite is asked to empty its write-ahead log, and for how long each time: writers wait meanwhile. PostgreSQL
# sends its own vacuum away for somebody who has waited for a second.
SCRUBS, SCRUB_SECONDS, VACUUM_SECONDS = 5, 0.2, 2

# Of a table on SQLite: the log's writer waits for it.
MOST_REWRITTEN = 10_000

_LOCK_NOT_AVAILABLE = "55P03"
_SQLITE = {"journal_mode": "wal", "synchronous": 2}
_POSTGRESQL = {"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on"}


class Store:
    """`write` is one durable transaction at a time across all processes; `read` sees what is committed."""

    def __init__(self, url: str) -> None:
        self.url = _parse(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._reading = self._engine(reading=True)
        # A thread that ends gives its connection back.
        self._thread = local()
        self._readers: WeakSet[Connection] = WeakSet()
        self._writing = self._engine(reading=False)
        # Threads would wait for each other in any case: one connection serves them in turn.
        self._turn = Lock()
        self._writer: Connection | None = None

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Each statement by itself: rows of published sizes never change, so no snapshot is needed."""
        # In one piece, where `write` is made of parts: to a read from memory each part would add a quarter of its time.
        try:
            with self._reader() as connection:
                try:
                    yield connection
                except connection.dialect.loaded_dbapi.Error as error:
                    raise _wrapped(connection, error) from error
        except (PoolTimeout, DBAPIError) as error:
            _refuse(error)
            raise

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """One unchanging view of everything, for long checks."""
        with _translated(), self._reading.connect() as connection:
            if self.is_sqlite:
                # A read that its caller did not finish would go on holding the view: the connection is not used again.
                connection.detach()
                connection.exec_driver_sql("BEGIN")
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
            try:
                yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Holds the one write lock; durable when it returns, rolled back when it raises."""
        lock = "BEGIN IMMEDIATE" if self.is_sqlite else f"SELECT pg_advisory_xact_lock({WRITE_LOCK})"
        with _translated(), self._in_turn() as connection, connection.begin(), _guarded(connection):
            run(connection, lock)
            yield connection

    def tidy(self) -> None:
        """Move what SQLite wrote ahead into its file, between batches, so that no commit has to wait for it."""
        if self.is_sqlite:
            with self.read() as connection:
                run(connection, "PRAGMA wal_checkpoint(PASSIVE)")

    def scrub(self, *tables: str, rewrite: bool = False) -> bool:
        """Let go of what old versions of rows have left, after a transaction with `erasing`; False when others are in
        the way, and it is to be tried again.

        SQLite moves its whole write-ahead log into the file and cuts it off. PostgreSQL vacuums the tables: the rows
        of a page are moved together over the old ones. In both, some bytes of a row that was moved may stay in free
        space until that is used. `rewrite` has the tables written anew, and leaves nothing; nobody can write meanwhile,
        so it is for tables that are small, or a quiet hour. What somebody's older snapshot still shows stays, and what
        PostgreSQL keeps in its own write-ahead log, in replicas and in backups is not in our hands.
        """
        if not self.is_sqlite:
            return self._vacuum(tables, rewrite)
        for table in tables if rewrite else ():
            self._write_anew(metadata.tables[table])
        return self._empty_wal()

    def close(self) -> None:
        for connection in (*self._readers, self._writer):
            if connection is not None:
                connection.close()
        self._reading.dispose()
        self._writing.dispose()

    def _write_anew(self, table: Table) -> None:
        """All rows out, whose pages are overwritten, and in again."""
        with self.write() as connection, erasing(connection):
            names = ", ".join(column.name for column in table.columns)
            rows = run(connection, f"SELECT {names} FROM {table.name}")  # noqa: S608 (names of our own)
            if len(rows) <= MOST_REWRITTEN:
                run(connection, f"DELETE FROM {table.name}")  # noqa: S608 (names of our own)
                insert_rows(connection, table, [tuple(row) for row in rows])

    def _empty_wal(self) -> bool:
        with self.read() as connection:
            run(connection, f"PRAGMA busy_timeout = {int(SCRUB_SECONDS * 1000)}")
            try:
                for _ in range(SCRUBS):
                    [(busy, _, _)] = run(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
                    if not busy:
                        return True
                    # Who is only tidying up is not waited for, whatever the timeout.
                    sleep(SCRUB_SECONDS)
            finally:
                run(connection, f"PRAGMA busy_timeout = {BUSY_SECONDS * 1000}")
        return False

    def _vacuum(self, tables: Sequence[str], rewrite: bool) -> bool:
        how = "VACUUM (FULL)" if rewrite else "VACUUM"
        with self.read() as connection:
            run(connection, f"SET lock_timeout = '{VACUUM_SECONDS}s'")
            try:
                for table in tables:
                    connection.exec_driver_sql(f"{how} {table}")
            except DBAPIError as error:
                if getattr(error.orig, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
                    raise
                return False
            finally:
                run(connection, "RESET lock_timeout")
        return True

    def _reader(self) -> AbstractContextManager[Connection]:
        """From the pool or, with SQLite, the one that this thread keeps: to it even the pool is far away."""
        if not self.is_sqlite:
            return self._reading.connect()
        kept: Connection | None = getattr(self._thread, "reader", None)
        if kept is None or kept.closed or kept.invalidated:
            kept = self._thread.reader = self._reading.connect()
            self._readers.add(kept)
        return nullcontext(kept)

    @contextmanager
    def _in_turn(self) -> Iterator[Connection]:
        if not self._turn.acquire(timeout=BUSY_SECONDS):
            raise Unavailable("busy", "others have been writing to the database for too long; try again in a moment")
        try:
            if self._writer is None or self._writer.closed or self._writer.invalidated:
                self._writer = self._writing.connect()
            yield self._writer
        finally:
            self._turn.release()

    def _engine(self, *, reading: bool) -> Engine:
        if self.is_sqlite:
            # Without an isolation level the driver starts no transactions of its own.
            arguments: dict[str, Any] = {"isolation_level": None, "timeout": BUSY_SECONDS, "check_same_thread": False}
            engine = create_engine(self.url, connect_args=arguments, pool_size=READERS, max_overflow=MORE_READERS)
            event.listen(engine, "connect", _make_sqlite_durable)
            event.listen(engine, "connect", _map_sqlite)
            if not reading:
                event.listen(engine, "connect", _widen_sqlite)
        else:
            level = "AUTOCOMMIT" if reading else "READ COMMITTED"
            engine = create_engine(self.url, isolation_level=level, pool_size=READERS, max_overflow=MORE_READERS)
            event.listen(engine, "connect", _make_postgresql_durable)
        return engine


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
        if parsed.drivername in ("postgresql", "postgres"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        name = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError):
        name = ""
    if name not in ("sqlite", "postgresql") or (name == "sqlite" and not parsed.database):
        raise Misconfigured("settings_invalid", "a database URL is sqlite:///FILE or postgresql://USER@HOST/NAME")
    return parsed


def _make_sqlite_durable(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # `Store.tidy` does this between batches; in a commit it would make somebody wait.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    _require(_SQLITE, {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SQLITE})


def _map_sqlite(connection: Any, _record: Any) -> None:
    """Look into the file itself: what one connection has read, the others have too."""
    connection.execute(f"PRAGMA mmap_size = {1 << 30}")


def _widen_sqlite(connection: Any, _record: Any) -> None:
    """The writer touches pages all over the file in every batch: 64 MiB of them stay."""
    connection.execute("PRAGMA cache_size = -65536")
    # Copies of pages by which one statement could be undone: never worth a file.
    connection.execute("PRAGMA temp_store = MEMORY")
    # What moves between pages leaves no copy behind, where that costs no write of its own.
    connection.execute("PRAGMA secure_delete = FAST")


def _make_postgresql_durable(connection: Any, _record: Any) -> None:
    before, connection.autocommit = connection.autocommit, True
    connection.execute("SET synchronous_commit = on")
    _require(_POSTGRESQL, {name: connection.execute(f"SHOW {name}").fetchone()[0] for name in _POSTGRESQL})
    connection.autocommit = before


def _require(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    for name, value in wanted.items():
        if found[name] != value:
            raise Misconfigured(
                "database_not_durable",
                f"the database has {name} = {found[name]}, and a commit could be lost; it must be {value}",
            )


@contextmanager
def _guarded(connection: Connection) -> Iterator[None]:
    """Errors of statements that went to the driver directly, as SQLAlchemy would raise them; a connection that had one
    is not used again."""
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(connection, error) from error


def _wrapped(connection: Connection, error: Any) -> Exception:
    lost = connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    connection.invalidate(error)
    driver = connection.dialect.loaded_dbapi.Error
    wrapped: Exception = DBAPIError.instance(None, None, error, driver, connection_invalidated=lost)
    return wrapped


@contextmanager
def _translated() -> Iterator[None]:
    """What is wrong with the storage, as a refusal that says whether to try again; bugs pass as they are."""
    try:
        yield
    except (PoolTimeout, DBAPIError) as error:
        _refuse(error)
        raise


def _refuse(error: PoolTimeout | DBAPIError) -> None:
    refusal = refusal_of(error)
    if refusal is not None:
        raise refusal from error


def refusal_of(error: PoolTimeout | DBAPIError) -> Unavailable | None:
    if isinstance(error, PoolTimeout):
        return Unavailable("busy", "all connections to the database are in use; try again in a moment")
    original = error.orig
    state = getattr(original, "sqlstate", None) or ""
    # The low byte is SQLite's primary code: 5 busy, 8 read-only, 10 I/O error, 13 full, 14 cannot open.
    code = getattr(original, "sqlite_errorcode", 0) & 0xFF
    if state == "53100" or code == 13:
        return Unavailable(
            "storage_full",
            "the disk of the ledger is full: nothing was acknowledged; it goes on when there is space again",
        )
    if error.connection_invalidated or state[:2] in ("08", "53", "57", "58") or code in (5, 8, 10, 14):
        return Unavailable("storage_unavailable", "the ledger's database does not answer: nothing was acknowledged")
    if type(original).__name__ == "OperationalError" and not state and not code:
        return Unavailable("storage_unavailable", "the ledger's database cannot be reached: nothing was acknowledged")
    return None
