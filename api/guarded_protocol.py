"""uvicorn's HTTP protocol within bounds: bytes and lines of a head, times for head, body and reading the answer, and
how many connections there are.

uvicorn bounds none of these but the time of idle connections: a header without an end grows until memory is used up,
and keeps the event loop busy with copying it.
"""

import asyncio
from enum import Enum, auto
from typing import Any

from uvicorn._types import ASGI3Application
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from api.guard import GuardedConfig
from api.metrics import CONNECTIONS_REFUSED
from api.socket_refusals import (
    LONG_HEAD,
    LONG_URL,
    NOT_HTTP,
    OVERHEAD,
    PIPELINED,
    SLOW_BODY,
    SLOW_HEAD,
    Refusal,
    answer_of,
)

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
        self._found: Refusal | None = None
        self.url = b""
        # What the application answers: `cycle` is the newest request, which may wait behind it.
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if (full := self.guard.enter(self, self.client[0] if self.client else "", self.loop)) is not None:
            CONNECTIONS_REFUSED.labels(full).inc()
            self._refused = True
            self.transport.write(answer_of(self.config, "busy"))
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self.guard.leave(self)
        self._tell_application()
        super().connection_lost(exc)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

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
                self._refuse(LONG_URL if len(self.url) > self.limits.url_bytes else LONG_HEAD)
        elif self._phase is Phase.BODY:
            # Chunks of one byte, extensions of chunks, trailers: more of it than of content has no use.
            self._raw += size
            if self._raw - self._content > self.limits.head_bytes + self._content:
                self._refuse(OVERHEAD)
        elif self._phase is Phase.REST:
            self._raw += size
            if self._raw > self.limits.linger_bytes:
                self._abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._requests += 1
        self._head = 0
        self._enter(Phase.HEAD)

    def on_headers_complete(self) -> None:
        limits = self.limits
        if len(self.url) > limits.url_bytes:
            self._stop_parsing(LONG_URL)
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > limits.head_bytes or len(self.headers) > limits.header_lines:
            self._stop_parsing(LONG_HEAD)
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop_parsing(PIPELINED)
        self._raw = self._content = 0
        # It raises when the target cannot be read: then there is no request yet that could be answered.
        super().on_headers_complete()
        self._enter(Phase.BODY)
        # The lines of a trailer come here too. They are the client's own, and no header that a proxy has looked at.
        self.headers = []

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
        if self.transport.is_closing():
            # Requests behind this one have no answer, and the client may take its time to read.
            self.guard.bounds.wait(self)
        elif self._phase is Phase.BODY and self._is_answered:
            self._enter(Phase.REST)
        elif self._phase is Phase.ANSWER and self._is_answered:
            self._enter(Phase.REQUEST)
        elif self._phase in (Phase.HEAD, Phase.BODY):
            # The rest of the next request was not waited for until now.
            self._enter(self._phase)
            self.guard.bounds.wait(self)

    def pause_writing(self) -> None:
        """What is answered waits until the client reads."""
        super().pause_writing()
        self.guard.bounds.wait(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._phase is Phase.ANSWER and not self.transport.is_closing():
            self.guard.bounds.work(self)

    def send_400_response(self, msg: str) -> None:
        """Called when parsing fails: by what is not HTTP, or by one of our refusals."""
        refusal, self._found = self._found or NOT_HTTP, None
        self._refuse(refusal, msg if refusal is NOT_HTTP else "")

    def _stop_parsing(self, refusal: Refusal) -> None:
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
            if self.unread:
                # It is not idle as long as it reads.
                self._since = now
            elif waited > (limits.idle if self._requests else limits.first_byte):
                self.end("idle" if self._requests else "no_first_byte")
        elif self._phase is Phase.HEAD and self._is_answered:
            if waited > limits.head:
                self._refuse(SLOW_HEAD)
        elif self._phase is Phase.BODY and not self.flow.read_paused:
            if waited > limits.grace + self._content / limits.bytes_per_second:
                self._refuse(SLOW_BODY)
        elif self._phase is Phase.REST:
            if waited > limits.linger:
                self._abort()
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
        self._abort()

    def _abort(self) -> None:
        self._tell_application()
        self.transport.abort()

    def _tell_application(self) -> None:
        """Its client has gone: what it still sends is dropped. To write it would raise, as the transport is closed."""
        if self._running is not None:
            self._running.disconnected = True
            self._running.message_event.set()

    # Refusing

    def _refuse(self, refusal: Refusal, detail: str = "") -> None:
        self._refused = True
        CONNECTIONS_REFUSED.labels(refusal.reason).inc()
        if refusal.code is None or not self._can_answer():
            self._abort()
            return
        self._tell_application()
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
