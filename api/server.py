"""uvicorn around the application."""

import asyncio
import gc
import math
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import click
import uvicorn
from litestar import Litestar
from uvicorn.config import STARTUP_FAILURE

from api.guard import Guard, GuardedConfig
from api.guarded_protocol import GuardedProtocol
from api.listener import Listener, bind
from api.socket_limits import LEAST_CONNECTIONS, RESERVED_FILES, SocketLimits
from api.socket_refusals import answer_of
from ledger.net.addresses import Network
from ledger.net.descriptors import connections_allowed

# Requests under way get this long to end when the service is asked to stop.
GRACE_SECONDS = 30
# Objects that may wait for the collector: more than a batch of 64 makes, some megabytes of what only it can free.
YOUNG_OBJECTS = 10_000


class Server(uvicorn.Server):
    """uvicorn behind our own listeners. Says where it listens once it does: with port 0 the system chooses."""

    config: GuardedConfig

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        # Without a socket uvicorn starts the application and does not listen.
        await super().startup(sockets=[])
        self._listeners: list[Listener] = []
        if self.should_exit:
            return
        try:
            listening = sockets or bind(self.config.host, self.config.port)
        except OSError as error:
            click.echo(f"cannot listen on {self.config.host}:{self.config.port}: {error.strerror or error}", err=True)
            await self.lifespan.shutdown()
            sys.exit(STARTUP_FAILURE)
        for each in listening:
            self._listeners.append(Listener(each, self.config.guard, self._protocol, self._busy))
            host, port = each.getsockname()[:2]
            click.echo(f"Staylog listens on http://{f'[{host}]' if ':' in host else host}:{port}")

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:  # noqa: ARG002 (uvicorn's)
        for listener in self._listeners:
            listener.close()
        self.config.guard.stop(asyncio.get_running_loop().time())
        await super().shutdown()

    def _protocol(self) -> GuardedProtocol:
        return GuardedProtocol(self.config, self.server_state, self.lifespan.state)

    def _busy(self) -> bytes:
        return answer_of(self.config, "busy")


def config(
    app: Litestar, host: str, port: int, limits: SocketLimits | None = None, proxies: Sequence[Network] = ()
) -> GuardedConfig:
    """`limits` are those of connections; `proxies` may have as many as there may be in all."""
    limits = limits or SocketLimits()
    made = GuardedConfig(
        app,
        host=host,
        port=port,
        loop="uvloop",
        http=GuardedProtocol,
        ws="none",
        lifespan="on",
        # A warning for every scanner that speaks no HTTP would bury what matters.
        log_level="error",
        # No client's address is ever written down.
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=GRACE_SECONDS,
        # The guard ends those that are idle, and counts them.
        timeout_keep_alive=math.ceil(limits.idle) + 10,
    )
    made.guard = Guard(limits, proxies)
    return made


def spare_the_collector() -> None:
    """What is loaded by now stays, and what a batch or an answer makes is soon gone without the collector: it need not
    look through either again and again."""
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS)


def run(
    app: Litestar, host: str, port: int, limits: SocketLimits | None = None, proxies: Sequence[Network] = ()
) -> None:
    """Serve until SIGINT or SIGTERM, then finish what is queued. Raises Misconfigured when the process may not open
    enough files."""
    limits = limits or SocketLimits()
    allowed = connections_allowed(limits.connections, reserved=RESERVED_FILES, least=LEAST_CONNECTIONS)
    limits = replace(limits, connections=allowed)
    spare_the_collector()
    # uvicorn repeats the signal to itself once it has stopped in order.
    with suppress(KeyboardInterrupt):
        Server(config(app, host, port, limits, proxies)).run()
