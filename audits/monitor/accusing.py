"""What a monitor proves against a log becomes a file that anybody can check, and an alert: once."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from audits.evidence import OBSERVED, Fraud
from audits.findings import Finding
from audits.fraud import check_fraud
from audits.monitor.alerts import Teller
from audits.monitor.troubles import Troubles
from audits.terminal import write_text
from ledger.errors import Misconfigured
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import Note, Verifier

FOLDER = "findings"
CODE = "inconsistency"


@dataclass(frozen=True, slots=True)
class _Accusation:
    """`told` are the members of its alert, without the file. `data` is the proof, and `name` begins the file's."""

    name: str
    data: str
    told: dict[str, Any]

    def write(self, folder: Path) -> str:
        """Named by what is in it: no proof is ever written over."""
        file = folder / f"{self.name}-{sha256(self.data.encode()).hexdigest()[:8]}.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Misconfigured("file_unwritable", f"{folder}: {error.strerror or error}") from None
        write_text(file, self.data)
        return str(file)


class Accuser:
    """Tells what was found, and writes the proofs. What cannot be written is told all the same, and written later."""

    def __init__(
        self, log: Verifier, state: Path, troubles: Troubles, teller: Teller, is_mine: Callable[[Checkpoint], bool]
    ) -> None:
        """`is_mine` tells whether a checkpoint is of the history that was replayed."""
        self._log = log
        self._is_mine = is_mine
        self._folder = state / FOLDER
        self._troubles = troubles
        self._teller = teller
        # By the key of the trouble: the next round may not find it again.
        self._unwritten: dict[str, _Accusation] = {}

    @property
    def has_unwritten(self) -> bool:
        return bool(self._unwritten)

    def accuse(self, found: list[Finding]) -> None:
        """What is signed never ends: nobody can take it back. What was observed ends when it is served as it must be.
        What the next round finds again, by other notes of the same, is told, and that is enough."""
        self._write_again()
        names: Counter[str] = Counter()
        for finding in found:
            about = self._about(finding)
            names[about] += 1
            self._accuse(finding, about if names[about] == 1 else f"{about} {names[about]}")

    def _accuse(self, finding: Finding, about: str) -> None:
        key = f"{CODE} {about}"
        file, was_told = self._troubles.kept(key, "file"), self._troubles.is_told(key)
        if file is not None or key in self._unwritten:
            self._note(finding, about, file)
            return
        accusation = self._accusation(finding)
        try:
            file = accusation.write(self._folder)
        except Misconfigured as error:
            self._note(finding, about, None, str(error))
            self._unwritten[key] = accusation
            return
        self._note(finding, about, file)
        if was_told:
            # Before a restart, and it could not be written then.
            self._tell_written(accusation, file)

    def _note(self, finding: Finding, about: str, file: str | None, why: str | None = None) -> None:
        """`why` the proof could not be written, if that was tried in vain now."""
        key, fraud = f"{CODE} {about}", finding.fraud
        shown = f"is {file}" if why is None else f"cannot be written, which is tried again: {why}"
        told = _told(finding) | {"file": file} | ({} if why is None else {"why": why})
        was_told = self._troubles.is_told(key)
        message = f"{fraud.code}: {fraud.claim}; the {fraud.proof} proof {shown}"
        self._troubles.note(CODE, message, about=about, lasting=fraud.proof != OBSERVED, **told)
        self._troubles.keep(key, file=file)
        if fraud.kind == "fork" and not was_told:
            self._troubles.keep(key, trees=[_short(tree) for tree in _trees(fraud)])

    def _about(self, finding: Finding) -> str:
        """What tells one finding from another, in this round and in later ones. A fork is known by its two trees; when
        the one that we follow has grown since, it is the same fork."""
        name, fraud = _name(finding), finding.fraud
        if fraud.kind == "fork":
            trees = sorted(_trees(fraud))
            others = [tree for tree in trees if not self._is_mine(Checkpoint.parse(tree))]
            known = self._troubles.find(trees=_short(others[0])) if len(others) == 1 else None
            return known.removeprefix(CODE).strip() if known is not None else f"{name} {_short(''.join(trees))}"
        about = fraud.evidence.get("path") or fraud.evidence.get("host")
        return f"{name} {about}" if isinstance(about, str) else name

    def _accusation(self, finding: Finding) -> _Accusation:
        data = json.dumps(finding.fraud.as_json(self._log), indent=1) + "\n"
        # Nothing leaves the house that a stranger could not check.
        check_fraud(data.encode(), self._log)
        return _Accusation(_name(finding), data, _told(finding))

    def _write_again(self) -> None:
        for key, accusation in list(self._unwritten.items()):
            try:
                file = accusation.write(self._folder)
            except Misconfigured:
                continue
            del self._unwritten[key]
            if self._troubles.is_told(key):
                self._troubles.keep(key, file=file)
                self._tell_written(accusation, file)

    def _tell_written(self, accusation: _Accusation, file: str) -> None:
        told = accusation.told
        message = f"{told['finding']}: the {told['proof']} proof that could not be written before is {file}"
        self._teller.tell(CODE, message, **told, file=file)


def _name(finding: Finding) -> str:
    return finding.fraud.code if finding.index is None else f"{finding.fraud.code}-{finding.index}"


def _told(finding: Finding) -> dict[str, Any]:
    fraud = finding.fraud
    return {"finding": fraud.code, "claim": fraud.claim, "proof": fraud.proof, "index": finding.index}


def add_fork(fork: Fraud, found: list[Finding]) -> None:
    """Two who tell of the same two trees show the same fork, whoever cosigned them."""
    if all(each.fraud.kind != fork.kind or _trees(each.fraud) != _trees(fork) for each in found):
        found.append(Finding(fork))


def _short(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


def _trees(fork: Fraud) -> set[str]:
    return {Note.parse(fork.evidence[name]).text for name in ("older", "newer")}
