"""A ledger cannot tell an audit from other requests of the command line by what they say of themselves."""

import socket
from collections.abc import Callable
from contextlib import suppress
from threading import Thread

from audits.source import WebSource
from ledger.commands import client
from ledger.errors import StaylogError
from ledger.user_agent import USER_AGENT

NAMED = b"user-agent: " + USER_AGENT.lower().encode()


def head_of(ask: Callable[[str], object]) -> list[bytes]:
    """The lines of the first request, in small letters."""
    heads: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as incoming:
                while line := incoming.readline().strip():
                    heads.append(line.lower())
                connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")

        thread = Thread(target=serve)
        thread.start()
        with suppress(StaylogError):
            ask(f"http://127.0.0.1:{listener.getsockname()[1]}")
        thread.join()
    return heads


def test_every_command_calls_itself_the_same() -> None:
    asked = [
        head_of(lambda url: WebSource(url).get("v1/log/key")),
        head_of(lambda url: client.look_up(url, "/v1/log/key")),
    ]
    for lines in asked:
        assert [line for line in lines if line.startswith(b"user-agent")] == [NAMED]
        assert not any(b"staylog" in line or b"audit" in line or b"python" in line for line in lines)
