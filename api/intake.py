"""What is sent in: the body as it came, and threads of their own, so that nobody who reads waits for Argon2."""

import os
from asyncio import get_running_loop
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from litestar import Request
from litestar.exceptions import HTTPException

from ledger.errors import Unavailable

T = TypeVar("T")


class Intake:
    """Some are judged at once, some wait, and whoever comes then is told to come back."""

    def __init__(self, *, threads: int | None = None, waiting: int = 64) -> None:
        # Argon2 takes all cores, and a few have the next ones ready by then; nine may be with the canonicaliser of
        # graphs, and must not keep those waiting who have no graph.
        threads = threads or 2 * (os.cpu_count() or 1) + 10
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="intake")
        self._most = threads + waiting
        self._inside = 0

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        """`work` in a thread. What was begun is finished, though nobody should wait for it any more."""
        if self._inside >= self._most:
            raise Unavailable("busy", f"{self._inside} submissions are waiting already; try again in a moment")
        self._inside += 1
        done = get_running_loop().run_in_executor(self._threads, work, *arguments)
        done.add_done_callback(self._leave)
        return await done

    def close(self) -> None:
        self._threads.shutdown()

    def _leave(self, _done: Any) -> None:
        self._inside -= 1


async def json_body(request: Request[Any, Any, Any]) -> bytes:
    """The bytes of a body that says it is JSON: they are read by the ledger, once, strictly."""
    media_type, _ = request.content_type
    if media_type != "application/json":
        raise HTTPException(status_code=415, detail=f"application/json expected, not {media_type[:80] or 'nothing'}")
    return await request.body()
