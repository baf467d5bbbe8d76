"""uvicorn around the application."""

import gc
import socket
from contextlib import suppress

import click
import uvicorn
from litestar import Litestar
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from api.problems import encode_problem

# Requests under way get this long to end when the service is asked to stop.
GRACE_SECONDS = 30
# Objects that may wait for the collector: more than a batch of 64 makes, some megabytes of what only it can free.
YOUNG_OBJECTS = 10_000


class _Server(uvicorn.Server):
    """Says where it listens once it does: with port 0 the system chooses."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in self.servers:
            for listener in server.sockets:
                host, port = listener.getsockname()[:2]
                click.echo(f"Staylog listens on http://{f'[{host}]' if ':' in host else host}:{port}")


class _Protocol(HttpToolsProtocol):
    """What is not HTTP never reaches the application; it is refused in the same form."""

    def send_400_response(self, msg: str) -> None:
        base_url = self.config.loaded_app.state.base_url
        body = encode_problem(base_url, "bad_request", msg)
        head = (
            "HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\ncache-control: no-store\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


def config(app: Litestar, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http=_Protocol,
        ws="none",
        lifespan="on",
        # A warning for every scanner that speaks no HTTP would bury what matters.
        log_level="error",
        # No client's address is ever written down.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
    )


def spare_the_collector() -> None:
    """What is loaded by now stays, and what a batch or an answer makes is soon gone without the collector: it need not
    look through either again and again."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def run(app: Litestar, host: str, port: int) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is queued."""
    spare_the_collector()
    # uvicorn repeats the signal to itself once it has stopped in order.
    with suppress(KeyboardInterrupt):
        _Server(config(app, host, port)).run()
