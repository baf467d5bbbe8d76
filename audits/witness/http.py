"""HTTP of the standard library, with limits: so many connections, so many seconds.

Every answer has a code, and is counted by it. Nobody's address is written down.
"""

import socket
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock
from typing import Any

MAX_CONNECTIONS = 64
# For the whole of a request, from the end of the last one.
SECONDS = 15.0
# For the first byte of it, while more than half of the places are taken.
CROWDED_SECONDS = 3.0
TEXT = "text/plain; charset=utf-8"

_BUSY = b"busy: too many ask at once; ask again in a moment\n"
_BUSY_HEAD = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: %b\r\nContent-Length: %d\r\n"
    b"Retry-After: 5\r\nConnection: close\r\n\r\n"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """`code` is for figures."""

    status: int
    code: str
    text: str
    media_type: str = TEXT
    headers: Mapping[str, str] = field(default_factory=dict)


# To a method, a path and a body.
Respond = Callable[[str, str, bytes], Answer]


def refusal(status: int, code: str, message: str, **headers: str) -> Answer:
    """In words, with the code before them."""
    return Answer(status, code, f"{code}: {message}\n", headers={k.replace("_", "-"): v for k, v in headers.items()})


class BoundedServer(ThreadingHTTPServer):
    """Listens as soon as it is made; `serve_forever` answers, until `shutdown` in another thread. Leaving it as a
    context waits for the requests under way. `handler` reads what comes on a connection, and has it answered by
    `respond`."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, host: str, port: int, respond: Respond, handler: type[BaseHTTPRequestHandler]) -> None:
        self.respond = respond
        self.seconds, self.crowded_seconds = SECONDS, CROWDED_SECONDS
        self._outcomes: Counter[str] = Counter()
        self._idle: set[socket.socket] = set()
        self._stopping = False
        self._lock = Lock()
        self._taken = 0
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)
        self.listens_on = f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}"

    def count(self, code: str) -> None:
        with self._lock:
            self._outcomes[code] += 1

    def outcomes(self) -> dict[str, int]:
        with self._lock:
            return dict(self._outcomes)

    def server_bind(self) -> None:
        """Without asking the network what this machine is called."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        if self._take_place():
            try:
                super().process_request(request, client_address)
                return
            except RuntimeError:
                # There is no thread to be had. Nobody may wait for one that never began.
                self._leave_place()
                vars(self)["_threads"].reap()
        self.count("busy")
        with suppress(OSError):
            request.setblocking(False)
            request.send(_BUSY_HEAD % (TEXT.encode(), len(_BUSY)) + _BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave_place()

    def _take_place(self) -> bool:
        with self._lock:
            free = self._taken < MAX_CONNECTIONS
            self._taken += free
            return free

    def _leave_place(self) -> None:
        with self._lock:
            self._taken -= 1

    def patience(self) -> float:
        """Seconds for which a connection may be silent: those who say nothing must not keep others out."""
        with self._lock:
            crowded = self._taken > MAX_CONNECTIONS // 2
        return min(self.crowded_seconds, self.seconds) if crowded else self.seconds

    def handle_error(self, *_: Any) -> None:
        """A connection that broke is nobody's fault; anything else is ours, and for the operator to read."""
        if not isinstance(sys.exception(), OSError):
            traceback.print_exc()

    def server_close(self) -> None:
        """Requests under way are finished; connections on which nothing has come end now."""
        with self._lock:
            self._stopping = True
            for connection in self._idle:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RD)
        super().server_close()

    @contextmanager
    def idle(self, connection: socket.socket) -> Iterator[bool]:
        """While nothing has come on a connection; whether it is worth waiting."""
        with self._lock:
            self._idle.add(connection)
            going_on = not self._stopping
        try:
            yield going_on
        finally:
            with self._lock:
                self._idle.discard(connection)
