"""What an audit found, counted, and what it could not look at."""

import json
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from audits.evidence import Fraud
from ledger.errors import Misconfigured
from ledger.log.note import Verifier

# Of one kind; the others are counted.
MOST = 20


@dataclass(slots=True)
class Finding:
    """`index` is the entry it is about, if it is about one; `count` is in how many places the same was found."""

    fraud: Fraud
    index: int | None = None
    count: int = 1
    file: str | None = None

    def as_json(self) -> dict[str, Any]:
        fraud = self.fraud
        told = {"code": fraud.code, "claim": fraud.claim, "proof": fraud.proof}
        return {**told, "index": self.index, "count": self.count, "file": self.file}


@dataclass(slots=True)
class Findings:
    """`figures` count what was looked at, `unchecked` says what could not be."""

    found: list[Finding] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    figures: Counter[str] = field(default_factory=Counter)
    # Answers to questions that were drawn, by their kind, that were compared and are right.
    sampled: Counter[str] = field(default_factory=Counter)

    def add(self, fraud: Fraud, index: int | None = None, count: int = 1) -> None:
        same = [each for each in self.found if each.fraud.code == fraud.code]
        if any(each.fraud == fraud for each in same):
            return
        if len(same) < MOST:
            self.found.append(Finding(fraud, index, count))
        else:
            same[-1].count += count

    def miss(self, what: str) -> None:
        if what not in self.unchecked:
            self.unchecked.append(what)

    @property
    def verdict(self) -> str:
        return "findings" if self.found else "incomplete" if self.unchecked else "clean"

    def write(self, folder: Path, log: Verifier) -> None:
        """A file for each finding, named by what it is about."""
        names: Counter[str] = Counter()
        for finding in self.found:
            name = finding.fraud.code + (f"-{finding.index}" if finding.index is not None else "")
            names[name] += 1
            file = folder / f"{name}{f'-{names[name]}' if names[name] > 1 else ''}.json"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                file.write_text(json.dumps(finding.fraud.as_json(log), indent=1) + "\n", encoding="utf-8")
            except OSError as error:
                raise Misconfigured("file_unwritable", f"{file}: {error.strerror or error}") from None
            finding.file = str(file)
