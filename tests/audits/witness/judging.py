"""A witness that is asked without a socket: the logs that ask it, and what it says to them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from nacl.signing import SigningKey

from audits.witness.judge import NotCosigned, Witness
from audits.witness.memory import log_id
from ledger.log.add_checkpoint import AddCheckpoint
from ledger.log.cosignature import cosignatures
from ledger.log.note import Note
from tests.audits.witnessing import NOW, Log, make_witness

LOG = Log("log.example/a")
# Another history from entry 2 on, signed by the same key.
FORKED = Log("log.example/a", history="other", fork=2)
UNKNOWN = Log("log.example/unknown")
STRANGER = SigningKey(bytes([9]) * 32)

Clock = Callable[[], float]


def opened(folder: Path, clock: Clock = lambda: NOW, on_step: Callable[[str], None] = lambda _: None) -> Witness:
    make_witness(folder, logs=[LOG.verifier])
    return Witness(folder, clock, on_step)


def refused(witness: Witness, request: str | bytes) -> tuple[int, str]:
    before = witness.logs()
    with pytest.raises(NotCosigned) as refusal:
        witness.add_checkpoint(request.encode() if isinstance(request, str) else request)
    assert witness.logs() == before
    assert (refusal.value.size is not None) == (refusal.value.status == 409)
    return refusal.value.status, refusal.value.code


def cosigned(witness: Witness, request: str) -> int:
    """The timestamp of the cosignature, which is valid for what was sent and is what is shown from now on."""
    line = witness.add_checkpoint(request.encode())
    sent = Note.parse(AddCheckpoint.parse(request).note)
    [found] = cosignatures(Note.parse(f"{sent.text}\n{line}"), [witness.verifier])
    shown = witness.checkpoint(log_id(LOG.origin))
    assert shown is not None
    assert shown.startswith(sent.text)
    assert shown.endswith(line)
    return found.timestamp
