"""The demo tests itself; here is that it does, that what it lets one try works, and that it leaves nothing behind."""

import os
import re
import resource
import shlex
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from demo.__main__ import main
from demo.host_site import HostSite
from demo.service import is_free
from demo.tampering import Lie
from demo.traces import files_with

ROOT = Path(__file__).parents[1]


@pytest.fixture
def port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def environment(folder: Path) -> dict[str, str]:
    """Temporary folders are made in `folder`. Settings of another ledger are about, and must not matter."""
    return {
        **os.environ,
        "TMPDIR": str(folder),
        "STAYLOG_DATA": "/nowhere",
        "STAYLOG_BASE_URL": "https://other.example",
    }


def make(arguments: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    """`make demo` in the environment that the tests run in: nothing is set up anew."""
    command = [
        "make",
        "--no-print-directory",
        "--old-file=setup",
        f"BIN={Path(sys.executable).parent}",
        "demo",
        f"ARGS={arguments}",
    ]
    return subprocess.run(command, cwd=ROOT, env=environment(folder), capture_output=True, text=True, check=False)


def computing_seconds() -> float:
    """Of all that was started here and has ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_the_story_comes_out_as_told(port: int, tmp_path: Path) -> None:
    began, computed = time.monotonic(), computing_seconds()
    done = make(f"--once --port {port}", tmp_path)
    assert done.returncode == 0, done.stderr
    # Under a minute where nobody else wants the processors, and here other tests do: so most of all by what it computes.
    assert computing_seconds() - computed < 40
    assert time.monotonic() - began < 120
    assert done.stderr == ""
    told = " ".join(done.stdout.split())
    for words in (
        "entry 2 https://idv.example is trusted",
        "Ada 5.0 stars 201 entry 4, under a signed checkpoint of 6",
        "Ada, again the same 200 entry 4",
        "booking_evidence_invalid, signed by the ledger",
        "holder_mismatch",
        "already_reviewed, signed by the ledger",
        "stay_not_over",
        "not told the rating, the text, who the guest is",
        "signed by did:web:lakeside.example",
        "Dora 4.0 stars 201 guest_verified, by callback",
        "another ledger, with a log and a key of its own, whose clock the demo sets ahead",
        "Emil 202 taken in, signed by the ledger",
        "at once pending, at /v1/submissions/sub-",
        "accepted as unconfirmed",
        "no mean; beside it 1 unconfirmed review, 2.5 stars, and 1 unanswered",
        "Emil finds it, and hands it in: 201 guest_verified, by stay_receipt",
        "1 verified review, 2.5 stars, and still 1 unanswered",
        "Fay 403 booking_denied, signed by the ledger: the host does not know this booking",
        "Fay, with the receipt 201 guest_verified, by stay_receipt",
        "2 verified reviews, 3.0 stars, 1 denied, 1 contradicted",
        "every count and average follows from them",
        "Wrong: average_ratings of the answer",
        "Wrong: the entries shown are not in the tree that was signed",
        "Wrong: the host's map path does not lead to the map root",
        "proved the review rests on exactly this signed submission",
        "ratings.accuracy is 5 in the entry, and 2 in the submission",
        "no honest log makes it from that",
        "nor those of Dora and Fay",
        "gone the text and its salt: from the answers, and from every file of the ledger",
        "redacted the text of rev-",
        "1 of 1 witnesses of the policy agree, which is enough for it",
        "refused (log_behind) the witness w1 says that it has cosigned 23 entries, and we have 6",
        "signed a tree of 12 entries and one of 23",
        "the larger one does not begin with the smaller one",
        "All of it came out as told",
    ):
        assert words in told
    assert "Ctrl-C" not in told
    assert is_free(port)
    assert not list(tmp_path.iterdir())


def test_the_service_stays_and_answers_what_one_is_let_try(port: int, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "demo", "--port", str(port), "--data", str(tmp_path / "kept")]
    demo = subprocess.Popen(
        command, cwd=ROOT, env=environment(tmp_path), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with demo:
        assert demo.stdout is not None
        lines = []
        for line in demo.stdout:
            lines.append(line.strip())
            if "Ctrl-C" in line:
                break
        try:
            tried = [line for line in lines if re.match(r"curl|\.venv/bin/python", line)]
            *asked, verified = [try_it(line) for line in tried]
            assert len(asked) == 4
            assert '"verified_reviews":3' in asked[0]
            assert "The boiler broke" in asked[1]
            assert f"127.0.0.1:{port}/log" in asked[2]
            assert '"status":403' in asked[3]
            assert "3 of 3 reviews are listed" in verified
        finally:
            # To the demo alone: it ends what it has started.
            demo.send_signal(signal.SIGINT)
        assert demo.stdout.read().strip() == "The service stops."
    assert demo.returncode == 0
    assert is_free(port)
    with pytest.raises(ProcessLookupError):
        os.killpg(demo.pid, 0)
    assert (tmp_path / "kept" / "ada-receipt.json").exists()
    assert stat.S_IMODE((tmp_path / "kept" / "hosts" / "certificate.pem").stat().st_mode) == 0o600


def try_it(line: str) -> str:
    command = shlex.split(line)
    command[0] = sys.executable if command[0] == ".venv/bin/python" else command[0]
    fail = ["--fail"] if command[0] == "curl" else []
    return subprocess.run([*command, *fail], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_what_does_not_come_out_as_told_is_not_told(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The truth is announced as a lie, and the verifier does not refuse it."""
    monkeypatch.setattr("demo.story.lies", lambda answer, *_: [Lie("the truth", answer, "it is refused")])
    done = CliRunner().invoke(main, ["--once", "--port", str(port)])
    assert done.exit_code == 1
    assert "expected  exit status 1, and: Wrong: it is refused" in done.output
    assert "came      exit status 0, and: proved" in done.output
    assert "the truth" not in done.output
    assert "All of it came out as told" not in done.output
    assert is_free(port)


def test_a_host_that_denies_is_not_told_as_one_that_confirms(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The books of the host are empty: what it signs, over TLS, decides what is told."""
    opened = HostSite.open
    monkeypatch.setattr(HostSite, "open", lambda site, host, _stays, *ledger: opened(site, host, [], *ledger))
    done = CliRunner().invoke(main, ["--once", "--port", str(port)])
    assert done.exit_code == 1
    assert "the answer to Dora's review\n  expected  (201, None)\n  came      (403, 'booking_denied')" in done.output
    assert "guest_verified, by callback" not in done.output
    assert is_free(port)


def test_what_a_file_has_is_found(tmp_path: Path) -> None:
    """That nothing is found says something only if it would be."""
    (tmp_path / "ledger.db-wal").write_bytes(b"\x00Karl Brenner\xff\x80salt")
    (tmp_path / "log.key").write_bytes(b"a key")
    for trace in ("Karl Brenner", b"\xff\x80salt"):
        assert files_with(tmp_path, "nobody", trace) == ["ledger.db-wal"]
    assert files_with(tmp_path, "nobody", b"\xff\x81") == []


def test_a_port_in_use_is_explained(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = make(f"--once --port {port}", tmp_path)
    assert done.returncode != 0
    assert f"port {port} is in use; choose another one: make demo ARGS='--port 8090'" in done.stderr
    assert done.stdout == ""


def test_nothing_is_written_into_a_folder_that_exists(port: int, tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["--once", "--port", str(port), "--data", str(tmp_path)])
    assert done.exit_code == 1
    assert "name a folder that is not there yet" in done.output
    assert not list(tmp_path.iterdir())
