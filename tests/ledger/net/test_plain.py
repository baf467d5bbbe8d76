"""What the operator wrote down is asked wherever it is, and never for longer or more than was said."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import pytest

from ledger.errors import Misconfigured, NotFetched
from ledger.net.plain import Answer, ask, check_address

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"


@contextmanager
def answering(answer: Callable[[socket.socket, Event], None]) -> Iterator[str]:
    """Whoever comes is answered so, byte for byte."""
    over = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    caller, _ = listener.accept()
                except OSError:
                    return
                with caller:
                    caller.settimeout(5)
                    try:
                        caller.recv(65536)
                        answer(caller, over)
                    except OSError:
                        continue

        thread = Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/w"
        over.set()
        listener.shutdown(socket.SHUT_RDWR)
    thread.join()


def get(url: str, seconds: float = 0.3) -> Answer:
    return ask(url, agent="staylog/test", seconds=seconds, most=1000)


def refusal(url: str, seconds: float = 0.3) -> str:
    with pytest.raises(NotFetched) as refused:
        get(url, seconds)
    return refused.value.code


def test_an_answer_is_its_status_type_and_bytes() -> None:
    with answering(lambda caller, _: caller.sendall(HEAD + b"Content-Length: 3\r\n\r\nyes")) as url:
        assert get(url, 5) == Answer(200, "text/plain", b"yes")


def test_what_is_sent() -> None:
    heard: list[bytes] = []

    def answer(caller: socket.socket, _: Event) -> None:
        caller.sendall(HEAD + b"Content-Length: 0\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            caller, _ = listener.accept()
            with caller:
                while not heard or not heard[-1].endswith(b"body"):
                    heard.append((heard[-1] if heard else b"") + caller.recv(65536))
                answer(caller, Event())

        thread = Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/witness/add-checkpoint"
        assert ask(url, b"body", agent="staylog/test", seconds=5, most=10).status == 200
        thread.join()
    head = heard[-1].decode()
    assert head.startswith("POST /witness/add-checkpoint HTTP/1.1\r\n")
    assert "User-Agent: staylog/test\r\n" in head


def keep_silent(_: socket.socket, over: Event) -> None:
    over.wait(5)


def drip(caller: socket.socket, over: Event) -> None:
    caller.sendall(HEAD + b"Content-Length: 500\r\n\r\n")
    while not over.wait(0.02):
        caller.sendall(b".")


ANSWERS: dict[str, tuple[Callable[[socket.socket, Event], None], str]] = {
    "silence": (keep_silent, "fetch_timeout"),
    "one byte after the other": (drip, "fetch_timeout"),
    "too much": (lambda c, _: c.sendall(HEAD + b"Content-Length: 1001\r\n\r\n" + b"." * 1001), "fetch_too_large"),
    "too much without a length": (lambda c, _: c.sendall(HEAD + b"\r\n" + b"." * 1001), "fetch_too_large"),
    "broken off": (lambda c, _: c.sendall(HEAD + b"Content-Length: 10\r\n\r\nfive."), "fetch_unreachable"),
    "nothing": (lambda c, _: c.close(), "fetch_unreachable"),
    "no HTTP": (lambda c, _: c.sendall(b"220 mail.example ESMTP\r\n\r\n"), "fetch_unreachable"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_end_has_its_code(name: str) -> None:
    answer, code = ANSWERS[name]
    with answering(answer) as url:
        assert refusal(url, 0.3 if code == "fetch_timeout" else 5) == code


def test_nobody_there_and_no_tls() -> None:
    assert refusal("http://127.0.0.1:1/w") == "fetch_unreachable"
    assert refusal("http://nowhere.invalid/w", 5) == "fetch_unreachable"
    with answering(lambda caller, _: caller.sendall(HEAD)) as url:
        assert refusal(url.replace("http:", "https:"), 5) == "fetch_tls"


def test_redirects_are_answers() -> None:
    with answering(lambda c, _: c.sendall(b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n")) as url:
        assert get(url, 5).status == 302


@pytest.mark.parametrize("url", ["https://witness.example", "http://10.0.0.5:8090/w/", "https://[::1]:8443/a/b"])
def test_addresses(url: str) -> None:
    assert check_address(url) == url.rstrip("/")


@pytest.mark.parametrize(
    "url",
    ["", "witness.example", "ftp://witness.example", "http://", "http://a:0", "http://a:x", "http://u@a", "http://a?b",
     "http://a#b", "http://a b", "http://é.example", "http://a/\x00", "http://[::1", "http://a:99999"],
)  # fmt: skip
def test_no_addresses(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        check_address(url)
    assert refused.value.code == "settings_invalid"
