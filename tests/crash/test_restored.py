"""A database that is older than what was signed, or another one, is never signed over (protocol.md 3)."""

import json
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ledger.commands.operator import fsck, log
from ledger.errors import Halted, Unavailable
from ledger.folder import open_ledger
from ledger.log.drafts import Draft
from ledger.settings import Settings
from ledger.store import rows
from tests.crash.harness import Backups, examine, forget_database
from tests.running import Writer


def add(settings: Settings, *drafts: Draft) -> None:
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.append(drafts)


def refusal(settings: Settings) -> Halted:
    with pytest.raises(Halted) as halted:
        open_ledger(settings)
    return halted.value


def run(settings: Settings, *arguments: str, lines: str = "") -> Result:
    command = {"fsck": fsck, "log": log}[arguments[0]]
    where = ["--data", str(settings.data), "--database-url", settings.database_url]
    return CliRunner().invoke(command, [*arguments[1:], *where], input=lines)


def test_an_older_database_is_refused_until_the_newest_is_back(
    settings: Settings, backups: Backups, writer: Writer
) -> None:
    add(settings, writer.review())
    backups.save("older")
    add(settings, writer.review(), writer.review())
    backups.save("newest")

    backups.restore("older")
    halted = refusal(settings)
    assert halted.code == "log_behind"
    for part in ("ends at 4 entries", "already signed 7", "restored from an older copy", "bring back the newest"):
        assert part in halted.message
    line = json.dumps({"type": "policy", "v": 1, "policy": writer.hash()})
    added = run(settings, "log", "add", "-", lines=line)
    assert (added.exit_code, added.stdout) == (1, "")
    assert "log_behind" in added.stderr
    checked = run(settings, "fsck")
    assert checked.exit_code == 1
    assert "the log has signed 7 entries, the database ends at 4: it is an older copy" in checked.stderr

    backups.restore("newest")
    forget_database(settings.mark)
    assert run(settings, "fsck").exit_code == 0
    assert run(settings, "log", "add", "-", lines=line).exit_code == 0
    with closing(open_ledger(settings)) as ledger:
        assert examine(ledger) == 9


def test_what_was_marked_and_never_stored_counts_as_signed(
    settings: Settings, backups: Backups, writer: Writer
) -> None:
    """A crash after the signature may have let it out; the database of before knows nothing of it."""
    backups.save("older")

    def stop(step: str) -> None:
        if step == "signed":
            raise RuntimeError(step)

    with closing(open_ledger(settings, on_step=stop)) as ledger, pytest.raises(RuntimeError, match="signed"):
        ledger.sequencer.append([writer.review()])
    backups.save("newest")
    backups.restore("older")
    assert refusal(settings).code == "log_behind"
    backups.restore("newest")
    forget_database(settings.mark)
    with closing(open_ledger(settings)) as ledger:
        assert examine(ledger) == 4


@pytest.mark.parametrize("count", [1, 3])
def test_another_history_is_refused(settings: Settings, backups: Backups, writer: Writer, count: int) -> None:
    """Two appends from the same copy, the second behind the back of the mark: as long as the first, or longer."""
    add(settings, writer.review())
    backups.save("common")
    mark = settings.mark.read_bytes()
    add(settings, writer.review())
    signed = settings.mark.read_bytes()
    backups.restore("common")
    settings.mark.write_bytes(mark)
    forget_database(settings.mark)
    add(settings, *(writer.review() for _ in range(count)))
    settings.mark.write_bytes(signed)
    halted = refusal(settings)
    assert halted.code == "log_forked"
    assert "bring back the newest database" in halted.message
    checked = run(settings, "fsck")
    assert checked.exit_code == 1
    assert "another tree of 6 entries" in checked.stderr


@pytest.mark.parametrize("drafts", [1, 5])
def test_a_database_that_goes_back_under_a_running_service_halts_it(
    settings: Settings, backups: Backups, writer: Writer, drafts: int
) -> None:
    """However much is waiting: also when the older database would at once be longer than what was signed."""
    add(settings, writer.review())
    backups.save("older")
    with closing(open_ledger(settings)) as ledger:
        sequencer = ledger.sequencer
        [signed] = sequencer.append([writer.review()])
        backups.restore_under("older")
        sequencer.start()
        while not isinstance(sequencer.halted, Halted):
            waiting = [sequencer.submit(writer.review()) for _ in range(drafts)]
            # PostgreSQL's connections were lost with the database: the first try finds that out.
            outcomes = [future.exception(30) for future in waiting]
            assert all(isinstance(outcome, Halted | Unavailable) for outcome in outcomes), outcomes
        assert sequencer.halted.code in ("log_behind", "log_forked")
        with pytest.raises(Halted, match="signed"):
            sequencer.submit(writer.review())
        assert signed.published.size == 6
        # As for the writer: the first read finds out that the connection was lost.
        with suppress(Unavailable):
            ledger.reader.checkpoints(None, 1)
        assert [state.size for state in ledger.reader.checkpoints(None, 10)] == [4, 2]
        with ledger.store.read() as connection:
            assert rows.run(connection, "SELECT max(idx) FROM entry") == [(3,)]


def test_each_replica_has_its_own_mark(settings: Settings, backups: Backups, writer: Writer, tmp_path: Path) -> None:
    """Two folders with the same keys on one database: the one that lags refuses nothing, and knows an older copy."""
    other = replace(settings, data=tmp_path / "replica")
    other.data.mkdir(mode=0o700)
    for path in (settings.log_key, settings.service_keys, settings.mark):
        target = other.data / path.name
        target.write_bytes(path.read_bytes())
        target.chmod(0o600)
    backups.save("first")
    add(settings, writer.review())
    add(settings, writer.review())
    backups.save("second")
    add(other, writer.review())
    add(settings, writer.review())
    backups.restore("second")
    assert refusal(other).code == "log_behind"
    assert refusal(settings).code == "log_behind"
