import time

import pytest

from ledger.clock import elapsed_seconds


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="CLOCK_BOOTTIME is of Linux")
def test_elapsed_time_counts_while_the_machine_sleeps() -> None:
    """On Linux CLOCK_MONOTONIC does not."""
    before = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before <= elapsed_seconds() <= time.clock_gettime(time.CLOCK_BOOTTIME)
