"""`staylog audit` as a person uses it: words that teach, a status that says it all, and no traceback whatever comes."""

import json
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from nacl.signing import SigningKey

from audits.result import NEVER
from audits.state import FILE
from ledger.cli import main
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.mark import Mark
from ledger.log.mark_file import MarkFile
from ledger.log.note import COSIGNATURE, ED25519, Verifier
from tests.audits.honest import Honest, lay_out
from tests.audits.interrupted import lying
from tests.world import KEY, LOG

OTHER = Verifier(LOG.name, ED25519, bytes(SigningKey(bytes(32)).verify_key))
WITNESS = Verifier("witness.example/w", COSIGNATURE, bytes(SigningKey(b"w" * 32).verify_key))
# Clears the screen, turns the line around, rings, is markup of the terminal library, is no character at all.
HOSTILE = "\x1b[2J\u202e\x07[red]\x9b31m\u2028\x00"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a state, findings go where one is."""
    monkeypatch.chdir(tmp_path)


def run(*arguments: str | Path, command: tuple[str, ...] = ("audit",)) -> Result:
    """However it ends, it says so itself."""
    ran = CliRunner().invoke(main, [*command, *map(str, arguments)])
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    assert "Traceback" not in ran.output
    for character in "\x1b\u202e\x07\x9b\u2028\x00":
        assert character not in ran.output
    return ran


def keyed(log: Verifier = LOG) -> list[str]:
    return ["--key", str(log)]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = Honest(4)
    world.take("issuer", "issuer", "issuer")
    return lay_out(world.grow(20).log, tmp_path_factory.mktemp("clean"))


@pytest.fixture(scope="module")
def lies(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lay_out(lying("wrong_head", batches=20), tmp_path_factory.mktemp("lies"))


class TestHelp:
    @pytest.mark.parametrize(
        ("command", "says"),
        [
            ([], ["audit", "mirror", "verify"]),
            (["audit"], ["staylog audit https://", "report", "check-fraud", "check-promise", "short for"]),
            (
                ["audit", "run"],
                ["--key", "--state", "--policy", "--checkpoint", "--host", "Exit status 0", "1 that", "2 that"],
            ),
            (["audit", "https://ledger.example"], ["--key", "Exit status 0"]),
            (["audit", "report"], ["--state", "report.html", "HTML"]),
            (["audit", "check-fraud"], ["`signed` means", "`observed` means", "--key"]),
            (["audit", "check-promise"], ["INTAKE.json", "URL", "Exit status 0", "--out"]),
            (["mirror"], ["URL DIR", "http.server", "redacts", "--key"]),
        ],
    )
    def test_help_teaches(self, command: list[str], says: list[str]) -> None:
        shown = run("--help", command=tuple(command))
        assert shown.exit_code == 0
        words = " ".join(shown.stdout.split())
        for said in says:
            assert said in words

    def test_without_anything_it_explains_itself(self) -> None:
        assert "staylog audit report" in run().output
        assert run("-h").exit_code == 0

    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["."], "--key"),
            ([".", "--key", "nonsense"], "vkey_malformed"),
            ([*keyed()], "URL"),
            ([".", *keyed(), "--sample", "-1"], "--sample"),
            ([".", *keyed(), "--frobnicate"], "--frobnicate"),
            ([".", *keyed(), "--host", "cottage.example"], "did_not_canonical"),
            ([".", *keyed(), "--policy", "nothing"], "does not exist"),
            (["report"], "--state"),
            (["check-fraud", "nothing", *keyed()], "does not exist"),
        ],
    )
    def test_a_wrong_call_says_what_to_do(self, arguments: list[str], says: str) -> None:
        ran = run(*arguments)
        assert (ran.exit_code, says in ran.stderr) == (2, True), ran.output


class TestRuns:
    def test_a_url_is_enough(self, clean: Path) -> None:
        """`audit URL` is `audit run URL`, and options may stand anywhere."""
        said = [
            run(clean, *keyed(), "--json"),
            run("run", clean, *keyed(), "--json"),
            run(*keyed(), "--json", clean),
            run("--json", *keyed(), clean),
            run("--sample", "20", clean, *keyed(), "--json"),
        ]
        assert {each.exit_code for each in said} == {0}
        assert len({each.stdout for each in said}) == 1
        assert json.loads(said[0].stdout)["verdict"] == "clean"

    def test_a_clean_log_is_told_in_plain_words(self, clean: Path) -> None:
        ran = run(clean, *keyed())
        assert ran.exit_code == 0
        assert f"{LOG.name}: clean" in ran.stdout
        assert "map heads: each derived again" in ran.stdout
        assert all(each in ran.stdout for each in NEVER)
        assert "With --state DIR" in ran.stdout
        assert ran.stderr == ""

    def test_a_lie_becomes_a_file_that_anybody_checks(self, lies: Path, tmp_path: Path) -> None:
        for more, folder in (
            (["--out", str(tmp_path / "out")], tmp_path / "out"),
            (["--state", str(tmp_path / "state")], tmp_path / "state/findings"),
        ):
            ran = run(lies, *keyed(), *more)
            assert ran.exit_code == 1
            assert "finding" in ran.stdout
            [file] = folder.iterdir()
            assert file.name.startswith("map_root_mismatch-")
            assert str(file) in ran.stdout
            assert "staylog audit check-fraud FILE --key VKEY" in ran.stdout
            checked = run("check-fraud", file, *keyed())
            assert (checked.exit_code, "it has to be" in " ".join(checked.stdout.split())) == (0, True), checked.output
            assert run("check-fraud", file, *keyed(OTHER)).exit_code == 1
            assert json.loads(run("check-fraud", file, *keyed(), "--json").stdout)["proved"]
            refused = run("check-fraud", file, *keyed(OTHER), "--json")
            assert (refused.exit_code, json.loads(refused.stdout)["code"]) == (1, "signer_unknown")

    def test_findings_go_where_one_is(self, lies: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        assert run(lies, *keyed()).exit_code == 1
        assert [path.parent.name for path in tmp_path.rglob("*.json")] == ["findings"]
        (tmp_path / "taken").write_text("a file")
        refused = run(lies, *keyed(), "--out", tmp_path / "taken/below")
        assert (refused.exit_code, "file_unwritable" in refused.stderr) == (2, True)

    def test_the_next_one_goes_on_and_what_was_seen_elsewhere_is_held_against_it(
        self, clean: Path, tmp_path: Path
    ) -> None:
        note = (clean / "log/checkpoint").read_text()
        (tmp_path / "seen.txt").write_text(note)
        (tmp_path / "receipt.json").write_text(json.dumps({"checkpoint": note}))
        (tmp_path / "answer.json").write_text(json.dumps({"proof": {"checkpoint": note}}))
        seen = [
            part for name in ("seen.txt", "receipt.json", "answer.json") for part in ("--checkpoint", tmp_path / name)
        ]
        for _ in range(2):
            assert run(clean, *keyed(), "--state", tmp_path / "state", *seen).exit_code == 0
        other = sign_checkpoint(Checkpoint(LOG.name, 5, bytes(32)), KEY)
        (tmp_path / "fork.txt").write_text(other)
        forked = run(clean, *keyed(), "--checkpoint", tmp_path / "fork.txt", "--out", tmp_path)
        assert (forked.exit_code, "log_forked" in forked.stdout) == (1, True)

    def test_every_checkpoint_that_is_given_is_compared(self, clean: Path, tmp_path: Path) -> None:
        """With the log as far as it goes, and beyond its end with each other."""
        given: list[str | Path] = []
        for number, (size, root) in enumerate([(5, bytes(32)), (7, bytes(32)), (900, bytes(32)), (900, b"9" * 32)]):
            (tmp_path / f"{number}.txt").write_text(sign_checkpoint(Checkpoint(LOG.name, size, root), KEY))
            given += ["--checkpoint", tmp_path / f"{number}.txt"]
        audited = run(clean, *keyed(), *given, "--out", tmp_path, "--json")
        assert audited.exit_code == 1
        found = [(each["code"], each["claim"].split(" entries")[0]) for each in json.loads(audited.stdout)["findings"]]
        size = json.loads(audited.stdout)["size"]
        assert sorted(found) == sorted(
            [("log_forked", f"the log signed a tree of {each}") for each in (size, size, 900)]
        )
        for finding in json.loads(audited.stdout)["findings"]:
            assert run(finding["file"], *keyed(), command=("audit", "check-fraud")).exit_code == 0

    @pytest.mark.parametrize(
        "content",
        [
            b"{}",
            b"[]",
            b'{"proof": "text"}',
            b'{"proof": ["text"]}',
            b'{"proof": {"checkpoint": 7}}',
            b"{",
            b"\xff",
            HOSTILE.encode(),
            sign_checkpoint(Checkpoint(LOG.name, 5, bytes(32)), KEY).replace("5", "6").encode(),
        ],
    )
    def test_what_is_no_checkpoint_is_not_held_against_it(self, clean: Path, tmp_path: Path, content: bytes) -> None:
        (tmp_path / "broken").write_bytes(content)
        ran = run(clean, *keyed(), "--checkpoint", tmp_path / "broken", "--json")
        assert (ran.exit_code, json.loads(ran.stdout)["verdict"]) == (2, "incomplete")

    def test_every_mark_that_is_given_is_compared(self, clean: Path, tmp_path: Path) -> None:
        """A mark is not signed: one that does not fit makes the audit incomplete, and convicts nothing."""
        newest = open_checkpoint((clean / "log/checkpoint").read_text(), LOG)
        for name, mark in {
            "same": Mark(newest.size, newest.root),
            "ahead": Mark(newest.size + 2, newest.root),
            "other": Mark(5, bytes(32)),
        }.items():
            (tmp_path / name).mkdir()
            MarkFile(tmp_path / name / "last-signed").write(mark)
        audited = run(clean, *keyed(), "--mark", tmp_path / "same", "--mark", tmp_path / "same/last-signed", "--json")
        assert audited.exit_code == 0
        audited = run(clean, *keyed(), "--mark", tmp_path / "ahead", "--mark", tmp_path / "other", "--json")
        told = json.loads(audited.stdout)
        assert (audited.exit_code, told["findings"], len(told["unchecked"])) == (2, [], 2)
        assert f"2 entries that {tmp_path / 'ahead'} knows of" in told["unchecked"][0]
        assert "another history of 5 entries" in told["unchecked"][1]

    def test_a_mark_that_is_missing_or_damaged_is_refused(self, clean: Path, tmp_path: Path) -> None:
        assert refused(clean, *keyed(), "--mark", tmp_path)["code"] == "file_unreadable"
        (tmp_path / "last-signed").write_bytes(b"damaged")
        assert refused(clean, *keyed(), "--mark", tmp_path)["code"] == "mark_unreadable"


def refused(*arguments: str | Path) -> dict[str, Any]:
    """Nothing could be audited: in words, and as JSON."""
    in_words, as_json = run(*arguments), run(*arguments, "--json")
    assert (in_words.exit_code, as_json.exit_code, in_words.stdout) == (2, 2, "")
    told: dict[str, Any] = json.loads(as_json.stdout)
    assert told["verdict"] == "incomplete"
    assert told["code"] in in_words.stderr
    return told


class TestRefusals:
    def test_nobody_answers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("audits.source.TRIES", 1)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        assert refused(f"http://127.0.0.1:{port}", *keyed())["code"] == "ledger_unreachable"

    def test_there_is_no_log(self, tmp_path: Path) -> None:
        assert refused(tmp_path, *keyed())["code"] == "not_found"
        assert refused(tmp_path / "nothing", *keyed())["code"] == "settings_invalid"
        assert refused("http://[::1", *keyed())["code"] == "settings_invalid"

    def test_another_key(self, clean: Path) -> None:
        assert refused(clean, *keyed(OTHER))["code"] == "signer_unknown"
        assert (
            refused(clean, *keyed(Verifier("other.example/log", ED25519, LOG.public_key)))["code"] == "signer_unknown"
        )

    @pytest.mark.parametrize(
        "note",
        [
            b"",
            b"\xff\xfe",
            b"<html>",
            HOSTILE.encode(),
            f"{HOSTILE}\n5\n{'A' * 43}=\n\n".encode(),
            f"{LOG.name}\n5\n{'A' * 43}=\n\n".encode(),
            f"{LOG.name}\n5\n{'A' * 43}=\n\n— {LOG.name} {'A' * 88}\n".encode(),
            sign_checkpoint(Checkpoint(LOG.name, 5, bytes(32)), KEY).replace("\n5\n", "\n6\n").encode(),
            sign_checkpoint(Checkpoint(LOG.name, 0, bytes(32)), KEY).encode(),
            sign_checkpoint(Checkpoint(LOG.name, 1, bytes(32)), KEY).encode(),
        ],
    )
    def test_what_is_no_signed_checkpoint(self, tmp_path: Path, note: bytes) -> None:
        (tmp_path / "log").mkdir()
        (tmp_path / "log/checkpoint").write_bytes(note)
        refused(tmp_path, *keyed())

    def test_a_missing_quorum_is_said(self, clean: Path, tmp_path: Path) -> None:
        """Not everything could be checked; the rest was."""
        lines = f"log {LOG}\nwitness w {WITNESS}\n"
        (tmp_path / "one").write_text(f"{lines}quorum w\n")
        (tmp_path / "none").write_text(f"{lines}quorum none\n")
        ran = run(clean, *keyed(), "--policy", tmp_path / "one", "--json")
        told = json.loads(ran.stdout)
        assert (ran.exit_code, told["verdict"], told["findings"]) == (2, "incomplete", [])
        assert "enough witnesses" in told["unchecked"][0]
        assert told["witnesses"] == [{"name": "w", "cosigned": 0, "newest": None}]
        assert told["checked"][-1] == "0 of 1 witnesses of the policy cosigned this very checkpoint"
        assert run(clean, *keyed(), "--policy", tmp_path / "none").exit_code == 0
        (tmp_path / "none").write_text(f"quorum {HOSTILE}\n")
        assert refused(clean, *keyed(), "--policy", tmp_path / "none")["code"] == "policy_malformed"

    @pytest.mark.parametrize("content", ["", "{}", "[]", "{", HOSTILE, '{"type":"StaylogFraudProof","v":1}'])
    def test_what_is_no_fraud_proof(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "proof.json").write_text(content)
        assert run("check-fraud", tmp_path / "proof.json", *keyed()).exit_code == 1
        assert run("check-fraud", tmp_path / "proof.json", "--key", "nonsense").exit_code == 1


class TestReports:
    def test_the_last_audit_as_a_page(self, lies: Path, tmp_path: Path) -> None:
        """In a folder whose name is no address."""
        state, out = tmp_path / "state #1? 100%", tmp_path / "report.html"
        assert run(lies, *keyed(), "--state", state).exit_code == 1
        ran = run("report", "--state", state, "--out", out)
        assert ran.exit_code == 0, ran.output
        assert (
            f"report.html: findings, {json.loads(run(lies, *keyed(), '--json').stdout)['size']:,} entries" in ran.stdout
        )
        page = out.read_text("utf-8")
        assert page.startswith("<!doctype html>")
        assert "map_root_mismatch" in page

    def test_without_an_audit_there_is_nothing_to_report(self, tmp_path: Path) -> None:
        ran = run("report", "--state", tmp_path, "--out", tmp_path / "report.html")
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert f"{tmp_path} has no audit: run `staylog audit URL --key VKEY --state {tmp_path}`" in ran.stderr
        assert not (tmp_path / "report.html").exists()

    @pytest.mark.parametrize("content", [b"", b"no database at all" * 100])
    def test_nor_is_there_in_what_is_none(self, tmp_path: Path, content: bytes) -> None:
        (tmp_path / FILE).write_bytes(content)
        assert run("report", "--state", tmp_path, "--out", tmp_path / "report.html").exit_code == 2

    def test_a_page_that_cannot_be_written_is_said(self, clean: Path, tmp_path: Path) -> None:
        assert run(clean, *keyed(), "--state", tmp_path).exit_code == 0
        assert "file_unwritable" in run("report", "--state", tmp_path, "--out", tmp_path / "no/where").stderr
