"""Whether the ledger can be written right now, found out by writing: /health must know it without submissions.

A small row is written again whenever nothing was written for a while, and every second while something is wrong, so
that a service recovers by itself. Its own thread waits for the database; requests for /health never do.
"""

import logging
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from time import monotonic

from sqlalchemy import Connection

from ledger.errors import Halted, Misconfigured, StaylogError, Unavailable
from ledger.store.engine import REWRITE, Store
from ledger.store.refusals import without_right
from ledger.store.rights import require_rights
from ledger.store.rows import run

QUIET_SECONDS, TROUBLED_SECONDS = 5.0, 1.0
# What a review with the longest text needs, with its tiles and pages; several at once need more.
ROOM = 1 << 20
# On SQLite each probe lengthens the write-ahead log by some pages.
TIDY_AFTER = 64

# More lines than fit into the memory that they may take: the server writes 2 MiB to its disk and forgets them again.
_SPILL = (
    "WITH lines AS MATERIALIZED (SELECT repeat(md5(number::text), 64) FROM generate_series(1, 1024) AS number) "
    "SELECT count(*) FROM lines"
)

_logger = logging.getLogger(__name__)


class WriteProbe:
    """Held by the open ledger; `start` is called by services only."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._stop = Event()
        self._thread: Thread | None = None
        self._since_tidy = 0

    def start(self, halt: Callable[[Halted], None]) -> None:
        """`halt` is told when what was committed is not on the synchronous standby."""
        self._thread = Thread(target=self._run, args=(halt,), name="write-probe", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def probe(self) -> None:
        """Raises Unavailable or Halted when nothing can be written; the store has reported it then."""
        if self._store.is_sqlite:
            self._require_room()
        else:
            self._require_rights()
        with self._store.write() as connection:
            if not self._store.is_sqlite:
                _spill(connection)
            run(connection, REWRITE)
        self._since_tidy += 1
        if self._since_tidy >= TIDY_AFTER:
            self._since_tidy = 0
            self._store.tidy()

    def _run(self, halt: Callable[[Halted], None]) -> None:
        while not self._stop.wait(TROUBLED_SECONDS):
            if not self._is_due():
                continue
            try:
                self.probe()
            except Halted as error:
                halt(error)
                return
            except StaylogError:
                # It is reported.
                continue

    def _is_due(self) -> bool:
        return self._store.is_troubled or monotonic() - self._store.written_at >= QUIET_SECONDS

    def _require_rights(self) -> None:
        """All of them: the row that is written here needs few."""
        try:
            require_rights(self._store)
        except Misconfigured as error:
            if not self._store.is_troubled:
                _logger.error("nothing can be written: %s", error)
            raise self._store.reported(without_right()) from error

    def _require_room(self) -> None:
        disk = os.statvfs(Path(self._store.url.database or "").absolute().parent)
        if disk.f_bavail * disk.f_frsize < ROOM:
            raise self._store.reported(
                Unavailable("storage_full", "the disk of the ledger is full; it goes on when there is space again")
            )


def _spill(connection: Connection) -> None:
    run(connection, "SET LOCAL work_mem = '64kB'")
    run(connection, _SPILL)
