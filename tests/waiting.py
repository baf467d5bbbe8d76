"""Waiting for what other threads do, and not for ever."""

from collections.abc import Callable
from time import monotonic, sleep


def until(condition: Callable[[], bool], seconds: float = 10) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen"
        sleep(0.001)
