"""What witnesses know keeps a restored ledger from signing a second history (protocol.md 3): a database
that is brought back together with its mark knows nothing of what was signed later."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from ledger.errors import Halted
from ledger.log import witnesses
from ledger.log.add_checkpoint import SIZE_TYPE, AddCheckpoint
from tests.audits.witnessing import Running as RunningWitness
from tests.crash.harness import Backups, forget_database
from tests.ledger.log.crooked import CROOK, Reply, crooked, honest_line, wait_for
from tests.ledger.log.watched_log import follow, policy_of, state, witness
from tests.running import Running, Writer

pytestmark = pytest.mark.usefixtures("prompt")


@pytest.fixture
def older(running: Running, writer: Writer, tmp_path: Path, database_url: str, request: Any) -> Backups:
    """A copy of everything, the mark too."""
    server = None if running.ledger.store.is_sqlite else request.getfixturevalue("postgres")
    backups = Backups(database_url, tmp_path / "backups", server)
    running.add(writer.review())
    running.ledger.close()
    backups.save("older")
    shutil.copytree(running.settings.data, tmp_path / "older")
    running.open()
    return backups


def cosigned(running: Running, writer: Writer, w: RunningWitness) -> str:
    """The policy, once the witness has seen an entry more than the older copy has."""
    text = policy_of(running, f"witness w {w.vkey} {w.url}", quorum="w")
    follow(running, text)
    running.add(writer.review())
    wait_for(lambda: state(running) == ("cosigned", 6))
    return text


def restore(running: Running, tmp_path: Path, older: Backups, text: str) -> None:
    running.ledger.close()
    older.restore("older")
    shutil.rmtree(running.settings.data)
    shutil.copytree(tmp_path / "older", running.settings.data)
    forget_database(running.settings.mark)
    running.settings.tlog_policy.write_text(text)


def test_what_a_witness_shows_keeps_an_older_copy_from_signing(
    running: Running, writer: Writer, tmp_path: Path, older: Backups
) -> None:
    with witness(running, tmp_path / "w") as w:
        text = cosigned(running, writer, w)
        restore(running, tmp_path, older, text)
        with pytest.raises(Halted) as halted:
            running.open()
        assert halted.value.code == "log_behind"
        for part in (
            "the witness w ",
            "it shows the checkpoint of 6 that this log signed",
            "bring back the newest",
        ):
            assert part in halted.value.message
    # Nobody to warn it: it goes on, and forks. The witness has the proof, and the next start is refused.
    running.open()
    running.add(writer.review(), writer.review())
    running.ledger.close()
    with witness(running, tmp_path / "w", port=w.server.server_address[1]):
        with pytest.raises(Halted) as halted:
            running.open()
        assert halted.value.code == "log_forked"
        assert "it shows another tree of 6 that this log signed" in halted.value.message
        running.settings.tlog_policy.unlink()
    running.open()


def test_a_fork_that_shows_itself_later_halts_the_log(
    running: Running, writer: Writer, tmp_path: Path, older: Backups
) -> None:
    with witness(running, tmp_path / "w") as w:
        text = cosigned(running, writer, w)
    restore(running, tmp_path, older, text)
    running.open()
    ledger = running.ledger
    ledger.witnesses.start(ledger.sequencer.halt)
    running.add(writer.review(), writer.review())
    assert ledger.sequencer.halted is None
    with witness(running, tmp_path / "w", port=w.server.server_address[1]):
        wait_for(lambda: ledger.sequencer.halted is not None)
        assert state(running)[0] == "contradicts"
        with pytest.raises(Halted) as halted:
            running.add(writer.review())
        assert halted.value.code == "log_forked"
        running.settings.tlog_policy.unlink()


@pytest.mark.parametrize(
    ("reply", "code"), [(Reply(409, "999\n", SIZE_TYPE), "log_behind"), (Reply(422, ""), "log_forked")]
)
def test_at_the_start_its_word_is_enough(running: Running, reply: Reply, code: str) -> None:
    """A fork is for ever, and a witness that lies is one line in a file."""
    with crooked(lambda _: reply) as crook:
        running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="none"))
        running.ledger.close()
        with pytest.raises(Halted) as halted:
            running.open()
        assert halted.value.code == code
        assert "take it out of the file tlog-policy" in halted.value.message
        running.settings.tlog_policy.unlink()
    running.open()


def test_its_word_is_enough_though_it_takes_long_to_show_it(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "SECONDS", 0.5)
    with crooked(lambda _: Reply(409, "999\n", SIZE_TYPE)) as crook:
        crook.hangs = True
        running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
        running.ledger.close()
        with pytest.raises(Halted, match="has cosigned 999"):
            running.open()
        running.settings.tlog_policy.unlink()
    running.open()


def test_what_another_process_has_just_published_is_no_contradiction(running: Running, writer: Writer) -> None:
    """The witness, which shows nothing, has seen more than this process had when it asked."""
    other = running.ledger

    def says(request: AddCheckpoint) -> Reply:
        if "\n2\n" in request.note:
            other.sequencer.append([writer.review()])
            return Reply(409, "4\n", SIZE_TYPE)
        return Reply(200, honest_line(request, running.clock().timestamp()))

    with crooked(says) as crook:
        running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
        opened = running.open()
        assert state(running) == ("cosigned", 4)
        other.close()
        assert opened.sequencer.halted is None


def test_whoever_does_not_answer_is_not_waited_for(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "SECONDS", 0.2)
    with crooked(lambda _: Reply(500, "")) as crook:
        crook.says = lambda _: Reply(500, str(crook.over.wait(5)))
        running.settings.tlog_policy.write_text(policy_of(running, f"witness w {CROOK} {crook.url}", quorum="w"))
        began = time.monotonic()
        running.reopen()
        assert time.monotonic() - began < 3
