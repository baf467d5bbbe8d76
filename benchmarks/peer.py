"""The peer of row 1: pymerkle 7 SqliteTree as it comes, durable after each batch as our side is.

It opens with SQLite's rollback journal. WAL, a property of the file, makes it append faster, so that is shown too.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from pymerkle import SqliteTree

from benchmarks.tile_log import batches

NAME = "pymerkle 7 SqliteTree"
NAME_IN_WAL = "pymerkle in WAL, as ours"


def create(path: Path, *, wal: bool = False) -> SqliteTree:
    if wal:
        connection = sqlite3.connect(path)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.close()
    return open_peer(path)


def open_peer(path: Path) -> SqliteTree:
    tree = SqliteTree(str(path))
    tree.con.execute("PRAGMA synchronous = FULL")
    return tree


def append_all(tree: SqliteTree, entries: Sequence[bytes]) -> None:
    """`append_entries` is its bulk path: one hash and one row per entry, one commit per call."""
    for batch in batches(entries):
        tree.append_entries(batch)
