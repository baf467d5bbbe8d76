"""A log that has a policy and asks its witnesses, honest ones and others."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.log.note import Note
from tests.audits.witnessing import Running as RunningWitness
from tests.audits.witnessing import witness_running
from tests.ledger.log.crooked import CROOK, Crook, Reply, honest_line, wait_for
from tests.running import Running


@contextmanager
def witness(
    running: Running, folder: Path, name: str = "witness.example/w1", port: int = 0
) -> Iterator[RunningWitness]:
    """One that trusts the log, with the log's own clock."""
    clock = running.clock
    with witness_running(folder, name, [running.ledger.verifier], lambda: clock().timestamp(), port=port) as made:
        yield made


def policy_of(running: Running, *lines: str, quorum: str = "none") -> str:
    return "\n".join([f"log {running.ledger.verifier}", *lines, f"quorum {quorum}", ""])


def follow(running: Running, text: str) -> None:
    """Open it again with this policy, and ask as a service does."""
    running.settings.tlog_policy.write_text(text)
    running.reopen()
    running.ledger.witnesses.start(running.ledger.sequencer.halt)


def state(running: Running, name: str = "w") -> tuple[str, int | None]:
    found = next(each for each in running.ledger.witnesses.states() if each.name == name)
    return found.state, found.size


def cosigners(running: Running) -> set[str]:
    return {each.name for each in Note.parse(running.ledger.reader.published.note).signatures[1:]}


@contextmanager
def lied_to(running: Running, crook: Crook) -> Iterator[None]:
    """A log that follows an honest start."""
    crook.says = lambda request: Reply(200, honest_line(request, running.clock().timestamp()))
    follow(running, policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
    wait_for(lambda: state(running) == ("cosigned", 2))
    yield
