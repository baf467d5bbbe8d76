"""Something on a socket that answers as a ledger that misbehaves."""

from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

Answers = dict[str, tuple[int, Mapping[str, str], bytes]]


class FakeLedger(ThreadingHTTPServer):
    """Answers as it is told, by path."""

    answers: Answers
    requests: list[tuple[str, str, str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeLedger

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, self.headers["User-Agent"]))
        status, headers, body = self.server.answers.get(self.path, (404, {}, b"{}"))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def fake(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLedger]:
    with FakeLedger(("127.0.0.1", 0), _Handler) as server:
        server.answers, server.requests = {}, []
        monkeypatch.setenv("STAYLOG_LEDGER", server.url)
        # Nobody is asked on the way to this machine.
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()
