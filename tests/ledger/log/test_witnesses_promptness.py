"""A receipt waits a moment for witnesses that are prompt, and for no others."""

import asyncio
import time

import pytest

from ledger.log import witnesses
from ledger.log.add_checkpoint import AddCheckpoint
from tests.ledger.log.crooked import Reply, crooked, wait_for
from tests.ledger.log.watched_log import lied_to
from tests.running import Running, Writer

pytestmark = pytest.mark.usefixtures("prompt")


def settle(running: Running, size: int) -> float:
    began = time.monotonic()
    asyncio.run(running.ledger.witnesses.settled(size))
    return time.monotonic() - began


def wait_for_quorum(running: Running, index: int) -> None:
    wait_for(lambda: running.ledger.reader.first_witnessed(index) is not None)


def test_without_witnesses_nobody_waits(running: Running) -> None:
    assert settle(running, 10**6) < 0.1


def test_a_receipt_waits_a_moment_once(running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "GRACE_SECONDS", 0.3)
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        honest = crook.says
        placed = running.add(writer.review())[0]
        settle(running, placed.index + 1)
        assert running.ledger.reader.first_witnessed(placed.index) is not None
        crook.says = lambda _: Reply(404, "")
        placed = running.add(writer.review())[0]
        assert 0.3 <= settle(running, placed.index + 1) < 2
        # It is known by now that nobody comes.
        assert settle(running, placed.index + 1) < 0.1
        crook.says = honest
        wait_for_quorum(running, placed.index)
        # That came late. The next one does not, and from then on it is worth waiting again.
        placed = running.add(writer.review())[0]
        assert settle(running, placed.index + 1) < 0.1
        wait_for_quorum(running, placed.index)
        placed = running.add(writer.review())[0]
        settle(running, placed.index + 1)
        assert running.ledger.reader.first_witnessed(placed.index) is not None


def test_who_is_always_late_is_waited_for_once(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "GRACE_SECONDS", 0.3)
    with crooked(lambda _: Reply(500, "")) as crook, lied_to(running, crook):
        honest = crook.says

        def late(request: AddCheckpoint) -> Reply:
            time.sleep(0.5)
            return honest(request)

        crook.says = late
        waited = []
        for _ in range(3):
            placed = running.add(writer.review())[0]
            waited.append(settle(running, placed.index + 1))
            wait_for_quorum(running, placed.index)
        assert [seconds >= 0.3 for seconds in waited] == [True, False, False]
