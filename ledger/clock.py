"""What time it is. Everything that needs to know takes a clock, so that tests can set it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]

# Counts while the machine sleeps: on Linux CLOCK_MONOTONIC does not, elsewhere it does.
_ELAPSED = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def utc_now() -> datetime:
    return datetime.now(UTC)


def elapsed_seconds() -> float:
    """Seconds since the machine was started, asleep or not. Setting the wall clock does not change them."""
    return time.clock_gettime(_ELAPSED)
