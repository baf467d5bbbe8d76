"""What is sent in: the body as it came, and a thread of its own, so that nobody who reads waits for it."""

from asyncio import all_tasks, current_task, gather, run_coroutine_threadsafe, shield, wrap_future
from collections.abc import Callable, Coroutine
from threading import Thread
from typing import Any, TypeVar

import uvloop
from litestar import Request
from litestar.exceptions import HTTPException

from ledger.errors import Unavailable

T = TypeVar("T")


class Intake:
    """At most so many are inside, and whoever comes then is told to come back."""

    def __init__(self, *, most: int) -> None:
        self._most = most
        self._inside = 0
        self._loop = uvloop.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="intake", daemon=True)

    def start(self) -> None:
        self._thread.start()

    async def run(self, work: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
        """What was begun is finished, though nobody should wait for it any more."""
        if self._inside >= self._most:
            raise Unavailable("busy", f"{self._inside} submissions are waiting already; try again in a moment")
        self._inside += 1
        done = wrap_future(run_coroutine_threadsafe(work(*arguments), self._loop))
        done.add_done_callback(self._leave)
        return await shield(done)

    def close(self) -> None:
        """When all are finished."""
        run_coroutine_threadsafe(_finish(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _leave(self, _done: Any) -> None:
        self._inside -= 1


async def _finish() -> None:
    await gather(*(all_tasks() - {current_task()}), return_exceptions=True)


async def json_body(request: Request[Any, Any, Any]) -> bytes:
    """The bytes of a body that says it is JSON: they are read by the ledger, once, strictly."""
    media_type, _ = request.content_type
    if media_type != "application/json":
        raise HTTPException(status_code=415, detail=f"application/json expected, not {media_type[:80] or 'nothing'}")
    return await request.body()
