"""A witness on a real socket, and logs that ask it: honest ones, and one that shows two histories."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from http.client import HTTPConnection
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

from nacl.signing import SigningKey

from audits.witness.folder import Step, init, is_initialised, quiet, trust
from audits.witness.judge import Witness
from audits.witness.server import WitnessServer
from ledger.log.add_checkpoint import AddCheckpoint
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import ED25519, Note, Signature, Verifier
from ledger.log.tree import leaf_hash
from tests.reference import Tree

NAME = "witness.example/w1"
NOW = 1_771_147_800


@dataclass(frozen=True)
class Running:
    """`url` is the prefix below which `add-checkpoint` is; `witness` is what answers there."""

    url: str
    witness: Witness
    server: WitnessServer

    @property
    def verifier(self) -> Verifier:
        return self.witness.verifier

    @property
    def vkey(self) -> str:
        return str(self.verifier)

    def post(self, body: str | bytes) -> tuple[int, str, str]:
        """Status, media type and text of what add-checkpoint answers."""
        return self.ask("POST", "/add-checkpoint", body)

    def get(self, path: str) -> tuple[int, str, str]:
        return self.ask("GET", path)

    def ask(self, method: str, path: str, body: str | bytes | None = None) -> tuple[int, str, str]:
        connection = HTTPConnection(urlsplit(self.url).netloc, timeout=30)
        try:
            connection.request(method, path, body.encode() if isinstance(body, str) else body)
            answer = connection.getresponse()
            return answer.status, answer.headers.get("Content-Type", ""), answer.read().decode()
        finally:
            connection.close()


def make_witness(
    folder: Path, name: str = NAME, logs: Sequence[Verifier | str] = (), key: SigningKey | None = None
) -> None:
    """A folder with a witness that trusts these logs; one that is there already stays."""
    if not is_initialised(folder):
        init(folder, name, key or SigningKey(sha256(name.encode()).digest()))
    for log in logs:
        trust(folder, Verifier.parse(log) if isinstance(log, str) else log)


@contextmanager
def witness_running(
    folder: Path,
    name: str = NAME,
    logs: Sequence[Verifier | str] = (),
    clock: Callable[[], float] = time.time,
    key: SigningKey | None = None,
    on_step: Step = quiet,
    port: int = 0,
    **bounds: Any,
) -> Iterator[Running]:
    """A witness that answers on 127.0.0.1 until the end of the block. Its key follows from its name unless one is given;
    in the same folder it goes on where it was."""
    make_witness(folder, name, logs, key)
    witness = Witness(folder, clock, on_step)
    try:
        server = WitnessServer(witness, port=port, **bounds)
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield Running(server.url, witness, server)
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
    finally:
        witness.close()


class Log:
    """A log of made-up entries; after `fork` entries its other history begins, if it has one."""

    def __init__(self, origin: str, entries: int = 64, history: str = "", fork: int = 0) -> None:
        self.origin = origin
        self.key = SigningKey(sha256(origin.encode()).digest())
        self.verifier = Verifier(origin, ED25519, bytes(self.key.verify_key))
        names = [f"{history if at >= fork else ''}{at}" for at in range(entries)]
        self.tree = Tree([leaf_hash(name.encode()) for name in names])

    def checkpoint(self, size: int) -> Checkpoint:
        return Checkpoint(self.origin, size, self.tree.root(size))

    def note(self, size: int, *extensions: str) -> str:
        return self.sign(str(self.checkpoint(size)) + "".join(f"{line}\n" for line in extensions))

    def sign(self, text: str) -> str:
        return str(Note(text, (self.signature(text),)))

    def signature(self, text: str) -> Signature:
        return Signature(self.origin, self.verifier.key_id, self.key.sign(text.encode()).signature)

    def proof(self, old: int, size: int) -> tuple[bytes, ...]:
        return tuple(self.tree.proof(old, 0, size)) if 0 < old < size else ()

    def request(self, old: int, size: int) -> str:
        return str(AddCheckpoint(old, self.proof(old, size), self.note(size)))
