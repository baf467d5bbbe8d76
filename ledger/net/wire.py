"""What the fetcher is made of, below HTTP: the thread it runs in, names, and sockets that bring only so much."""

import socket
from asyncio import AbstractEventLoop, SelectorEventLoop, get_running_loop, sleep
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from threading import Lock, Thread
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from ledger.net.profiles import Profile

PORT = 443


class CountedSocket(socket.socket):
    """Brings so much, and then breaks off."""

    left = 0

    def recv(self, *given: Any) -> bytes:
        data = super().recv(*given)
        self._count(len(data))
        return data

    def recv_into(self, *given: Any) -> int:
        count = super().recv_into(*given)
        self._count(count)
        return count

    def _count(self, received: int) -> None:
        self.left -= received
        if self.left < 0:
            raise ConnectionAbortedError("more came than was asked for")


class Resolver(AbstractResolver):
    """Names as the fetcher knows them."""

    def __init__(self, addresses: Callable[[str, int], Awaitable[list[tuple[str, int]]]]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(hostname=host, host=address, port=at, family=family, proto=socket.IPPROTO_TCP, flags=0)
            for address, at in await self._addresses(host, port)
        ]

    async def close(self) -> None:
        """There is nothing to let go of."""


async def hang_up(sockets: Sequence[socket.socket]) -> None:
    """End connections now: TLS would wait half a minute for a host that does not say goodbye."""
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
    # The loop closes them when it sees that, which takes a few rounds of it.
    for _ in range(10):
        if all(each.fileno() < 0 for each in sockets):
            return
        await sleep(0)


def net_loop() -> AbstractEventLoop:
    with _starting:
        return _started()


_starting = Lock()


@cache
def _started() -> AbstractEventLoop:
    # Not uvloop, which reads on while a host sends more than can be read, and does not see when we hang up.
    loop = SelectorEventLoop()
    Thread(target=loop.run_forever, name="net", daemon=True).start()
    return loop


# The resolver of the system cannot be interrupted, and takes long for names whose servers are silent: many may wait,
# and those of strangers do not hold up the others.
_strangers = ThreadPoolExecutor(64, thread_name_prefix="names")
_trusted = ThreadPoolExecutor(8, thread_name_prefix="issuers")


async def system_lookup(host: str, profile: Profile) -> list[str]:
    # With a dot at the end it is the whole name: the domains that the machine searches are its own.
    look = partial(socket.getaddrinfo, f"{host}.", PORT, type=socket.SOCK_STREAM)
    found = await get_running_loop().run_in_executor(_trusted if profile.trusted else _strangers, look)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))
