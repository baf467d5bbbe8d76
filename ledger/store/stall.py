"""A server that is there and does not answer, after the first call that found it so.

Without this each call would wait for its own deadline, one after the other, and clients for the sum of them.
"""

import logging
from collections.abc import Callable
from threading import Event, Lock, Thread

from ledger import metrics
from ledger.errors import Unavailable

TRY_SECONDS = 0.5

_logger = logging.getLogger(__name__)


class Stall:
    """Held by the store; threads may share it. `ask` raises unless the server answers over a new connection."""

    def __init__(self, ask: Callable[[], None]) -> None:
        self._ask = ask
        self._lock = Lock()
        self._stop = Event()
        self._thread: Thread | None = None

    def require_none(self) -> None:
        """Raises Unavailable, at once, until a thread of our own has had an answer."""
        if self._thread is not None:
            raise Unavailable("storage_unavailable", "the ledger's database does not answer: nothing was acknowledged")

    def begin(self) -> None:
        """A call had no answer."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                metrics.STALLS.inc()
                self._thread = Thread(target=self._try, name="reconnecting", daemon=True)
                self._thread.start()

    def close(self) -> None:
        self._stop.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _try(self) -> None:
        while not self._stop.is_set():
            try:
                self._ask()
                break
            except Exception as error:
                _logger.warning("the database does not answer: %s", type(error).__name__)
                self._stop.wait(TRY_SECONDS)
        with self._lock:
            self._thread = None
