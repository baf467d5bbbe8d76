"""Waiting for what other threads do, and not for ever."""

from collections.abc import Callable
from threading import Thread
from time import monotonic, sleep

from ledger.errors import StaylogError


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, "it did not happen"
        sleep(0.001)


def refused_at_once(call: Callable[[], object], seconds: float = 10) -> StaylogError:
    """The refusal of a call that must not wait; in a thread, so that one that does is a failure and not a hang."""
    refusals: list[StaylogError] = []

    def attempt() -> None:
        try:
            call()
        except StaylogError as error:
            refusals.append(error)

    thread = Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it waits"
    [refusal] = refusals
    return refusal
