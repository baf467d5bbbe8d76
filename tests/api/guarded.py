"""A server within bounds that are small, around an application that does little."""

import asyncio
import json
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

from litestar import Litestar, Request, get, post
from litestar.datastructures import State

from api.problems import EXCEPTION_HANDLERS
from api.server import Server, config
from api.socket_limits import SocketLimits
from ledger.net.addresses import Network
from tests.waiting import until

BASE = "https://ledger.example"
HELLO = b"GET /hello HTTP/1.1\r\nHost: a.example\r\n\r\n"
LARGE = 16 * 1024 * 1024


class Guarded:
    """A running server: `go_on` lets the requests to /wait end."""

    def __init__(self, server: Server, port: int, go_on: Event) -> None:
        self.server, self.port, self.go_on = server, port, go_on
        self.guard = server.config.guard

    def connect(self, source: str = "127.0.0.1", sent: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), 10, (source, 0))
        connection.sendall(sent)
        return connection

    def ask(self, sent: bytes = HELLO) -> tuple[int, str]:
        """The status and the code of the answer on a new connection."""
        with self.connect(sent=sent) as connection:
            return answer(connection)

    @property
    def open(self) -> int:
        return len(self.guard._open)


def answer(connection: socket.socket) -> tuple[int, str]:
    """Of one answer; 0 when the connection ends without one."""
    data = b""
    while True:
        head, end, body = data.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: (\d+)", head) if end else None
        if length and len(body) >= int(length[1]):
            return int(head[9:12]), json.loads(body)["code"] if body.startswith(b"{") else body.decode()[:40]
        try:
            part = connection.recv(65536)
        except ConnectionError:
            part = b""
        if not part:
            return 0, ""
        data += part


def ends(connection: socket.socket) -> bool:
    """Whether the server ends the connection; what was answered before is thrown away."""
    with connection:
        try:
            while connection.recv(1 << 20):
                pass
        except ConnectionError:
            pass
        except TimeoutError:
            return False
    return True


@contextmanager
def guarded(*, proxies: list[Network] | None = None, **limits: Any) -> Iterator[Guarded]:
    go_on = Event()

    @get("/hello")
    async def hello() -> str:
        return "hello"

    @get("/large")
    async def large() -> bytes:
        return bytes(LARGE)

    @get("/wait")
    async def wait() -> str:
        while not go_on.is_set():
            await asyncio.sleep(0.01)
        return "waited"

    @post("/read", request_max_body_size=5 * 1024 * 1024)
    async def read(request: Request[Any, Any, Any]) -> str:
        return str(len(await request.body()))

    @post("/headers")
    async def headers(request: Request[Any, Any, Any]) -> str:
        await request.body()
        return " ".join(sorted(request.headers.keys()))

    @post("/ignore")
    async def ignore() -> str:
        return "ignored"

    app = Litestar(
        [hello, large, wait, read, headers, ignore],
        state=State({"base_url": BASE}),
        exception_handlers=EXCEPTION_HANDLERS,
        openapi_config=None,
        logging_config=None,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    server = Server(config(app, "127.0.0.1", 0, SocketLimits(**limits), proxies or []))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started, 20)
    try:
        yield Guarded(server, listener.getsockname()[1], go_on)
    finally:
        go_on.set()
        server.should_exit = True
        thread.join()
