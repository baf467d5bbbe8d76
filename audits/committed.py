"""The commitments that an auditor has seen, on disk: to find two that are equal, anywhere in a log."""

import sqlite3
from binascii import a2b_base64
from collections.abc import Sequence
from typing import NamedTuple

# Commitments that are kept in memory until they are written.
FRESH = 40_000
# Bytes of a commitment that are kept. That two different ones agree in these would take 2^64 tries.
KEPT = 16
# Without a checksum, unlike the other tables: a damaged row equals no commitment, and what is found is proved.
TABLE = "CREATE TABLE IF NOT EXISTS committed (digest BLOB PRIMARY KEY, idx INTEGER NOT NULL) WITHOUT ROWID;"


class Repetition(NamedTuple):
    """The entry at `place` has a commitment that the one at `first` has too, or has one twice itself."""

    place: int
    first: int


class Committed:
    """The first entry of each commitment, in the state's database; one thread uses it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._fresh: dict[bytes, int] = {}
        self._repeated: list[Repetition] = []

    def add(self, index: int, commitments: Sequence[str]) -> None:
        """All of an entry, as it has them: their form was checked with the entry's."""
        digests = [a2b_base64(each)[:KEPT] for each in commitments]
        if len(digests) > len(set(digests)):
            self._repeated.append(Repetition(index, index))
        for digest in digests:
            first = self._fresh.setdefault(digest, index)
            if first != index:
                self._repeated.append(Repetition(index, first))
        if len(self._fresh) >= FRESH:
            self.flush()

    def take_repeated(self) -> list[Repetition]:
        """What was found to be repeated since this was asked last, by index."""
        self.flush()
        found, self._repeated = sorted(set(self._repeated)), []
        return found

    def flush(self) -> None:
        """Write what is new. Whether it was there is seen by how many rows that adds: no row is asked for by itself."""
        before = self._connection.total_changes
        # In their order: each by itself would touch a page of its own.
        rows = sorted(self._fresh.items())
        self._connection.executemany("INSERT OR IGNORE INTO committed VALUES (?, ?)", rows)
        if self._connection.total_changes - before < len(rows):
            for digest, index in rows:
                [first] = self._connection.execute("SELECT idx FROM committed WHERE digest = ?", (digest,)).fetchone()
                if first != index:
                    self._repeated.append(Repetition(index, first))
        self._fresh.clear()

    def forget(self) -> None:
        self._fresh.clear()
        self._repeated.clear()
