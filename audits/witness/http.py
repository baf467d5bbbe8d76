"""HTTP of the standard library, with limits: so many connections, so many bytes, so many seconds.

Every answer has a code, and is counted by it. Nobody's address is written down.
"""

import io
import re
import socket
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import TCPServer
from threading import Lock
from typing import Any

MAX_BYTES = 1 << 16
# What is read and thrown away of a body that is too long, so that its sender gets to read the answer.
MAX_THROWN_AWAY = 1 << 20
MAX_CONNECTIONS = 64
# For the whole of a request, from the end of the last one.
SECONDS = 15.0
# For the first byte of it, while more than half of the places are taken.
CROWDED_SECONDS = 3.0
TEXT = "text/plain; charset=utf-8"
METHODS = "GET, POST"

_LENGTH = re.compile(r"[0-9]{1,15}")
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
    context waits for the requests under way."""

    daemon_threads = False
    request_queue_size = 128

    def __init__(self, host: str, port: int, respond: Respond) -> None:
        self.respond = respond
        self.seconds, self.crowded_seconds = SECONDS, CROWDED_SECONDS
        self._outcomes: Counter[str] = Counter()
        self._idle: set[socket.socket] = set()
        self._stopping = False
        self._lock = Lock()
        self._taken = 0
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), _Handler)
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


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet.
    wbufsize = -1
    server: BoundedServer

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._bytes = _Deadline(self.connection)
        self._reader = io.BufferedReader(self._bytes)
        self.rfile = self._reader

    def handle_one_request(self) -> None:
        began = time.monotonic()
        self.close_connection = True
        with self.server.idle(self.connection) as going_on:
            if not going_on or not self._comes(began):
                return
        self._bytes.until = began + self.server.seconds
        super().handle_one_request()

    def _comes(self, began: float) -> bool:
        """Whether there is a request. It may become crowded while one waits for it."""
        while (left := began + self.server.patience() - time.monotonic()) > 0:
            self._bytes.until = time.monotonic() + min(left, self.server.crowded_seconds / 4)
            with suppress(TimeoutError):
                return bool(self._reader.peek(1))
        return False

    def _respond(self) -> None:
        body = self._body()
        if isinstance(body, Answer):
            # Nobody knows where the next request would begin.
            self.close_connection = True
            self._send(body)
            return
        try:
            answer = self.server.respond(self.command, self.path.partition("?")[0], body)
        except Exception:
            traceback.print_exc()
            answer = refusal(500, "internal_error", "this is an error of the witness, and not yours")
        self._send(answer)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = _respond  # noqa: N815

    def _body(self) -> bytes | Answer:
        """All that was sent, whatever it is for; or why it cannot be had."""
        lengths = self.headers.get_all("Content-Length", [])
        if self.headers.get("Transfer-Encoding") or (not lengths and self.command == "POST"):
            return refusal(411, "length_required", "send the body with a Content-Length")
        if not lengths:
            return b""
        if len(lengths) > 1 or not _LENGTH.fullmatch(lengths[0]):
            return refusal(400, "request_malformed", "one Content-Length expected, a decimal number")
        length = int(lengths[0])
        if length > MAX_BYTES:
            self._throw_away(min(length, MAX_THROWN_AWAY))
            return refusal(413, "too_large", f"a request has at most {MAX_BYTES} bytes")
        try:
            body = self._reader.read(length)
        except TimeoutError:
            why = f"a request must be here within {self.server.seconds:g} seconds: send it again"
            return refusal(408, "request_timeout", why)
        if len(body) < length:
            return refusal(400, "request_malformed", "the body is shorter than its Content-Length")
        return body

    def _throw_away(self, length: int) -> None:
        with suppress(OSError):
            while length > 0 and (part := self._reader.read1(min(length, MAX_BYTES))):
                length -= len(part)

    def _send(self, answer: Answer) -> None:
        self.server.count(answer.code)
        body = answer.text.encode()
        self.connection.settimeout(self.server.seconds)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.wfile.flush()

    def handle_expect_100(self) -> bool:
        going_on = super().handle_expect_100()
        self.wfile.flush()
        return going_on

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """What the library refuses by itself: a method that is not above, or what is not HTTP."""
        self.close_connection = True
        if code == 501:
            self._send(refusal(405, "method_not_allowed", f"use {METHODS}", Allow=METHODS))
        else:
            self._send(refusal(code, "request_malformed", message or "this is not HTTP as it is spoken here"))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        pass

    def version_string(self) -> str:
        return "staylog-witness"


class _Deadline(io.RawIOBase):
    """Reads from a connection until a moment, however the bytes trickle in."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.until = 0.0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)
