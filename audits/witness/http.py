"""HTTP of the standard library within bounds: connections in all and by address, and seconds for each request.

Every answer has a code, and is counted by it; every connection that is refused or ended is counted by the reason. No
address is written down.
"""

import socket
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock
from typing import Any

from ledger.net.addresses import Network
from ledger.net.connection_bounds import ConnectionBounds

# In all, and of one IPv4 address or IPv6 /64; of a /48 four times as many.
MAX_CONNECTIONS, MAX_PER_ADDRESS = 128, 24
# Threads of connections that were given up may take a moment to end.
SPARE_THREADS = 32
# For the first byte of a request, and then for the whole of it.
SECONDS = 15.0
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
    `respond`. When there are too many connections, the one that has waited for its client longest is ended; when all
    are being answered, the new one is refused (`busy`). `proxies` have no bound of their own."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(
        self,
        host: str,
        port: int,
        respond: Respond,
        handler: type[BaseHTTPRequestHandler],
        *,
        connections: int = MAX_CONNECTIONS,
        per_address: int | None = MAX_PER_ADDRESS,
        proxies: Sequence[Network] = (),
    ) -> None:
        self.respond = respond
        self.seconds = SECONDS
        self._outcomes: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()
        self._idle: set[socket.socket] = set()
        self._stopping = False
        self._lock = Lock()
        self._bounds: ConnectionBounds[socket.socket] = ConnectionBounds(connections, per_address, proxies)
        self._threads_left = connections + SPARE_THREADS
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)
        self.listens_on = f"http://{f'[{host}]' if ':' in host else host}:{self.server_address[1]}"

    def count(self, code: str) -> None:
        with self._lock:
            self._outcomes[code] += 1

    def outcomes(self) -> dict[str, int]:
        with self._lock:
            return dict(self._outcomes)

    def count_refused(self, reason: str) -> None:
        with self._lock:
            self._refused[reason] += 1

    def refused(self) -> dict[str, int]:
        with self._lock:
            return dict(self._refused)

    def server_bind(self) -> None:
        """Without asking the network what this machine is called."""
        TCPServer.server_bind(self)

    def process_request(self, request: Any, client_address: Any) -> None:
        refusal = self._enter(request, client_address[0])
        if refusal is None:
            try:
                super().process_request(request, client_address)
                return
            except RuntimeError:
                # There is no thread to be had. No place may be kept for one that never began.
                refusal = "no_thread"
                self._leave(request)
                vars(self)["_threads"].reap()
        self.count("busy")
        self.count_refused(refusal)
        with suppress(OSError):
            request.setblocking(False)
            request.send(_BUSY_HEAD % (TEXT.encode(), len(_BUSY)) + _BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._leave(request)

    def _enter(self, connection: socket.socket, address: str) -> str | None:
        """Take a connection, and end another one for it if need be; or why it is refused."""
        with self._lock:
            if not self._threads_left:
                return "no_thread"
            refusal, evicted = self._bounds.enter(connection, address)
            if refusal is not None:
                return refusal
            self._threads_left -= 1
            if evicted is not None:
                self._refused["evicted"] += 1
                # Its thread finds that nothing more comes, nor can be sent, and closes it.
                with suppress(OSError):
                    evicted.shutdown(socket.SHUT_RDWR)
            return None

    def _leave(self, connection: socket.socket) -> None:
        with self._lock:
            self._bounds.leave(connection)
            self._threads_left += 1

    def waits(self, connection: socket.socket) -> None:
        """A connection waits for its client, and may be ended for another one."""
        with self._lock:
            self._bounds.wait(connection)

    def works(self, connection: socket.socket) -> None:
        """A connection has a request that is being answered."""
        with self._lock:
            self._bounds.work(connection)

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
