"""Logs written in Go have our witness cosign what Go's golang.org/x/mod signs and proves, and verify what they get: through
growth, conflict, forks and a race. Neither Debian nor PyPI has a witness or a client for one of another hand."""

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from audits.witness.folder import trust
from audits.witness.http import TEXT
from ledger.log.add_checkpoint import SIZE_TYPE
from ledger.log.note import Verifier
from tests.audits.witnessing import NOW, witness_running
from tests.interop import golang

PROGRAM = Path(__file__).with_name("go") / "witness" / "main.go"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return golang.build(tmp_path_factory.mktemp("go-witness"), PROGRAM)


def run(program: Path, folder: Path) -> dict[str, list[dict[str, Any]]]:
    """What Go was answered, by the names of its steps. It ends when anything does not verify."""
    with witness_running(folder, clock=lambda: NOW) as witness:
        command = [str(program), witness.url, witness.vkey]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin
            assert process.stdout
            for _ in range(2):
                trust(folder, Verifier.parse(process.stdout.readline().strip()))
            answers, _ = process.communicate("trusted\n", timeout=60)
        assert process.returncode == 0
    steps: dict[str, list[dict[str, Any]]] = {}
    for line in answers.splitlines():
        answer = json.loads(line)
        steps.setdefault(answer.pop("step"), []).append(answer)
    return steps


def test_go_drives_the_witness(program: Path, tmp_path: Path) -> None:
    steps = run(program, tmp_path)
    cosigned = [
        each for step in ("first", "again", "grow", "as told", "extension", "further") for each in steps.pop(step)
    ]
    assert len(cosigned) > 25
    assert {(each["status"], each["type"], each["time"]) for each in cosigned} == {(200, TEXT, NOW)}
    assert len({each["text"] for each in cosigned}) == len(cosigned) - 1  # the first is cosigned again
    race = steps.pop("race")
    [empty] = steps.pop("empty")
    assert (empty["status"], empty["time"]) == (200, NOW)
    [monitored] = steps.pop("monitor")
    [raced] = steps.pop("monitor the race")
    assert (monitored["status"], monitored["time"], monitored["text"].split("\n")[:2]) == (
        200,
        NOW,
        ["go.example/honest", "297"],
    )

    conflicts = [steps.pop("outdated"), steps.pop("rolled back")]
    assert [(each["status"], each["type"], each["text"]) for [each] in conflicts] == [
        (409, SIZE_TYPE, "7\n"),
        (409, SIZE_TYPE, "20\n"),
    ]
    assert {step: (each["status"], each["text"].partition(":")[0]) for step, [each] in steps.items()} == {
        "monitor nothing": (404, "not_found"),
        "fork": (422, "root_mismatch"),
        "fork of the same size": (422, "root_mismatch"),
        "wrong proof": (422, "proof_length"),
        "old too large": (400, "old_too_large"),
        "impostor": (403, "signer_unknown"),
        "stranger": (404, "log_unknown"),
        "empty, with another root": (422, "root_mismatch"),
    }
    # One of sixteen histories won, and is what is shown; the others are told how far it is.
    assert Counter(each["status"] for each in race) == {200: 1, 409: 15}
    size = raced["text"].split("\n")[1]
    assert {each["text"] for each in race if each["status"] == 409} == {f"{size}\n"}
    [winner] = [each["text"] for each in race if each["status"] == 200]
    assert raced["text"].endswith(winner)
