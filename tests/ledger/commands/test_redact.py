"""`staylog redact`, as an operator uses it."""

import json
import os
import pty
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from litestar.testing import TestClient

from api.app import create_app
from audits.receipts import verify_receipt, verify_tlog_proof
from ledger.canon import base64
from ledger.commands.redact import MAX_DECISION, redact
from ledger.log.openings import commitment
from ledger.store.engine import Store
from ledger.store.scrub import MOST_REWRITTEN
from tests.database_bytes import Files
from tests.reviewing import HOST, Reviewing, encoded, review
from tests.running import Running, Writer

TEXT = "The neighbour, Ms Elisabeth Jones of 14 Harbour Row, drinks."
DECISION = b"%PDF-1.7 In the name of the people.\x00\xff"


@pytest.fixture
def reviewing(tmp_path: Path, database_url: str) -> Iterator[Reviewing]:
    made = Reviewing(tmp_path / "data", database_url)
    yield made
    made.ledger.close()


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator's folder, with a decision in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "decision.pdf").write_bytes(DECISION)
    return tmp_path


def options(running: Running, review_id: str, part: str = "text", decision: str = "decision.pdf") -> list[str]:
    where = ["--data", str(running.settings.data), "--database-url", running.settings.database_url]
    return [review_id, "--part", part, "--basis", "third_party_data", "--decision", decision, *where]


def redacted(running: Running, review_id: str, *more: str, **given: str) -> Result:
    done = CliRunner().invoke(redact, [*options(running, review_id, **given), *more])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def reviewed(running: Running, writer: Writer, **members: Any) -> str:
    [placed] = running.add(writer.review(**{"text": TEXT, **members}))
    return str(placed.entry.members["review_id"])


def test_a_text_is_withdrawn_while_the_service_runs(reviewing: Reviewing, here: Path, database_url: str) -> None:
    body = review(review_text=TEXT)
    first = reviewing.submit(body).receipt
    review_id, salt = first["review_id"], base64.decode(first["openings"]["text"]["salt"])
    files = Files(database_url)
    with TestClient(create_app(reviewing.ledger, limits=False)) as client:
        before = client.get(f"/v1/hosts/{HOST.did}/reputation").json()
        assert client.get(f"/v1/reviews/{review_id}").json()["entries"][0]["opening"]["text"] == TEXT
        assert files.count(TEXT.encode(), salt) == 2
        done = redacted(reviewing, review_id, "--yes")
        assert done.exit_code == 0, done.output
        reviewing.ledger.reader.refresh()
        for path in (f"/v1/reviews/{review_id}", f"/v1/hosts/{HOST.did}/reputation?proof=full"):
            answer = client.get(path)
            assert answer.status_code == 200
            assert "Jones" not in answer.text
            assert first["openings"]["text"]["salt"] not in answer.text
        entries = client.get(f"/v1/reviews/{review_id}").json()["entries"]
        assert [(each["type"], each["opening"]) for each in entries] == [("review", None), ("redaction", None)]
        after = client.get(f"/v1/hosts/{HOST.did}/reputation").json()
        assert after["average_ratings"] == before["average_ratings"]
        assert (after["verified_reviews"], after["review_history"][0]["review_text"]) == (1, None)
    # What is submitted again gets its receipt again, without the text, and that still holds.
    again = reviewing.submit(body)
    assert again.repeated
    assert again.receipt["openings"]["text"] is None
    report = verify_receipt(encoded(again.receipt), reviewing.ledger.verifier, submission=encoded(body))
    assert any("redacted" in each for each in report.withheld)
    # It verifies, as redacted and not as withheld.
    reviewing.answer(HOST.did)
    assert reviewing.fsck().findings == []


def test_no_file_of_the_database_has_the_text(running: Running, writer: Writer, here: Path, database_url: str) -> None:
    draft = writer.review(text=TEXT)
    assert draft.opening is not None
    running.add(draft, *(writer.review(text=f"Quiet, the {number}th time.") for number in range(5)))
    files = Files(database_url)
    assert files.count(TEXT.encode(), draft.opening.salt) == 2
    done = redacted(running, draft.members["review_id"], "--yes")
    assert done.exit_code == 0, done.output
    assert files.count(TEXT.encode(), draft.opening.salt) == 0
    if running.ledger.store.is_sqlite:
        assert "No file of the database has it any more." in done.output
    else:
        assert "VACUUM" not in done.output
        assert re.search(r"still be in pg_wal/[0-9A-F]{24} and older files beside it, until the server", done.output)
    assert files.count(b"Quiet, the 3th time.") == 1


def test_it_says_what_it_did_and_what_it_cannot_do(running: Running, writer: Writer, here: Path) -> None:
    review_id = reviewed(running, writer)
    done = redacted(running, review_id, "--yes")
    for told in (
        f"text of {review_id}, to be withdrawn by third_party_data",
        "host   did:web:cottage.example, rose-cottage",
        "stay   2026-05-01 to 2026-05-04, guest_verified",
        "withdrawn: entry 4, signed at size 6",
        "The text and its salt are erased here. The ratings stay, and stay counted.",
        "The entry is public, and cannot be taken back.",
        "Caches, mirrors and your own backups may still have the text",
        f"Keep redaction-{review_id}.json with the decision",
    ):
        assert told in done.output
    assert "Jones" not in done.output
    assert "Others are using" not in done.output


def test_the_saved_file_proves_the_entry_and_opens_the_decision(running: Running, writer: Writer, here: Path) -> None:
    review_id = reviewed(running, writer)
    redacted(running, review_id, "--yes")
    path = here / f"redaction-{review_id}.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    saved = json.loads(path.read_bytes())
    assert list(saved) == [
        *("review_id", "part", "basis", "index", "entry", "decision", "checkpoint", "tlog_proof"),
    ]
    entry = json.loads(saved["entry"])
    assert {name: saved[name] for name in ("review_id", "part", "basis")} == {
        name: entry[name] for name in ("review_id", "part", "basis")
    }
    assert entry["decision"] == commitment(base64.decode(saved["decision"]["salt"]), DECISION)
    assert saved["decision"]["sha256"] == sha256(DECISION).hexdigest()
    assert saved["checkpoint"] == running.ledger.reader.refresh().note
    report = verify_tlog_proof(saved["tlog_proof"], saved["entry"].encode(), running.ledger.verifier)
    assert f"the entry is number {saved['index']} of a tree of 6" in report.proved[0]


def test_a_response_is_withdrawn_and_the_review_stays(running: Running, writer: Writer, here: Path) -> None:
    [placed] = running.add(writer.review(text="Quiet."))
    running.add(writer.response(placed, "A lie by Ms Jones."))
    review_id = placed.entry.members["review_id"]
    done = redacted(running, review_id, "--yes", "--show", "--out", "response.json", part="response")
    assert done.exit_code == 0, done.output
    assert "  text   A lie by Ms Jones.\n" in done.output
    [listed] = json.loads(running.answer(size=running.ledger.reader.refresh().size))["review_history"]
    assert (listed["review_text"], listed["host_response"]["response_text"]) == ("Quiet.", None)
    assert json.loads((here / "response.json").read_text())["part"] == "response"
    assert running.fsck().findings == []


def test_a_text_that_is_shown_does_not_command_the_terminal(running: Running, writer: Writer, here: Path) -> None:
    review_id = reviewed(running, writer, text="One\x1b[2J\nTwo")
    assert "  text   One\\x1b[2J\n  text   Two\n" in redacted(running, review_id, "--yes", "--show").output


def test_every_refusal_is_one_message_and_changes_nothing(running: Running, writer: Writer, here: Path) -> None:
    review_id, silent = reviewed(running, writer), reviewed(running, writer, text=None)
    (here / "long.pdf").write_bytes(bytes(MAX_DECISION + 1))
    (here / "empty.pdf").touch()
    (here / "taken.json").write_text("precious")
    size = running.ledger.reader.refresh().size
    unknown = writer.review().members["review_id"]
    for code, done in {
        "review_not_found": redacted(running, unknown, "--yes"),
        "nothing_to_redact": redacted(running, silent, "--yes"),
        "too_large": redacted(running, review_id, "--yes", decision="long.pdf"),
        "schema_invalid": redacted(running, review_id, "--yes", decision="empty.pdf"),
        "file_exists": redacted(running, review_id, "--yes", "--out", "taken.json"),
        "file_unwritable": redacted(running, review_id, "--yes", "--out", "nowhere/record.json"),
        "confirmation_missing": redacted(running, review_id),
    }.items():
        assert done.exit_code == 1, code
        assert done.output.count("refused") == 1
        assert f"({code})" in done.output
    assert redacted(running, review_id, "--yes", "--basis", "because").exit_code == 2
    assert redacted(running, review_id, "--yes", decision="nowhere.pdf").exit_code == 2
    assert redacted(running, "no review", "--yes").output.count("(review_not_found)") == 1
    assert redacted(running, review_id, "--yes", part="response").output.count("(nothing_to_redact)") == 1
    assert running.ledger.reader.refresh().size == size
    assert (here / "taken.json").read_text() == "precious"
    assert not list(here.glob("redaction-*"))
    assert running.ledger.reader.review(review_id, size)[0].opening is not None


def test_a_second_time_is_refused(running: Running, writer: Writer, here: Path) -> None:
    review_id = reviewed(running, writer)
    assert redacted(running, review_id, "--yes").exit_code == 0
    size, saved = running.ledger.reader.refresh().size, (here / f"redaction-{review_id}.json").read_bytes()
    done = redacted(running, review_id, "--yes", "--out", "second.json")
    assert (done.exit_code, "(already_redacted)" in done.output) == (1, True)
    assert "(file_exists)" in redacted(running, review_id, "--yes").output
    assert running.ledger.reader.refresh().size == size
    assert (here / f"redaction-{review_id}.json").read_bytes() == saved
    assert not (here / "second.json").exists()


def test_the_salt_is_shown_where_it_cannot_be_saved(running: Running, writer: Writer, here: Path) -> None:
    """What is done is done by then."""
    review_id, folder = reviewed(running, writer), Path("/proc/self/fdinfo")
    if not folder.is_dir():
        pytest.skip("there is no folder here in which nothing can be made")
    done = redacted(running, review_id, "--yes", "--out", str(folder / "record.json"))
    assert done.exit_code == 1
    assert "(file_unwritable)" in done.output
    assert "withdrawn: entry 4" in done.output
    shown = json.loads(done.stdout[done.stdout.index("{") : done.stdout.rindex("}") + 1])
    assert json.loads(shown["entry"])["decision"] == commitment(base64.decode(shown["decision"]["salt"]), DECISION)


def test_whoever_is_in_the_way_is_told_of(running: Running, writer: Writer, here: Path) -> None:
    review_id = reviewed(running, writer)
    others = Store(running.settings.database_url)
    with others.snapshot() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM entry").all()
        done = redacted(running, review_id, "--yes")
    others.close()
    assert done.exit_code == 0, done.output
    where = (
        "ledger.db-wal, until a running service empties it"
        if running.ledger.store.is_sqlite
        else r"free space in base/\d+/\d+ and base/\d+/\d+, until nothing reads an older state any more"
    )
    assert re.search(where, done.output), done.output


def test_names_the_files_of_a_large_table(running: Running, writer: Writer, here: Path) -> None:
    """It is vacuumed and not written anew: parts of the text may stay in free space."""
    if running.ledger.store.is_sqlite:
        pytest.skip("SQLite overwrites what it erases")
    review_id = reviewed(running, writer)
    running.add(*(writer.review(text=None) for _ in range(MOST_REWRITTEN)))
    done = redacted(running, review_id, "--yes")
    assert re.search(r"free space in base/\d+/\d+ and base/\d+/\d+, until it is used again", done.output)


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_at_a_terminal_it_asks(running: Running, writer: Writer, here: Path, answer: str) -> None:
    review_id = reviewed(running, writer)
    script = "from ledger.commands.redact import redact; redact()"
    operator, terminal = pty.openpty()
    os.write(operator, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-c", script, *options(running, review_id)],
        stdin=terminal,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    os.close(operator)
    os.close(terminal)
    assert "This cannot be taken back. [y/N]" in done.stdout
    assert done.returncode == (0 if answer == "y" else 1), done.stderr
    assert ("Nothing was done." in done.stdout) == (answer != "y")
    assert (here / f"redaction-{review_id}.json").exists() == (answer == "y")
    newest = running.ledger.reader.refresh().size
    assert (running.ledger.reader.review(review_id, newest)[0].opening is None) == (answer == "y")


def test_help_teaches_without_the_server() -> None:
    script = (
        "import sys; from ledger.commands.redact import redact; "
        "redact(standalone_mode=False); print('sqlalchemy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.rstrip().endswith("False")
    assert "staylog redact rev-" in done.stdout
