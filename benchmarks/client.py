"""The other end of `benchmarks.server`: the process, and a client that costs less than what it measures.

A few connections that are kept alive, one request at a time on each, on blocking sockets: no event loop, no parsing
beyond the length of the body.
"""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from typing import IO, NamedTuple, cast

from benchmarks.measure import require

CONNECTIONS = 4

_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n", re.IGNORECASE)
_ETAG = re.compile(rb"\r\netag: ([^\r]+)\r\n", re.IGNORECASE)


class Response(NamedTuple):
    head: bytes
    body: bytes

    @property
    def status(self) -> int:
        return int(self.head[9:12])

    @property
    def etag(self) -> bytes:
        found = _ETAG.search(self.head)
        require(found is not None, "an ETag")
        return found[1] if found else b""


class ServerProcess:
    """A running server; `cpu` is what it has used so far, all threads together."""

    def __init__(self, ask: IO[bytes], told: IO[bytes], connections: list[socket.socket]) -> None:
        self._ask = ask
        self._told = told
        self._connections = connections

    def cpu(self) -> float:
        self._ask.write(b"\n")
        self._ask.flush()
        return float(self._told.readline())

    def ask(self, requests: Sequence[bytes], status: int = 200, at_once: int = CONNECTIONS) -> list[Response]:
        """Each connection has one request under way; the next one goes out when its response is in."""
        responses: list[Response] = []
        waiting: list[socket.socket] = []
        for request, connection in zip(requests, cycle(self._connections[:at_once]), strict=False):
            if len(waiting) == at_once:
                responses.append(_receive(waiting.pop(0)))
            connection.sendall(request)
            waiting.append(connection)
        responses += map(_receive, waiting)
        require(all(response.status == status for response in responses), f"responses with status {status}")
        return responses


def get_request(target: str, *headers: bytes) -> bytes:
    return b"\r\n".join([f"GET {target} HTTP/1.1".encode(), b"host: localhost", *headers, b"", b""])


def post_request(target: str, body: bytes, *headers: bytes) -> bytes:
    length = b"content-length: %d" % len(body)
    head = [f"POST {target} HTTP/1.1".encode(), b"host: localhost", b"content-type: application/json", length]
    return b"\r\n".join([*head, *headers, b"", body])


@contextmanager
def server_process(*arguments: str, connections: int = CONNECTIONS) -> Iterator[ServerProcess]:
    """`benchmarks.server` in a process of its own, which ends with this block, or with this process."""
    command = [sys.executable, "-m", "benchmarks.server", *arguments]
    with ExitStack() as stack:
        root, pipe = Path(__file__).parent.parent, subprocess.PIPE
        process = stack.enter_context(subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe))
        ask, told = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        stack.callback(ask.close)
        port = told.readline().rpartition(b":")[2]
        require(port.strip().isdigit(), "a server that starts")
        address = "127.0.0.1", int(port)
        made = [stack.enter_context(socket.create_connection(address)) for _ in range(connections)]
        for connection in made:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield ServerProcess(ask, told, made)


def _receive(connection: socket.socket) -> Response:
    data = connection.recv(1 << 18)
    while (end := data.find(b"\r\n\r\n")) < 0:
        data += _more(connection)
    head = data[: end + 2]
    parts, length = [data[end + 4 :]], _LENGTH.search(head)
    missing = (int(length[1]) if length else 0) - len(parts[0])
    while missing > 0:
        parts.append(_more(connection))
        missing -= len(parts[-1])
    return Response(head, b"".join(parts))


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(1 << 18)
    require(bool(data), "a server that answers")
    return data
