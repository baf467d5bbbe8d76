"""What comes on a connection of a witness, one request after the other: read within its limits, answered, and sent.

A request has so many bytes, in its head and in its body, and a deadline for all of them.
"""

import io
import re
import socket
import time
import traceback
from contextlib import suppress
from http.client import LineTooLong
from http.server import BaseHTTPRequestHandler
from typing import Any

from audits.witness.http import Answer, BoundedServer, refusal
from ledger.log.note import MAX_CHARACTERS

# A note of the longest kind, and a proof of 63 lines.
MAX_BYTES = MAX_CHARACTERS + 4096
# What is read and thrown away of a body that is too long, so that its sender gets to read the answer.
MAX_THROWN_AWAY = 1 << 20
# Of the request line, and of all header lines, of which the library takes 100.
MAX_LINE, MAX_HEAD = 8 * 1024, 16 * 1024
# After an answer that did not wait for what else is sent: it is read and thrown away, so that the answer arrives.
LINGER_SECONDS = 1.0
METHODS = "GET, POST"

_LENGTH = re.compile(r"[0-9]{1,15}")


class RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body in one packet.
    wbufsize = -1
    server: BoundedServer

    def setup(self) -> None:
        super().setup()
        self.rfile.close()
        self._bytes = _Deadline(self.connection)
        self._reader = _Reader(self._bytes)
        self.rfile = self._reader

    def handle_one_request(self) -> None:
        self.close_connection = True
        self.server.waits(self.connection)
        with self.server.idle(self.connection) as going_on:
            if not going_on or not self._comes():
                return
        self._bytes.until = time.monotonic() + self.server.seconds
        self._reader.left = MAX_LINE + MAX_HEAD
        super().handle_one_request()

    def parse_request(self) -> bool:
        if len(vars(self)["raw_requestline"]) > MAX_LINE:
            self.command = self.requestline = self.request_version = ""
            self.send_error(414)
            return False
        return super().parse_request()

    def log_error(self, *_: Any) -> None:
        """The library's word for a head that did not come in time; the connection ends without an answer."""
        self.server.count_refused("request_timeout")

    def _comes(self) -> bool:
        """Whether there is a request."""
        self._bytes.until = time.monotonic() + self.server.seconds
        try:
            return bool(self._reader.peek(1))
        except TimeoutError:
            self.server.count_refused("idle")
            return False

    def _respond(self) -> None:
        body = self._body()
        if isinstance(body, Answer):
            # Where the next request would begin is not known.
            self.close_connection = True
            self._send(body)
            self._linger()
            return
        self.server.works(self.connection)
        try:
            answer = self.server.respond(self.command, self.path.partition("?")[0], body)
        except Exception:
            traceback.print_exc()
            answer = refusal(500, "internal_error", "this is an error of the witness, and not yours")
        self.server.waits(self.connection)
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
            return refusal(413, "too_large", f"a request has at most {MAX_BYTES} bytes")
        try:
            body = self._reader.read(length)
        except TimeoutError:
            self.server.count_refused("request_timeout")
            why = f"a request must be here within {self.server.seconds:g} seconds: send it again"
            return refusal(408, "request_timeout", why)
        if len(body) < length:
            return refusal(400, "request_malformed", "the body is shorter than its Content-Length")
        return body

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
        """What the library refuses by itself: a method that is not above, a head that is too long, or no HTTP."""
        self.close_connection = True
        if code == 501:
            self._send(refusal(405, "method_not_allowed", f"use {METHODS}", Allow=METHODS))
        elif code == 414:
            self._refuse(code, "url_too_long", f"a request line has at most {MAX_LINE} bytes")
        elif code == 431:
            self._refuse(code, "head_too_large", f"a head has at most {MAX_HEAD} bytes and 100 lines")
        else:
            self._send(refusal(code, "request_malformed", message or "this is not HTTP as it is spoken here"))

    def _refuse(self, status: int, code: str, message: str) -> None:
        self.server.count_refused(code)
        self._send(refusal(status, code, message))
        self._linger()

    def _linger(self) -> None:
        self._bytes.until = time.monotonic() + LINGER_SECONDS
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)
            left = MAX_THROWN_AWAY
            while left > 0 and (part := self._reader.read1(min(left, MAX_BYTES))):
                left -= len(part)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (the library's name)
        pass

    def version_string(self) -> str:
        return "staylog-witness"


class _Reader(io.BufferedReader):
    """Of the head it reads `left` bytes and one more. `readline` raises LineTooLong when they are used up."""

    left = 0

    def readline(self, size: int | None = -1, /) -> bytes:
        if self.left < 0:
            raise LineTooLong("header line")
        line = super().readline(min(self.left + 1, size if size and size > 0 else self.left + 1))
        self.left -= len(line)
        return line


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
