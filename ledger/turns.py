"""Turns at work that must not pile up: some go on, some wait, and whoever comes then is told to come back."""

from threading import BoundedSemaphore, Semaphore

from ledger.errors import Unavailable


class Turns:
    """`with turns:` around the work. At most `at_once` threads are inside, at most `waiting` more wait for it."""

    def __init__(self, what: str, *, at_once: int, waiting: int) -> None:
        self._what = what
        self._places = BoundedSemaphore(at_once + waiting)
        self._inside = Semaphore(at_once)

    def __enter__(self) -> None:
        if not self._places.acquire(blocking=False):
            raise Unavailable("busy", f"too many wait for {self._what} already; try again in a moment")
        self._inside.acquire()

    def __exit__(self, *_: object) -> None:
        self._inside.release()
        self._places.release()
