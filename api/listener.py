"""Accepts connections a few at a time, and only while there is room: the server of the event loop takes all that wait,
up to thousands, before any of our code runs, and could use up the file descriptors that the database needs."""

import asyncio
import errno
import socket
from collections.abc import Callable
from contextlib import suppress

from api.guard import Guard
from api.metrics import CONNECTIONS_REFUSED

# The system keeps this many connections that are not accepted yet.
BACKLOG = 512
# Then other connections have their turn.
AT_ONCE = 32
# The system has no descriptor left, for whatever reason: it is not asked again for this long.
PAUSE_SECONDS = 0.2


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets, one for each address that `host` has. Raises OSError."""
    kind, flags = socket.SOCK_STREAM, socket.AI_PASSIVE
    found = socket.getaddrinfo(host, port, type=kind, flags=flags)
    made = {address: family for family, _, _, _, address in found}
    return [socket.create_server(address, family=family, backlog=BACKLOG) for address, family in made.items()]


class Listener:
    """One listening socket. Connections that `guard` refuses are told so (`busy`) and closed at once, which costs
    little; the others get a protocol. Used by the event loop's thread alone."""

    def __init__(
        self,
        listening: socket.socket,
        guard: Guard,
        protocol: Callable[[], asyncio.Protocol],
        busy: Callable[[], bytes],
    ) -> None:
        self._socket, self._guard, self._protocol, self._busy = listening, guard, protocol, busy
        self._loop = asyncio.get_running_loop()
        self._starting: set[asyncio.Task[object]] = set()
        self._pause: asyncio.TimerHandle | None = None
        listening.setblocking(False)
        self._loop.add_reader(listening, self._accept)

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._socket)
        self._socket.close()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, peer = self._socket.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self._wait()
                # Otherwise there is none any more.
                return
            connection.setblocking(False)
            if (full := self._guard.bounds.refusal(str(peer[0]))) is None:
                task = self._loop.create_task(self._start(connection))
                self._starting.add(task)
                task.add_done_callback(self._starting.discard)
            else:
                CONNECTIONS_REFUSED.labels(full).inc()
                with connection, suppress(OSError):
                    connection.send(self._busy())

    async def _start(self, connection: socket.socket) -> None:
        # It may have gone meanwhile.
        with suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._loop.connect_accepted_socket(self._protocol, connection)

    def _wait(self) -> None:
        self._loop.remove_reader(self._socket)
        self._pause = self._loop.call_later(PAUSE_SECONDS, self._loop.add_reader, self._socket, self._accept)
