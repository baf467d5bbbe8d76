"""What a monitor proves against a log becomes a file that anybody can check, and an alert: once."""

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

from audits.evidence import OBSERVED, Fraud
from audits.findings import Finding
from audits.fraud import check_fraud
from audits.monitor.troubles import Troubles
from audits.terminal import write_text
from ledger.errors import Misconfigured
from ledger.log.note import Note, Verifier

FOLDER = "findings"
CODE = "inconsistency"


def accuse(found: list[Finding], log: Verifier, state: Path, troubles: Troubles) -> None:
    """What is signed never ends: nobody can take it back. What was observed ends when it is served as it must be."""
    names: Counter[str] = Counter()
    for finding in found:
        fraud, index = finding.fraud, finding.index
        name = fraud.code if index is None else f"{fraud.code}-{index}"
        names[name] += 1
        about = name if names[name] == 1 else f"{name} {names[name]}"
        # The next round may find it again by other checkpoints: it is told, and that is enough.
        file = str(_write(fraud, name, log, state / FOLDER)) if not troubles.is_told(f"{CODE} {about}") else None
        told: dict[str, Any] = {
            "finding": fraud.code,
            "claim": fraud.claim,
            "proof": fraud.proof,
            "index": index,
            "file": file,
        }
        message = f"{fraud.code}: {fraud.claim}; the {fraud.proof} proof is {file}"
        troubles.note(CODE, message, about=about, lasting=fraud.proof != OBSERVED, **told)


def _write(fraud: Fraud, name: str, log: Verifier, folder: Path) -> Path:
    """Named by what is in it: no proof is ever written over."""
    data = json.dumps(fraud.as_json(log), indent=1) + "\n"
    # Nothing leaves the house that a stranger could not check.
    check_fraud(data.encode(), log)
    file = folder / f"{name}-{sha256(data.encode()).hexdigest()[:8]}.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Misconfigured("file_unwritable", f"{folder}: {error.strerror or error}") from None
    write_text(file, data)
    return file


def add_fork(fork: Fraud, found: list[Finding]) -> None:
    """Two who tell of the same two trees show the same fork, whoever cosigned them."""
    if all(each.fraud.kind != fork.kind or _trees(each.fraud) != _trees(fork) for each in found):
        found.append(Finding(fork))


def _trees(fork: Fraud) -> set[str]:
    return {Note.parse(fork.evidence[name]).text for name in ("older", "newer")}
