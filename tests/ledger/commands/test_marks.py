"""`staylog log marks` and `staylog fsck` compare what several places know of one log; `--accept-checkpoint` is a word."""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.folder import init_folder, open_ledger
from ledger.log.mark import Mark
from ledger.log.mark_file import MarkFile
from ledger.settings import Settings
from tests.crash.harness import Backups
from tests.etcd import Etcd
from tests.running import Writer


class Forked:
    """One log, and what is left of it in several places: the newest state, an older one, and another history from the
    older one on, which no service with marks would have signed."""

    def __init__(self, folder: Path, writer: Writer) -> None:
        self.settings = Settings.of(folder / "data")
        init_folder(self.settings)
        self.folder, self.backups = folder, Backups(self.settings.database_url, folder / "backups", None)
        self.older = self._grow(writer, "older")
        self.backups.save("older")
        self.forked = self._grow(writer, "forked")
        # As if both the database and the mark had been restored.
        self.backups.restore("older")
        self.settings.mark.write_bytes((folder / "older.mark").read_bytes())
        self._grow(writer, "newest")
        self.newest = self._grow(writer, "newest")

    def _grow(self, writer: Writer, name: str) -> Mark:
        with closing(open_ledger(self.settings)) as ledger:
            [done] = ledger.sequencer.append([writer.review()])
        (self.folder / f"{name}.mark").write_bytes(self.settings.mark.read_bytes())
        (self.folder / f"{name}.checkpoint").write_text(done.published.note)
        return Mark(done.published.size, done.published.root)

    def run(self, *arguments: str | Path) -> Result:
        words = [str(self.folder / each) if "." in str(each) else str(each) for each in arguments]
        return CliRunner().invoke(main, [*words, "--data", str(self.settings.data)])

    def marks(self, *places: str) -> tuple[int, Any]:
        done = self.run("log", "marks", *places, "--json")
        return done.exit_code, json.loads(done.stdout)


@pytest.fixture
def forked(tmp_path: Path, writer: Writer) -> Forked:
    return Forked(tmp_path, writer)


def test_marks_of_one_history_are_named_with_the_newest(forked: Forked) -> None:
    done = forked.run("log", "marks", "older.mark")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{forked.newest}  ")
    assert lines[0].endswith("(newest)")
    assert lines[-2] == f"{forked.older}  {forked.folder / 'older.mark'}"
    assert lines[-1] == "one history, and the database has all of it"


def test_a_mark_of_another_history_is_found(forked: Forked) -> None:
    status, told = forked.marks("older.mark", "forked.mark")
    assert status == 1
    where = forked.folder / "forked.mark"
    assert told["findings"] == [f"{where} has another history of 6 entries than the database"]


def test_marks_beyond_the_database_are_found_and_so_are_two_histories_of_one_size(forked: Forked) -> None:
    """Also where the database cannot tell, because it ends before both."""
    forked.backups.restore("older")
    other = Mark(forked.newest.size, bytes(32))
    MarkFile(forked.folder / "other.mark").write(other)
    status, told = forked.marks("newest.mark", "other.mark")
    assert status == 1
    found = "\n".join(told["findings"])
    assert "have two histories of 8 entries: the log has forked" in found
    assert "knows of 8 signed entries, the database ends at 4: it is an older copy" in found
    assert told["marks"][0]["checkpoint"] == str(forked.newest)


def test_a_mark_in_etcd_is_compared(forked: Forked, etcd: Etcd, monkeypatch: pytest.MonkeyPatch) -> None:
    url = etcd.mark_url(forked.folder.name)
    status = CliRunner().invoke(main, ["log", "marks", url, "--data", str(forked.settings.data)])
    assert (status.exit_code, "file_unreadable" in status.stderr) == (2, True)
    accepted = replace(forked.settings, mark_url=url, accepted=str(forked.newest))
    open_ledger(accepted).close()
    monkeypatch.setenv("STAYLOG_MARK_URL", url)
    assert forked.marks()[1]["marks"][-1] == {"where": url, "checkpoint": str(forked.newest)}
    assert forked.run("fsck").exit_code == 0
    forked.backups.restore("older")
    assert f"{url} has signed 8 entries" in forked.run("fsck").stderr


def test_fsck_compares_every_mark_and_checkpoint(forked: Forked) -> None:
    good = ("--checkpoint", "older.checkpoint", "--checkpoint", "newest.checkpoint", "--mark", "older.mark")
    assert forked.run("fsck", *good).exit_code == 0
    for bad in (("--checkpoint", "forked.checkpoint"), ("--mark", "forked.mark")):
        done = forked.run("fsck", *good, *bad)
        assert done.exit_code == 1
        assert f"{forked.folder / bad[1]} has already signed another tree of 6 entries" in done.stderr


def test_fsck_refuses_what_this_log_did_not_sign(forked: Forked, tmp_path: Path) -> None:
    other = Settings.of(tmp_path / "other", None, "http://127.0.0.1:9999")
    init_folder(other)
    with closing(open_ledger(other)) as ledger:
        (tmp_path / "foreign.checkpoint").write_text(ledger.reader.published.note)
    (tmp_path / "empty.json").write_text("{}")
    (tmp_path / "none.mark").write_bytes(b"")
    refused = {
        ("--checkpoint", "foreign.checkpoint"): "signer_unknown",
        ("--checkpoint", "empty.json"): "note_malformed",
        ("--checkpoint", "absent.checkpoint"): "file_unreadable",
        ("--mark", "absent.mark"): "file_unreadable",
        ("--mark", "none.mark"): "mark_unreadable",
    }
    for given, code in refused.items():
        done = forked.run("fsck", *given)
        assert (done.exit_code, code in done.stderr) == (2, True), done.stderr


def test_a_receipt_or_answer_is_as_good_as_its_checkpoint(forked: Forked) -> None:
    note = (forked.folder / "forked.checkpoint").read_text()
    for number, document in enumerate(({"checkpoint": note}, {"proof": {"checkpoint": note}})):
        (forked.folder / f"{number}.json").write_text(json.dumps(document))
        done = forked.run("fsck", "--checkpoint", f"{number}.json")
        assert "another tree of 6 entries" in done.stderr


def test_a_folder_without_a_ledger_is_named(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["log", "marks", "--data", str(tmp_path)])
    assert (done.exit_code, "(not_initialised)" in done.stderr) == (2, True)


def test_log_add_takes_the_operators_word(forked: Forked) -> None:
    forked.settings.mark.unlink()
    line = b'{"type":"policy","v":1,"policy":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}'
    (forked.folder / "lines.jsonl").write_bytes(line)
    refused = forked.run("log", "add", "lines.jsonl")
    assert (refused.exit_code, "mark_missing" in refused.stderr) == (1, True)
    misspelt = forked.run("log", "add", "lines.jsonl", "--accept-checkpoint", "8")
    assert misspelt.exit_code == 2
    assert forked.run("log", "add", "lines.jsonl", "--accept-checkpoint", str(forked.newest)).exit_code == 0
    assert forked.run("log", "show").exit_code == 0
