"""Whether the wall clock may date entries: it may not be further ahead than the time that has really passed explains.

An entry is never dated before the one in front of it, so a single batch by a clock that is 40 days ahead would hold the
log's time there for 40 days.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Lock

from ledger.canon.times import format_time, parse_time
from ledger.errors import Unavailable

# How far the clock may get ahead of the elapsed time within a process: it is set now and then, by seconds as a rule.
TOLERANCE = timedelta(minutes=5)
# How far the clock may be from the time in a witness's cosignature that confirms it.
WITNESSED_WITHIN = timedelta(hours=1)
RETRY_SECONDS = 60


class ClockGuard:
    """Held by the open ledger; threads may share it.

    `clock` is the wall clock; `bound` is how far it may be past the last entry when a process starts. `elapsed` counts
    the seconds since some moment: it never jumps, and it goes on while the machine sleeps. A process starts without a
    confirmed clock, unless the clock is `trusted`: then nothing is refused.
    """

    def __init__(
        self,
        clock: Callable[[], datetime],
        elapsed: Callable[[], float],
        bound: timedelta,
        *,
        trusted: bool = False,
    ) -> None:
        self._clock = clock
        self._elapsed = elapsed
        self._bound = bound
        self._trusted = trusted
        # By how many seconds the clock may be ahead of `elapsed`; None until it is confirmed.
        self._confirmed: float | None = None
        # Whether the clock was behind the log's time when it was confirmed, and has not caught up since.
        self._behind = False
        self._lock = Lock()

    def require(self, last: str) -> datetime:
        """What time it is, by a clock that is confirmed; `last` is the time of the log's last entry. A clock that is at
        most the bound past that is confirmed at the first call; one that is behind it then may catch up with it later.

        Raises Unavailable with `clock_unconfirmed` while the clock is ahead without an explanation.
        """
        now, ahead = self._read()
        if self._trusted:
            return now
        with self._lock:
            if self._confirmed is None or self._behind:
                self._begin(ahead, now - parse_time(last))
            confirmed = self._confirmed
        if confirmed is None:
            raise _unconfirmed(
                f"the clock says {format_time(now)} and the last entry is of {last}, more than {_hours(self._bound)} "
                "before that"
            )
        jump = timedelta(seconds=ahead - confirmed)
        if jump > TOLERANCE:
            raise _unconfirmed(f"the clock says {format_time(now)}, {_hours(jump)} more than the time that has passed")
        return now

    def is_confirmed(self, last: str) -> bool:
        """Whether `require` would raise nothing."""
        try:
            self.require(last)
        except Unavailable:
            return False
        return True

    def accept(self) -> None:
        """The clock is right now: the operator says so. Later jumps are refused as before, also by a clock that was
        behind the log's time."""
        _, ahead = self._read()
        with self._lock:
            # A clock that is behind for a while must not make the right time look like a jump.
            self._confirmed = ahead if self._confirmed is None else max(self._confirmed, ahead)
            self._behind = False

    def witnessed(self, timestamp: int) -> None:
        """A witness of the log has just signed that time, in seconds since 1970. The clock is right if it is near."""
        now, _ = self._read()
        if abs(now.timestamp() - timestamp) <= WITNESSED_WITHIN.total_seconds():
            self.accept()

    def _begin(self, ahead: float, past_last: timedelta) -> None:
        if -TOLERANCE <= past_last <= self._bound:
            self._confirmed, self._behind = ahead, False
        elif self._confirmed is None and past_last < -TOLERANCE:
            # Entries are dated by the log's time for now.
            self._confirmed, self._behind = ahead, True

    def _read(self) -> tuple[datetime, float]:
        """The clock, and by how much it is ahead of `elapsed`."""
        now = self._clock()
        return now, now.timestamp() - self._elapsed()


def _unconfirmed(what: str) -> Unavailable:
    return Unavailable(
        "clock_unconfirmed",
        f"{what}: nothing is added to the log by a clock that nothing confirms. If the clock is wrong, correct it. If "
        "it is right, say so with --accept-clock when you start the service or run the command",
        retry_after=RETRY_SECONDS,
    )


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.3g} h"
