"""How connections to SQLite are set up: WAL with FULL, read back, since builds have other defaults."""

import os
from typing import Any

from ledger.store.postgresql import require_durable

DURABLE = {"journal_mode": "wal", "synchronous": 2}


def make_durable(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    # `Store.tidy` does this between batches; in a commit, callers would wait for it.
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    require_durable(DURABLE, {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in DURABLE})


def map_file(connection: Any, _record: Any) -> None:
    """Look into the file itself: what one connection has read, the others have too."""
    connection.execute(f"PRAGMA mmap_size = {1 << 30}")


def file_at(path: str) -> tuple[int, int] | None:
    """Which file stands there. Those that a connection has open stay the same, unless they are deleted or replaced from
    outside."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def widen(connection: Any, _record: Any) -> None:
    """The writer touches pages all over the file in every batch: 64 MiB of them stay."""
    connection.execute("PRAGMA cache_size = -65536")
    # Copies of pages by which one statement could be undone: never worth a file.
    connection.execute("PRAGMA temp_store = MEMORY")
    # What moves between pages leaves no copy behind, where that costs no write of its own.
    connection.execute("PRAGMA secure_delete = FAST")
