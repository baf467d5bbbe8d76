"""The operator's commands, as an operator uses them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from ledger.cli import main
from ledger.clock import utc_now
from ledger.folder import open_ledger
from ledger.log.sequencer import Integrated
from ledger.settings import Settings
from ledger.store.rows import Published
from tests.audits.forger import TRUST
from tests.running import HOST, Running, Writer

NOWHERE = Published(0, b"", None, b"", 0, "", "")


def staylog(running: Running, *arguments: str, text: str | None = None) -> Result:
    where = ("--data", str(running.settings.data), "--database-url", running.settings.database_url)
    return CliRunner().invoke(main, [*arguments, *where], input=text)


def lines(*drafts: Any) -> str:
    return "".join(json.dumps({"type": draft.type, "v": 1, **draft.members}) + "\n" for draft in drafts)


def test_init_names_the_key_and_fixes_the_origin(tmp_path: Path) -> None:
    data = str(tmp_path / "new")
    done = CliRunner().invoke(main, ["init", "--data", data, "--base-url", "https://ledger.example"])
    assert done.exit_code == 0, done.output
    assert "New log ledger.example/log" in done.output
    ledger = open_ledger(Settings.of(Path(data)))
    assert str(ledger.verifier) in done.output
    ledger.close()
    again = CliRunner().invoke(main, ["init", "--data", data])
    assert again.exit_code == 1
    assert "(already_initialised)" in again.output


def test_every_setting_is_also_in_the_environment(tmp_path: Path) -> None:
    environment = {
        "STAYLOG_DATA": str(tmp_path / "from-environment"),
        "STAYLOG_BASE_URL": "https://named.example",
        "STAYLOG_DATABASE_URL": f"sqlite:///{tmp_path}/elsewhere.db",
    }
    done = CliRunner().invoke(main, ["init"], env=environment)
    assert "New log named.example/log" in done.output
    assert (tmp_path / "elsewhere.db").exists()
    assert not (tmp_path / "from-environment" / "ledger.db").exists()


def test_a_file_is_added_and_shown(running: Running, writer: Writer, tmp_path: Path) -> None:
    path = tmp_path / "entries.jsonl"
    text = {"text": "Three days of rain, and not one wasted."}
    path.write_text(
        lines(writer.review(), writer.check())
        + "\n"
        + lines(writer.review(text=None)).replace("null", json.dumps(text))
    )
    done = staylog(running, "log", "add", str(path))
    assert done.exit_code == 0, done.output
    assert "3 entries added, 2 to 4; signed at size 6" in done.output
    answer = json.loads(running.answer(size=running.ledger.reader.refresh().size))
    assert [review["review_text"] for review in answer["review_history"]] == [text["text"], None]
    shown = staylog(running, "log", "show", "--count", "2")
    assert running.ledger.reader.published.note in shown.output
    assert str(running.ledger.verifier) in shown.output
    assert [line.split()[0] for line in shown.output.splitlines()[-2:]] == ["4", "5"]
    plain = staylog(running, "log", "show", "--json", "--start", "2", "--count", "1")
    assert plain.output.encode() == running.ledger.reader.entries(2, 3)[0] + b"\n"


def test_a_file_with_a_mistake_adds_nothing_and_names_every_line(running: Running, writer: Writer) -> None:
    """Mistakes of form are told all at once; so are broken rules."""
    good, broken = lines(writer.review()), '{"type":"review"}\n'
    done = staylog(running, "log", "add", "-", text=good + broken + "\n" + good + "nonsense\n")
    assert done.exit_code == 1
    assert "line 2 (entry_unknown_type)" in done.output
    assert "line 5 (malformed_json)" in done.output
    assert "Nothing was added." in done.output
    running.clock.now = utc_now()
    [review] = running.add(writer.review())
    responses = lines(writer.response(review), writer.response(review))
    done = staylog(
        running, "log", "add", "-", text=good + "\n" + responses + lines(writer.redaction(review, "response"))
    )
    assert done.exit_code == 1
    assert "line 4 (response_repeated)" in done.output
    assert "line 3" not in done.output
    assert running.ledger.reader.refresh().size == 4


def test_many_mistakes_are_counted(running: Running) -> None:
    done = staylog(running, "log", "add", "-", text="{}\n" * 30)
    assert done.output.count("entry_unknown_type") == 20
    assert "and 10 more lines" in done.output


def test_an_empty_file_adds_nothing(running: Running) -> None:
    done = staylog(running, "log", "add", "-", text="\n\n")
    assert (done.exit_code, done.output) == (0, "FILE has no entries; nothing was added\n")
    assert running.ledger.reader.refresh().size == 2


def test_reviews_of_the_same_file_cannot_be_named(running: Running, writer: Writer) -> None:
    """Where they will stand is known only when they stand there."""
    [review] = running.add(writer.review())
    response = writer.response(review)
    moved = {**response.members, "review": 4}
    done = staylog(
        running, "log", "add", "-", text=lines(writer.review()) + json.dumps({"type": "response", "v": 1, **moved})
    )
    assert done.exit_code == 1
    assert "(review_unknown)" in done.output


def test_fsck_says_what_it_looked_at(running: Running, writer: Writer) -> None:
    running.add(writer.review(), writer.policy())
    done = staylog(running, "fsck")
    assert done.exit_code == 0
    assert done.output.startswith("clean: 5 entries of 1 hosts, 2 signed checkpoints, 1 map pages")
    report = json.loads(staylog(running, "fsck", "--json").output)
    assert report == {
        "origin": "127.0.0.1:8080/log",
        "entries": 5,
        "hosts": 1,
        "checkpoints": 2,
        "pages": 1,
        "findings": [],
    }


def test_fsck_finds_damage_and_says_where(running: Running, writer: Writer) -> None:
    running.add(writer.review())
    with running.ledger.store.write() as connection:
        connection.exec_driver_sql("DELETE FROM tile")
    done = staylog(running, "fsck")
    assert done.exit_code == 1
    assert "wrong tile 0/0 has 0 hashes, its entries give 4" in done.output


def test_a_database_that_cannot_be_reached_is_explained_to_the_operator(tmp_path: Path) -> None:
    url = f"postgresql://postgres@/ledger?host={tmp_path}"
    done = CliRunner().invoke(main, ["init", "--data", str(tmp_path / "data"), "--database-url", url])
    assert done.exit_code == 1
    assert "(storage_unavailable)" in done.output
    assert "No such file or directory" in done.output


def test_fsck_of_nothing_could_not_be_done(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["fsck", "--data", str(tmp_path)])
    assert done.exit_code == 2
    assert "(not_initialised)" in done.output


@pytest.mark.parametrize("command", [["init"], ["serve"], ["fsck"], ["log"], ["log", "add"], ["log", "show"]])
def test_help_teaches_without_the_server(command: list[str]) -> None:
    """Loading a command loads nothing that only the service needs."""
    script = "import sys; from ledger.cli import main; main(standalone_mode=False); print('sqlalchemy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script, *command, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.rstrip().endswith("False")
    assert "Usage:" in done.stdout


def test_a_missing_extra_is_named() -> None:
    """As in the base install, where there is no SQLAlchemy."""
    script = "import sys; sys.modules['sqlalchemy'] = None; from ledger.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", script, "log", "show"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'staylog[server]'" in done.stderr.replace("\n", " ")


def test_added_lines_reach_an_answer_that_verifies(running: Running, writer: Writer) -> None:
    staylog(running, "log", "add", "-", text=lines(*(writer.review() for _ in range(30))))
    size = running.ledger.reader.refresh().size
    assert json.loads(running.answer(HOST, size=size))["total_reviews"] == 30
    assert os.environ.get("STAYLOG_DATA") is None


def public_ledger(folder: Path, environment: str = "https://ledger.example") -> tuple[str, ...]:
    where = ("--data", str(folder / "public"))
    done = CliRunner().invoke(main, ["init", *where, "--base-url", environment])
    assert done.exit_code == 0, done.output
    return where


def test_refuses_entries_about_hosts_on_a_public_ledger(tmp_path: Path, writer: Writer) -> None:
    where = public_ledger(tmp_path)
    [review] = [Integrated(2, writer.review().at("2026-06-01T12:00:00Z"), NOWHERE, repeated=False)]
    drafts = (
        writer.review(),
        writer.response(review),
        writer.upgrade(review),
        writer.redaction(review),
        writer.check(),
    )
    for draft in drafts:
        done = CliRunner().invoke(main, ["log", "add", "-", *where], input=lines(writer.policy(), draft))
        assert done.exit_code == 1
        assert "line 2 (entry_not_by_hand)" in done.output, done.output
        assert "Nothing was added." in done.output
    issuer = json.dumps({"type": "issuer", "v": 1, **TRUST}) + "\n"
    done = CliRunner().invoke(main, ["log", "add", "-", *where], input=lines(writer.policy()) + issuer)
    assert (done.exit_code, "2 entries added, 2 to 3" in done.output) == (0, True), done.output


def test_another_base_url_does_not_make_a_public_ledger_private(tmp_path: Path, writer: Writer) -> None:
    where = public_ledger(tmp_path)
    environment = {"STAYLOG_BASE_URL": "http://127.0.0.1:8080"}
    done = CliRunner().invoke(main, ["log", "add", "-", *where], input=lines(writer.review()), env=environment)
    assert (done.exit_code, "entry_not_by_hand" in done.output) == (1, True)


@pytest.mark.parametrize("base_url", ["http://localhost:8080", "http://[::1]:8080", "http://127.0.0.1:9999"])
def test_takes_reviews_where_no_other_machine_reaches_the_ledger(tmp_path: Path, writer: Writer, base_url: str) -> None:
    where = public_ledger(tmp_path, base_url)
    done = CliRunner().invoke(main, ["log", "add", "-", *where], input=lines(writer.review()))
    assert done.exit_code == 0, done.output


def test_a_private_ledger_that_is_served_to_others_is_public(tmp_path: Path, writer: Writer) -> None:
    where = public_ledger(tmp_path, "http://127.0.0.1:8080")
    environment = {"STAYLOG_BASE_URL": "https://ledger.example"}
    done = CliRunner().invoke(main, ["log", "add", "-", *where], input=lines(writer.review()), env=environment)
    assert (done.exit_code, "entry_not_by_hand" in done.output) == (1, True)
