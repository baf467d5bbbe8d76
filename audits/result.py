"""The result of an audit as JSON: what `staylog audit --json` prints, the state keeps and the page shows."""

from typing import Any

from audits.findings import Findings
from audits.replayer import Replayer
from audits.source import Source
from ledger.canon import base64
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import Verifier

Result = dict[str, Any]

# By the kind of question that is drawn, what was compared with the log where it was asked.
SAMPLED = {
    "list": "lists of reviews, of a length and with texts that are drawn, with a size or without, also behind cursors: "
    "reviews, sums, texts, issuers and their status, as_of, next_cursor",
    "full": "answers with a full proof, of a length and with texts that are drawn",
    "aggregate": "answers with the proof of their sums alone",
    "page": "pages of events from a place that is drawn",
    "review": "single reviews: all their entries, each with its proof, level and texts",
    "days": "counts by day of hosts",
    "activity": "counts by day of issuers",
}
# What no audit compares, whatever it draws.
NEVER = [
    "answers about hosts that were neither drawn nor named, and questions that were not drawn about those that were",
    "cursors of the bare answer, and cursors after the third page of a list",
    "counts of the last day where they are of a newer checkpoint than the audited one, until that day is over",
    "host_key_changed_at: the log does not have it",
    "/v1/policy, /v1/issuers, /v1/log/statistics, /v1/log/inclusion, /v1/log/consistency and /v1/log/entries: an audit "
    "works out the same from tiles and bundles",
    "/v1/log/witnesses, /v1/log/key, /.well-known/did.json, schemas, contexts and the pages for people",
    "/v1/submissions, receipts and refusals: only who has them can compare them",
    "what was answered at another time, or to others",
]


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
        "checked": [*_checked(figures, replayer.ended), *_sampled(found), *_agreed(checkpoint, witnesses)]
        if replayer.size
        else [],
        "sampled": {kind: found.sampled[kind] for kind in SAMPLED if found.sampled[kind]},
        "unchecked": found.unchecked,
        "never": NEVER,
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


def _sampled(found: Findings) -> list[str]:
    """The questions that the checkpoint drew; a copy has no answers to them."""
    return [f"{found.sampled[kind]:,} {what}" for kind, what in SAMPLED.items() if found.sampled[kind]]


def _checked(figures: dict[str, int], ended: int | None) -> list[str]:
    """What was looked at, in plain words; whether it is as it must be is what the findings say."""
    whole = f"{figures['entries']:,} entries" if ended is None else f"the entries up to {ended:,}"
    lines = [
        f"{whole}: the form of each, and all rules for it and those before it",
        f"{figures['map_heads']:,} map heads: each derived again from the entries, for {figures['hosts']:,} hosts",
        f"{figures['checkpoints']:,} signed checkpoints: whether they are all of this one tree",
        f"{figures['tiles']:,} tiles: whether they are those of this tree",
        f"{figures['texts']:,} texts: whether each is the one that was committed to, or is redacted",
        f"{figures['answers']:,} answers about hosts, with a proof and without, and as the bare address gives them: "
        "whether they say what the log says, of issuers and as_of too",
    ]
    if figures["cosignatures"]:
        lines.append(f"{figures['cosignatures']:,} cosignatures: whether entries are dated as witnesses saw them")
    return lines
