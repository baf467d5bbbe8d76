"""`staylog serve` in a process of its own, and HTTP to it: a client that has nothing but the standard library."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

HOST = "127.0.0.1"
STAYLOG = str(Path(sys.executable).with_name("staylog"))
# What is set for another ledger must not reach this one.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("STAYLOG_")}
SECONDS_TO_START = 20
SECONDS_TO_STOP = 10
# One address may send ten statements at once, and then one every two seconds: who is told to wait so long waits.
SECONDS_TO_WAIT = 5

# Nobody stands between: a proxy for the world does not reach this machine's own address.
_http = build_opener(ProxyHandler({}))


class NotRunning(Exception):
    """The service did not start, or has stopped; the message ends with what it said last."""


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    data: bytes
    # Seconds.
    retry_after: int = 0

    @property
    def body(self) -> dict[str, Any]:
        return dict(json.loads(self.data))

    @property
    def outcome(self) -> tuple[int, str | None]:
        """The status and, of a problem, its code."""
        return self.status, self.body.get("code")


class Client:
    """Asks the service at an address of this machine."""

    def __init__(self, url: str) -> None:
        self.url = url

    def get(self, path: str) -> Reply:
        return self._ask(Request(self.url + path))

    def post(self, path: str, body: Mapping[str, Any]) -> Reply:
        headers = {"Content-Type": "application/json"}
        request = Request(self.url + path, json.dumps(body).encode(), headers)
        reply = self._ask(request)
        while reply.status == 429 and reply.retry_after <= SECONDS_TO_WAIT:
            time.sleep(reply.retry_after)
            reply = self._ask(request)
        return reply

    def fallen(self) -> NotRunning:
        return NotRunning(f"nobody answers at {self.url}")

    def _ask(self, request: Request) -> Reply:
        try:
            with _http.open(request, timeout=30) as response:
                return Reply(response.status, response.read())
        except HTTPError as problem:
            with problem:
                return Reply(problem.code, problem.read(), int(problem.headers.get("Retry-After", 0)))
        except OSError as error:
            raise self.fallen() from error


class Program(Client):
    """`staylog` with some command, which answers at `url`. Not started yet, and ended by `close`. `environment` is what
    it has of its own; `alive` answers once it has started."""

    def __init__(
        self,
        name: str,
        command: list[str],
        url: str,
        folder: Path,
        environment: Mapping[str, str] | None = None,
        alive: str = "/health",
    ) -> None:
        super().__init__(url)
        self.command = command
        self._name = name
        self._alive = alive
        self._environment = {**ENVIRONMENT, **(environment or {})}
        self._folder = folder
        self._output = folder / f"{name}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [STAYLOG, *self.command],
                cwd=self._folder,
                env=self._environment,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        end = time.monotonic() + SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                raise self.fallen()
            time.sleep(0.02)

    def wait(self) -> None:
        """Until it stops, which it does not do by itself."""
        if self._process is not None:
            self._process.wait()
        raise self.fallen()

    def fallen(self) -> NotRunning:
        said = self._output.read_text("utf-8", "replace") if self._output.exists() else ""
        return NotRunning("\n".join([f"the {self._name} does not run; it said last:", *said.splitlines()[-5:]]))

    def close(self) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(SECONDS_TO_STOP)
        finally:
            # Too slow, or somebody pressed Ctrl-C once more. One that has ended is not harmed.
            self._process.kill()
            self._process.wait()

    def _answers(self) -> bool:
        try:
            return self.get(self._alive).status == 200
        except NotRunning:
            return False


class Service(Program):
    """`staylog serve` for the ledger in a folder."""

    def __init__(self, folder: Path, port: int, environment: Mapping[str, str], data: str = "ledger") -> None:
        command = ["serve", "--data", data, "--port", str(port)]
        name = "service" if data == "ledger" else f"service of {data}"
        super().__init__(name, command, f"http://{HOST}:{port}", folder, environment)


def free_port() -> int:
    with socket.create_server((HOST, 0)) as free:
        return int(free.getsockname()[1])


def is_free(port: int) -> bool:
    try:
        with socket.create_server((HOST, port)):
            return True
    except OSError:
        return False
