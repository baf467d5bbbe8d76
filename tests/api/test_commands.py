"""`staylog serve`, where it refuses to start; that it serves is shown by test_edge and test_docs."""

import shutil
from pathlib import Path

from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.folder import init_folder, is_empty, open_ledger
from ledger.settings import Settings
from tests.running import Writer


def serve(data: Path, *arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["serve", "--data", str(data), *arguments], env=environment)


def test_a_new_log_is_not_named_after_every_address(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::"):
        done = serve(tmp_path / "data", "--host", host)
        assert done.exit_code == 1
        assert "(settings_invalid)" in done.output
        assert "STAYLOG_BASE_URL" in done.output
    assert is_empty(Settings.of(tmp_path / "data"))


def test_a_base_url_in_another_spelling_is_refused(tmp_path: Path) -> None:
    done = serve(tmp_path / "data", STAYLOG_BASE_URL="https://Ledger.example/")
    assert (done.exit_code, "(settings_invalid)" in done.output) == (1, True)


def test_a_restored_older_database_is_not_served(tmp_path: Path) -> None:
    """It says what happened and what to do."""
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    database = settings.data / "ledger.db"
    shutil.copy(database, tmp_path / "backup.db")
    ledger = open_ledger(settings)
    ledger.sequencer.append([Writer().review()])
    ledger.close()
    for path in settings.data.glob("ledger.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", database)
    done = serve(settings.data)
    assert done.exit_code == 1
    for words in ("(log_behind)", "ends at 2 entries", "already signed 4", "bring back the newest database"):
        assert words in done.output
