"""Witnesses that are made to be killed: they tell of every cosignature that has left them."""

import os
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

from audits.witness.judge import Witness
from audits.witness.server import WitnessServer
from ledger.errors import StaylogError
from tests.audits.witnessing import NOW, Log
from tests.crash.child import DyingStep

LOG = Log("log.example/a")
# Another history from entry 2 on, signed by the same key.
FORKED = Log("log.example/a", history="other", fork=2)


def growing(folder: Path, die_at: str, times: int, channel: Connection) -> None:
    """The log grows by two entries at a time until the chosen step comes for the `times`-th time."""
    with closing(Witness(folder, lambda: NOW, DyingStep(die_at, times))) as witness:
        [(_, latest)] = witness.logs()
        size = latest.checkpoint.size if latest else 0
        while True:
            witness.add_checkpoint(LOG.request(size, size + 2).encode())
            size += 2
            channel.send_bytes(str(size).encode())


def asked_once(folder: Path, old: int, size: int, channel: Connection) -> None:
    """Opened and asked when the other side says so; what fails is tried again. What came of it is told each time."""
    channel.send_bytes(b"ready")
    channel.recv_bytes()
    for _ in range(3):
        try:
            with closing(Witness(folder, lambda: NOW)) as witness:
                witness.add_checkpoint(LOG.request(old, size).encode())
        except StaylogError as error:
            channel.send_bytes(f"{type(error).__name__} {error.code}".encode())
        else:
            channel.send_bytes(b"cosigned")
            return


def serving(folder: Path, channel: Connection) -> None:
    """A server, until it is killed."""
    with closing(Witness(folder)) as witness, WitnessServer(witness) as server:
        os.write(channel.fileno(), f"{server.listens_on}\n".encode())
        server.serve_forever()
