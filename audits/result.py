"""The result of an audit as JSON: what `staylog audit --json` prints, the state keeps and the page shows."""

from typing import Any

from audits.findings import Findings
from audits.replayer import Replayer
from audits.source import Source
from ledger.canon import base64
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import Verifier

Result = dict[str, Any]


def make_result(
    log: Verifier,
    source: Source,
    checkpoint: Checkpoint,
    at: str | None,
    replayer: Replayer,
    found: Findings,
    witnesses: dict[str, list[int]],
) -> Result:
    """`at` is the time of the map head that ends the checkpoint's tree."""
    figures = {
        "entries": replayer.size,
        "hosts": len(replayer.rules.replay.hosts),
        "map_heads": replayer.heads,
        "texts": replayer.texts,
        **{name: found.figures[name] for name in ("checkpoints", "tiles", "answers", "cosignatures")},
    }
    issuers = sorted(replayer.rules.trust.issuers.items())
    return {
        "log": log.name,
        "key": str(log),
        "source": source.name,
        "size": checkpoint.size,
        "root": base64.encode(checkpoint.root),
        "at": at,
        "verdict": found.verdict,
        "figures": figures,
        "checked": [*_checked(figures, replayer.ended), *_agreed(checkpoint, witnesses)] if replayer.size else [],
        "unchecked": found.unchecked,
        "findings": [finding.as_json() for finding in found.found],
        "witnesses": [
            {"name": name, "cosigned": count, "newest": newest or None} for name, (count, newest) in witnesses.items()
        ],
        "issuers": [
            {"issuer": name, "reviews": known["reviews"], "status": known["status"]} for name, known in issuers
        ],
        "days": replayer.daily.days,
    }


def _agreed(checkpoint: Checkpoint, witnesses: dict[str, list[int]]) -> list[str]:
    """How many witnesses of the policy, if there is one, have seen what was audited."""
    agree = sum(newest == checkpoint.size for _, newest in witnesses.values())
    return [f"{agree} of {len(witnesses)} witnesses of the policy cosigned this very checkpoint"] if witnesses else []


def _checked(figures: dict[str, int], ended: int | None) -> list[str]:
    """What was looked at, in plain words; whether it is as it must be is what the findings say."""
    whole = f"{figures['entries']:,} entries" if ended is None else f"the entries up to {ended:,}"
    lines = [
        f"{whole}: the form of each, and all rules for it and those before it",
        f"{figures['map_heads']:,} map heads: each derived again from the entries, for {figures['hosts']:,} hosts",
        f"{figures['checkpoints']:,} signed checkpoints: whether they are all of this one tree",
        f"{figures['tiles']:,} tiles: whether they are those of this tree",
        f"{figures['texts']:,} texts: whether each is the one that was committed to, or is redacted",
        f"{figures['answers']:,} answers about hosts, with a proof and without: whether they say what the log says",
    ]
    if figures["cosignatures"]:
        lines.append(f"{figures['cosignatures']:,} cosignatures: whether entries are dated as witnesses saw them")
    return lines
