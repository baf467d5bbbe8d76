"""Our side of rows 1 and 2: entries, tiles and the head in SQLite, one durable commit per batch (WAL, FULL)."""

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from ledger.log.tiles import Appender, TileTree
from ledger.log.tree import leaf_hash

BATCH = 256
# The genesis and its map head are the first batch (protocol.md 3), so no later batch ends where a tile ends.
FIRST_BATCH = 2


def make_entries(count: int) -> list[bytes]:
    """VRP artifacts, the smallest entries there are: larger ones would cost both sides the same and hide the tree."""
    return [b"sha256:" + sha256(index.to_bytes(8)).hexdigest().encode() for index in range(count)]


def batches(entries: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    yield entries[:FIRST_BATCH]
    for start in range(FIRST_BATCH, len(entries), BATCH):
        yield entries[start : start + BATCH]


class TileDatabase:
    """One row per tile, one per entry, one head."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA synchronous = FULL")

    @classmethod
    def create(cls, path: Path) -> "TileDatabase":
        database = cls(path)
        database.connection.execute("PRAGMA journal_mode = WAL")
        database.connection.execute("CREATE TABLE tile (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        database.connection.execute("CREATE TABLE entry (id INTEGER PRIMARY KEY, data BLOB NOT NULL)")
        database.connection.execute("CREATE TABLE head (one INTEGER PRIMARY KEY, size INTEGER, root BLOB)")
        return database

    def read_tiles(self, ids: Sequence[int]) -> Mapping[int, bytes]:
        marks = ",".join("?" * len(ids))
        return dict(self.connection.execute(f"SELECT id, data FROM tile WHERE id IN ({marks})", ids))

    def size(self) -> int:
        row = self.connection.execute("SELECT size FROM head").fetchone()
        return int(row[0]) if row else 0

    def entry(self, index: int) -> bytes:
        return bytes(self.connection.execute("SELECT data FROM entry WHERE id = ?", (index,)).fetchone()[0])

    def commit(self, entries: Sequence[bytes], tiles: Mapping[int, bytes], size: int, root: bytes) -> None:
        execute = self.connection.execute
        execute("BEGIN IMMEDIATE")
        if entries:
            execute(_insert_batch(len(entries)), (size - len(entries), *entries))
        self.connection.executemany("INSERT OR REPLACE INTO tile VALUES (?, ?)", tiles.items())
        execute("INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (size, root))
        execute("COMMIT")

    def close(self) -> None:
        self.connection.close()


@cache
def _insert_batch(count: int) -> str:
    """One statement for a batch takes half the CPU of `executemany`. SQLite numbers the rows after the first."""
    return "INSERT INTO entry VALUES (?, ?)" + ", (NULL, ?)" * (count - 1)


def append_all(database: TileDatabase, entries: Sequence[bytes], *, store_entries: bool = True) -> None:
    """Append in batches as the sequencer will: hash, tiles, root, one commit."""
    appender = Appender(database, database.size())
    for batch in batches(entries):
        appender.extend([leaf_hash(entry) for entry in batch])
        rows = batch if store_entries else ()
        database.commit(rows, appender.take_rows(), appender.size, appender.root())


def build(path: Path, entries: Sequence[bytes]) -> None:
    database = TileDatabase.create(path)
    append_all(database, entries)
    database.close()


def open_tree(path: Path) -> tuple[TileDatabase, TileTree, int]:
    """What a process that proves has to open."""
    database = TileDatabase(path)
    return database, TileTree(database), database.size()
