"""Somebody who asks the hosts of a neighbourhood, in the event loops of Python and of the service."""

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

import pytest
import uvloop

from ledger.errors import NotAccepted, NotFetched, StaylogError
from ledger.net.fetch import Fetched, Fetcher
from ledger.net.profiles import Profile
from tests.network import Handler, Neighbourhood, Request, response
from tests.waiting import until

AGENT = "staylog/test (+https://ledger.example)"
URL = "https://idv.example/"
# Enough for everything that is to come; for what is not, as little as possible.
SMALL = Profile("small", 4096, 5)
BRIEF = Profile("brief", 4096, 0.3)
FOLLOWING = Profile("following", 4096, 5, redirects=3)

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "asyncio": asyncio.new_event_loop,
    "uvloop": uvloop.new_event_loop,
}
T = TypeVar("T")


@dataclass(frozen=True)
class Visitor:
    """Asks from an event loop that ends afterwards. Whatever it was answered, no connection to `port` stays open."""

    new_loop: Callable[[], asyncio.AbstractEventLoop]
    fetcher: Fetcher
    port: int

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        async def main() -> T:
            try:
                return await work
            finally:
                await eventually(lambda: connections(self.port) == 0, 1)

        with asyncio.Runner(loop_factory=self.new_loop) as runner:
            return runner.run(main())

    def get(self, url: str = URL, profile: Profile = SMALL, body: bytes | None = None) -> Fetched:
        return self.run(self.fetcher.fetch(url, profile, body))

    def refused(self, url: str = URL, profile: Profile = SMALL, body: bytes | None = None) -> StaylogError:
        with pytest.raises((NotFetched, NotAccepted)) as refusal:
            self.get(url, profile, body)
        # It goes into answers and logs.
        assert refusal.value.message.isprintable()
        return refusal.value

    def code(self, url: str = URL, profile: Profile = SMALL) -> str:
        return self.refused(url, profile).code


def connections(port: int, *, at_host: bool = False) -> int:
    """Of this process to a host at this port; or those that the host has, which is in this process, too."""
    count = 0
    for name in os.listdir("/dev/fd"):
        with suppress(OSError):
            if stat.S_ISSOCK(os.fstat(int(name)).st_mode):
                with socket.socket(fileno=os.dup(int(name))) as found:
                    if found.family in (socket.AF_INET, socket.AF_INET6):
                        here, there = found.getsockname(), found.getpeername()
                        count += (here if at_host else there)[1] == port
    return count


async def eventually(condition: Callable[[], bool], seconds: float = 5) -> None:
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture(params=LOOPS)
def visitor(request: pytest.FixtureRequest, neighbourhood: Neighbourhood) -> Iterator[Visitor]:
    yield Visitor(LOOPS[request.param], Fetcher(AGENT, neighbourhood.development), neighbourhood.port)
    # The hosts have seen that we went away.
    until(lambda: connections(neighbourhood.port, at_host=True) == 0)


def raw(*parts: bytes) -> Handler:
    """Answers with these bytes, one part after the other."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.001)

    return answer


def chunked(body: bytes, size: int = 1000) -> bytes:
    parts = [body[start : start + size] for start in range(0, len(body), size)]
    head = response(b"", content_length="", transfer_encoding="chunked")
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"


class Trap:
    """Listens, and counts who came."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        self._listener = socket.create_server((address, port))
        self.address, self.port = self._listener.getsockname()[:2]

    def __enter__(self) -> "Trap":
        return self

    def __exit__(self, *_error: object) -> None:
        self._listener.close()

    @property
    def connections(self) -> int:
        """Since it was last asked; the system has accepted them."""
        self._listener.setblocking(False)
        count = 0
        with suppress(BlockingIOError):
            while True:
                self._listener.accept()[0].close()
                count += 1
        return count
