"""`staylog monitor` as people and timers run it: words that teach, a status that says it all, and an end when it is told to."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from nacl.signing import SigningKey

from audits.monitor.alerts import KINDS
from audits.monitor.command import JITTER, follow
from audits.monitor.rounds import Monitor
from ledger.cli import main
from ledger.log.note import ED25519, Verifier
from tests.audits.convicting import STAYLOG
from tests.audits.live import HOSTS, Live, live
from tests.audits.monitoring import closed_port, receiving
from tests.waiting import until

STRANGER = SigningKey(bytes(32)).verify_key


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("audits.source.TRIES", 1)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with live(tmp_path_factory.mktemp("monitored")) as made:
        made.review()
        yield made


def run(*arguments: str | Path, **environment: str) -> Result:
    """However it ends, it says so itself."""
    ran = CliRunner().invoke(main, ["monitor", *map(str, arguments)], env=environment)
    assert ran.exception is None or isinstance(ran.exception, SystemExit), ran.exception
    assert "Traceback" not in ran.output
    return ran


def once(log: Live, *arguments: str | Path, **environment: str) -> tuple[int, list[dict[str, Any]]]:
    ran = run(log.url, "--key", str(log.log), "--once", "--json", *arguments, **environment)
    return ran.exit_code, [json.loads(line) for line in ran.stdout.splitlines()]


class TestOnce:
    def test_the_status_says_what_holds(self, log: Live) -> None:
        status, lines = once(log, "--host", HOSTS[0])
        assert (status, [line["code"] for line in lines]) == (0, ["looked"])
        assert (lines[0]["log"], lines[0]["size"]) == (log.log.name, log.size)
        added = log.review()
        status, lines = once(log, "--host", HOSTS[0])
        assert (status, [line["code"] for line in lines]) == (4, ["event", "looked"])
        assert lines[0]["event"]["index"] == added.index
        # What is graver wins, and what was told is not told again.
        log.review()
        status, lines = once(log, "--host", HOSTS[0], "--max-age", "0")
        assert (status, [line["code"] for line in lines]) == (3, ["stalled", "event", "looked"])
        assert [line["code"] for line in once(log, "--max-age", "0")[1]] == ["looked"]
        status, lines = once(log)
        assert (status, [line["code"] for line in lines]) == (0, ["recovered", "looked"])

    def test_it_remembers_though_nobody_says_where(self, log: Live, tmp_path: Path) -> None:
        once(log)
        assert [path.name for path in tmp_path.iterdir()] == [f"monitor-{log.log.key_id.hex()}"]

    def test_a_log_that_is_not_there(self, log: Live) -> None:
        given = (closed_port(), "--key", str(log.log), "--once", "--json")
        first = run(*given)
        assert (first.exit_code, json.loads(first.stdout)["code"]) == (2, "looked")
        assert "not all could be looked at: the log does not answer" in first.stdout
        second = run(*given, "--patience", "0")
        codes = [json.loads(line)["code"] for line in second.stdout.splitlines()]
        assert (second.exit_code, codes) == (3, ["unreachable", "looked"])

    def test_another_key_signed_it(self, log: Live) -> None:
        other = Verifier(log.log.name, ED25519, bytes(STRANGER))
        ran = run(log.url, "--key", str(other), "--once")
        assert (ran.exit_code, "unsigned" in ran.stdout) == (2, True)

    def test_one_that_is_stopped_has_not_looked(self, log: Live, monkeypatch: pytest.MonkeyPatch) -> None:
        def stop(_: Monitor) -> int:
            raise KeyboardInterrupt

        monkeypatch.setattr(Monitor, "round", stop)
        given = (log.url, "--key", str(log.log))
        assert [run(*given, "--once").exit_code, run(*given).exit_code] == [2, 0]

    def test_plain_lines_are_for_people(self, log: Live) -> None:
        ran = run(log.url, "--key", str(log.log), "--once", "--host", HOSTS[0], "--history")
        assert ran.exit_code == 4
        first, *_, last = ran.stdout.splitlines()
        assert f"info     event: review of {HOSTS[0]}, entry" in first
        assert last.endswith("nothing wrong")

    def test_the_webhook_gets_its_token_from_the_environment(self, log: Live) -> None:
        with receiving() as receiver:
            given = ("--host", HOSTS[0], "--history", "--webhook", receiver.url)
            status, lines = once(log, *given, STAYLOG_WEBHOOK_TOKEN="a-secret-token")
        assert status == 4
        assert receiver.got == lines[:-1]
        assert set(receiver.tokens) == {"Bearer a-secret-token"}


class TestRefusals:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["."], "--key"),
            ([".", "--key", "nonsense"], "vkey_malformed"),
            (["{url}", "--key", "{key}", "--host", "cottage.example"], "did_not_canonical"),
            (["{url}", "--key", "{key}", "--gossip", "nowhere"], "settings_invalid"),
            (["{url}", "--key", "{key}", "--webhook", "hooks.example"], "settings_invalid"),
            (["{url}", "--key", "{key}", "--interval", "0"], "--interval"),
            (["nowhere", "--key", "{key}"], "settings_invalid"),
            (["{url}", "--key", "{key}", "--policy", "policy"], "policy_malformed"),
            (["{url}", "--key", "{key}", "--state", "other"], "is about another log"),
            (["{url}", "--key", "{key}", "--state", "damaged"], "file_unreadable"),
            (["{url}", "--key", "{key}", "--state", "policy/below"], "file_unwritable"),
        ],
    )
    def test_a_wrong_call_says_what_to_do(self, arguments: list[str], says: str, log: Live, tmp_path: Path) -> None:
        (tmp_path / "policy").write_text("nonsense\n")
        (tmp_path / "damaged").mkdir()
        (tmp_path / "damaged/monitor.json").write_text("{")
        other = Verifier("other.example/log", ED25519, bytes(STRANGER))
        run(log.url, "--key", str(other), "--once", "--state", "other")
        ran = run(*(each.format(url=log.url, key=log.log) for each in arguments), "--once")
        assert (ran.exit_code, says in " ".join(ran.stderr.split())) == (2, True), ran.output

    def test_help_tells_the_codes_and_the_status(self) -> None:
        words = " ".join(run("--help").stdout.split())
        for said in ("1 an inconsistency is proved", "2 not everything", "3 stalled", "4 nothing wrong", "SIGTERM"):
            assert said in words
        for said in (*KINDS, "check-fraud", "or observed and not over", "stopped before its one look is over"):
            assert said in words
        for code, (_, status) in KINDS.items():
            assert not status or f" {status} {code} " in words


class TestFollowing:
    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_it_ends_when_it_is_told_to(self, number: int, log: Live, tmp_path: Path) -> None:
        """And tells what happens until then, as it happens."""
        command = [STAYLOG, "monitor", log.url, "--key", str(log.log), "--interval", "1", "--json", "--host", HOSTS[1]]
        environment = {"PYTHONUNBUFFERED": "1"}
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            assert json.loads(process.stdout.readline())["code"] == "looked"
            log.review(HOSTS[1])
            assert json.loads(process.stdout.readline())["event"]["host"] == HOSTS[1]
            # One folder has one monitor.
            refused = run(log.url, "--key", str(log.log), "--once")
            assert (refused.exit_code, "another audit is at work" in " ".join(refused.stderr.split())) == (2, True)
            # Who is stopped between telling and remembering tells it again: better twice than never.
            memory = tmp_path / f"monitor-{log.log.key_id.hex()}" / "monitor.json"
            until(lambda: json.loads(memory.read_text())["told"] == log.size, 20)
            process.send_signal(number)
            assert process.wait(20) == 0
            assert (process.stdout.read(), process.stderr.read()) == ("", "")
        # It goes on where it was.
        assert once(log, "--host", HOSTS[1])[0] == 0

    def test_on_a_terminal_a_status_stands_beside_what_is_told(self, log: Live, tmp_path: Path) -> None:
        """What is told goes where the output goes, byte for byte."""
        reader, terminal = os.openpty()
        command = [
            STAYLOG,
            "monitor",
            log.url,
            "--key",
            str(log.log),
            "--once",
            "--json",
            "--host",
            HOSTS[0],
            "--history",
        ]
        environment = {"TERM": "xterm", "COLUMNS": "40"}
        try:
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=terminal, check=False, timeout=30
            )
            shown = os.read(reader, 65536)
        finally:
            os.close(terminal)
            os.close(reader)
        assert done.returncode == 4
        assert {json.loads(line)["code"] for line in done.stdout.splitlines()} == {"event", "looked"}
        assert b"\x1b[?25l" in shown
        assert b"event" not in shown

    def test_rounds_are_an_interval_and_a_little_apart(self) -> None:
        # What was only observed is no end.
        rounds = [(0, False), (3, False), (1, False), (4, False), (1, True), (0, False)]
        slept, looked = list[float](), list[float]()

        class Rounds:
            is_over = False

            def round(self) -> int:
                status, self.is_over = rounds.pop(0)
                return status

        monitor: Monitor = Rounds()  # type: ignore[assignment]
        assert follow(monitor, 60, slept.append, lambda: 0.5, looked.append) == 1
        assert rounds == [(0, False)]
        assert slept == looked == [60 * (1 + JITTER / 2)] * 4
