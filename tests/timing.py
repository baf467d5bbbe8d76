"""How long something takes, as far as that can be told on a machine that others use too."""

import time
from collections.abc import Callable


def quickest(work: Callable[[], object]) -> float:
    """CPU seconds of this thread for the quickest of five: the collector may come between."""
    seconds = []
    for _ in range(5):
        began = time.thread_time()
        work()
        seconds.append(time.thread_time() - began)
    return min(seconds)
