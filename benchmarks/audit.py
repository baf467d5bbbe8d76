"""Row 9: the audit of a whole log from a folder, all checks on, against hashing its leaves alone."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.measure import require
from benchmarks.report import RATE, Row, at_least
from benchmarks.workspace import Workspace
from ledger.log.replay import MAX_BATCH

# Events a second of one core, by entries per map head.
BARS = {MAX_BATCH: 10_000, 1: 1_500}
ROOT = Path(__file__).parent.parent
NOTES = (
    "Row 9: events are entries that name a host; map heads cost but do not count. An audit reads a mirror's folder in "
    "a process of its own: form and rules of every entry, every map head derived again, every listed checkpoint's "
    "signature and root, all tiles, all texts, 20 answers about hosts. Rates are by CPU time.",
    "Row 9: events per host by Zipf's law. Reviews that were not used lately are on disk, so memory grows with hosts.",
)


def rows(work: Workspace) -> list[Row]:
    plan = work.plan
    small, large = plan.audited
    found = []
    for per_head in BARS:
        runs = [_audit(work, small, per_head) for _ in range(plan.audit_rounds)]
        found += _rows(f"audit, {small:,} events, {per_head} per map head", per_head, runs)
    last = [_audit(work, large, MAX_BATCH)]
    found += _rows(f"audit, {large:,} events, {MAX_BATCH} per map head", MAX_BATCH, last)
    first = [_audit(work, small, MAX_BATCH)]
    memory = {"ours": [run["memory"] for run in last], "peer": [run["memory"] for run in first]}
    hosts = [run["figures"]["hosts"] for run in (*first, *last)]
    found.append(Row(9, f"audit, peak memory, {large:,} events", f"{small:,} events", "MB", memory, None))
    work.notes.append(f"Row 9: {hosts[0]:,} hosts in {small:,} events, {hosts[1]:,} in {large:,}.")
    return found


def _rows(what: str, per_head: int, runs: list[dict[str, Any]]) -> list[Row]:
    rates = [run["events"] / run["cpu"] for run in runs]
    hashing = [run["events"] / run["hashing"] for run in runs]
    bound = float(BARS[per_head])
    return [
        Row(9, f"{what}: events a second", "bound", RATE, {"ours": rates, "peer": [bound]}, at_least(1)),
        Row(9, f"{what}", "hashing the leaves alone", RATE, {"ours": rates, "peer": hashing}, None),
    ]


def _audit(work: Workspace, events: int, per_head: int) -> dict[str, Any]:
    folder = work.directory / f"log-{events}-{per_head}"
    if not folder.exists():
        work.step(f"making a log of {events:,} events, {per_head} per map head")
        key = _run("benchmarks.audited_log", folder, events, per_head, work.plan.audited_hosts)
        folder.with_suffix(".key").write_text(key)
    work.step(f"auditing {events:,} events, {per_head} per map head")
    report: dict[str, Any] = json.loads(
        _run("benchmarks.audit_process", folder, folder.with_suffix(".key").read_text())
    )
    require(report["verdict"] == "clean", "a log without findings, in which everything can be checked")
    return {**report, "events": events}


def _run(module: str, *arguments: object) -> str:
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
