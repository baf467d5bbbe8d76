"""A server in a thread of the demo: it has its port before it has anything to serve there, and goes with the demo."""

import socket
import time
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from demo.service import HOST, SECONDS_TO_START, NotRunning


class Listener:
    """Not started yet, and ended by `close`."""

    def __init__(self) -> None:
        self._socket = socket.create_server((HOST, 0))
        self.port: int = self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    def start(self, app: Any, *, certificate: Path | None = None, lifespan: bool = False) -> None:
        """Serve an ASGI application, over TLS with a certificate, which is in a file with its key."""
        config = uvicorn.Config(
            app,
            ssl_certfile=certificate,
            lifespan="on" if lifespan else "off",
            ws="none",
            log_config=None,
            access_log=False,
        )
        self._server = uvicorn.Server(config)
        self._thread = Thread(target=self._server.run, args=([self._socket],), name="listener", daemon=True)
        self._thread.start()
        end = time.monotonic() + SECONDS_TO_START
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > end:
                raise NotRunning(f"nothing listens on port {self.port}")
            time.sleep(0.01)

    def close(self) -> None:
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        self._socket.close()
