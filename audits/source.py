"""Where a log is read from: a service, any web server that has a copy, or a folder. Nothing that comes is believed."""

import errno
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from itertools import islice
from pathlib import Path
from socket import SHUT_RDWR
from threading import Event, Timer
from typing import Protocol, TypeVar
from urllib.parse import unquote, urlsplit

from ledger.errors import Misconfigured, NotFetched, NotFound, Unavailable
from ledger.user_agent import USER_AGENT

# 256 entries of 64 KiB, and what a host's full answer may have.
MAX_BYTES = 24 << 20
# Seconds without a byte, and for all of an answer: who sends one byte after the other would never end.
TIMEOUT, DEADLINE = 30, 60
TRIES = 4
# As long as a service may ask us to wait; who asks for more is not reachable.
MAX_WAIT = 120
# Resources that are fetched ahead of the one that is worked on.
AHEAD = 8
CONNECTIONS = 4

_RETRY = (429, 502, 503, 504)
_SECONDS = re.compile(r"[0-9]{1,9}")
_PRINTABLE = re.compile(r"[!-~]*")
_PARTIAL = re.compile(r"\.p/[0-9]+$")
# Where no file is, or can be: the name of a host may be longer than that of a file.
_ABSENT = (errno.ENOENT, errno.EISDIR, errno.ENOTDIR, errno.ENAMETOOLONG)

Item = TypeVar("Item")
Result = TypeVar("Result")


class Source(Protocol):
    """`get` gives the bytes under a path such as `log/checkpoint`, or raises NotFound, NotFetched or Unavailable. It is
    `far` if it is worth fetching things ahead."""

    name: str
    far: bool

    def get(self, path: str) -> bytes: ...


def open_source(where: str, say: Callable[[str], None] = lambda _: None) -> Source:
    """A service or a copy by its address, with or without the `/log` that its log is named by; or a folder. `say` is
    told when it takes longer than usual."""
    if where.startswith(("http://", "https://")):
        return WebSource(where.rstrip("/").removesuffix("/log"), say)
    if not Path(where).is_dir():
        raise Misconfigured("settings_invalid", f"{where} is neither http(s):// nor a folder")
    return FolderSource(Path(where))


def get_tile(source: Source, path: str, unit: Callable[[bytes], bytes]) -> bytes:
    """A tile or bundle. A partial one may be gone once the full one is there: `unit` then cuts that down."""
    try:
        return source.get(path)
    except NotFound:
        if not _PARTIAL.search(path):
            raise
    return unit(source.get(_PARTIAL.sub("", path)))


def ahead(source: Source, get: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[tuple[Item, Result]]:
    """Each item with what `get` gives for it, in their order; from afar some are fetched while others are worked on."""
    if not source.far:
        yield from ((item, get(item)) for item in items)
        return
    rest = iter(items)
    with ThreadPoolExecutor(CONNECTIONS, thread_name_prefix="fetch") as pool:
        try:
            waiting = [(item, pool.submit(get, item)) for item in islice(rest, AHEAD)]
            while waiting:
                item, future = waiting.pop(0)
                result = future.result()
                waiting += [(more, pool.submit(get, more)) for more in islice(rest, 1)]
                yield item, result
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


class FolderSource:
    """A copy on this machine, laid out as a service serves it; what follows a question mark does not count there."""

    far = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder.resolve()
        # In full: by its name a source is known again.
        self.name = str(self._folder)

    def get(self, path: str) -> bytes:
        file = self._folder.joinpath(*(unquote(part) for part in path.partition("?")[0].split("/")))
        try:
            if not file.resolve().is_relative_to(self._folder) or file.stat().st_size > MAX_BYTES or file.is_fifo():
                raise NotFetched(
                    "fetch_too_large", f"{path} is outside of the folder or has more than {MAX_BYTES} bytes"
                )
            return file.read_bytes()
        except (OSError, RuntimeError, ValueError) as error:
            if isinstance(error, OSError) and error.errno in _ABSENT:
                raise NotFound("not_found", f"the copy in {self.name} has no {path}") from None
            raise Unavailable("ledger_unreachable", f"{path} in {self.name} cannot be read: {error}") from None


class WebSource:
    """A web server; threads may share it. Redirects are not followed: who serves a log serves it where it says."""

    far = True

    def __init__(self, base: str, say: Callable[[str], None] = lambda _: None, pause: float = 1.0) -> None:
        try:
            parts = urlsplit(base)
            host = (parts.hostname or "").encode("idna")
            named = host and parts.port != 0 and not (parts.query or parts.fragment or "@" in parts.netloc)
        except ValueError:
            named = False
        if not named or not _PRINTABLE.fullmatch(parts.path):
            raise Misconfigured("settings_invalid", f"{base} is not the address of a service")
        self.name = base
        self._parts = parts
        self._say = say
        self._pause = pause
        # Connections that are open and not in use.
        self._idle: list[HTTPConnection] = []

    def __del__(self) -> None:
        for connection in self.__dict__.get("_idle", ()):
            connection.close()

    def get(self, path: str) -> bytes:
        failures, waited = 0, 0.0
        while True:
            try:
                status, wait, data = self._ask(path)
            except (OSError, HTTPException) as error:
                trouble, wait = str(error) or repr(error), None
            else:
                if status == 200:
                    return data
                if status == 404:
                    raise NotFound("not_found", f"{self.name} has no {path}")
                if status not in _RETRY:
                    raise NotFetched("fetch_status", f"{self.name} answers {status} for {path}", status=status)
                trouble = f"it answers {status}"
            # Who says when to come back has not failed, unless it says at once for ever.
            failures += not wait
            seconds = wait if wait is not None else self._pause * 2 ** (failures - 1)
            waited += seconds
            if failures == TRIES or waited > MAX_WAIT:
                raise Unavailable("ledger_unreachable", f"{self.name} does not give {path}: {trouble}")
            self._say(f"waiting {seconds:.0f} s for {path}: {trouble}")
            time.sleep(seconds)

    def _ask(self, path: str) -> tuple[int, float | None, bytes]:
        while self._idle:
            # The other side may have closed meanwhile what was kept open.
            with suppress(ConnectionError, IndexError):
                return self._ask_by(self._idle.pop(), path)
        kind = HTTPSConnection if self._parts.scheme == "https" else HTTPConnection
        return self._ask_by(kind(self._parts.netloc, timeout=TIMEOUT), path)

    def _ask_by(self, connection: HTTPConnection, path: str) -> tuple[int, float | None, bytes]:
        headers = {"User-Agent": USER_AGENT}
        try:
            with _cut_off(connection) as is_cut_off:
                connection.request("GET", f"{self._parts.path}/{path}", headers=headers)
                with connection.getresponse() as response:
                    data = response.read(MAX_BYTES + 1)
                    if len(data) > MAX_BYTES:
                        raise NotFetched("fetch_too_large", f"{self.name} sends more than {MAX_BYTES} bytes for {path}")
                    # Otherwise what was broken off on its way would pass for what was served.
                    if response.length or is_cut_off():
                        raise IncompleteRead(data, response.length)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        wait = response.headers.get("Retry-After", "")
        return response.status, float(wait) if _SECONDS.fullmatch(wait) else None, data


@contextmanager
def _cut_off(connection: HTTPConnection) -> Iterator[Callable[[], bool]]:
    """Nothing comes by the connection after the deadline; and whether that has come to pass."""
    if connection.sock is None:
        connection.connect()
    passed, used = Event(), connection.sock

    def cut() -> None:
        passed.set()
        with suppress(OSError):
            used.shutdown(SHUT_RDWR)

    timer = Timer(DEADLINE, cut)
    timer.daemon = True
    timer.start()
    try:
        yield passed.is_set
    finally:
        timer.cancel()
