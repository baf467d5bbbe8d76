"""Reading the log, always at a published size: what is committed but not signed does not exist for others."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from threading import Condition, Thread, local
from threading import Event as Signal
from typing import Any

import msgspec
from sqlalchemy import Connection

from ledger import metrics
from ledger.errors import Halted, NotFound, NotStored, Unavailable
from ledger.log.entries import Entry
from ledger.log.face import Event, unconfirmed
from ledger.log.hostmap import map_key
from ledger.log.issuer_counts import IssuerCounts
from ledger.log.openings import Opening
from ledger.log.pages import PagedMap
from ledger.log.sublog import SubLog
from ledger.log.tiles import HEIGHT, WIDTH, TileTree, encode_bundle, tile_id
from ledger.log.tree import HASH_SIZE
from ledger.store.engine import Store
from ledger.store.rows import (
    Published,
    Rows,
    newest_published,
    published_at,
    published_below,
    read_entries,
    read_issuers,
    run,
    select_in,
)

# Other processes publish too; a service learns of it within this time.
FOLLOW_SECONDS = 0.2
# 4,096 expanded tiles are 64 MiB, the proofs of the last half million entries at least.
CACHED_TILES = 4096


_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RecordState:
    """A host's record with the edge of its sub-log, and the first checkpoint that covered it: size, root and time."""

    data: bytes
    edge: bytes
    as_of: int
    root: bytes
    at: str


@dataclass(frozen=True, slots=True)
class HostCounts:
    """Entries that name a host, by type, and when the last of them came."""

    last_event: str
    by_type: dict[str, int]

    @classmethod
    def of(cls, record: bytes) -> "HostCounts":
        members = _decode_record(record)
        counts = {
            "review": sum(members["reviews"].values()),
            "response": members["responses"],
            "upgrade": 0,
            "booking_check": sum(members["checks"].values()),
            "redaction": members["redactions"],
        }
        # Every other event is counted in the record.
        counts["upgrade"] = members["events"] - sum(counts.values())
        return cls(members["last_event"], counts)


_RECORD = (
    "SELECT r.data, r.edge, c.size, c.root, c.at FROM record r, checkpoint c WHERE r.idx = (SELECT max(idx) FROM entry "
    "WHERE host_key = ? AND idx < ?) AND c.size = (SELECT min(size) FROM checkpoint WHERE size > r.idx)"
)
# At the end of a batch, where a host's last entry has its record.
_RECORD_BELOW = "SELECT data FROM record WHERE idx = (SELECT max(idx) FROM entry WHERE host_key = ? AND idx < ?)"
_EVENTS = "SELECT idx, data, text, salt FROM entry WHERE"
_OF_HOST = f"{_EVENTS} host_key = ? AND idx < ? ORDER BY idx"
_HOST_DATA = "SELECT data FROM entry WHERE host_key = ? AND idx >= ? AND idx < ?"
_FROM = f"{_EVENTS} host_key = ? AND idx >= ? AND idx < ? ORDER BY idx LIMIT ?"
_NEWEST_REVIEWS = (
    "WITH listed AS (SELECT idx FROM entry WHERE host_key = ? AND review_id IS NOT NULL AND idx < ? "
    f"ORDER BY idx DESC LIMIT ?) {_EVENTS} idx IN (SELECT idx FROM listed) "
    f"UNION ALL {_EVENTS} about IN (SELECT idx FROM listed) AND idx < ? ORDER BY 1"
)
_REVIEW = (
    f"{_EVENTS} review_id = ? AND idx < ? UNION ALL "
    f"{_EVENTS} about = (SELECT idx FROM entry WHERE review_id = ?) AND idx < ? ORDER BY 1"
)
_OPENINGS = "SELECT idx, text, salt FROM entry WHERE idx >= ? AND idx < ? ORDER BY idx"
_KNOWN = "SELECT min(idx) FROM known WHERE key IN ({})"
_COVERING = "SELECT size FROM checkpoint WHERE size > ? ORDER BY size LIMIT 1"
_ISSUER_BELOW = "SELECT max(idx) FROM issuer_keys WHERE idx < ?"
_ISSUER_PUBLISHED = "SELECT max(idx) FROM issuer_keys WHERE idx < (SELECT max(size) FROM checkpoint)"
_decode_record = msgspec.json.Decoder(dict[str, Any]).decode
_decode = msgspec.json.Decoder(list[dict[str, Any]]).decode


class Reader:
    """Threads may share it. `follow` keeps `published` fresh while other processes write. `see` is told of every
    checkpoint that is read, before it is served."""

    def __init__(
        self, store: Store, see: Callable[[Connection, Published], None] = lambda _connection, _published: None
    ) -> None:
        self._store = store
        self._see = see
        self._thread_local = local()
        rows = Rows(self._connect)
        self.tree = TileTree(rows, CACHED_TILES)
        self.map = PagedMap(rows)
        self.issuer_counts = IssuerCounts(self._host_data)
        self._newest: Published | None = None
        self._news = Condition()
        # The quorum by which checkpoints count as witnessed, if any does.
        self.quorum: str | None = None
        # Why other processes' checkpoints may be missing here, while they are.
        self.trouble: Unavailable | None = None
        self._stop = Signal()
        self._thread: Thread | None = None

    @property
    def published(self) -> Published:
        """The newest checkpoint this process knows of."""
        return self._newest or self.refresh()

    def refresh(self) -> Published:
        """Ask the database. Raises NotStored without a checkpoint, Halted (`log_forked`) when it is of another history
        than what this service has seen, Unavailable when it cannot be read or noted down."""
        with self._store.read() as connection:
            newest = newest_published(connection)
            if newest is None:
                raise NotStored("the log has no checkpoint yet")
            self._see(connection, newest)
        self.tell(newest)
        return newest

    def tell(self, newest: Published) -> None:
        """Somebody knows of a checkpoint, or of cosignatures of it; sizes only grow, and so do notes."""
        with self._news:
            known = self._newest
            if known is None or (newest.size, len(newest.note)) > (known.size, len(known.note)):
                self._newest = newest
                metrics.SIZE.set(newest.size)
                self._news.notify_all()

    def wait_beyond(self, size: int, seconds: float, is_over: Callable[[], bool]) -> None:
        """Until a larger checkpoint is published, for that long, or until it is over, which `wake` has to tell."""
        with self._news:
            self._news.wait_for(lambda: is_over() or self.published.size > size, seconds)

    def wake(self) -> None:
        """Whoever waits for news looks whether it is over."""
        with self._news:
            self._news.notify_all()

    def follow(self, halt: Callable[[Halted], None] = lambda _: None) -> None:
        """Ask again and again; `halt` is told of what must not be signed over."""
        self._thread = Thread(target=self._follow, args=(halt,), name="follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self, halt: Callable[[Halted], None]) -> None:
        while not self._stop.wait(FOLLOW_SECONDS):
            try:
                self.refresh()
                self.trouble = None
            except Unavailable as error:
                self.trouble = error
            except Halted as error:
                halt(error)
                return
            except Exception:
                # While a dump is restored there are no tables; the thread must not end with that.
                _logger.exception("the newest checkpoint could not be read")

    def published_at(self, size: int | None) -> Published:
        """The checkpoint of `size`, the newest for None."""
        if size is None or size == self.published.size:
            return self.published
        if size > self.published.size:
            # Of another service: it is noted down before it is served.
            self.refresh()
        with self._connect() as connection:
            found = published_at(connection, size)
        if found is None:
            raise NotFound("unknown_size", f"no checkpoint of size {size} was published")
        return found

    def checkpoints(self, before: int | None, count: int) -> list[Published]:
        """Newest first, up to the newest that this process knows of."""
        above = self.published.size + 1
        with self._connect() as connection:
            return published_below(connection, above if before is None else min(before, above), count)

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Entries [start, stop), as far as they are published."""
        stop = min(stop, self.published.size)
        if start >= stop:
            return []
        with self._connect() as connection:
            return [data for data, _ in read_entries(connection, start, stop)]

    def openings(self, start: int, stop: int) -> dict[int, Opening]:
        """What opens the texts of entries [start, stop), as far as they are published and not redacted, in order."""
        stop = min(stop, self.published.size)
        if start >= stop:
            return {}
        rows = self._run(_OPENINGS, start, stop)
        # A text that is missing with its entry would look as if it was withheld.
        if len(rows) != stop - start:
            raise NotStored(f"entries {start} to {stop - 1} are not all stored")
        return {index: Opening(text, salt) for index, text, salt in rows if text is not None}

    def tile(self, level: int, index: int, width: int) -> bytes:
        """The first `width` hashes of a tile; any older partial tile is a prefix of the stored row."""
        self._require_tile(level, index, width)
        row = Rows(self._connect).read_tiles([tile_id(level, index)]).get(tile_id(level, index), b"")
        if len(row) < width * HASH_SIZE:
            raise NotStored(f"tile {level}/{index} with {width} hashes is not stored")
        return row[: width * HASH_SIZE]

    def bundle(self, index: int, width: int) -> bytes:
        self._require_tile(0, index, width)
        return encode_bundle(self.entries(index * WIDTH, index * WIDTH + width))

    def _require_tile(self, level: int, index: int, width: int) -> None:
        if (self.published.size >> HEIGHT * level) < index * WIDTH + width:
            raise NotFound("not_found", f"the log has no tile {level}/{index} with {width} hashes yet")

    def record(self, host: str, size: int) -> RecordState | None:
        """The host's record in the tree of `size` entries."""
        rows = self._run(_RECORD, map_key(host), size)
        return RecordState(*rows[0]) if rows else None

    def events(self, host: str, size: int) -> list[Event]:
        """All entries below `size` that name the host, with their texts."""
        return _events(self._run(_OF_HOST, map_key(host), size))

    def newest_reviews(self, host: str, size: int, before: int, count: int) -> list[Event]:
        """The `count` newest reviews of the host below log index `before`, with all entries about them below `size`."""
        return _events(self._run(_NEWEST_REVIEWS, map_key(host), before, count, size))

    def counts_below(self, host: str, index: int) -> HostCounts | None:
        """What a host's record counts before a log index that begins a batch; None if it has no entry there."""
        for (data,) in self._run(_RECORD_BELOW, map_key(host), index):
            return HostCounts.of(data)
        return None

    def page(self, host: str, size: int, start: int, count: int) -> list[Event]:
        """The first `count` entries that name the host in [start, size) of the log, with their texts."""
        return _events(self._run(_FROM, map_key(host), start, size, count))

    def sublog(self, host: str, size: int, count: int, edge: bytes) -> SubLog:
        """The host's `count` events below `size`, by the edge of its record there."""
        return SubLog(self._run, Rows(self._connect), map_key(host), size, count, edge)

    def _host_data(self, host: str, start: int, stop: int) -> list[bytes]:
        return [data for (data,) in self._run(_HOST_DATA, map_key(host), start, stop)]

    def unconfirmed(self, reviews: Sequence[int], size: int) -> set[int]:
        """Which of these reviews came in as unconfirmed and were not upgraded below `size`."""
        queries = ("SELECT idx, data FROM entry WHERE idx IN ({})", "SELECT idx, data FROM entry WHERE about IN ({})")
        with self._connect() as connection:
            rows = [row for query in queries for row in select_in(connection, query, reviews) if row[0] < size]
        return unconfirmed(_events([(index, data, None, None) for index, data in rows]))

    def review(self, review_id: str, size: int) -> list[Event]:
        """A review and all entries about it, in log order."""
        rows = self._run(_REVIEW, review_id, size, review_id, size)
        if not rows:
            raise NotFound("review_not_found", f"the log of {size} entries has no review {review_id[:40]!r}")
        return _events(rows)

    def event(self, index: int) -> Event:
        """One entry that names a host, with its text."""
        return _events(self._run(f"{_EVENTS} idx = ?", index))[0]

    def known(self, *keys: bytes) -> int | None:
        """The first entry that has one of these keys, published or not."""
        [(index,)] = self._run(_KNOWN.format(", ".join("?" * len(keys))), *keys)
        return None if index is None else int(index)

    def first_covering(self, index: int) -> Published | None:
        """The first checkpoint under which the entry stands; None while it is not published."""
        rows = self._run(_COVERING, index)
        return self.published_at(rows[0][0]) if rows else None

    def first_witnessed(self, index: int) -> Published | None:
        """The first checkpoint under which the entry stands and which enough witnesses cosigned."""
        query = "SELECT size FROM witnessed WHERE quorum = ? AND size > ? ORDER BY size LIMIT 1"
        rows = self._run(query, self.quorum or "", index)
        return self.published_at(rows[0][0]) if rows else None

    def newest_witnessed(self) -> Published | None:
        """The newest checkpoint which enough witnesses cosigned."""
        rows = self._run("SELECT max(size) FROM witnessed WHERE quorum = ?", self.quorum or "")
        return None if rows[0][0] is None else self.published_at(rows[0][0])

    def receipt_salt(self, index: int) -> tuple[bytes, bytes | None]:
        """The salt that only the speaker of the entry gets, and what is sealed beside it."""
        rows = self._run("SELECT salt, beside FROM receipt_salt WHERE idx = ?", index)
        if not rows:
            raise NotStored(f"the salt of entry {index} is not stored")
        salt, beside = rows[0]
        return bytes(salt), None if beside is None else bytes(beside)

    def newest_policy(self) -> tuple[int, str] | None:
        """The entry by which the policy of now was adopted, and the policy's hash."""
        rows = self._run("SELECT idx, policy FROM adopted_policy ORDER BY idx DESC LIMIT 1")
        return (int(rows[0][0]), str(rows[0][1])) if rows else None

    def newest_issuer(self, size: int | None = None) -> int:
        """The index of the newest issuer entry below `size`, or of all that are published; -1 when there is none."""
        [(index,)] = self._run(_ISSUER_BELOW, size) if size is not None else self._run(_ISSUER_PUBLISHED)
        return -1 if index is None else int(index)

    def issuers(self, size: int) -> list[tuple[int, bytes, bytes]]:
        """Log index, bytes and pinned keys of the issuer entries below `size`, in their order."""
        with self._connect() as connection:
            return read_issuers(connection, size)

    @contextmanager
    def session(self) -> Iterator[None]:
        """One connection for all that this thread reads until the end of it."""
        with self._store.read() as self._thread_local.connection:
            try:
                yield
            finally:
                self._thread_local.connection = None

    @contextmanager
    def _connect(self) -> Iterator[Connection]:
        mine = getattr(self._thread_local, "connection", None)
        with nullcontext(mine) if mine is not None else self._store.read() as connection:
            yield connection

    def _run(self, query: str, *values: Any) -> list[Any]:
        mine = getattr(self._thread_local, "connection", None)
        if mine is not None:
            return run(mine, query, values)
        with self._store.read() as connection:
            return run(connection, query, values)


def _events(rows: Sequence[Any]) -> list[Event]:
    """From index, bytes, text and salt. An entry of ours was read strictly when it came in; reading it so again would
    take most of an answer's time. All are decoded at once, as one list."""
    try:
        read = _decode(b"[%s]" % b",".join([row[1] for row in rows]))
    except msgspec.DecodeError:
        read = []
    if len(read) != len(rows):
        raise NotStored(f"one of the entries {', '.join(str(row[0]) for row in rows[:200])} is damaged")
    return [
        Event(index, Entry(data, members["type"], members), None if text is None else Opening(text, salt or b""))
        for (index, data, text, salt), members in zip(rows, read, strict=True)
    ]
