"""Bounds of connections, over real sockets. Times are short; what is shown is that something ends, or does not."""

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
from prometheus_client import REGISTRY

from api.guarded_protocol import MOST_PIPELINED
from ledger.net.addresses import parse_proxies
from tests.api.guarded import HELLO, LARGE, answer, ends, guarded
from tests.waiting import until

POST = b"POST /read HTTP/1.1\r\nHost: a.example\r\nContent-Type: text/plain\r\n"
# Longer than any test takes.
LONG = 60.0


def refused(reason: str) -> float:
    return REGISTRY.get_sample_value("staylog_connections_refused_total", {"reason": reason}) or 0.0


def counting(reason: str) -> Callable[[], float]:
    """How often a reason has been counted since."""
    before = refused(reason)
    return lambda: refused(reason) - before


@pytest.mark.parametrize(
    ("sent", "status", "code"),
    [
        (b"GET /hello HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 20_000 + b"\r\n\r\n", 431, "head_too_large"),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\n" + b"X: " + b"a" * 4_000_000, 431, "head_too_large"),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 100 + b"\r\n", 431, "head_too_large"),
        (b"GET /hello HTTP/1.1\r\nHost: a\r\n" + b"x: y\r\n" * 50_000, 431, "head_too_large"),
        (b"GET /hello?" + b"a" * 8_200 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 414, "url_too_long"),
        (b"GET /hello?" + b"a" * 4_000_000, 414, "url_too_long"),
        (b"\r\n" * 100_000 + HELLO, 431, "head_too_large"),
    ],
)
def test_rejects_a_head_beyond_its_bounds(sent: bytes, status: int, code: str) -> None:
    with guarded() as server:
        count = counting(code)
        with server.connect() as connection:
            try:
                connection.sendall(sent)
            except ConnectionError:
                # It was ended before all was sent: a client that sends without end may not see the answer.
                assert len(sent) > 1_000_000
            else:
                assert answer(connection) in ((status, code), (0, ""))
        assert count() == 1
        assert server.ask() == (200, "hello")


def test_answers_a_head_beyond_its_bounds_when_the_client_stops() -> None:
    with guarded() as server:
        for size in (16_400, 40_000, 100_000):
            sent = b"GET /hello HTTP/1.1\r\nHost: a\r\nX: " + b"a" * size
            assert server.ask(sent + b"\r\n\r\n") == (431, "head_too_large")
            if size > 2 * 16_384:
                # Before its end a head is counted in pieces.
                assert server.ask(sent) == (431, "head_too_large")


def test_takes_heads_within_their_bounds_however_they_are_cut() -> None:
    target, lines = b"/hello?" + b"a" * 8_000, b"".join(b"x-%d: %b\r\n" % (n, b"b" * 70) for n in range(90))
    sent = b"GET " + target + b" HTTP/1.1\r\nHost: a\r\n" + lines + b"\r\n"
    with guarded() as server, server.connect() as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        assert 15_000 < len(sent) < 16_384
        for size in (len(sent), 5_000, 97):
            for start in range(0, len(sent), size):
                connection.sendall(sent[start : start + size])
            assert answer(connection) == (200, "hello")


def test_ends_a_head_that_comes_slowly() -> None:
    with guarded(head=0.4) as server:
        count = counting("head_too_slow")
        with server.connect(sent=b"GET /hello HTTP/1.1\r\n") as connection:
            connection.settimeout(0.05)
            for _ in range(100):
                connection.sendall(b"x: y\r\n")
                try:
                    assert connection.recv(12, socket.MSG_PEEK) == b"HTTP/1.1 408"
                    break
                except TimeoutError:
                    continue
            connection.settimeout(10)
            assert answer(connection) == (408, "request_timeout")
        assert count() == 1


@pytest.mark.parametrize(
    ("sent", "limits", "reason"),
    [
        (b"", {"first_byte": 0.3}, "no_first_byte"),
        (b"\r\n\r\n", {"first_byte": 0.3}, "no_first_byte"),
        (HELLO, {"idle": 0.3}, "idle"),
        (HELLO + b"\r\n", {"idle": 0.3}, "idle"),
    ],
)
def test_ends_connections_without_a_request(sent: bytes, limits: dict[str, Any], reason: str) -> None:
    with guarded(**limits) as server:
        count = counting(reason)
        assert ends(server.connect(sent=sent))
        assert count() == 1


def test_ends_a_body_that_comes_slowly() -> None:
    with guarded(grace=0.4, bytes_per_second=1000) as server:
        count = counting("body_too_slow")
        with server.connect(sent=POST + b"Content-Length: 1000\r\n\r\nx") as connection:
            assert answer(connection) == (408, "request_timeout")
        assert count() == 1


def test_waits_for_a_body_that_keeps_the_pace() -> None:
    with guarded(grace=0.5, bytes_per_second=100) as server, server.connect() as connection:
        connection.sendall(POST + b"Content-Length: 1000\r\n\r\n")
        for _ in range(10):
            connection.sendall(b"x" * 100)
            time.sleep(0.1)
        assert answer(connection) == (201, "1000")
        # And the next one on the same connection.
        body = bytes(2_000_000)
        connection.sendall(POST + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert answer(connection) == (201, "2000000")


def test_rejects_a_body_that_is_mostly_no_content() -> None:
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    with guarded() as server:
        assert server.ask(head + b"1000\r\n" + b"x" * 4096 + b"\r\n0\r\n\r\n") == (201, "4096")
        count = counting("body_overhead")
        for endless in (b"1\r\nx\r\n" * 20_000, b"1;" + b"a" * 100_000, b"0\r\nX: " + b"a" * 100_000):
            assert server.ask(head + endless) in ((400, "bad_request"), (0, ""))
        assert count() == 3


def test_ends_a_connection_whose_body_is_not_wanted() -> None:
    """It is answered, and the rest of the body is read for a moment, so that the answer arrives."""
    head = b"POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000000\r\n\r\n"
    with guarded(linger=0.5) as server:
        with server.connect(sent=head) as connection:
            assert answer(connection)[0] == 201
            with pytest.raises(ConnectionError):
                connection.sendall(bytes(10_000_000))
        silent = server.connect(sent=head)
        assert ends(silent)
        short = b"POST /ignore HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
        with server.connect(sent=short) as connection:
            assert answer(connection)[0] == 201
            connection.sendall(b"abc" + HELLO)
            assert answer(connection) == (200, "hello")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /large HTTP/1.1\r\n\r\n",
        b"GET /large HTTP/1.1\r\nConnection: close\r\n\r\n",
        b"GET /large HTTP/1.1\r\n\r\n" * 2,
        b"GET /large HTTP/1.1\r\n\r\n" + HELLO * 2,
    ],
)
def test_ends_a_client_that_never_reads(sent: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """Also when the connection is only kept to send the rest, or when requests wait behind the answer. None of it is
    written down."""
    with guarded(grace=0.3, bytes_per_second=LARGE * 4) as server:
        count = counting("answer_not_read")
        with server.connect(sent=sent):
            until(lambda: count() == 1, 10)
            until(lambda: server.open == 0, 10)
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("connection_header", [b"", b"Connection: close\r\n"])
def test_lets_a_client_read_slowly_at_its_pace(connection_header: bytes) -> None:
    """Also for longer than a connection may be idle."""
    sent = b"GET /large HTTP/1.1\r\nHost: a\r\n" + connection_header + b"\r\n"
    with guarded(grace=0.3, idle=0.3, bytes_per_second=LARGE // 4) as server, server.connect(sent=sent) as connection:
        read = 0
        while read <= LARGE and (part := connection.recv(1 << 18)):
            read += len(part)
            time.sleep(0.02)
        assert read > LARGE


def test_bounds_what_is_kept_for_clients_that_do_not_read() -> None:
    with guarded(unread_bytes=LARGE * 2, grace=1, bytes_per_second=1024) as server:
        count = counting("answer_not_read")
        crowd = [server.connect(sent=b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n") for _ in range(5)]
        until(lambda: count() >= 2, 10)
        time.sleep(0.6)
        assert count() <= 4
        assert server.ask() == (200, "hello")
        for each in crowd:
            each.close()


def test_bounds_pipelined_requests() -> None:
    with guarded() as server:
        with server.connect(sent=HELLO * MOST_PIPELINED) as connection:
            data = b""
            while data.count(b"HTTP/1.1 200") < MOST_PIPELINED:
                data += connection.recv(65536)
        count = counting("too_many_pipelined")
        assert ends(server.connect(sent=HELLO * 1000))
        assert count() == 1


@pytest.mark.parametrize("sent", [b"", HELLO, b"GET /hello HTTP/1.1\r\nX", POST + b"Content-Length: 100\r\n\r\nx"])
def test_connections_that_wait_for_their_client_keep_none_out(sent: bytes) -> None:
    """Many more than there is room for: the oldest are ended, and each new one is taken."""
    with guarded(connections=20, per_address=10, first_byte=LONG, head=LONG, idle=LONG, grace=LONG) as server:
        count = counting("evicted")
        crowd = []
        for number in range(100):
            crowd.append(server.connect(f"127.0.0.{2 + number % 9}", sent))
            if sent == HELLO:
                assert answer(crowd[-1]) == (200, "hello")
        until(lambda: count() >= 80, 10)
        assert server.ask() == (200, "hello")
        assert ends(crowd[0])
        assert server.open <= 20
        for each in crowd:
            each.close()


def test_an_address_does_not_end_the_connections_of_another() -> None:
    with guarded(connections=100, per_address=10, first_byte=LONG) as server:
        mine = server.connect()
        count = counting("evicted")
        crowd = [server.connect("127.0.0.9") for _ in range(50)]
        until(lambda: count() == 40, 10)
        mine.sendall(HELLO)
        assert answer(mine) == (200, "hello")
        for each in (mine, *crowd):
            each.close()


def test_refuses_a_connection_when_all_are_being_answered() -> None:
    with guarded(connections=3, per_address=3) as server:
        busy = [server.connect(sent=HELLO.replace(b"hello", b"wait")) for _ in range(3)]
        until(lambda: len(server.server.server_state.tasks) == 3, 10)
        count = counting("too_many_from_address")
        assert server.ask(b"") == (503, "busy")
        with server.connect("127.0.0.9") as connection:
            assert answer(connection) == (503, "busy")
        assert count() == 1
        server.go_on.set()
        assert [answer(each) for each in busy] == [(200, "waited")] * 3
        for each in busy:
            each.close()
        assert server.ask() == (200, "hello")


def test_a_trusted_proxy_has_no_bound_of_its_own() -> None:
    with guarded(connections=30, per_address=5, proxies=parse_proxies("::ffff:127.0.0.0/104")) as server:
        count = counting("evicted")
        crowd = [server.connect() for _ in range(30)]
        until(lambda: server.open == 30, 10)
        assert count() == 0
        for each in crowd:
            each.close()


def test_ends_what_it_cannot_answer() -> None:
    """The client would take it for the answer to its first request."""
    with guarded(head=0.3) as server:
        waiting = HELLO.replace(b"hello", b"wait")
        connection = server.connect(sent=waiting + b"GET /hello HTTP/1.1\r\nX: " + b"a" * 40_000)
        assert answer(connection) == (0, "")
        connection.close()
        # A second head that is not complete has its time once the first request is answered.
        with server.connect(sent=waiting + b"GET /hel") as connection:
            time.sleep(0.8)
            server.go_on.set()
            assert answer(connection) == (200, "waited")
            connection.sendall(b"lo HTTP/1.1\r\nHost: a\r\n\r\n")
            assert answer(connection) == (200, "hello")


def test_a_second_request_that_does_not_come_keeps_no_place() -> None:
    """It begins while the first is being answered; afterwards it can be given up like any other."""
    with guarded(connections=4, per_address=4, head=LONG, grace=LONG) as server:
        count = counting("evicted")
        begun = HELLO.replace(b"hello", b"wait") + b"GET /hel", HELLO.replace(b"hello", b"wait") + POST
        crowd = [server.connect(sent=begun[number % 2]) for number in range(4)]
        until(lambda: len(server.server.server_state.tasks) == 4, 10)
        server.go_on.set()
        assert [answer(each) for each in crowd] == [(200, "waited")] * 4
        assert server.ask() == (200, "hello")
        assert count() == 1
        for each in crowd:
            each.close()


@pytest.mark.parametrize(
    "sent", [b"GET /large HTTP/1.1\r\n\r\n" * 2, b"GET /large HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + HELLO]
)
def test_requests_behind_an_answer_that_is_not_read_keep_no_place(sent: bytes) -> None:
    """They are not being answered as long as the client does not read."""
    with guarded(connections=4, per_address=4, grace=LONG) as server:
        crowd = [server.connect(sent=sent) for _ in range(4)]
        until(lambda: sum(each.unread > 0 for each in list(server.guard._open)) == 4, 10)
        try:
            assert server.ask() == (200, "hello")
        finally:
            for each in crowd:
                each.close()


def test_a_server_that_stops_waits_for_no_client(capfd: pytest.CaptureFixture[str]) -> None:
    sent = [
        b"GET /large HTTP/1.1\r\n\r\n" * 2,
        b"GET /large HTTP/1.1\r\n\r\n",
        HELLO,
        b"GET /",
        POST + b"Content-Length: 9\r\n\r\n",
    ]
    with ExitStack() as crowd:
        with guarded(grace=0.4, idle=LONG, bytes_per_second=1) as server:
            for each in sent:
                crowd.enter_context(server.connect(sent=each))
            until(lambda: server.open == len(sent), 10)
            time.sleep(0.2)
            began = time.monotonic()
        assert time.monotonic() - began < 5
    assert capfd.readouterr().err == ""


def test_a_target_that_cannot_be_read_does_not_answer_the_request_before() -> None:
    unreadable = b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n"
    with guarded() as server:
        assert server.ask(unreadable) == (400, "bad_request")
        assert server.ask(HELLO.replace(b"hello", b"wait") + unreadable) == (0, "")


def test_a_trailer_adds_no_headers() -> None:
    """A client could say there whom a trusted proxy had its request from, after what the proxy said."""
    head = b"POST /headers HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    trailer = b"X-Forwarded-For: 198.51.100.1\r\n\r\n"
    with guarded() as server, server.connect() as connection:
        connection.sendall(head + b"1\r\nx\r\n0\r\n" + trailer)
        assert answer(connection) == (201, "host transfer-encoding")
        # The next request has its own again.
        connection.sendall(head + b"0\r\n\r\n")
        assert answer(connection) == (201, "host transfer-encoding")
