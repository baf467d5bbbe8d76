"""Clients that mean harm, each in a process of its own: `python -m benchmarks.flooders ATTACK PORT SECONDS`.

They connect to 127.0.0.1 only, from other loopback addresses than the readers do, and end after their seconds.
"""

import resource
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress

LARGE, SMALL = "did:web:busy.example", "did:web:quiet.example"
# The addresses of a flood that is said to come from many.
ADDRESSES = 20


class Flood:
    """`at_once` connections at most; all of it is over at `end`."""

    def __init__(self, port: int, seconds: float) -> None:
        self._port = port
        self._end = time.monotonic() + seconds
        self._made = 0

    def connect(self, addresses: int = ADDRESSES, window: int = 0) -> socket.socket | None:
        """A connection that blocks for a moment at most; None when there is none to be had."""
        self._made += 1
        connection = socket.socket()
        try:
            if window:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
            connection.settimeout(0.5)
            connection.bind((f"127.0.0.{2 + self._made % addresses}", 0))
            connection.connect(("127.0.0.1", self._port))
            connection.settimeout(0.05)
        except OSError:
            connection.close()
            return None
        return connection

    def going_on(self, pause: float = 0) -> Iterator[None]:
        while time.monotonic() < self._end:
            yield
            time.sleep(pause)

    def crowd(self, size: int, first: bytes, then: bytes, pause: float, window: int = 0) -> None:
        """Keeps `size` connections: each says `first`, then `then` again and again. Of those that end, a twentieth of
        the crowd is made anew each time."""
        crowd: list[socket.socket] = []
        wanted = size
        for _ in self.going_on(pause):
            for connection in list(crowd):
                try:
                    if then:
                        connection.send(then)
                    elif connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b"":
                        raise ConnectionResetError
                except (BlockingIOError, TimeoutError):
                    continue
                except OSError:
                    connection.close()
                    crowd.remove(connection)
            for _ in range(min(wanted, size - len(crowd))):
                made = self.connect(window=window)
                if made is None or time.monotonic() >= self._end:
                    break
                with suppress(OSError):
                    made.send(first)
                crowd.append(made)
            wanted = size // 20


def endless_header(flood: Flood) -> None:
    part = b"a" * 65536
    for _ in flood.going_on():
        connection = flood.connect(1)
        if connection is None:
            continue
        with connection, suppress(OSError):
            connection.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
            for _ in flood.going_on():
                with suppress(TimeoutError):
                    connection.send(part)


def idle(flood: Flood) -> None:
    flood.crowd(2000, b"", b"", 0.2)


def slow_heads(flood: Flood) -> None:
    flood.crowd(1000, b"GET / HTTP/1.1\r\nHost: a\r\n", b"x", 0.5)


def slow_bodies(flood: Flood) -> None:
    head = b"POST /v1/reviews HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 200000\r\n\r\n{"
    flood.crowd(1000, head, b" ", 0.5)


def one_address(flood: Flood) -> None:
    """As many connections as it gets, and no request."""
    held: list[socket.socket] = []
    for _ in flood.going_on():
        connection = flood.connect(1)
        if connection is not None:
            held.append(connection)
        if len(held) > 1500:
            held.pop(0).close()


def never_reading(flood: Flood) -> None:
    request = f"GET /v1/hosts/{LARGE}/reputation?proof=full HTTP/1.1\r\nHost: a\r\n\r\n".encode()
    # More than the system keeps for a connection.
    flood.crowd(200, request * 8, b"", 0.2, window=4096)


ATTACKS: dict[str, Callable[[Flood], None]] = {
    "endless header": endless_header,
    "2,000 idle": idle,
    "slow heads": slow_heads,
    "slow bodies": slow_bodies,
    "one address": one_address,
    "never reading": never_reading,
}


def main(attack: str, port: str, seconds: str) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 10_000), hard))
    ATTACKS[attack](Flood(int(port), float(seconds)))


if __name__ == "__main__":
    main(*sys.argv[1:])
