"""Witnesses that do not do what witnesses do, on real sockets."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import NamedTuple

from nacl.signing import SigningKey

from ledger.log.add_checkpoint import AddCheckpoint
from ledger.log.cosignature import cosign
from ledger.log.note import COSIGNATURE, Note, Verifier

KEY = SigningKey(b"\x0c" * 32)
CROOK = Verifier("crook.example/w", COSIGNATURE, bytes(KEY.verify_key))


class Reply(NamedTuple):
    status: int
    body: str | bytes
    media_type: str = "text/plain"


# What is answered to `add-checkpoint`, given the request; and to who asks what was cosigned last.
Says = Callable[[AddCheckpoint], Reply]


class Crook:
    """Answers as `says` says, and shows what `shows` says; both may change while it runs."""

    def __init__(self, says: Says) -> None:
        self.says = says
        self.shows: Reply = Reply(404, "never\n")
        self.asked: list[AddCheckpoint] = []
        self.url = ""
        # Whether who asks what it shows gets no answer.
        self.hangs = False
        self.over = Event()


def honest_line(request: AddCheckpoint, at: float) -> str:
    return cosign(Note.parse(request.note).text, CROOK.name, KEY, int(at)).line()


@contextmanager
def crooked(says: Says, port: int = 0) -> Iterator[Crook]:
    crook = Crook(says)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            crook.asked.append(AddCheckpoint.parse(body.decode()))
            self._reply(crook.says(crook.asked[-1]))

        def do_GET(self) -> None:
            if crook.hangs:
                crook.over.wait(10)
            self._reply(crook.shows)

        def _reply(self, reply: Reply) -> None:
            body = reply.body.encode() if isinstance(reply.body, str) else reply.body
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.media_type)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Whoever asked may be gone."""

    with Server(("127.0.0.1", port), Handler) as server:
        crook.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield crook
        finally:
            crook.over.set()
            server.shutdown()
            thread.join()


def wait_for(condition: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not come to pass"
        time.sleep(0.005)
