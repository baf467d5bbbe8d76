"""Logs that are read from servers: those that fail, lie or never end."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from types import SimpleNamespace

import pytest

from audits import source as source_module
from audits.source import MAX_WAIT, TRIES, WebSource, open_source
from ledger.errors import Misconfigured, NotFetched, NotFound, StaylogError, Unavailable

# What is sent for the request of a number, as it is on the wire; the connection ends with what is not a whole answer.
Script = Callable[[int, str], bytes]


def answer(status: int, body: bytes = b"", **headers: str) -> bytes:
    given = {"Content-Length": str(len(body)), **{name.replace("_", "-"): value for name, value in headers.items()}}
    head = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*head, "", ""]).encode() + body


class Server:
    """Sends what a script says, byte for byte. `asked` are the paths, `connections` how many were made."""

    def __init__(self, script: Script, *, close: bool = False) -> None:
        self.asked: list[str] = []
        self.connections = 0
        self._script = script
        self._close = close
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with closing(connection), connection.makefile("rb") as incoming:
            while line := incoming.readline():
                while incoming.readline().strip():
                    pass
                self.asked.append(line.split()[1].decode())
                said = self._script(len(self.asked), self.asked[-1])
                try:
                    connection.sendall(said)
                except OSError:
                    return
                head, _, body = said.partition(b"\r\n\r\n")
                if self._close or f"Content-Length: {len(body)}".encode() not in head:
                    return

    def stop(self) -> None:
        # Closing alone does not wake who waits for a connection.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def serving(script: Script, *, close: bool = False) -> Iterator[Server]:
    server = Server(script, close=close)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """For how long a source would have waited; it does not."""
    seconds: list[float] = []
    monkeypatch.setattr(source_module, "time", SimpleNamespace(sleep=seconds.append))
    return seconds


def refusal(get: Callable[[], object]) -> StaylogError:
    with pytest.raises(StaylogError) as raised:
        get()
    return raised.value


class TestFailures:
    @pytest.mark.parametrize("status", [429, 502, 503, 504])
    def test_what_fails_for_a_moment_is_asked_again(self, status: int, slept: list[float]) -> None:
        said: list[str] = []
        with serving(lambda number, _: answer(200, b"here") if number == TRIES else answer(status)) as server:
            assert WebSource(server.url, said.append).get("log/checkpoint") == b"here"
        assert slept == [1, 2, 4]
        assert said[0] == f"waiting 1 s for log/checkpoint: it answers {status}"
        assert server.asked == ["/log/checkpoint"] * TRIES

    def test_but_not_for_ever(self, slept: list[float]) -> None:
        with serving(lambda _number, _path: answer(503)) as server:
            refused = refusal(lambda: WebSource(server.url).get("log/checkpoint"))
        assert isinstance(refused, Unavailable)
        assert "it answers 503" in refused.message
        assert len(server.asked) == TRIES

    def test_who_says_when_to_come_back_is_asked_then(self, slept: list[float]) -> None:
        """More often than one that only fails."""
        later = answer(429, Retry_After="3")
        with serving(lambda number, _: answer(200, b"here") if number > 30 else later) as server:
            assert WebSource(server.url).get("x") == b"here"
        assert slept == [3] * 30

    def test_really(self) -> None:
        with serving(lambda number, _: answer(200) if number > 1 else answer(503, Retry_After="1")) as server:
            began = time.monotonic()
            WebSource(server.url, pause=0).get("x")
        assert time.monotonic() - began >= 1

    @pytest.mark.parametrize(
        ("retry_after", "waited"),
        [("121", []), ("999999999", []), ("60", [60, 60]), ("0", [0] * (TRIES - 1))],
    )
    def test_nobody_makes_us_wait_for_ever(self, retry_after: str, waited: list[float], slept: list[float]) -> None:
        with serving(lambda _number, _path: answer(429, Retry_After=retry_after)) as server:
            assert isinstance(refusal(lambda: WebSource(server.url).get("x")), Unavailable)
        assert slept == waited
        assert sum(slept) <= MAX_WAIT

    @pytest.mark.parametrize("retry_after", ["Wed, 18 Nov 2026 07:28:00 GMT", "-1", "1e9", "", "nan", "١"])
    def test_what_is_no_number_of_seconds_says_nothing(self, retry_after: str, slept: list[float]) -> None:
        said = answer(503).replace(b"\r\n\r\n", f"\r\nRetry-After: {retry_after}\r\n\r\n".encode())
        with serving(lambda _number, _path: said) as server:
            assert isinstance(refusal(lambda: WebSource(server.url).get("x")), Unavailable)
        assert slept == [1, 2, 4]

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_redirects_are_not_followed(self, status: int) -> None:
        with serving(lambda _number, _path: answer(status, Location="/elsewhere")) as server:
            refused = refusal(lambda: WebSource(server.url).get("x"))
        assert isinstance(refused, NotFetched)
        assert refused.status == status
        assert server.asked == ["/x"]

    def test_other_answers_are_final(self) -> None:
        with serving(lambda _number, path: answer(int(path[1:]))) as server:
            source = WebSource(server.url)
            assert isinstance(refusal(lambda: source.get("404")), NotFound)
            for status in (204, 304, 400, 403, 413, 500):
                refused = refusal(partial(source.get, str(status)))
                assert isinstance(refused, NotFetched)
                assert refused.status == status
        assert len(server.asked) == 7

    @pytest.mark.parametrize(
        "garbage",
        [
            b"",
            b"\r\n\r\n",
            b"SSH-2.0-OpenSSH_9.9\r\n",
            b"HTTP/1.1 two hundred\r\n\r\n",
            b"HTTP/1.1 200 " + b"x" * 70_000,
        ],
    )
    def test_what_is_not_http_is_not_reachable(self, garbage: bytes, slept: list[float]) -> None:
        with serving(lambda _number, _path: garbage) as server:
            assert isinstance(refusal(lambda: WebSource(server.url).get("x")), Unavailable)

    def test_nobody_is_there(self, slept: list[float]) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        refused = refusal(lambda: WebSource(f"http://127.0.0.1:{port}").get("x"))
        assert "Connection refused" in refused.message
        assert len(slept) == TRIES - 1


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class TestBodies:
    @pytest.mark.parametrize("cut", range(1, 10))
    @pytest.mark.parametrize("whole", [answer(200, b"nine char"), CHUNKED + b"9\r\nnine char\r\n0"])
    def test_what_is_broken_off_on_its_way_does_not_pass_for_what_was_served(
        self, cut: int, whole: bytes, slept: list[float]
    ) -> None:
        """Half a tile would be a lie of the log."""
        with serving(lambda number, _: whole if number % 2 == 0 else whole[:-cut]) as server:
            assert WebSource(server.url).get("x") == b"nine char"
            assert WebSource(server.url).get("x") == b"nine char"
        with serving(lambda _number, _path: whole[:-cut]) as server:
            assert isinstance(refusal(lambda: WebSource(server.url).get("x")), Unavailable)

    @pytest.mark.parametrize(
        "said",
        [
            answer(200, b"x" * 1001),
            answer(200, b"x" * 1001).replace(b"1001", b"99999999999"),
            CHUNKED + (b"100\r\n" + b"x" * 256 + b"\r\n") * 4,
            b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 1001,
        ],
    )
    def test_what_is_too_large_is_not_read_to_its_end(self, said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(source_module, "MAX_BYTES", 1000)
        with serving(lambda _number, path: said if path == "/large" else answer(200, b"x" * 1000)) as server:
            source = WebSource(server.url)
            assert len(source.get("fits")) == 1000
            assert refusal(lambda: source.get("large")).code == "fetch_too_large"
            assert len(source.get("fits")) == 1000
        assert server.asked == ["/fits", "/large", "/fits"]

    def test_a_connection_serves_many_questions(self) -> None:
        with serving(lambda _number, _path: answer(200)) as server:
            source = WebSource(server.url)
            for number in range(10):
                source.get(str(number))
            assert server.connections == 1

    def test_one_that_was_closed_meanwhile_is_made_anew_at_once(self, slept: list[float]) -> None:
        with serving(lambda _number, _path: answer(200, b"here"), close=True) as server:
            source = WebSource(server.url)
            for number in range(5):
                assert source.get(str(number)) == b"here"
                time.sleep(0.01)
        assert slept == []
        assert server.connections == 5


@pytest.mark.parametrize(
    "where",
    [
        "http://",
        "https:///log",
        "http://[::1",
        "http://host:port",
        "http://127.0.0.1:99999",
        "http://127.0.0.1:0",
        "http://user:secret@ledger.example",
        "http://ledger.example/?q=1",
        "http://ledger.example/#top",
        "http://ledger.example/a b",
        "http://ledger.example/\r\nHost: evil",
        "http://ledger.example/é",
        f"http://{'a' * 64}.example",
        "http://..example",
        "ftp://ledger.example",
        "nowhere",
    ],
)
def test_what_is_no_address_is_refused(where: str) -> None:
    assert isinstance(refusal(lambda: open_source(where)), Misconfigured)


@pytest.mark.parametrize("where", ["http://ledger.example", "http://ledger.example/", "http://ledger.example/log"])
def test_a_log_may_be_named_by_its_origin(where: str) -> None:
    assert open_source(where).name == "http://ledger.example"
    assert open_source("https://ledger.example:8443/sub/log/").name == "https://ledger.example:8443/sub"


class TestDeadline:
    @pytest.mark.parametrize(
        "head",
        [b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"],
    )
    def test_who_sends_one_byte_after_the_other_comes_to_an_end(
        self, head: bytes, monkeypatch: pytest.MonkeyPatch, slept: list[float]
    ) -> None:
        """In the head, in a body of some length, or in one that ends with the connection: what was cut off is no body."""
        monkeypatch.setattr(source_module, "DEADLINE", 0.3)

        def drip(listener: socket.socket) -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                    threading.Thread(target=send, args=(connection,), daemon=True).start()
                except OSError:
                    return

        def send(connection: socket.socket) -> None:
            with closing(connection), suppress(OSError):
                connection.sendall(head)
                while True:
                    connection.sendall(b"x")
                    time.sleep(0.05)

        with closing(socket.create_server(("127.0.0.1", 0))) as listener:
            threading.Thread(target=drip, args=(listener,), daemon=True).start()
            began = time.monotonic()
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            assert isinstance(refusal(lambda: WebSource(url).get("log/checkpoint")), Unavailable)
            assert 0.3 * TRIES <= time.monotonic() - began < 10
            listener.shutdown(socket.SHUT_RDWR)
