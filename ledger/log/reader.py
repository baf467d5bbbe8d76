"""Reading the log, always at a published size: what is committed but not signed does not exist for others."""

from collections.abc import Iterable, Sequence
from threading import Event as Signal
from threading import Thread

from sqlalchemy import Connection, select

from ledger import metrics
from ledger.errors import NotFound, NotStored, Unavailable
from ledger.log.entries import parse_entry
from ledger.log.face import Event
from ledger.log.hostmap import map_key
from ledger.log.openings import Opening
from ledger.log.pages import PagedMap
from ledger.log.tiles import HEIGHT, WIDTH, TileTree, encode_bundle, tile_id
from ledger.log.tree import HASH_SIZE
from ledger.store import tables
from ledger.store.engine import Store
from ledger.store.rows import (
    Published,
    RecordVersion,
    Rows,
    newest_published,
    published_at,
    published_below,
    published_from,
    read_entries,
    read_openings,
    record_at,
)

# Other processes publish too; a service learns of it within this time.
FOLLOW_SECONDS = 0.2
# 2,048 expanded tiles are 32 MiB, the proofs of the last half million entries.
CACHED_TILES = 2048


class Reader:
    """Threads may share it. `follow` keeps `published` fresh while other processes write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        rows = Rows(store.read)
        self.tree = TileTree(rows, CACHED_TILES)
        self.map = PagedMap(rows)
        self._newest: Published | None = None
        self._stop = Signal()
        self._thread: Thread | None = None

    @property
    def published(self) -> Published:
        """The newest checkpoint this process knows of."""
        return self._newest or self.refresh()

    def refresh(self) -> Published:
        """Ask the database."""
        with self._store.read() as connection:
            newest = newest_published(connection)
        if newest is None:
            raise NotStored("the log has no checkpoint yet")
        self.tell(newest)
        return newest

    def tell(self, newest: Published) -> None:
        """Somebody knows of a checkpoint; sizes only grow."""
        if self._newest is None or newest.size > self._newest.size:
            self._newest = newest
            metrics.SIZE.set(newest.size)

    def follow(self) -> None:
        self._thread = Thread(target=self._follow, name="follower", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _follow(self) -> None:
        while not self._stop.wait(FOLLOW_SECONDS):
            try:
                self.refresh()
            except Unavailable:
                continue  # what was published stays so; whoever asks for more is told

    def published_at(self, size: int | None) -> Published:
        """The checkpoint of `size`, the newest for None."""
        if size is None or size == self.published.size:
            return self.published
        with self._store.read() as connection:
            found = published_at(connection, size)
        if found is None:
            raise NotFound("unknown_size", f"no checkpoint of size {size} was published")
        return found

    def published_from(self, size: int) -> Published:
        """The first checkpoint that covers `size` entries."""
        with self._store.read() as connection:
            found = published_from(connection, size)
        if found is None:
            raise NotFound("unknown_size", f"no checkpoint covers {size} entries")
        return found

    def checkpoints(self, before: int | None, count: int) -> list[Published]:
        """Newest first."""
        with self._store.read() as connection:
            return published_below(connection, before, count)

    def entries(self, start: int, stop: int) -> list[bytes]:
        """Entries [start, stop), as far as they are published."""
        stop = min(stop, self.published.size)
        if start >= stop:
            return []
        with self._store.read() as connection:
            return [data for data, _ in read_entries(connection, start, stop)]

    def tile(self, level: int, index: int, width: int) -> bytes:
        """The first `width` hashes of a tile; any older partial tile is a prefix of the stored row."""
        self._require_tile(level, index, width)
        row = Rows(self._store.read).read_tiles([tile_id(level, index)]).get(tile_id(level, index), b"")
        if len(row) < width * HASH_SIZE:
            raise NotStored(f"tile {level}/{index} with {width} hashes is not stored")
        return row[: width * HASH_SIZE]

    def bundle(self, index: int, width: int) -> bytes:
        self._require_tile(0, index, width)
        return encode_bundle(self.entries(index * WIDTH, index * WIDTH + width))

    def _require_tile(self, level: int, index: int, width: int) -> None:
        if (self.published.size >> HEIGHT * level) < index * WIDTH + width:
            raise NotFound("not_found", f"the log has no tile {level}/{index} with {width} hashes yet")

    def record(self, host: str, size: int) -> RecordVersion | None:
        """The host's record in the tree of `size` entries."""
        with self._store.read() as connection:
            return record_at(connection, map_key(host), size)

    def host_entries(self, host: str, size: int) -> list[tuple[int, bytes]]:
        """Log index and bytes of all entries below `size` that name the host."""
        entry = tables.entry
        query = select(entry.c.idx, entry.c.data).where(entry.c.host_key == map_key(host), entry.c.idx < size)
        with self._store.read() as connection:
            return [(row.idx, bytes(row.data)) for row in connection.execute(query.order_by(entry.c.idx))]

    def events(self, entries: Iterable[tuple[int, bytes]]) -> list[Event]:
        """Entries with their texts, where there are any."""
        with self._store.read() as connection:
            return _events(connection, entries)

    def upgraded(self, reviews: Sequence[int], size: int) -> set[int]:
        """Which of these reviews were upgraded below `size`."""
        with self._store.read() as connection:
            later = [parse_entry(data) for _, data in _about(connection, reviews, size)]
        return {entry.members["review"] for entry in later if entry.type == "upgrade"}

    def newest_reviews(self, host: str, size: int, before: int, count: int) -> list[Event]:
        """The `count` newest reviews of the host below log index `before`, with all entries about them below `size`."""
        entry = tables.entry
        mine = (entry.c.host_key == map_key(host), entry.c.review_id.is_not(None), entry.c.idx < before)
        newest = select(entry.c.idx, entry.c.data).where(*mine).order_by(entry.c.idx.desc()).limit(count)
        with self._store.read() as connection:
            rows = connection.execute(newest).all()
            later = _about(connection, [row.idx for row in rows], size)
            return _events(connection, sorted([*((row.idx, bytes(row.data)) for row in rows), *later]))

    def review(self, review_id: str, size: int) -> list[Event]:
        """A review and all entries about it, in log order."""
        entry = tables.entry
        query = select(entry.c.idx, entry.c.data).where(entry.c.review_id == review_id, entry.c.idx < size)
        with self._store.read() as connection:
            row = connection.execute(query).first()
            if row is None:
                raise NotFound("review_not_found", f"the log of {size} entries has no review {review_id[:40]!r}")
            return _events(connection, [(row.idx, bytes(row.data)), *_about(connection, [row.idx], size)])


def _about(connection: Connection, reviews: Sequence[int], size: int) -> list[tuple[int, bytes]]:
    entry = tables.entry
    query = select(entry.c.idx, entry.c.data).where(entry.c.about.in_(reviews), entry.c.idx < size)
    return [(row.idx, bytes(row.data)) for row in connection.execute(query.order_by(entry.c.idx))]


def _events(connection: Connection, rows: Iterable[tuple[int, bytes]]) -> list[Event]:
    entries = [(index, parse_entry(data)) for index, data in rows]
    with_text = [index for index, entry in entries if entry.members.get("text") is not None]
    openings = read_openings(connection, with_text) if with_text else {}
    return [Event(index, entry, Opening(*openings[index]) if index in openings else None) for index, entry in entries]
