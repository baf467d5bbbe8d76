"""What an auditor keeps: the tree, what became of reviews and hosts, and every checkpoint that was ever seen.

One SQLite file. All is written in one transaction at the end of a batch, so that an audit that was killed goes on from
a state that the log had. What the auditor keeps on disk it need not keep in memory. Rows have a checksum: damage here
must not look like a lie of the log.
"""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from audits import committed
from audits.committed import Committed
from ledger.errors import BrokenRule, Misconfigured, NotStored
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import Verifier
from ledger.log.record import HostFold, ReviewState

FILE = "audit.db"
# Of the tables below: what another version kept would be misread, and must not look like a lie of the log.
FORMAT = 1
DAMAGED = "what the last audit kept is damaged: begin with another folder for --state"
# Reviews that are kept in memory until they are written.
FRESH = 20_000
# Bits of the filter: 2 MB, in which a million ids leave one in a hundred in doubt.
MARKS = 1 << 24

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL, sum INTEGER);
CREATE TABLE IF NOT EXISTS tile (id INTEGER PRIMARY KEY, data BLOB NOT NULL, sum INTEGER);
CREATE TABLE IF NOT EXISTS host (did TEXT PRIMARY KEY, record BLOB NOT NULL, edge BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS head (size INTEGER PRIMARY KEY, at TEXT NOT NULL, root BLOB NOT NULL, sum INTEGER);
CREATE TABLE IF NOT EXISTS checkpoint (size INTEGER, root BLOB, note TEXT NOT NULL, seen_at TEXT NOT NULL,
    source TEXT NOT NULL, PRIMARY KEY (size, root));
CREATE TABLE IF NOT EXISTS review (idx INTEGER PRIMARY KEY, review_id TEXT NOT NULL, data TEXT NOT NULL, sum INTEGER);
CREATE TABLE IF NOT EXISTS used (review_id TEXT PRIMARY KEY, sum INTEGER) WITHOUT ROWID;
"""
_REPLAYED = ("tile", "host", "head", "review", "used", "committed")


class State:
    """The folder of one log; without a folder all of it is forgotten at the end."""

    def __init__(self, folder: Path | None, log: Verifier) -> None:
        self._temporary = TemporaryDirectory(prefix="staylog-audit-") if folder is None else None
        self.folder = Path(self._temporary.name) if self._temporary is not None else folder or Path()
        self._connection = _open(self.folder / FILE, lasting=self._temporary is None)
        self._hosts: dict[str, tuple[bytes, bytes]] = {}
        self._heads: dict[int, tuple[str, bytes]] = {}
        try:
            self.reviews = DiskReviews(self._connection)
            self.committed = Committed(self._connection)
            if self.get("log") not in (None, str(log)):
                raise Misconfigured("settings_invalid", f"{self.folder} is about another log: {self.get('log')}")
            self.put("log", str(log))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._connection.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def commit(self) -> None:
        """All that was noted since the last time, or nothing of it."""
        self.reviews.flush()
        self.committed.flush()
        rows = [(host, record, edge) for host, (record, edge) in self._hosts.items()]
        self._connection.executemany("INSERT OR REPLACE INTO host VALUES (?, ?, ?)", rows)
        self._hosts.clear()
        self._write_heads()
        self._connection.execute("COMMIT")
        self._connection.execute("BEGIN IMMEDIATE")

    def forget_replay(self) -> None:
        """What was replayed turned out not to be the log's; the checkpoints that were seen stay."""
        self._hosts.clear()
        self._heads.clear()
        self.reviews.forget()
        self.committed.forget()
        for table in _REPLAYED:
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608 (names of our own)
        self._connection.execute("DELETE FROM meta WHERE name = 'replay'")

    def get(self, name: str) -> Any:
        row = self._connection.execute("SELECT value, sum FROM meta WHERE name = ?", (name,)).fetchone()
        return json.loads(_sound(row)[0]) if row else None

    def put(self, name: str, value: Any) -> None:
        text = json.dumps(value)
        self._connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?, ?)", (name, text, _sum(text)))

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        found = {}
        for tile in ids:
            row = self._connection.execute("SELECT id, data, sum FROM tile WHERE id = ?", (tile,)).fetchone()
            if row is not None:
                found[tile] = _sound(row)[1]
        return found

    def write_tiles(self, rows: Mapping[int, bytes]) -> None:
        summed = [(*row, _sum(*row)) for row in rows.items()]
        self._connection.executemany("INSERT OR REPLACE INTO tile VALUES (?, ?, ?)", summed)

    def keep_host(self, fold: HostFold, record: bytes) -> None:
        self._hosts[fold.host] = record, b"".join(fold.edge.nodes)

    def hosts(self) -> Iterator[tuple[str, bytes, bytes]]:
        yield from self._connection.execute("SELECT did, record, edge FROM host")

    def keep_head(self, size: int, at: str, root: bytes) -> None:
        """The time of the map head that ends the tree of `size` entries, and the root of that tree."""
        self._heads[size] = at, root

    def head_at(self, size: int) -> str | None:
        head = self._head(size)
        return head[0] if head is not None else None

    def root_at(self, size: int) -> bytes | None:
        head = self._head(size)
        return head[1] if head is not None else None

    def head_after(self, index: int) -> int | None:
        """The size of the first tree that ends in a map head and has the entry at `index`."""
        [stored] = self._connection.execute("SELECT min(size) FROM head WHERE size > ?", (index,)).fetchone()
        sizes = [size for size in self._heads if size > index]
        return min(sizes + ([stored] if stored is not None else []), default=None)

    def _head(self, size: int) -> tuple[str, bytes] | None:
        if size in self._heads:
            return self._heads[size]
        row = self._connection.execute("SELECT * FROM head WHERE size = ?", (size,)).fetchone()
        return (str(row[1]), bytes(_sound(row)[2])) if row else None

    def _write_heads(self) -> None:
        heads = [(size, *head, _sum(size, *head)) for size, head in self._heads.items()]
        self._connection.executemany("INSERT OR REPLACE INTO head VALUES (?, ?, ?, ?)", heads)
        self._heads.clear()

    def see(self, checkpoint: Checkpoint, note: str, at: str, source: str) -> None:
        """Remember a signed checkpoint for ever, and where it was the newest; the first note of it stays."""
        row = (checkpoint.size, checkpoint.root, note, at, source)
        self._connection.execute("INSERT OR IGNORE INTO checkpoint VALUES (?, ?, ?, ?, ?)", row)

    def seen(self) -> list[tuple[int, bytes, str, str]]:
        """Size, root, note and source of all, the smallest first."""
        return self._connection.execute("SELECT size, root, note, source FROM checkpoint ORDER BY size").fetchall()

    def seen_apart(self, above: int) -> list[tuple[int, str]]:
        """Size and note of those above a size, and of those that are not of the tree that was replayed, the smallest
        first: of a log that was watched for long, all the others are many."""
        self._write_heads()
        sql = (
            "SELECT checkpoint.size, note FROM checkpoint LEFT JOIN head ON head.size = checkpoint.size "
            "WHERE checkpoint.size > ? OR head.root IS NOT checkpoint.root ORDER BY checkpoint.size, checkpoint.root"
        )
        return self._connection.execute(sql, (above,)).fetchall()

    def count_seen(self, up_to: int) -> int:
        [count] = self._connection.execute("SELECT COUNT(*) FROM checkpoint WHERE size <= ?", (up_to,)).fetchone()
        return int(count)


class DiskReviews:
    """The reviews of a log by their index, those that were not used lately only on disk."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._fresh: dict[int, ReviewState] = {}
        self._ids: set[str] = set()
        # A Bloom filter: nearly every id is new, and the database need not be asked to know that.
        self._marks = bytearray(MARKS >> 3)
        for row in connection.execute("SELECT review_id, sum FROM used"):
            self._mark(_sound(row)[0])

    def add(self, index: int, review: ReviewState) -> None:
        id_ = review.review_id
        if self._mark(id_) and self._is_known(id_):
            raise BrokenRule("review_id_reused", f"{id_} is the id of an earlier review")
        self._ids.add(id_)
        self._fresh[index] = review
        if len(self._fresh) >= FRESH:
            self.flush()

    def _mark(self, id_: str) -> bool:
        """Whether the id may be known; from now on it is marked."""
        number, known = hash(id_), True
        for place in (number % MARKS, (number >> 24) % MARKS):
            byte, bit = place >> 3, 1 << (place & 7)
            known = known and bool(self._marks[byte] & bit)
            self._marks[byte] |= bit
        return known

    def _is_known(self, id_: str) -> bool:
        if id_ in self._ids:
            return True
        return self._connection.execute("SELECT 1 FROM used WHERE review_id = ?", (id_,)).fetchone() is not None

    def get(self, index: int) -> ReviewState | None:
        review = self._fresh.get(index)
        if review is None:
            row = self._connection.execute("SELECT * FROM review WHERE idx = ?", (index,)).fetchone()
            if row is not None:
                review = self._fresh[index] = _read(*row)
        return review

    def flush(self) -> None:
        rows = [_row(index, review) for index, review in self._fresh.items()]
        self._connection.executemany("INSERT OR REPLACE INTO review VALUES (?, ?, ?, ?)", rows)
        # In their order: ids are random, and each by itself would touch a page of its own.
        used = [(id_, _sum(id_)) for id_ in sorted(self._ids)]
        self._connection.executemany("INSERT INTO used VALUES (?, ?)", used)
        self._fresh.clear()
        self._ids.clear()

    def forget(self) -> None:
        self._fresh.clear()
        self._ids.clear()
        self._marks = bytearray(MARKS >> 3)


def _row(index: int, review: ReviewState) -> tuple[int, str, str, int]:
    """In one column: it is only ever read as a whole. Nothing in it has a space."""
    flags = f"{review.repeat:d}{review.has_text:d}{review.responded:d}"
    redacted = ",".join(sorted(review.redacted)) if review.redacted else "-"
    told = (review.host, review.at, review.check_in, review.level, review.half_stars.hex(), flags, redacted)
    data = " ".join((*told, review.issuer or "-"))
    return index, review.review_id, data, _sum_of(index, review.review_id, data)


def _read(index: int, review_id: str, data: str, summed: int) -> ReviewState:
    if _sum_of(index, review_id, data) != summed:
        raise NotStored(DAMAGED)
    host, at, check_in, level, stars, flags, redacted, issuer = data.split(" ")
    repeat, has_text, responded = (flag == "1" for flag in flags)
    parts = frozenset(redacted.split(",")) if redacted != "-" else frozenset()
    told = (review_id, host, at, check_in, level, repeat, bytes.fromhex(stars), has_text)
    return ReviewState(*told, issuer if issuer != "-" else None, responded, parts)


def _sum_of(index: int, review_id: str, data: str) -> int:
    return crc32(f"{index} {review_id} {data}".encode())


def _sum(*values: Any) -> int:
    return crc32(repr(values).encode())


def _sound(row: Sequence[Any]) -> Sequence[Any]:
    """The row without its checksum, once that is right."""
    *values, summed = row
    if _sum(*values) != summed:
        raise NotStored(DAMAGED)
    return values


def _open(file: Path, *, lasting: bool) -> sqlite3.Connection:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(file, isolation_level=None, timeout=0, check_same_thread=False)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'NORMAL' if lasting else 'OFF'}")
        _require_format(connection, file.parent)
        connection.executescript(_TABLES + committed.TABLE)
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        busy = "locked" in str(error)
        why = "another audit is at work there" if busy else str(error)
        raise Misconfigured("file_unwritable", f"{file.parent} cannot be used: {why}") from None
    except (OSError, sqlite3.DatabaseError) as error:
        why = f"{error}; begin with another folder"
        raise Misconfigured("file_unwritable", f"{file.parent} cannot be used: {why}") from None
    return connection


def _require_format(connection: sqlite3.Connection, folder: Path) -> None:
    [kept] = connection.execute("PRAGMA user_version").fetchone()
    if kept == FORMAT:
        return
    if connection.execute("SELECT 1 FROM sqlite_master").fetchone():
        connection.close()
        raise Misconfigured("file_unreadable", f"{folder} was kept by another version: begin with another folder")
    connection.execute(f"PRAGMA user_version = {FORMAT}")


@contextmanager
def opened(folder: Path | None, log: Verifier) -> Iterator[State]:
    try:
        state = State(folder, log)
        try:
            yield state
        finally:
            state.close()
    except sqlite3.DatabaseError as error:
        raise Misconfigured("file_unreadable", f"{folder} cannot be used: {error}; begin with another folder") from None


def last_audit(folder: Path) -> dict[str, Any] | None:
    """What the last audit in the folder found."""
    if not (folder / FILE).exists():
        return None
    try:
        with closing(sqlite3.connect(f"{(folder / FILE).absolute().as_uri()}?mode=ro", uri=True)) as connection:
            row = connection.execute("SELECT value, sum FROM meta WHERE name = 'audit'").fetchone()
    except sqlite3.DatabaseError as error:
        raise Misconfigured("file_unreadable", f"{folder / FILE}: {error}") from None
    return dict(json.loads(_sound(row)[0])) if row else None
