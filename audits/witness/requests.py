"""What comes on a connection of a witness, one request after the other: read within its limits, answered, and sent.

A request has so many bytes, and a deadline for all of them.
"""

import io
import re
import socket
import time
import traceback
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any

from audits.witness.http import Answer, BoundedServer, refusal
from ledger.log.note import MAX_CHARACTERS

# A note of the longest kind, and a proof of 63 lines.
MAX_BYTES = MAX_CHARACTERS + 4096
# What is read and thrown away of a body that is too long, so that its sender gets to read the answer.
MAX_THROWN_AWAY = 1 << 20
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
