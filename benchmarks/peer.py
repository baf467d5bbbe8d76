"""The peer of row 1: pymerkle 7 SqliteTree with its own defaults, in the journal mode and durability our side has.

WAL is a property of the file and costs pymerkle less CPU than the rollback journal it would open with.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from pymerkle import SqliteTree

from benchmarks.tile_log import batches

NAME = "pymerkle 7 SqliteTree"


def create(path: Path) -> SqliteTree:
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
