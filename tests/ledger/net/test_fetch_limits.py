"""How much may come from a host, and how long it may take."""

import asyncio
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event, Thread
from time import monotonic

import pytest

from ledger.errors import NotFetched
from ledger.net.development import Development
from ledger.net.fetch import Fetcher
from ledger.net.profiles import Profile
from tests.ledger.net.visiting import (
    AGENT,
    BRIEF,
    LOOPS,
    SMALL,
    URL,
    Visitor,
    chunked,
    raw,
)
from tests.network import Handler, Neighbourhood, Request, response

# How much may come


@pytest.mark.parametrize("way", ["content-length", "connection: close", "chunked", "chunked in one"])
def test_the_size_is_limited_to_the_byte(visitor: Visitor, neighbourhood: Neighbourhood, way: str) -> None:
    def answer(size: int) -> bytes:
        body = b'"' + b"a" * (size - 2) + b'"'
        return {
            "content-length": response(body),
            "connection: close": response(body, content_length=""),
            "chunked": chunked(body),
            "chunked in one": chunked(body, size),
        }[way]

    neighbourhood.handle(URL, raw(answer(SMALL.max_bytes)))
    assert len(visitor.get().json()) == SMALL.max_bytes - 2
    neighbourhood.handle(URL, raw(answer(SMALL.max_bytes + 1)))
    assert visitor.code() == "fetch_too_large"


def test_what_says_that_it_is_too_large_is_not_waited_for(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for length in (SMALL.max_bytes + 1, 2**31, 2**63 - 1):

        async def answer(_request: Request, writer: asyncio.StreamWriter, length: int = length) -> None:
            writer.write(response(b"", content_length=str(length)))
            await asyncio.sleep(60)

        neighbourhood.handle(URL, answer)
        began = monotonic()
        assert visitor.code() == "fetch_too_large"
        assert monotonic() - began < SMALL.seconds


@dataclass
class Stranger:
    """A host for one who asks, which does as it likes."""

    development: Development
    port: int
    # Bytes that were taken from it.
    taken: int = 0
    # Whether we went away.
    left: Event = field(default_factory=Event)


@contextmanager
def stranger(neighbourhood: Neighbourhood, start: bytes, again: bytes = b"") -> Iterator[Stranger]:
    """Says `start`, then `again` without end if there is that, and never goodbye in TLS."""
    listener = socket.create_server(("127.0.0.1", 0))
    address = listener.getsockname()
    made = Stranger(Development({"idv.example": address}, neighbourhood.development.ca), address[1])
    context = neighbourhood.authority.context("idv.example")

    def serve() -> None:
        with suppress(OSError), listener.accept()[0] as connection:
            with suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(65536)
                secured.sendall(start)
                # The system may stop taking without a word when we are gone.
                secured.settimeout(0.5 if again else None)
                while again:
                    secured.sendall(again)
                    made.taken += len(again)
                with socket.socket(fileno=secured.detach()) as bare:
                    while bare.recv(65536):
                        pass
            made.left.set()

    thread = Thread(target=serve, daemon=True)
    thread.start()
    with listener:
        yield made
    thread.join(5)


@contextmanager
def little_memory() -> Iterator[None]:
    """At both ends together, at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


ENDLESS = {
    "chunks": (response(b"", content_length="", transfer_encoding="chunked"), b"10000\r\n" + b"a" * 0x10000 + b"\r\n"),
    "one chunk": (response(b"", content_length="", transfer_encoding="chunked") + b"fffffffff\r\n", b"a" * 0x10000),
    "connection: close": (response(b"", content_length=""), b"a" * 0x10000),
    "one header": (b"HTTP/1.1 200 X\r\nx: ", b"a" * 0x10000),
    "many headers": (b"HTTP/1.1 200 X\r\n", b"x: y\r\n" * 0x1000),
    "the first line": (b"HTTP/1.1 200 ", b"X" * 0x10000),
    "no line at all": (b"", b"a" * 0x10000),
    "trailers": (chunked(b"{}")[:-2], b"x: y\r\n" * 0x1000),
    "an extension of a chunk": (chunked(b"")[:-5] + b"2;", b"a" * 0x10000),
    "small chunks": (chunked(b"")[:-5], b"1;aaaaaaaa\r\n \r\n" * 0x1000),
    "notices": (b"", b"HTTP/1.1 103 X\r\n\r\n" * 0x1000),
    "cookies": (b"HTTP/1.1 200 X\r\n", b"set-cookie: a=b\r\n" * 0x1000),
    "a redirect": (response(b"", 302, content_length="", location="/"), b"a" * 0x10000),
    "an error": (response(b"", 500, content_length=""), b"a" * 0x10000),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_what_never_ends_is_cut_off_and_fills_no_memory(
    visitor: Visitor, neighbourhood: Neighbourhood, kind: str
) -> None:
    """Long before the time is over; not more is taken than fits into the buffers on the way."""
    with stranger(neighbourhood, *ENDLESS[kind]) as host, little_memory():
        began = monotonic()
        code = visiting(visitor, host).code()
        assert monotonic() - began < SMALL.seconds
    assert code in ("fetch_too_large", "fetch_unreachable", "fetch_redirected", "fetch_status")
    assert host.taken < 32 * 2**20


def visiting(visitor: Visitor, host: Stranger) -> Visitor:
    return replace(visitor, fetcher=Fetcher(AGENT, host.development), port=host.port)


NOTICES = """
import socket, sys
from pathlib import Path
from tests.network import Authority

authority = Authority()
Path(sys.argv[1]).write_bytes(authority.pem)
with socket.create_server(("127.0.0.1", 0)) as listener:
    print(listener.getsockname()[1], flush=True)
    connection, _ = listener.accept()
    with authority.context("idv.example").wrap_socket(connection, server_side=True) as secured:
        while True:
            secured.sendall(b"HTTP/1.1 103 X\\r\\n\\r\\n" * 5000)
"""


@pytest.mark.parametrize("loop", LOOPS)
def test_a_flood_of_notices_is_cut_off_and_holds_up_nobody(loop: str, tmp_path: Path) -> None:
    """Answers of status 103 may come before the answer; all others who use the loop go on meanwhile. From a process of
    its own, which is as fast as it can be."""
    profile, pauses = Profile("second", 64 * 1024, 1), [0.0]

    async def watch() -> None:
        last = monotonic()
        while True:
            await asyncio.sleep(0.01)
            pauses.append(monotonic() - last)
            last = monotonic()

    async def ask(fetcher: Fetcher) -> str:
        watching = asyncio.ensure_future(watch())
        # It is made once for all.
        assert fetcher._tls
        began = monotonic()
        with pytest.raises(NotFetched) as refusal:
            await fetcher.fetch(URL, profile)
        assert monotonic() - began < 3 * profile.seconds
        watching.cancel()
        return refusal.value.code

    ca = tmp_path / "ca.pem"
    command = [sys.executable, "-c", NOTICES, str(ca)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as flood:
        assert flood.stdout
        try:
            address = ("127.0.0.1", int(flood.stdout.readline()))
            fetcher = Fetcher(AGENT, Development({"idv.example": address}, ca))
            with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
                assert runner.run(ask(fetcher)) in ("fetch_too_large", "fetch_timeout")
        finally:
            flood.kill()
    # On a machine that has other things to do as well; where it does hold up others, that is for seconds.
    assert max(pauses) < 2


# How long it may take


def drip(data: bytes) -> Handler:
    """A byte now and then, so that nothing ever stands still."""

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for byte in data:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.02)

    return answer


async def silent(_request: Request, _writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(drip(response(b" " * 1000 + b"{}")), id="the head"),
        pytest.param(drip(b"HTTP/1.1 100 X\r\n\r\n" * 100), id="notices"),
        pytest.param(raw(response(b"", content_length="1000"), *[b" "] * 400), id="the body"),
        pytest.param(raw(chunked(b"")[:-5], *[b"1\r\n \r\n"] * 400), id="chunks"),
        pytest.param(silent, id="nothing"),
    ],
)
def test_a_slow_answer_ends_with_the_time(visitor: Visitor, neighbourhood: Neighbourhood, handler: Handler) -> None:
    neighbourhood.handle(URL, handler)
    assert ends_in_time(visitor, replace(BRIEF, max_bytes=1_000_000)) == "fetch_timeout"


def test_somebody_who_says_nothing_at_all_ends_with_the_time(visitor: Visitor) -> None:
    """Not even hello in TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        deaf = Fetcher(AGENT, Development({"idv.example": listener.getsockname()}))
        assert ends_in_time(replace(visitor, fetcher=deaf)) == "fetch_timeout"


def test_a_name_server_that_says_nothing_ends_with_the_time(visitor: Visitor) -> None:
    async def lookup(_host: str) -> list[str]:
        await asyncio.sleep(60)
        return []

    assert ends_in_time(replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup))) == "fetch_timeout"


def test_all_redirects_together_have_the_time_of_one_question(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for number in range(3):
        url, location = f"https://idv.example/{number}", f"/{number + 1}"
        neighbourhood.put(url, b"", status=302, delay=BRIEF.seconds / 2.5, location=location)
    neighbourhood.put("https://idv.example/3", {}, delay=BRIEF.seconds / 2.5)
    assert ends_in_time(visitor, replace(BRIEF, redirects=3), "https://idv.example/0") == "fetch_timeout"


def ends_in_time(visitor: Visitor, profile: Profile = BRIEF, url: str = URL) -> str:
    began = monotonic()
    refusal = visitor.refused(url, profile)
    assert profile.seconds <= monotonic() - began < profile.seconds + 2
    assert "0.3 seconds" in refusal.message
    return refusal.code


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        pytest.param(response(b"{}", connection="keep-alive"), "fetched", id="good"),
        pytest.param(response(b"{}"), "fetched", id="good, and the last"),
        pytest.param(response(b"{}", 404), "fetch_status", id="status"),
        pytest.param(response(b"", content_length="5000"), "fetch_too_large", id="too large"),
        pytest.param(response(b"", 302, location="/"), "fetch_redirected", id="redirect"),
        pytest.param(b"nonsense\r\n\r\n", "fetch_unreachable", id="nonsense"),
        pytest.param(b"", "fetch_timeout", id="nothing"),
    ],
)
@pytest.mark.parametrize("loop", LOOPS)
def test_nobody_holds_a_connection_after_the_fetch(
    neighbourhood: Neighbourhood, loop: str, answer: bytes, outcome: str
) -> None:
    """TLS has a goodbye, and event loops wait half a minute for it: whoever does not say it would have our sockets,
    more of them than may ask one host at once."""

    async def ask(host: Stranger) -> tuple[str, bool]:
        try:
            # Only who waits for the end of the time waits briefly: a busy machine takes a while for all else.
            profile = BRIEF if outcome == "fetch_timeout" else replace(BRIEF, seconds=SMALL.seconds)
            await Fetcher(AGENT, host.development).fetch(URL, profile)
            code = "fetched"
        except NotFetched as refusal:
            code = refusal.code
        return code, await asyncio.to_thread(host.left.wait, 1)

    with stranger(neighbourhood, answer) as host, asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(ask(host)) == (outcome, True)
