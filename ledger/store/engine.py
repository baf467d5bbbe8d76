"""One database, opened so that what is committed is durable: SQLite in WAL with FULL, or PostgreSQL.

The settings are set on every connection and read back, because builds and servers ship other defaults, and a log that
loses a commit after signing it has forked (protocol.md 8). Every call has a deadline (`ledger.store.deadlines`); a
database that does not answer, or cannot be written, is reported to the ledger's health.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from threading import Lock, local
from time import monotonic
from typing import Any, TypeVar
from weakref import WeakSet

from psycopg.pq import TransactionStatus
from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DBAPIError, DisconnectionError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ledger import metrics
from ledger.errors import Halted, StaylogError, Unavailable, Unconfirmed
from ledger.health import Health
from ledger.store import scrub, sqlite
from ledger.store.database_url import parse_database_url
from ledger.store.deadlines import PATIENT, Deadlines
from ledger.store.erasure import erasing
from ledger.store.postgresql import connector
from ledger.store.refusals import (
    READ_ONLY,
    is_stalled,
    locked,
    refusal_of,
    replaced,
    state_of,
    unconfirmed,
    unreplicated,
)
from ledger.store.rows import run
from ledger.store.stall import Stall

# Any number, the same in all replicas: advisory locks are named by numbers, in each database apart.
WRITE_LOCK = 0x57A1106
# As many as a service has threads that read; more than half of them are let go when they are not used.
READERS, MORE_READERS = 16, 32
# After a wait for a lock in vain, calls that are queued behind are refused for this long without their own wait.
LOCKED_SECONDS = 0.5
# A row that is written anew as it is: the smallest commit that waits for the disk and the standby.
REWRITE = "UPDATE setting SET base_url = base_url"
# How often connections are given up because another one is lost or may only read.
RENEW_SECONDS = 0.5

T = TypeVar("T", bound=StaylogError)


class Store:
    """`write` is one durable transaction at a time across all processes; `read` sees what is committed. Threads may
    share it."""

    def __init__(self, url: str, deadlines: Deadlines | None = None, health: Health | None = None) -> None:
        self.url = parse_database_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.deadlines = deadlines or Deadlines()
        self.health = health or Health()
        # Connections of PostgreSQL that were made before the last failure are not used again.
        self._generation, self._renewed_at = 0, -RENEW_SECONDS
        # The file of SQLite, as it was when it was opened first.
        self._file: tuple[int, int] | None = None
        self._reading = self._engine(reading=True)
        # A thread that ends gives its connection back.
        self._thread = local()
        self._readers: WeakSet[Connection] = WeakSet()
        self._writing = self._engine(reading=False)
        # Connections that wait for long.
        self._patient: set[Any] = set()
        # Threads would wait for each other in any case: one connection serves them in turn.
        self._turn = Lock()
        self._writer: Connection | None = None
        self._stall = Stall(self._ask)
        # For those who write, and for those who read a table that another has for itself.
        self._locked_until = self._unreadable_until = 0.0
        self._halted: Halted | None = None
        # Whether what can be read may be missing on the standby: until a commit that comes after it has waited for it.
        self._is_in_doubt = True
        # When something was written last, by the monotonic clock, and whether it failed since.
        self.written_at, self.is_troubled = 0.0, False
        # Tables of which something was erased that the files may still have; after a start that is not known.
        self.traces: set[str] = set(scrub.ERASED)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Each statement by itself: rows of published sizes never change, so no snapshot is needed. Raises Unavailable
        when the database does not answer in time, or another has a table for itself for too long."""
        self._stall.require_none()
        if monotonic() < self._unreadable_until:
            raise locked()
        # In one piece, where `write` is made of parts: to a read from memory each part would add a quarter of its time.
        try:
            with self._reader() as connection:
                try:
                    yield connection
                except connection.dialect.loaded_dbapi.Error as error:
                    raise _wrapped(connection, error) from error
        except (PoolTimeout, DBAPIError) as error:
            refusal = self._refusal(error)
            if refusal is None:
                raise
            if refusal.code == "busy":
                self._unreadable_until = monotonic() + LOCKED_SECONDS
            raise refusal from error

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """One unchanging view of everything, for long checks."""
        with self._translated(), self._reading.connect() as connection:
            if self.is_sqlite:
                # A read that its caller did not finish would go on holding the view: the connection is not used again.
                connection.detach()
                connection.exec_driver_sql("BEGIN")
            else:
                connection = connection.execution_options(isolation_level="REPEATABLE READ")
                connection.exec_driver_sql("SELECT 1")
            try:
                with self.patient(connection):
                    yield connection
            finally:
                connection.rollback()

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Holds the one write lock; durable when it returns, rolled back when it raises. Raises Unavailable when the
        lock or an answer is not to be had in time, of which `Unconfirmed` means that it may be written all the same;
        Halted when the synchronous standby may not have what was committed, and from then on."""
        lock = "BEGIN IMMEDIATE" if self.is_sqlite else f"SELECT pg_advisory_xact_lock({WRITE_LOCK})"
        if self._halted is not None:
            raise Halted(self._halted.code, self._halted.message)
        is_complete = False
        try:
            with self._in_turn() as connection:
                with connection.begin(), _guarded(connection):
                    run(connection, lock)
                    self._require_files(connection, Unavailable)
                    yield connection
                    is_complete = True
                self._require_replicated(connection)
                self._require_files(connection, Unconfirmed)
        except (PoolTimeout, DBAPIError) as error:
            # A server that waits for its standby may well answer others: no reason to refuse them.
            refusal = self._refusal(error) if not _is_lost(error) or not is_complete else unconfirmed()
            if refusal is None:
                raise
            if refusal.code == "busy":
                self._locked_until = monotonic() + LOCKED_SECONDS
            raise self.reported(refusal) from error
        self.written_at, self.is_troubled = monotonic(), False
        self.health.clear("database")

    def confirm(self) -> None:
        """What another process committed, and could be read before, is on the synchronous standby when this returns. A
        server that crashed shows commits that waited for the standby in vain; so nothing is asked unless a connection
        was lost since the last time. Raises as `write`."""
        if self.is_sqlite or not self._is_in_doubt:
            return
        self._is_in_doubt = False
        try:
            with self.write() as connection:
                run(connection, REWRITE)
        except BaseException:
            self._is_in_doubt = True
            raise

    @contextmanager
    def erase(self, table: str) -> Iterator[Connection]:
        """A `write` that deletes or empties rows of `table`: `scrub` is to take what is left of them in the files."""
        with self.write() as connection, erasing(connection):
            yield connection
            self.traces.add(table)
        # Once more: it may have been scrubbed before this was committed.
        self.traces.add(table)
        metrics.TRACES.set(len(self.traces))

    def tidy(self) -> None:
        """Move what SQLite wrote ahead into its file, between batches, so that no commit has to wait for it."""
        if self.is_sqlite:
            with self.read() as connection:
                run(connection, "PRAGMA wal_checkpoint(PASSIVE)")

    def scrub(self, *tables: str, rewrite: int = 0) -> bool:
        """Takes away what `erase` has left in the files; False when others are in the way, and it is to be tried again.
        Tables of at most `rewrite` rows are written anew, which leaves nothing.
        What an older snapshot still shows stays, and so does what PostgreSQL keeps in its write-ahead log, in standbys
        and in backups."""
        erased = self.traces & {*tables}
        self.traces -= erased
        done = False
        try:
            done = scrub.scrub(self, tables, rewrite=rewrite, busy_seconds=self.deadlines.lock)
        finally:
            if not done:
                self.traces |= erased
            metrics.TRACES.set(len(self.traces))
        return done

    def close(self) -> None:
        self._stall.close()
        for connection in (*self._readers, self._writer):
            if connection is not None:
                connection.close()
        self._reading.dispose()
        self._writing.dispose()

    @contextmanager
    def patient(self, connection: Connection, seconds: float = PATIENT) -> Iterator[None]:
        """Around statements of a transaction that take long, and for whose answer no client waits: for as long as that,
        or until other calls find that the server does not answer."""
        if self.is_sqlite:
            yield
            return
        driver: Any = connection.connection.dbapi_connection
        driver.deadline = seconds
        if driver.info.transaction_status == TransactionStatus.INTRANS:
            connection.exec_driver_sql(f"SET LOCAL idle_in_transaction_session_timeout = '{seconds:g}s'")
        self._patient.add(driver)
        try:
            yield
        finally:
            self._patient.discard(driver)
            driver.deadline = self.deadlines.statement

    def _ask(self) -> None:
        """Raises what is wrong, unless the server answers over a new connection."""
        self._generation += 1
        with self._reading.connect() as connection:
            connection.exec_driver_sql("SELECT 1")

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
        self._stall.require_none()
        if not self._turn.acquire(timeout=self.deadlines.lock):
            raise self.reported(locked())
        try:
            # Both may have changed while this thread waited.
            self._stall.require_none()
            if monotonic() < self._locked_until:
                raise locked()
            yield self._connected_writer()
        finally:
            self._turn.release()

    def _connected_writer(self) -> Connection:
        writer = self._writer
        if writer is None or writer.closed or writer.invalidated:
            writer = self._writer = self._writing.connect()
        elif not self.is_sqlite and writer.info["generation"] != self._generation:
            writer.close()
            writer = self._writer = self._writing.connect()
        return writer

    def _require_files(self, connection: Connection, refusal: type[Unavailable]) -> None:
        """SQLite goes on in files that were deleted or replaced: what it writes there is gone at the next start."""
        if not self.is_sqlite:
            return
        database = str(self.url.database)
        ahead = sqlite.file_at(f"{database}-wal")
        # The last process that has the database open deletes the log; none does while this connection is open.
        if self._file != sqlite.file_at(database) or connection.info.setdefault("ahead", ahead) != ahead:
            raise self.reported(replaced(refusal))

    def _note_file(self, _connection: Any, _record: Any) -> None:
        if self._file is None:
            self._file = sqlite.file_at(str(self.url.database))

    def _require_replicated(self, connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if not self.is_sqlite and driver.unreplicated:
            self._halted = unreplicated()
            self.reported(self._halted)
            raise self._halted

    def reported(self, reason: T) -> T:
        """`reason`, which keeps the ledger from writing until something is written."""
        self.is_troubled = True
        self.health.report("database", reason)
        return reason

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (PoolTimeout, DBAPIError) as error:
            refusal = self._refusal(error)
            if refusal is not None:
                raise refusal from error
            raise

    def _refusal(self, error: PoolTimeout | DBAPIError) -> Unavailable | None:
        """What the error means; None for a mistake of ours. Connections that may be dead are not used again, and a
        server that does not answer is reported."""
        refusal = refusal_of(error)
        if refusal is None:
            return None
        metrics.DATABASE_REFUSALS.labels(refusal.code, state_of(error)).inc()
        if not self.is_sqlite and (_is_lost(error) or state_of(error) == READ_ONLY):
            self._renew()
        if is_stalled(error):
            self.reported(refusal)
            self._stall.begin()
            for driver in self._patient.copy():
                driver.shut()
        return refusal

    def _renew(self) -> None:
        """The other connections are as dead, or lead to a server that is no primary any more. A server that may only be
        read fails each write: connections are not made anew for each of them."""
        self._is_in_doubt = True
        now = monotonic()
        if now - self._renewed_at >= RENEW_SECONDS:
            self._renewed_at = now
            self._generation += 1

    def _require_current(self, _connection: Any, record: Any, _proxy: Any) -> None:
        # One that was just made counts whatever failed meanwhile: SQLAlchemy tries twice, then raises no DBAPIError.
        if not record.info.pop("new", False) and record.info["generation"] != self._generation:
            raise DisconnectionError("of before the last failure")

    def _note_generation(self, _connection: Any, record: Any) -> None:
        record.info.update(generation=self._generation, new=True)

    def _engine(self, *, reading: bool) -> Engine:
        pool: dict[str, Any] = {
            "pool_size": READERS,
            "max_overflow": MORE_READERS,
            "pool_timeout": self.deadlines.lock,
            # After a failure each connection is made anew when it is next used: one is, instead of each in turn.
            "pool_use_lifo": True,
        }
        if self.is_sqlite:
            # Without an isolation level the driver starts no transactions of its own.
            arguments = {"isolation_level": None, "timeout": self.deadlines.lock, "check_same_thread": False}
            engine = create_engine(self.url, connect_args=arguments, **pool)
            event.listen(engine, "connect", sqlite.make_durable)
            event.listen(engine, "connect", self._note_file)
            event.listen(engine, "connect", sqlite.map_file)
            if not reading:
                event.listen(engine, "connect", sqlite.widen)
            return engine
        level = "AUTOCOMMIT" if reading else "READ COMMITTED"
        lock = self.deadlines.table if reading else self.deadlines.lock
        connect = connector(self.url, self.deadlines, lock)
        engine = create_engine(self.url, isolation_level=level, creator=connect, **pool)
        event.listen(engine, "connect", self._note_generation)
        event.listen(engine, "checkout", self._require_current)
        return engine


def _is_lost(error: PoolTimeout | DBAPIError) -> bool:
    return isinstance(error, DBAPIError) and error.connection_invalidated


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
