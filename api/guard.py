"""All connections of the service: how many there are, and when each was looked at.

They are looked at together, twice a second: a timer for each would cost every request.
"""

import asyncio
import math
from collections.abc import Sequence
from typing import Protocol

import uvicorn

from api.metrics import CONNECTIONS
from api.socket_limits import SocketLimits
from ledger.net.addresses import Network
from ledger.net.connection_bounds import ConnectionBounds, Full


class Connection(Protocol):
    """What the guard must know of a connection. `unread` is how many bytes are still to be sent."""

    unread: int

    def __hash__(self) -> int: ...

    def check(self, now: float) -> None:
        """Ends it when one of its times is over."""

    def end(self, reason: str) -> None:
        """Ends it without an answer; `reason` is counted."""


class Guard:
    """All connections of a server, and their bounds. It looks at them from the first one on, until there is none. Used
    by the event loop's thread alone."""

    def __init__(self, limits: SocketLimits, proxies: Sequence[Network] = ()) -> None:
        self.limits = limits
        self.bounds: ConnectionBounds[Connection] = ConnectionBounds(limits.connections, limits.per_address, proxies)
        self._open: set[Connection] = set()
        self._timer: asyncio.TimerHandle | None = None
        # From then on no connection is waited for.
        self._ends_at = math.inf

    def enter(self, connection: Connection, address: str, loop: asyncio.AbstractEventLoop) -> Full | None:
        """Take a connection, in the place of another one if need be; or say why not."""
        refusal, evicted = self.bounds.enter(connection, address)
        if evicted is not None:
            evicted.end("evicted")
        self._open.add(connection)
        CONNECTIONS.set(len(self._open))
        if self._timer is None:
            self._timer = loop.call_later(self.limits.sweep, self._sweep, loop)
        return refusal

    def leave(self, connection: Connection) -> None:
        self.bounds.leave(connection)
        self._open.discard(connection)
        CONNECTIONS.set(len(self._open))

    def stop(self, now: float) -> None:
        """The server stops: connections that wait for their client have a moment left. The rest is being answered."""
        self._ends_at = now + self.limits.grace

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # Before anything that could fail.
        self._timer = loop.call_later(self.limits.sweep, self._sweep, loop) if self._open else None
        now, unread = loop.time(), 0
        for connection in list(self._open):
            connection.check(now)
            unread += connection.unread
        if now > self._ends_at:
            for connection in self.bounds.waiting():
                connection.end("stopping")
        if unread > self.limits.unread_bytes:
            self._drop_unread(unread)

    def _drop_unread(self, unread: int) -> None:
        """Memory is bounded: the largest of the answers that are not read go first."""
        for connection in sorted(self._open, key=lambda each: each.unread, reverse=True):
            if unread <= self.limits.unread_bytes:
                break
            unread -= connection.unread
            connection.end("answer_not_read")


class GuardedConfig(uvicorn.Config):
    """uvicorn's settings, with the guard that its connections share."""

    guard: Guard
