"""A server in a process of its own: `python -m benchmarks.server ours DATA`, `... plain DATA` or
`... bare WITHOUT_PROOF FULL_PROOF`.

All but `plain` run under uvicorn as `staylog serve` sets it up. The process says where it listens, then answers each
line on stdin with the CPU seconds it has used so far, and ends with its stdin.
"""

import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import uvicorn
from litestar import Litestar, MediaType, get

from api.app import create_app
from api.listener import BACKLOG
from api.server import Server, config, spare_the_collector
from api.socket_limits import LEAST_CONNECTIONS, RESERVED_FILES, SocketLimits
from ledger.folder import open_ledger
from ledger.net.addresses import parse_proxies
from ledger.net.descriptors import connections_allowed
from ledger.settings import Settings


def ours(data: str) -> Litestar:
    """With its limits: the client gives each request an address of its own."""
    return create_app(open_ledger(Settings.of(Path(data))), proxies=parse_proxies("127.0.0.1"))


def bare(without_proof: str, full_proof: str) -> Litestar:
    """The peer: as little as a Litestar handler can do, returning the bytes of one of our answers of each kind."""
    answers = {"none": Path(without_proof).read_bytes(), "full": Path(full_proof).read_bytes()}

    @get("/none", media_type=MediaType.JSON)
    async def without() -> bytes:
        return answers["none"]

    @get("/full", media_type=MediaType.JSON)
    async def full() -> bytes:
        return answers["full"]

    return Litestar([without, full], openapi_config=None, logging_config=None)


def main(side: str, *arguments: str) -> None:
    sides: dict[str, Callable[..., Litestar]] = {"ours": ours, "plain": ours, "bare": bare}
    app = sides[side](*arguments)
    spare_the_collector()
    with socket.create_server(("127.0.0.1", 0), backlog=BACKLOG) as listener:
        host, port = listener.getsockname()
        server = _plain(app, port) if side == "plain" else _guarded(app, host, port)
        Thread(target=_report, args=(server,), daemon=True).start()
        server.run(sockets=[listener])


def _guarded(app: Litestar, host: str, port: int) -> Server:
    """As `staylog serve` does it."""
    wanted = SocketLimits().connections
    allowed = connections_allowed(wanted, reserved=RESERVED_FILES, least=LEAST_CONNECTIONS)
    return Server(config(app, host, port, SocketLimits(connections=allowed), parse_proxies("127.0.0.1")))


def _plain(app: Litestar, port: int) -> uvicorn.Server:
    """uvicorn without our bounds, for `benchmarks.floods`."""
    print(f"uvicorn listens on http://127.0.0.1:{port}", flush=True)
    return uvicorn.Server(uvicorn.Config(app, loop="uvloop", ws="none", log_level="error", access_log=False))


def _report(server: uvicorn.Server) -> None:
    for _ in sys.stdin:
        print(time.process_time(), flush=True)
    server.should_exit = True


if __name__ == "__main__":
    main(*sys.argv[1:])
