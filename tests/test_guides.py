"""What the guides for guests, hosts and agents let one try, against a service that runs."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from api.codes import CODES
from audits.contradictions import ALONE, PAIRS
from demo.service import free_port
from tests.test_docs import ROOT, commands_of, serving

GUIDES = ("guest", "host", "agent")
LEDGER = "http://127.0.0.1:8080"


def try_it(guide: str, folder: Path) -> tuple[list[str], str]:
    """All commands of a guide in one shell, in an empty folder beside the ledger's; and what they printed."""
    commands = commands_of(f"docs/guides/{guide}.md", "Try it")
    for name in ("docs", "audits"):
        (folder / name).symlink_to(ROOT / name)
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    with serving(folder / "data") as url:
        # What is added by the command line is seen by the service within a second.
        shown = [
            f"{line}; sleep 1" if line.startswith(("staylog issuer", "staylog log")) else line for line in commands
        ]
        environment = {**os.environ, "STAYLOG_LEDGER": url}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(shown).replace(LEDGER, url)],
            cwd=folder,
            capture_output=True,
            text=True,
            env=environment,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return commands, done.stdout


def load(path: Path) -> Any:
    return json.loads(path.read_bytes())


def test_the_guests_guide_works(tmp_path: Path) -> None:
    commands, output = try_it("guest", tmp_path)
    assert len(commands) == 11
    assert "guest_verified, by stay_receipt" in output
    assert "the review rests on exactly this signed submission" in output
    assert load(tmp_path / "try" / "guest" / "receipt.json")["openings"]["text"]["text"] == "Quiet, and dry."


def test_the_hosts_guide_works(tmp_path: Path) -> None:
    commands, output = try_it("host", tmp_path)
    assert len(commands) == 14
    record = load(tmp_path / "try" / "host" / "record.json")
    [review] = record["review_history"]
    assert review["host_response"]["response_text"] == "Thank you. The gutter is mended."
    assert review["host_response"]["submitted_at"] >= review["submitted_at"]
    assert record["verified_reviews"] == 1
    assert "1 of 1 reviews are listed" in output


def test_the_agents_guide_works(tmp_path: Path) -> None:
    commands, output = try_it("agent", tmp_path)
    assert len(commands) == 13
    assert "\n304\n" in output
    assert '"review_text": null' in output
    assert len(load(tmp_path / "try" / "agent" / "rest.json")["review_history"]) == 1
    assert "every count and average follows from them" in output
    assert "every count and average follows from these events" in output
    # What it explains is what there is.
    text = (ROOT / "docs/guides/agent.md").read_text("utf-8")
    answer = load(tmp_path / "try" / "agent" / "answer.json")
    listed = answer["review_history"][0]
    explained = set(re.findall(r"`([a-z_]+)`", text))
    assert answer.keys() - explained <= {"host_did", "proof"}
    assert listed.keys() - explained <= {"review_id", "check_in", "check_out"}
    # [2, 19] stands in the guide as an example.
    assert answer["statistics"]["ratings"]["guest_verified"]["accuracy"] == [2, 19]


def test_the_auditors_guide_works(tmp_path: Path) -> None:
    """From nothing to a verified log in five commands; the first one finds everything set up."""
    first, *commands = commands_of("docs/guides/auditor.md", "Try it")
    assert (first, len(commands)) == ("make setup", 4)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    with serving(tmp_path / "data") as url:
        staylog = str(Path(sys.executable).with_name("staylog"))
        entries = str(ROOT / "docs/guides/example-entries.jsonl")
        subprocess.run([staylog, "log", "add", entries, "--data", str(tmp_path / "data")], check=True)
        script = "\n".join(["sleep 1", *commands]).replace(LEDGER, url)
        done = subprocess.run(["bash", "-euc", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("/log: clean") == 2
    assert "copy has the log" in done.stdout
    # The operator is gone now.
    report = [staylog, "audit", "report", "--state", "audit", "--out", "report.html"]
    subprocess.run(report, cwd=tmp_path, check=True)
    assert "<svg" in (tmp_path / "report.html").read_text("utf-8")


def test_the_auditors_guide_explains_every_finding() -> None:
    text = (ROOT / "docs/guides/auditor.md").read_text("utf-8")
    codes = {*PAIRS, *ALONE, "batch_too_long", "issuer_untrusted", "map_root_mismatch", "log_forked", "rolled_back"}
    codes |= {"tile_mismatch", "bundle_mismatch", "log_not_shown", "text_withheld", "postdated"}
    codes |= {"entry_differs_from_submission", "activity_mismatch", "opening_missing", "opening_unexpected"}
    codes |= {f"{what}_mismatch" for what in ("as_of", "cursor", "events", "face", "history", "issuers", "review")}
    assert codes <= set(re.findall(r"`([a-z_]+)`", text))


@pytest.mark.parametrize("guide", GUIDES)
def test_the_codes_that_a_guide_explains_exist(guide: str) -> None:
    text = (ROOT / f"docs/guides/{guide}.md").read_text("utf-8")
    rows = re.findall(r"^\| ((?:`[a-z_]+`(?:, )?)+) \|.*\|$", text, re.MULTILINE)
    named = {code for row in rows for code in re.findall(r"`([a-z_]+)`", row)}
    ours = {"ledger_unreachable", "file_exists"}
    # Of verifiers.
    ours |= {"entry_differs_from_submission", "opening_mismatch", "submission_unreadable"}
    if guide != "agent":
        assert len(named) > 5
        assert named - ours <= CODES.keys()


@pytest.mark.parametrize("guide", [*GUIDES, "auditor"])
def test_a_guide_promises_no_more_than_evidence(guide: str) -> None:
    text = (ROOT / f"docs/guides/{guide}.md").read_text("utf-8").lower()
    assert "immutable" not in text
    assert max(map(len, text.splitlines())) < 700


def test_the_witness_guide_works(tmp_path: Path) -> None:
    """A log, a witness and a monitor, as they are typed; on ports that are free."""
    script = "\n".join(commands_of("docs/guides/witness.md", "Try it"))
    for port in ("8080", "8090"):
        script = script.replace(port, str(free_port()))
    # However it ends, what it started ends too.
    script = "trap 'kill $(jobs -p) 2> /dev/null || true; wait' EXIT\n" + script
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": programs},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "checkpoint.txt").read_text("utf-8").count("\n— ") == 2
    assert '"quorum":true' in done.stdout
    assert "1 of 1 witnesses of the policy agree, which is enough for it" in done.stdout
    assert "nothing wrong" in done.stdout + done.stderr
