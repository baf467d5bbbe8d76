"""uvicorn's HTTP protocol within bounds: bytes and lines of a head, times for head, body and reading the answer, and
how many connections there are.

uvicorn bounds none of these but the time of idle connections: a header without an end grows until memory is used up,
and keeps the event loop busy with copying it. All connections are looked at together, twice a second: a timer for each
would cost every request.
"""

import asyncio
from collections.abc import Sequence
from enum import Enum, auto
from http import HTTPStatus
from typing import Any, NamedTuple

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.codes import CODES
from api.metrics import CONNECTIONS, CONNECTIONS_REFUSED
from api.problems import encode_problem
from api.socket_limits import SocketLimits
from ledger.net.addresses import Network
from ledger.net.connection_bounds import ConnectionBounds, Full

# Requests sent before the first of them is answered. Browsers and clients send none.
MOST_PIPELINED = 8
# Bytes of a body at once by which it can be told from one that trickles.
PROGRESS = 1024


class Phase(Enum):
    """What a connection waits for."""

    REQUEST = auto()
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    # The rest of a body whose request is answered, or of what was refused: it is read and dropped for a moment.
    REST = auto()


class Guard:
    """All connections of a server, and their bounds. It looks at them from the first one on, until there is none. Used
    by the event loop's thread alone."""

    def __init__(self, limits: SocketLimits, proxies: Sequence[Network] = ()) -> None:
        self.limits = limits
        self.bounds: ConnectionBounds[GuardedProtocol] = ConnectionBounds(
            limits.connections, limits.per_address, proxies
        )
        self._open: set[GuardedProtocol] = set()
        self._timer: asyncio.TimerHandle | None = None

    def enter(self, connection: "GuardedProtocol", address: str) -> Full | None:
        """Take a connection, in the place of another one if need be; or say why not."""
        refusal, evicted = self.bounds.enter(connection, address)
        if evicted is not None:
            evicted.end("evicted")
        self._open.add(connection)
        CONNECTIONS.set(len(self._open))
        if self._timer is None:
            self._timer = connection.loop.call_later(self.limits.sweep, self._sweep, connection.loop)
        return refusal

    def leave(self, connection: "GuardedProtocol") -> None:
        self.bounds.leave(connection)
        self._open.discard(connection)
        CONNECTIONS.set(len(self._open))

    def _sweep(self, loop: asyncio.AbstractEventLoop) -> None:
        # Before anything that could fail.
        self._timer = loop.call_later(self.limits.sweep, self._sweep, loop) if self._open else None
        now, unread = loop.time(), 0
        for connection in list(self._open):
            connection.check(now)
            unread += connection.unread
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


class _Refusal(NamedTuple):
    """`code` is answered, if it is one; `reason` is what is counted."""

    code: str | None
    reason: str


_NOT_HTTP = _Refusal("bad_request", "not_http")
_HEAD = _Refusal("head_too_large", "head_too_large")
_URL = _Refusal("url_too_long", "url_too_long")
_SLOW_HEAD = _Refusal("request_timeout", "head_too_slow")
_SLOW_BODY = _Refusal("request_timeout", "body_too_slow")
_OVERHEAD = _Refusal("bad_request", "body_overhead")
_PIPELINED = _Refusal(None, "too_many_pipelined")


class _StopParsing(Exception):
    """The parser ends here, and `send_400_response` is called."""


class GuardedProtocol(HttpToolsProtocol):
    """A connection. A request that passes a bound is answered with a problem and its code where an answer can still be
    told apart from the one before, and the connection ends."""

    config: GuardedConfig

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.guard = self.config.guard
        self.limits = self.guard.limits
        # What is not sent yet of the answer, as far as the last look shows.
        self.unread = 0
        self._phase, self._since = Phase.REQUEST, self.loop.time()
        self._requests = 0
        # Since the head began, or of the body in all its parts and in its content alone.
        self._head, self._raw, self._content = 0, 0, 0
        self._read_by = 0.0
        self._refused = False
        self._found: _Refusal | None = None
        self.url = b""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (full := self.guard.enter(self, self.client[0] if self.client else "")) is not None:
            CONNECTIONS_REFUSED.labels(full).inc()
            self._refused = True
            self.transport.write(answer_of(self.config, "busy"))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.leave(self)
        super().connection_lost(exc)

    # What comes

    def data_received(self, data: bytes) -> None:
        """In pieces no longer than a head may be, so that none is parsed far beyond its bound."""
        size = self.limits.head_bytes
        if len(data) <= size:
            self._feed(data)
            return
        for start in range(0, len(data), size):
            self._feed(data[start : start + size])

    def _feed(self, piece: bytes) -> None:
        before = self._phase
        if not self._refused and self.parser is not None and not self.transport.is_closing():
            super().data_received(piece)
        if before is self._phase:
            self._count(len(piece))

    def _count(self, size: int) -> None:
        """Bytes that did not bring the connection any further."""
        if self._phase in (Phase.REQUEST, Phase.HEAD):
            # Before a request there may be empty lines.
            self._head += size
            if self._head > self.limits.head_bytes:
                self._refuse(_URL if len(self.url) > self.limits.url_bytes else _HEAD)
        elif self._phase is Phase.BODY:
            # Chunks of one byte, extensions of chunks, trailers: more of it than of content has no use.
            self._raw += size
            if self._raw - self._content > self.limits.head_bytes + self._content:
                self._refuse(_OVERHEAD)
        elif self._phase is Phase.REST:
            self._raw += size
            if self._raw > self.limits.linger_bytes:
                self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._requests += 1
        self._head = 0
        self._enter(Phase.HEAD)

    def on_headers_complete(self) -> None:
        limits = self.limits
        if len(self.url) > limits.url_bytes:
            self._stop_parsing(_URL)
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > limits.head_bytes or len(self.headers) > limits.header_lines:
            self._stop_parsing(_HEAD)
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop_parsing(_PIPELINED)
        self._raw = self._content = 0
        self._enter(Phase.BODY)
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._content += len(body)
        if len(body) >= PROGRESS and not self.pipeline:
            # What comes well is given up last.
            self.guard.bounds.wait(self)
        super().on_body(body)

    def on_message_complete(self) -> None:
        super().on_message_complete()
        if self._is_answered:
            self._enter(Phase.REQUEST)
        else:
            self._enter(Phase.ANSWER)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._phase is Phase.BODY and self._is_answered:
            self._enter(Phase.REST)
        elif self._phase is Phase.ANSWER and self._is_answered:
            self._enter(Phase.REQUEST)
        elif self._phase in (Phase.HEAD, Phase.BODY):
            # The rest of the next request was not waited for until now.
            self._enter(self._phase)
            self.guard.bounds.wait(self)

    def send_400_response(self, msg: str) -> None:
        """Called when parsing fails: by what is not HTTP, or by one of our refusals."""
        refusal, self._found = self._found or _NOT_HTTP, None
        self._refuse(refusal, msg if refusal is _NOT_HTTP else "")

    def _stop_parsing(self, refusal: _Refusal) -> None:
        self._found = refusal
        raise _StopParsing

    # Bounds of time

    def check(self, now: float) -> None:
        """Twice a second: ends the connection when its time is over."""
        self._check_reading(now)
        if self.transport.is_closing():
            return
        limits, waited = self.limits, now - self._since
        if self._phase is Phase.REQUEST:
            if waited > (limits.idle if self._requests else limits.first_byte):
                self.end("idle" if self._requests else "no_first_byte")
        elif self._phase is Phase.HEAD and self._is_answered:
            if waited > limits.head:
                self._refuse(_SLOW_HEAD)
        elif self._phase is Phase.BODY and not self.flow.read_paused:
            if waited > limits.grace + self._content / limits.bytes_per_second:
                self._refuse(_SLOW_BODY)
        elif self._phase is Phase.REST:
            if waited > limits.linger:
                self.transport.abort()
        else:
            # It is ours to go on.
            self._since += limits.sweep

    def _check_reading(self, now: float) -> None:
        """An answer that is not read at a pace ends the connection; also one that is closing, which would wait for
        ever to send what it has."""
        unread = self.transport.get_write_buffer_size()
        if unread > self.unread:
            start = self._read_by if self.unread else now + self.limits.grace
            self._read_by = start + (unread - self.unread) / self.limits.bytes_per_second
        self.unread = unread
        if unread and now > self._read_by:
            self.end("answer_not_read")

    def end(self, reason: str) -> None:
        """Without an answer."""
        CONNECTIONS_REFUSED.labels(reason).inc()
        self.transport.abort()

    # Refusing

    def _refuse(self, refusal: _Refusal, detail: str = "") -> None:
        self._refused = True
        CONNECTIONS_REFUSED.labels(refusal.reason).inc()
        if refusal.code is None or not self._can_answer():
            self.transport.abort()
            return
        if self.cycle is not None:
            # The application is told that its client has gone.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.transport.write(answer_of(self.config, refusal.code, detail))
        self.transport.write_eof()
        self.flow.resume_reading()
        self._enter(Phase.REST)

    def _can_answer(self) -> bool:
        """Whether the client would take an answer for that of the request which is refused."""
        if self._is_answered:
            return True
        return self._phase is Phase.BODY and not self.pipeline and not self.cycle.response_started

    @property
    def _is_answered(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _enter(self, phase: Phase) -> None:
        self._phase, self._since = phase, self.loop.time()
        if phase in (Phase.REQUEST, Phase.REST):
            self._head = self._raw = 0
            self.guard.bounds.wait(self)
        elif phase is Phase.ANSWER:
            self.guard.bounds.work(self)
        elif phase is Phase.HEAD and self._is_answered:
            self.guard.bounds.wait(self)


def answer_of(config: uvicorn.Config, code: str, detail: str = "") -> bytes:
    """A whole answer that refuses, after which the connection ends."""
    status, _, explanation = CODES[code]
    body = encode_problem(config.loaded_app.state.base_url, code, detail or explanation)
    retry = "retry-after: 5\r\n" if status == HTTPStatus.SERVICE_UNAVAILABLE else ""
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/problem+json\r\n"
        f"cache-control: no-store\r\naccess-control-allow-origin: *\r\n{retry}"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
