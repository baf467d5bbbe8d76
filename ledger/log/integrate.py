"""Integration: one durable transaction for whatever is added, by a writer that trusts no stored byte it builds on."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import datetime, timedelta

from sqlalchemy import Connection

from ledger.canon.times import format_time, parse_time
from ledger.errors import Halted, Malformed, Misconfigured, NotProved, NotStored, StaylogError
from ledger.log.batch import Batch, Outcome, Written
from ledger.log.cache import Cache
from ledger.log.clock_guard import ClockGuard
from ledger.log.drafts import Draft
from ledger.log.mark import Mark, check_mark
from ledger.log.pages import MemoryPages, PagedMap
from ledger.log.replay import MAX_BATCH
from ledger.log.tiles import Appender, MemoryTiles
from ledger.log.tree import EMPTY_ROOT
from ledger.store import tables
from ledger.store.engine import Store
from ledger.store.rows import Head, Published, RecordVersion, Rows, insert_rows, newest_published, read_head

# A map head at least this often: verifiers choose how old an answer may be.
FRESHNESS = timedelta(hours=24)
# Map pages that the writer keeps, at some 1.2 kB each: all those of 200,000 hosts.
CACHED_PAGES = 1 << 17
# Host records that the writer keeps, at some 0.9 kB each, by what the map has of them.
CACHED_RECORDS = 1 << 17


class Unsigned(Exception):
    """The committed head is not signed yet: whoever finds it so signs it before adding to it."""


class SomeRefused(Exception):
    """Drafts that were to be added together and were not, by their place, with the reason."""

    def __init__(self, refusals: dict[int, StaylogError]) -> None:
        super().__init__(f"{len(refusals)} drafts are refused")
        self.refusals = refusals


class Integrator:
    """Adds batches to the database. Keeps the tree's edge, map pages and host records in memory, and forgets them
    whenever a transaction fails."""

    def __init__(self, store: Store, guard: ClockGuard) -> None:
        self._store = store
        self._guard = guard
        self._connection: Connection
        self._rows: Rows
        self._map: PagedMap
        self._records: Cache[bytes, RecordVersion]
        self._appender: Appender
        self.written = Written()
        # The newest head that was read or written: a database that is older, or another one, was put in its place.
        self._seen: Mark | None = None
        self._forget()

    def integrate(
        self, drafts: Sequence[Draft], *, together: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> list[Outcome]:
        """One durable transaction; no drafts make a lone map head, if the last is old. A draft that breaks a rule
        is refused by itself, or, when all are to be added `together`, with all others. Raises Unavailable with
        `clock_unconfirmed` when the clock may date nothing."""
        written = Written()
        try:
            with self._store.write() as connection:
                written.signed = self._begin(connection)
                head: Head = written.signed
                outcomes: list[Outcome] = []
                for part in _parts(drafts):
                    now = self._guard.require(head.at)
                    at = entry_time(head.at, now)
                    batch = Batch(connection, head, self._rows, self._map, self._records, self._appender, at)
                    outcomes += batch.take(part)
                    # Looked at under the lock: another process may have been faster.
                    if batch.entries or not drafts and is_old(head.at, now):
                        head = batch.close(written)
                    progress(len(outcomes))
                refusals = {place: item for place, item in enumerate(outcomes) if isinstance(item, StaylogError)}
                if together and refusals:
                    raise SomeRefused(refusals)
        except BaseException as error:
            self._forget()
            if isinstance(error, NotStored | NotProved | Malformed):
                raise Halted("log_damaged", f"what the log rests on is damaged: {error}; run `staylog fsck`") from error
            raise
        self.written = written
        if written.head is not None:
            self._seen = Mark(written.head.size, written.head.root)
        return outcomes

    def _begin(self, connection: Connection) -> Published:
        self._connection = connection
        head, newest = read_head(connection), newest_published(connection)
        if head is None:
            raise NotStored("there is no log in this database")
        check_mark(self._seen, head.size, head.root)
        self._seen = Mark(head.size, head.root)
        if newest is None or newest.size != head.size:
            raise Unsigned
        if newest.row != head.row:
            raise NotStored("the committed head is not the state that was signed")
        if self._appender.size != head.size:
            self._appender = Appender(self._rows, head.size)
        if self._appender.root() != head.root:
            raise NotStored("the stored tiles do not give the root of the tree")
        self._rows.next_page = head.pages
        self._rows.new.clear()
        return newest

    def _forget(self) -> None:
        self._rows = Rows(lambda: nullcontext(self._connection))
        self._map = PagedMap(self._rows, CACHED_PAGES)
        self._records = Cache(CACHED_RECORDS)
        self._appender = Appender(MemoryTiles())


def entry_time(last: str, now: datetime) -> str:
    """What an entry is dated after one of the time `last`. Times never fall, though another process or an earlier one
    may have had a clock ahead of ours."""
    return max(format_time(now), last)


def is_old(last: str, now: datetime) -> bool:
    """Whether a log whose last entry is of that time needs a new map head."""
    return now - parse_time(last) >= FRESHNESS


def _parts(drafts: Sequence[Draft]) -> Iterator[Sequence[Draft]]:
    """As many at once as surely fit in one batch; one part without any when there are none."""
    start = entries = 0
    for place, draft in enumerate(drafts):
        if entries + draft.most_entries > MAX_BATCH:
            yield drafts[start:place]
            start, entries = place, 0
        entries += draft.most_entries
    yield drafts[start:]


def begin_log(store: Store, genesis: Draft, at: str) -> None:
    """The first batch: the genesis and its map head."""
    with store.write() as connection:
        if read_head(connection) is not None:
            raise Misconfigured("already_initialised", "the database has a log already")
        head = Head(0, EMPTY_ROOT, None, PagedMap(MemoryPages()).root(None), 0, at)
        insert_rows(connection, tables.log_head, [(1, *head.row)])
        rows = Rows(lambda: nullcontext(connection))
        batch = Batch(connection, head, rows, PagedMap(rows), Cache(CACHED_RECORDS), Appender(rows, 0), at)
        batch.take([genesis])
        batch.close(Written())
