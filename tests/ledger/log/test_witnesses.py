"""The witnesses of a running log: asked about every newest checkpoint, and what they sign is kept and served."""

from pathlib import Path

import pytest

from audits.verify import verify_answer
from ledger.log.note import Note
from ledger.log.policy import Policy
from ledger.store.rows import run
from tests.ledger.log.crooked import CROOK, Reply, crooked, honest_line, wait_for
from tests.ledger.log.watched_log import cosigners, follow, policy_of, state, witness
from tests.running import HOST, Running, Writer

pytestmark = pytest.mark.usefixtures("prompt")


def test_cosignatures_are_served_with_the_checkpoint_and_stay(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "w") as w:
        text = policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w")
        follow(running, text)
        for _ in range(3):
            running.add(writer.review())
            size = running.ledger.reader.published.size
            wait_for(lambda size=size: state(running) == ("cosigned", size))  # type: ignore[misc]
            assert cosigners(running) == {w.verifier.name}
    reader, policy = running.ledger.reader, Policy.parse(text)
    checkpoint, agreement = policy.verify(reader.published.note)
    assert (checkpoint.size, agreement.agree, agreement.quorum) == (reader.published.size, 1, True)
    assert [len(Note.parse(each.note).signatures) for each in reader.checkpoints(None, 10)] == [2, 2, 2, 2]
    assert [first.size for index in (0, 2, 3, 4, 6) if (first := reader.first_witnessed(index))] == [2, 4, 4, 6, 8]
    newest = reader.newest_witnessed()
    assert newest is not None
    assert newest == reader.published
    # The witness is gone. What it signed is not.
    running.reopen()
    assert running.ledger.reader.published.note == newest.note
    report = verify_answer(running.answer(), running.ledger.verifier, HOST, policy=policy)
    assert report.witnesses == (1, 1)
    assert running.fsck().findings == []


def test_a_busy_log_asks_about_the_newest_and_proves_from_what_the_witness_has(
    running: Running, writer: Writer, tmp_path: Path
) -> None:
    with witness(running, tmp_path / "w") as w:
        follow(running, policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w"))
        for _ in range(30):
            running.add(writer.review(), writer.review())
        wait_for(lambda: state(running)[1] == running.ledger.reader.published.size)
        placed = running.add(writer.review())[0]
        wait_for(lambda: running.ledger.reader.first_witnessed(placed.index) is not None)


def test_a_quorum_is_there_once_enough_have_signed(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "a", "a.example/w") as a, crooked(lambda _: Reply(404, "")) as crook:
        lines = (f"witness a {a.vkey} {a.url}", f"witness b {CROOK} {crook.url}", "group both all a b")
        follow(running, policy_of(running, *lines, quorum="both"))
        running.add(writer.review())
        size = running.ledger.reader.published.size
        wait_for(lambda: state(running, "a") == ("cosigned", size) and state(running, "b")[0] == "refused")
        assert running.ledger.reader.newest_witnessed() is None
        crook.says = lambda request: Reply(200, honest_line(request, running.clock().timestamp()))
        wait_for(lambda: running.ledger.reader.newest_witnessed() is not None)
        assert cosigners(running) == {"a.example/w", CROOK.name}
        assert state(running, "b") == ("cosigned", size)


def test_one_that_is_down_does_not_hold_up_the_others_and_comes_back(
    running: Running, writer: Writer, tmp_path: Path
) -> None:
    with witness(running, tmp_path / "a", "a.example/w") as a, witness(running, tmp_path / "b", "b.example/w") as b:
        port = b.server.server_address[1]
        lines = (f"witness a {a.vkey} {a.url}", f"witness b {b.vkey} {b.url}", "group either any a b")
        text = policy_of(running, *lines, quorum="either")
        follow(running, text)
        wait_for(lambda: cosigners(running) == {"a.example/w", "b.example/w"})
        b.server.shutdown()
        b.server.server_close()
        running.add(writer.review())
        size = running.ledger.reader.published.size
        wait_for(lambda: state(running, "a") == ("cosigned", size) and state(running, "b")[0] == "unreachable")
        assert state(running, "b") == ("unreachable", 2)
        newest = running.ledger.reader.newest_witnessed()
        assert newest is not None
        assert newest.size == size
    with witness(running, tmp_path / "b", "b.example/w", port):
        wait_for(lambda: state(running, "b") == ("cosigned", size))


def test_what_is_enough_for_one_policy_is_not_enough_for_another(
    running: Running, writer: Writer, tmp_path: Path
) -> None:
    with witness(running, tmp_path / "a", "a.example/w") as a, crooked(lambda _: Reply(404, "")) as crook:
        lines = (f"witness a {a.vkey} {a.url}", f"witness b {CROOK} {crook.url}", "group both all a b")
        for quorum, witnessed in (("none", None), ("a", 2), ("both", None), ("a", 2)):
            follow(running, policy_of(running, *lines, quorum=quorum))
            wait_for(lambda: state(running, "a") == ("cosigned", 2))
            newest = running.ledger.reader.newest_witnessed()
            assert (None if newest is None else newest.size) == witnessed
            first = running.ledger.reader.first_witnessed(0)
            assert (None if first is None else first.size) == witnessed
        # An address or a comment is no other policy.
        follow(running, "# the same\n" + policy_of(running, *lines, quorum="a"))
        assert running.ledger.reader.newest_witnessed() is not None


def test_two_processes_ask_and_keep_one_line_each(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "w") as w:
        follow(running, policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w"))
        first = running.ledger
        second = running.open()
        second.witnesses.start(second.sequencer.halt)
        for ledger in (first, second, first, second):
            ledger.reader.follow()
            ledger.sequencer.append([writer.review()])
        size = max(first.reader.refresh().size, second.reader.refresh().size)
        for ledger in (first, second):
            wait_for(
                lambda ledger=ledger: (
                    ledger.reader.published.size == size  # type: ignore[misc]
                    and len(Note.parse(ledger.reader.published.note).signatures) == 2
                )
            )
        assert first.sequencer.halted is second.sequencer.halted is None
        with first.store.read() as connection:
            [(rows, distinct)] = run(connection, "SELECT count(*), count(DISTINCT size) FROM cosignature")
        assert rows == distinct > 0
        first.close()


def test_a_damaged_cosignature_is_found(running: Running, writer: Writer, tmp_path: Path) -> None:
    with witness(running, tmp_path / "w") as w:
        follow(running, policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w"))
        wait_for(lambda: state(running) == ("cosigned", 2))
    assert running.fsck().findings == []
    with running.ledger.store.write() as connection:
        run(connection, "UPDATE cosignature SET line = ?", ("— w AAAA\n",))
    assert len(running.fsck().findings) == 1
    with running.ledger.store.write() as connection:
        run(connection, "UPDATE cosignature SET size = ?", (3,))
        run(connection, "UPDATE witnessed SET size = ?", (3,))
    assert len(running.fsck().findings) == 2
