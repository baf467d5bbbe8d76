"""Both verifiers as a person runs them: files in, words and an exit status out."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from audits.standalone_verify import main as standalone_main
from ledger.canon import base64
from ledger.cli import main
from tests.audits.test_receipts import RECEIPT, SUBMISSION
from tests.world import HOSTS, LOG, World

ROOT = Path(__file__).parents[2]
STANDALONE = ROOT / "audits" / "standalone_verify.py"
HOST = HOSTS[0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    log = World(7, HOSTS[:2]).grow(10).log
    full = log.answer(HOST)
    files = {
        "full.json": full,
        "aggregate.json": log.answer(HOST, "aggregate"),
        "page0.json": log.answer(HOST, "page", start=0, count=6),
        "page6.json": log.answer(HOST, "page", start=6, count=500),
        "wrong.json": {**full, "total_reviews": full["total_reviews"] + 1},
        "receipt.json": RECEIPT,
        "submission.json": SUBMISSION,
        "pages.json": [log.answer(HOST, "page", start=start, count=6) for start in (18, 0, 12, 6)],
        "list.json": [],
        "escape.json": {**full, "host_since": "\x1b[2J\u202e"},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value))
    (folder / "proof.tlog-proof").write_text(RECEIPT["tlog_proof"])
    older, newer = log.published[2], log.published[-1]
    (folder / "older.txt").write_text(older.note)
    (folder / "newer.txt").write_text(newer.note)
    proof = [base64.encode(node) for node in log.tree.consistency(older.size, newer.size)]
    (folder / "consistency.json").write_text(json.dumps({"first": older.size, "second": newer.size, "proof": proof}))
    (folder / "entry.json").write_text(RECEIPT["entry"])
    (folder / "policy.txt").write_text(f"log {LOG}\nquorum none\n")
    (folder / "binary").write_bytes(b"c2sp.org/tlog-proof@v1\n\xff")
    return folder


def staylog(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["verify", *map(str, arguments), "--key", str(LOG)])


class TestStaylogVerify:
    def test_a_full_answer(self, folder: Path) -> None:
        result = staylog(folder / "full.json", "--host", HOST)
        assert result.exit_code == 0, result.output
        assert "nothing is left out" in result.output
        assert "not proved" in result.output

    def test_pages_together(self, folder: Path) -> None:
        result = staylog(folder / "page6.json", folder / "page0.json", "--host", HOST)
        assert result.exit_code == 0, result.output
        assert "2 pages about" in result.output

    def test_pages_in_one_array(self, folder: Path) -> None:
        result = staylog(folder / "pages.json", "--host", HOST)
        assert result.exit_code == 0, result.output
        assert "4 pages about" in result.output

    def test_the_report_as_json(self, folder: Path) -> None:
        result = staylog(folder / "full.json", "--host", HOST, "--json")
        assert json.loads(result.stdout)["proved"]
        result = staylog(folder / "wrong.json", "--host", HOST, "--json")
        assert (result.exit_code, json.loads(result.stdout)["code"]) == (1, "face_mismatch")

    def test_the_first_thing_that_is_wrong(self, folder: Path) -> None:
        result = staylog(folder / "wrong.json", "--host", HOST)
        assert result.exit_code == 1
        assert "total_reviews" in result.stderr
        assert "face_mismatch" in result.stderr

    def test_age_and_kind(self, folder: Path) -> None:
        assert "too_old" in staylog(folder / "full.json", "--host", HOST, "--max-age", "0.01").stderr
        assert staylog(folder / "full.json", "--host", HOST, "--max-age", "999999").exit_code == 0
        assert "wrong_kind" in staylog(folder / "aggregate.json", "--host", HOST, "--kind", "full").stderr

    def test_a_receipt(self, folder: Path) -> None:
        result = staylog(folder / "receipt.json", "--submission", folder / "submission.json")
        assert result.exit_code == 0, result.output
        assert "signed submission" in result.output

    def test_a_tlog_proof(self, folder: Path) -> None:
        arguments = (folder / "proof.tlog-proof", "--entry", folder / "entry.json")
        assert "that ledger.example/log signed" in staylog(*arguments).output
        assert staylog(*arguments, "--policy", folder / "policy.txt").exit_code == 0

    def test_checkpoints(self, folder: Path) -> None:
        assert "signed a tree of" in staylog(folder / "newer.txt", "--policy", folder / "policy.txt").output
        pair = (folder / "older.txt", folder / "newer.txt")
        grown = (*pair, "--consistency", folder / "consistency.json")
        assert "unchanged" in staylog(*grown).output
        assert "0 of 0 witnesses" in staylog(*grown, "--policy", folder / "policy.txt").output
        assert "index_out_of_range" in staylog(*pair[::-1], "--consistency", folder / "consistency.json").stderr
        assert "answer_malformed" in staylog(*pair, "--consistency", folder / "list.json").stderr

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["full.json"], "--host"),
            (["older.txt", "newer.txt"], "--consistency"),
            (["proof.tlog-proof"], "--entry"),
            (["list.json"], "--host"),
            (["nothing.json"], "does not exist"),
            (["full.json", "receipt.json"], "--host"),
            (["full.json", "--host", HOST, "--max-age", "nan"], "hours from 0"),
            (["full.json", "--host", HOST, "--max-age", "1e9"], "hours from 0"),
            (["full.json", "--host", HOST, "--submission", "receipt.json"], "--submission does not apply to an answer"),
            (["page0.json", "page6.json", "--host", HOST, "--kind", "full"], "--kind does not apply"),
            (["receipt.json", "--max-age", "1"], "--max-age does not apply to a receipt"),
            (["receipt.json", "--entry", "entry.json"], "--entry does not apply"),
        ],
    )
    def test_a_wrong_call_says_what_to_do(
        self, folder: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        result = staylog(*arguments)
        assert result.exit_code == 2
        assert says in result.stderr

    def test_a_receipt_is_no_answer(self, folder: Path) -> None:
        """Whoever asks about a host gets no verdict on something else."""
        result = staylog(folder / "receipt.json", "--host", HOST)
        assert result.exit_code == 1
        assert "answer_malformed" in result.stderr

    def test_nothing_in_a_file_reaches_the_terminal_raw(self, folder: Path) -> None:
        result = staylog(folder / "escape.json", "--host", HOST)
        assert result.exit_code == 1
        assert "\x1b[2J" not in result.stderr
        assert "\u202e" not in result.stderr

    def test_unreadable_files(self, folder: Path) -> None:
        assert "pages_incomplete" in staylog(folder / "list.json", "--host", HOST).stderr
        assert "malformed_json" in staylog(folder / "policy.txt", "--host", HOST).stderr
        assert "not_utf8" in staylog(folder / "binary", "--entry", folder / "entry.json").stderr
        result = CliRunner().invoke(main, ["verify", str(folder / "full.json"), "--key", "nonsense", "--host", HOST])
        assert "vkey_malformed" in result.stderr

    def test_help_teaches(self) -> None:
        assert "verify" in CliRunner().invoke(main, ["--help"]).output
        assert "--max-age" in CliRunner().invoke(main, ["verify", "--help"]).output
        assert CliRunner().invoke(main, ["frobnicate"]).exit_code == 2
        assert version("staylog") in CliRunner().invoke(main, ["--version"]).output


class TestStandalone:
    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", STANDALONE, *arguments]  # isolated: nothing of this project on its path
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")

    def test_it_is_one_file_of_at_most_330_lines(self) -> None:
        lines = STANDALONE.read_text("utf-8").splitlines()
        assert len(lines) <= 330
        assert max(map(len, lines)) <= 120

    def test_it_accepts_and_lists_what_was_proved(self, folder: Path) -> None:
        done = self.run(folder / "full.json", "--key", str(LOG), "--host", HOST)
        assert (done.returncode, done.stderr) == (0, "")
        assert "every count and average follows" in done.stdout

    def test_it_names_the_first_thing_that_is_wrong(self, folder: Path) -> None:
        done = self.run(folder / "wrong.json", "--key", str(LOG), "--host", HOST)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("Wrong: total_reviews")

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["full.json", "--max-age", "0.01"], "not fresh"),
            (["aggregate.json"], ""),
            (["page0.json", "page6.json"], ""),
            (["page0.json"], ""),
            (["pages.json"], ""),
            (["page0.json", "full.json"], "a page is missing"),
            (["page0.json", "page0.json"], "a page is missing"),
            (["full.json", "--max-age", "nan"], "not fresh"),
            (["nothing.json"], "not a readable answer: FileNotFoundError"),
            (["list.json"], "not a readable answer"),
            (["binary"], "not a readable answer: UnicodeDecodeError"),
            (["policy.txt"], "not a readable answer: JSONDecodeError"),
            (["escape.json"], "\\u202e"),
        ],
    )
    def test_other_calls(
        self,
        folder: Path,
        arguments: list[str],
        says: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["standalone_verify.py", *arguments, "--key", str(LOG), "--host", HOST])
        if not says:
            standalone_main()
            assert "proved" in capsys.readouterr().out
        else:
            with pytest.raises(SystemExit) as end:
                standalone_main()
            assert says in str(end.value)
            assert str(end.value).isascii()
            assert str(end.value).isprintable()
