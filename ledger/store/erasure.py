"""Rows that are to be gone, and not only forgotten: a database by itself leaves their bytes where they were.

SQLite overwrites what is deleted when it is told to; what is left of it in the write-ahead log, and all that PostgreSQL
has of old rows, goes by `Store.scrub` once the transaction is through.

Told or not, SQLite may leave a copy of a row in the free space of a page when it moves the row to another one. Rows of
tables with row numbers stay where they are unless a page fills or empties, so what will be erased some day is kept in
such a table, and written under `erasing` too where rows come and go.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import Connection

from ledger.store.rows import run

# What it answers, as it is set: to a number it listens as to yes or no.
_NAMES = ("OFF", "ON", "FAST")


@contextmanager
def erasing(connection: Connection) -> Iterator[None]:
    """Around the statements of a `Store.write` that delete or empty rows: their bytes are overwritten with zeros.

    Only where it is needed: a tile grows by being written anew, and to overwrite its old pages would double what a
    batch writes.
    """
    if connection.dialect.name != "sqlite":
        yield
        return
    # Heeded at once, in the midst of a transaction too; some builds have it on from the start.
    [(before,)] = run(connection, "PRAGMA secure_delete")
    run(connection, "PRAGMA secure_delete = ON")
    try:
        yield
    finally:
        run(connection, f"PRAGMA secure_delete = {_NAMES[before]}")
