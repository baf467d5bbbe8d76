"""`staylog witness` as people type it, and as a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest
from click.testing import CliRunner, Result

from audits.witness.folder import CHECKPOINTS, KEY, LOGS
from audits.witness.judge import Witness
from audits.witness.memory import log_id
from ledger.cli import main
from ledger.log.note import COSIGNATURE, Verifier
from ledger.log.policy import Policy
from tests.audits.witnessing import NAME, Log

LOG = Log("log.example/a")
STAYLOG = str(Path(sys.executable).with_name("staylog"))


def command(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["witness", *map(str, arguments)])


def refused(*arguments: str | Path) -> str:
    ran = command(*arguments)
    assert ran.exit_code == 1
    assert "Traceback" not in ran.output
    return ran.output


@contextmanager
def serving(*arguments: str | Path, stop: signal.Signals = signal.SIGTERM) -> Iterator[tuple[str, list[str]]]:
    """Where a process of its own listens, and what it has said by then; it ends in order when it is told to stop."""
    line = [STAYLOG, "witness", "serve", "--port", "0", *map(str, arguments)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment) as server:
        assert server.stdout is not None
        told = []
        for text in server.stdout:
            told.append(text)
            if text.startswith("  ") and not text.startswith("  witness "):
                break
        try:
            found = re.search(r"listens on (\S+)", "".join(told))
            assert found, told
            yield found[1], told
        finally:
            server.send_signal(stop)
            rest, _ = server.communicate(timeout=20)
            assert server.returncode == 0, rest
            assert "Traceback" not in rest


def test_from_nothing_to_a_witness(tmp_path: Path) -> None:
    data = tmp_path / "witness"
    ran = command("init", "--data", data, "--name", NAME)
    assert ran.exit_code == 0, ran.output
    line = next(each.strip() for each in ran.output.splitlines() if each.startswith("  witness "))
    witness = Policy.parse(f"{line}\nquorum w1\n").witnesses["w1"]
    assert (witness.verifier.name, witness.verifier.algorithm) == (NAME, COSIGNATURE)
    assert witness.url == f"https://{NAME}"
    assert ((data / KEY).stat().st_mode & 0o777, data.stat().st_mode & 0o777) == (0o600, 0o700)
    assert command("key", "--data", data).output == f"{witness.verifier}\n"
    assert "no log is trusted yet" in command("show", "--data", data).output

    assert command("trust", str(LOG.verifier), "--data", data).output == f"{LOG.origin} is trusted\n"
    assert command("trust", str(LOG.verifier), "--data", data).output == f"{LOG.origin} is trusted already\n"
    assert Policy.parse((data / LOGS).read_text()).logs == [LOG.verifier]
    assert f"{LOG.origin}: nothing yet" in command("show", "--data", data).output
    with closing(Witness(data)) as opened:
        opened.add_checkpoint(LOG.request(0, 5).encode())
        assert f"{LOG.origin}: 5 entries, cosigned 2" in command("show", "--data", data).output


def test_refusals_say_what_to_do(tmp_path: Path) -> None:
    data, nowhere = tmp_path / "witness", tmp_path / "nowhere"
    for missing in (["key"], ["show"], ["serve"], ["trust", str(LOG.verifier)]):
        assert "run `staylog witness init`" in refused(*missing, "--data", nowhere)
    assert not nowhere.exists()
    assert "(vkey_malformed)" in refused("init", "--data", data, "--name", "a b")
    command("init", "--data", data, "--name", NAME)
    assert "(already_initialised)" in refused("init", "--data", data, "--name", NAME)
    assert "(vkey_malformed)" in refused("trust", "log.example", "--data", data)
    assert "type 01" in refused("trust", command("key", "--data", data).output.strip(), "--data", data)
    assert "its name cannot be changed" in refused("serve", "--data", data, "--name", "other.example")
    (tmp_path / "file").write_text("")
    assert "(file_unwritable)" in refused("init", "--data", tmp_path / "file" / "below", "--name", NAME)
    with closing(Witness(data)):
        assert "another process witnesses there" in refused("serve", "--data", data, "--port", "0")
        everything = refused("serve", "--data", data, "--port", "0", "--trusted-proxies", "::ffff:0:0/96")
        assert "trusted proxies include 0.0.0.0/0" in everything
    with serving("--data", data) as (url, _):
        port = url.rpartition(":")[2]
        assert "cannot listen" in refused("serve", "--data", tmp_path / "second", "--name", "b.example", "--port", port)
    (data / CHECKPOINTS / log_id(LOG.origin)).write_text("torn")
    assert "Never delete it" in refused("serve", "--data", data).replace("\n", " ")
    (data / KEY).chmod(0o644)
    assert "chmod 600" in refused("key", "--data", data)


def test_serving_a_new_folder(tmp_path: Path) -> None:
    """Trust counts without another start, and Ctrl-C ends it."""
    data, other = tmp_path / "witness", Log("log.example/b")
    start = ("--data", data, "--name", NAME, "--log", str(LOG.verifier))
    with serving(*start, stop=signal.SIGINT) as (url, told):
        assert told[0] == f"Witness {NAME} listens on {url}\n"
        verifier = Verifier.parse(command("key", "--data", data).output.strip())
        assert f"  witness w1 {verifier} {url}\n" in told
        assert told[-1] == f"  {LOG.origin}: nothing yet\n"
        with urlopen(f"{url}/add-checkpoint", LOG.request(0, 5).encode()) as answer:
            assert answer.read().decode().startswith(f"— {NAME} ")
        command("trust", str(other.verifier), "--data", data)
        with urlopen(f"{url}/add-checkpoint", other.request(0, 3).encode()) as answer:
            assert answer.status == 200
        with urlopen(url) as answer:
            assert f"{other.origin}: 3 entries" in answer.read().decode()
    with serving(*start, "--url", "https://w.example/") as (_, told):
        assert f"  witness w1 {verifier} https://w.example\n" in told
        assert told[-1].startswith(f"  {LOG.origin}: 5 entries, cosigned 2")


def test_a_time_to_come_is_warned_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command("init", "--data", tmp_path, "--name", NAME)
    command("trust", str(LOG.verifier), "--data", tmp_path)
    with closing(Witness(tmp_path, lambda: 2**62)) as opened:
        opened.add_checkpoint(LOG.request(0, 5).encode())
    monkeypatch.setattr("audits.witness.server.WitnessServer.serve_forever", lambda *_, **__: None)
    ran = command("serve", "--data", tmp_path, "--port", "0")
    assert ran.exit_code == 0, ran.output
    assert f"warning: {LOG.origin}: 5 entries, cosigned 9999-12-31T23:59:59Z, which is to come" in ran.stderr


@pytest.mark.parametrize("name", ["init", "trust", "serve", "key", "show"])
def test_help_teaches(name: str) -> None:
    text = command(name, "--help").output
    assert "The folder of the witness" in text
    if name not in ("key", "show"):
        assert f"  staylog witness {name} " in command("--help").output
