"""Work that must not pile up: some go on, some wait, and whoever comes then is told to come back."""

from threading import BoundedSemaphore, Semaphore

from ledger.errors import Unavailable


class Places:
    """`with places:` around the work, of which there is at most so much at once."""

    def __init__(self, what: str, most: int) -> None:
        self._what = what
        self._places = BoundedSemaphore(most)

    def __enter__(self) -> None:
        if not self._places.acquire(blocking=False):
            raise Unavailable("busy", f"too many wait for {self._what} already; try again in a moment")

    def __exit__(self, *_: object) -> None:
        self._places.release()


class Turns(Places):
    """`with turns:` around the work. At most `at_once` threads are inside, at most `waiting` more wait for it."""

    def __init__(self, what: str, *, at_once: int, waiting: int) -> None:
        super().__init__(what, at_once + waiting)
        self._inside = Semaphore(at_once)

    def __enter__(self) -> None:
        super().__enter__()
        self._inside.acquire()

    def __exit__(self, *_: object) -> None:
        self._inside.release()
        super().__exit__()
