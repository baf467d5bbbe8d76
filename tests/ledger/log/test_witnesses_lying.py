"""A running log survives witnesses that lie, are slow, or say that they have seen more; and a database that is away."""

import time

import pytest

from ledger.errors import Halted, Unavailable
from ledger.log import witness_client, witnesses
from ledger.log.add_checkpoint import SIZE_TYPE, AddCheckpoint
from ledger.store.rows import Published
from tests.ledger.log.crooked import CROOK, Reply, crooked, honest_line, wait_for
from tests.ledger.log.watched_log import cosigners, lied_to, state
from tests.running import Running, Writer

pytestmark = pytest.mark.usefixtures("prompt")


@pytest.mark.parametrize(
    ("says", "becomes"),
    [
        (lambda _: Reply(409, "999\n", SIZE_TYPE), "ahead"),
        (lambda _: Reply(422, "no\n"), "lying"),
        (lambda _: Reply(200, "— a b\n"), "lying"),
        (lambda request: Reply(200, honest_line(request, 0)), "lying"),
        (lambda _: Reply(403, ""), "refused"),
        (lambda _: Reply(200, "x" * 200_000), "unreachable"),
    ],
)
def test_a_running_log_survives_a_lying_witness(running: Running, writer: Writer, says: object, becomes: str) -> None:
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        honest, crook.says = crook.says, says  # type: ignore[assignment]
        running.add(writer.review())
        wait_for(lambda: state(running) == (becomes, 2))
        running.add(writer.review())
        assert running.ledger.sequencer.halted is None
        assert cosigners(running) == set()
        crook.says = honest
        wait_for(lambda: state(running) == ("cosigned", 6))
        assert cosigners(running) == {CROOK.name}


@pytest.mark.parametrize("conflict", [Reply(409, ""), Reply(422, "")])
def test_halts_a_running_log_at_the_word_that_its_history_is_another_one(
    running: Running, writer: Writer, conflict: Reply
) -> None:
    """Also of a witness that shows nothing: it has no monitoring address."""
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        ledger = running.ledger
        crook.says = lambda request: (
            conflict
            if f"\n{request.old}\n" in request.note
            else Reply(409, request.note.split("\n")[1] + "\n", SIZE_TYPE)
        )
        running.add(writer.review())
        wait_for(lambda: ledger.sequencer.halted is not None)
        assert state(running)[0] == "contradicts"
        assert ledger.health.reason() is ledger.sequencer.halted
        with pytest.raises(Halted, match="take it out of the file tlog-policy") as halted:
            running.add(writer.review())
        assert halted.value.code == "log_forked"
        running.settings.tlog_policy.unlink()


def test_a_witness_that_contradicts_its_own_cosignature_halts_nothing(running: Running, writer: Writer) -> None:
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        running.add(writer.review())
        wait_for(lambda: state(running) == ("cosigned", 4))
        honest, crook.says = crook.says, lambda _: Reply(422, "")
        running.add(writer.review())
        wait_for(lambda: state(running) == ("lying", 4))
        assert running.ledger.sequencer.halted is None
        crook.says = honest
        wait_for(lambda: state(running) == ("cosigned", 6))


def test_a_slow_witness_holds_up_nothing_but_itself(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witness_client, "SECONDS", 60)
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):

        def slow(request: AddCheckpoint) -> Reply:
            crook.over.wait(60)
            return Reply(200, honest_line(request, running.clock().timestamp()))

        crook.says = slow
        began = time.monotonic()
        for _ in range(5):
            running.add(writer.review())
        assert time.monotonic() - began < 30
        crook.over.set()
        wait_for(lambda: state(running) == ("cosigned", 12))


def test_it_ends_at_once_though_a_witness_is_slow(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While it is being asked, and not only while its thread waits for news."""
    monkeypatch.setattr(witnesses, "SECONDS", 60)
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        honest = crook.says

        def slow(request: AddCheckpoint) -> Reply:
            time.sleep(0.5)
            return honest(request)

        crook.says = slow
        running.add(writer.review())
        wait_for(lambda: len(crook.asked) > 1)
        began = time.monotonic()
        running.reopen()
        assert time.monotonic() - began < 30


def test_asking_goes_on_after_the_database_was_away(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when that happens while it is judged what a witness shows."""
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        reader = running.ledger.reader
        refresh, away = reader.refresh, [True]

        def fails() -> Published:
            if away:
                raise Unavailable("storage_unavailable", "away")
            return refresh()

        honest, crook.says = crook.says, lambda _: Reply(422, "no\n")
        monkeypatch.setattr(reader, "refresh", fails)
        running.add(writer.review())
        asked = len(crook.asked)
        wait_for(lambda: len(crook.asked) > asked + 2)
        away.clear()
        wait_for(lambda: state(running) == ("lying", 2))
        crook.says = honest
        wait_for(lambda: state(running) == ("cosigned", 4))
