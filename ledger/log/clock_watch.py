"""How the clock stands to the log's time: told to /health, the metrics and the service's log."""

import logging
from collections.abc import Callable

from ledger import metrics
from ledger.canon.times import parse_time
from ledger.clock import Clock
from ledger.errors import Unavailable
from ledger.health import Health
from ledger.log.clock_guard import TOLERANCE, ClockGuard

_PART = "clock"
_logger = logging.getLogger(__name__)


class ClockWatch:
    """Held by the sequencer, whose thread looks once a second at least."""

    def __init__(self, clock: Clock, guard: ClockGuard, health: Health) -> None:
        self.clock = clock
        self.guard = guard
        self._health = health
        self._refused = self._ahead = False
        self._waiting: list[Callable[[], object]] = []

    def look(self, last: str) -> None:
        """Report whether the clock is confirmed and how far the log's time, `last`, is ahead of it. Then do what waits
        for a confirmed clock."""
        ahead = parse_time(last) - self.clock()
        metrics.LOG_TIME_AHEAD.set(ahead.total_seconds())
        if (ahead > TOLERANCE) != self._ahead:
            self._ahead = not self._ahead
            if self._ahead:
                _logger.warning("the log's time, %s, is %.0f s ahead of the clock", last, ahead.total_seconds())
            else:
                _logger.warning("the log's time, %s, is not ahead of the clock any more", last)
        try:
            self.guard.require(last)
        except Unavailable as reason:
            if not self._refused:
                _logger.error("%s", reason)
                self._health.report(_PART, reason)
            self._refused = True
            return
        if self._refused:
            self._refused = False
            self._health.clear(_PART)
            _logger.warning("the clock is confirmed; the log goes on")
        waiting, self._waiting = self._waiting, []
        for work in waiting:
            work()

    def when_confirmed(self, work: Callable[[], object]) -> None:
        """Have `look` do the work, which must be short, once the clock is confirmed."""
        self._waiting.append(work)
