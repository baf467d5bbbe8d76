"""`make bench` in its quick form: the table, results.json, and when it fails. The figures themselves are not judged."""

import json
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks import __main__ as command
from benchmarks import measure
from benchmarks.engines import find_postgres, start_engines
from benchmarks.measure import require
from benchmarks.report import Bar, Row, at_least, at_most, missed, times_less

ROOT = Path(__file__).parent.parent
WORKS = {
    1: [
        "append",
        "first root",
        "first inclusion",
        "inclusion proof, warm",
        "consistency proof, warm",
        "verify inclusion",
        "verify consistency",
        "inclusion proof, leaf not asked for before",
    ],
    2: ["inclusion proof, warm", "open in a fresh process", "peak memory"],
    3: ["integrate, 64 waiting"],
    4: ["lone review to receipt"],
    5: ["POST /v1/reviews, whole"],
    6: ["reputation without proof", "reputation full proof"],
    7: ["verify a full proof"],
    9: ["audit, 600 events, 255 per", "audit, 600 events, 1 per", "audit, 2,000 events", "audit, peak memory"],
    11: [
        "verdict, guest, eddsa-jcs-2022",
        "verdict, guest, Ed25519Signature2020",
        "verdict, signed response",
        "refuse the poison credential",
    ],
    12: ["guest reference on 2 threads, wall"],
}


def test_quick_run_measures_every_row(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--out", str(out)], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(out.read_text())
    assert results["quick"] is True
    assert results["machine"].keys() == {
        "python",
        "sqlite",
        "pymerkle",
        "pynacl",
        "cpus",
        "fdatasync_ms",
        "ed25519_verify_us",
    }
    for number, works in WORKS.items():
        measured = [row["work"] for row in results["rows"] if row["row"] == number]
        for work in works:
            assert any(name.startswith(work) for name in measured), f"row {number} has no {work!r}: {measured}"
    for row in results["rows"]:
        check_row(row)
        assert row["work"] in done.stdout
    assert all(f" {name} " in done.stdout for name in ("#", "work", "peer or bound", "ours", "ratio", "bar", "met?"))
    assert str(ROOT) not in out.read_text() + done.stdout
    engines = [row["work"] for row in results["rows"] if row["row"] in (3, 4)]
    has_postgres = find_postgres() is not None
    assert any("SQLite" in name for name in engines)
    assert any("PostgreSQL" in name for name in engines) == has_postgres
    assert ("No PostgreSQL was measured" in done.stdout) == (not has_postgres)


def check_row(row: dict[str, Any]) -> None:
    ours, peer = row["median"]["ours"], row["median"]["peer"]
    assert ours > 0
    assert peer > 0
    upwards = row["unit"] == "/s" or (row["bar"] or "").startswith("at most")
    assert row["ratio"] == pytest.approx(ours / peer if upwards else peer / ours)
    assert row["verdict"] in ("yes", "NO", "no (warns)", "no bar")
    assert (row["met"] is None) == (row["bar"] is None)
    assert all(row["rounds"][side] for side in ("ours", "peer"))


def test_a_round_at_full_pace_has_the_machine_to_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both loops, before and after it, are about as quick as the quickest."""
    seconds = iter([1.0, 1.05, 1.5, 1.0, 1.0, 1.3, 1.09, 1.1])
    monkeypatch.setattr(measure, "cpu_per_call", lambda *_: next(seconds))
    pace = measure.Pace()
    samples = [pace.beside(iter([sample]).__next__) for sample in (10.0, 20.0, 30.0, 40.0)]
    assert samples == [10, 20, 30, 40]
    assert pace.full(samples) == [10, 40]


def test_ratio_goes_the_way_of_the_bar() -> None:
    assert make_row(ours=2, peer=3, bar=times_less(1.5)).verdict == "yes"
    assert make_row(ours=2, peer=2.9, bar=times_less(1.5)).verdict == "NO"
    assert make_row(ours=3, peer=2, bar=at_most(1.5)).verdict == "yes"
    assert make_row(ours=3.1, peer=2, bar=at_most(1.5)).verdict == "NO"
    assert make_row(ours=3.1, peer=2, bar=at_most(1.5), gates=False).verdict == "no (warns)"
    assert make_row(ours=1, peer=10, bar=at_least(0.1)).verdict == "yes"
    assert make_row(ours=0.9, peer=10, bar=at_least(0.1)).verdict == "NO"
    assert make_row(ours=0.9, peer=10, bar=at_least(0.1)).shown_ratio == "9%"
    assert make_row(ours=2, peer=1, bar=None).verdict == "no bar"


@pytest.mark.parametrize(
    ("bar", "gates", "quick", "count"),
    [
        (times_less(2), True, False, 1),
        (times_less(2), True, True, 0),
        (times_less(2), False, False, 0),
        (times_less(1), True, False, 0),
        (None, True, False, 0),
    ],
)
def test_only_a_missed_gate_of_a_full_run_fails(bar: Bar | None, gates: bool, quick: bool, count: int) -> None:
    assert len(missed([make_row(ours=1, peer=1.5, bar=bar, gates=gates)], quick=quick)) == count


def test_without_its_wheel_postgresql_is_left_out(tmp_path: Path) -> None:
    with ExitStack() as running:
        engines = start_engines(tmp_path, None, lambda _: None, running)
    assert [engine.name for engine in engines] == ["SQLite"]


def test_a_benchmark_that_compares_different_work_is_broken() -> None:
    with pytest.raises(AssertionError, match="broken"):
        require(False, "the same leaves")


def test_unknown_row_is_explained() -> None:
    result = CliRunner().invoke(command.main, ["--rows", "1,99"])
    assert result.exit_code == 2
    assert "rows are 1, 2, 3, 4, 5, 6, 7, 9, 11, 12" in result.output


def make_row(*, ours: float, peer: float, bar: Bar | None, gates: bool = True) -> Row:
    return Row(1, "work", "peer", "us", {"ours": [ours], "peer": [peer]}, bar, gates)
