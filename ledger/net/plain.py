"""HTTP to addresses that the operator wrote down: wherever they lead, but bounded in time and size, and nothing is
followed elsewhere. What strangers name goes through `fetch`."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from socket import SHUT_RDWR
from threading import Event, Timer
from typing import NamedTuple
from urllib.parse import urlsplit

from ledger.errors import Misconfigured, NotFetched


class Answer(NamedTuple):
    status: int
    media_type: str
    body: bytes


def check_address(url: str) -> str:
    """`url` without a slash at its end, if it is an address that paths can be put behind."""
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        named = False
    if not named or not url.isascii() or not url.isprintable() or parts.query or parts.fragment or " " in url:
        raise Misconfigured("settings_invalid", f"{url[:200]!r} is no http(s) address without query and user")
    return url.rstrip("/")


def ask(url: str, body: bytes | None = None, *, agent: str, seconds: float, most: int) -> Answer:
    """What is answered to a GET, or to a POST of `body`, with at most `most` bytes. Each address of a name has so many
    seconds to be connected, and then request and answer together; for the name itself the resolver has its own limits.
    """
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection, over = kind(parts.netloc, timeout=seconds), Event()
    headers = {"User-Agent": agent} | ({"Content-Type": "text/plain; charset=utf-8"} if body is not None else {})
    try:
        connection.connect()
        with _cut_off(connection, seconds, over):
            connection.request("GET" if body is None else "POST", parts.path or "/", body, headers)
            with connection.getresponse() as response:
                data = response.read(most + 1)
                if len(data) <= most and (over.is_set() or response.length):
                    raise IncompleteRead(data)
                answer = Answer(response.status, response.headers.get_content_type(), data)
    except ssl.SSLError as error:
        raise NotFetched("fetch_tls", f"{url} does not show who it is: {error}") from None
    except (OSError, HTTPException, UnicodeError) as error:
        if over.is_set() or isinstance(error, TimeoutError):
            raise NotFetched("fetch_timeout", f"{url} does not answer within {seconds:g} seconds") from None
        raise NotFetched("fetch_unreachable", f"{url} does not answer: {str(error) or repr(error)}") from None
    finally:
        connection.close()
    if len(data) > most:
        raise NotFetched("fetch_too_large", f"{url} sends more than {most} bytes")
    return answer


@contextmanager
def _cut_off(connection: HTTPConnection, seconds: float, over: Event) -> Iterator[None]:
    """Nothing comes by the connection after that time: who sends one byte after the other would never end."""
    used = connection.sock

    def cut() -> None:
        over.set()
        with suppress(OSError):
            used.shutdown(SHUT_RDWR)

    timer = Timer(seconds, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
