"""Questions to strangers, who may never answer: each in a thread of its own, and nobody waits longer than agreed."""

import time
from collections.abc import Callable, Mapping
from threading import Thread
from typing import Generic, TypeVar

from ledger.errors import StaylogError, Unavailable

Answer = TypeVar("Answer")
Ask = Callable[[], Answer]
# Whatever a stranger sends, and whatever we did not think of.
SENT = (ArithmeticError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError)


class Errands(Generic[Answer]):
    """Who still has not answered when the time is over is not asked again before it has."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._out: dict[str, Thread] = {}

    def run(self, asked: Mapping[str, Ask[Answer]]) -> dict[str, Answer | StaylogError]:
        """By their names, what all who were asked answered, or why they did not."""
        came: dict[str, Answer | StaylogError] = {}
        self._out = {name: thread for name, thread in self._out.items() if thread.is_alive()}
        # The program may end while a thread waits.
        new = {
            name: Thread(target=_run, args=(name, ask, came), daemon=True)
            for name, ask in asked.items()
            if name not in self._out
        }
        self._out |= new
        for thread in new.values():
            thread.start()
        end = time.monotonic() + self._seconds
        for thread in new.values():
            thread.join(max(end - time.monotonic(), 0))
        # What comes now is too late; nobody changes a dictionary that was handed out.
        found = dict(came)
        late = Unavailable("ledger_unreachable", f"no answer in {self._seconds:.0f} seconds")
        return {name: found.get(name, late) for name in asked}


def _run(name: str, ask: Ask[Answer], came: dict[str, Answer | StaylogError]) -> None:
    try:
        came[name] = ask()
    except StaylogError as error:
        came[name] = error
    except SENT as error:
        came[name] = Unavailable("ledger_unreachable", f"what came cannot be used: {error!r}")
