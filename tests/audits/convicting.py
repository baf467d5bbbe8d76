"""Audits of whoever lies, and what becomes of their findings: files that convict, and that nobody can bend.

A test says by `shows` what it proves, and fails if it does not: so it can be told what no test proves.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from copy import deepcopy
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import pytest
from click.testing import CliRunner
from nacl.signing import SigningKey

from audits.audit import Audit, Options
from audits.findings import Findings
from audits.fraud import check_fraud
from audits.source import WebSource
from audits.state import opened
from ledger.cli import main
from ledger.errors import StaylogError
from ledger.log.note import ED25519, Verifier
from tests.audits.forger import Forger, serving
from tests.world import LOG

STAYLOG = str(Path(sys.executable).with_name("staylog"))
STRANGER = bytes(SigningKey(b"\x2a" * 32).verify_key)
# In how many places a file is bent to see that it breaks.
BENT = 24
# What a file of this kind does not rest on: with another wrong value it shows the same.
FREE = {
    "unshown": {"edge"},
    "resource": {"path", "place", "served"},
    "answer": {"documents", "plain"},
    "reply": {"documents", "question", "said"},
    "activity": {"issuer", "before", "said"},
}

Fraud = dict[str, Any]
# Kind and code.
Shown = tuple[str, str]
Arguments = ParamSpec("Arguments")

# By the name of the test, what it shows; and the lie that it is about, where it is one of those that were named.
DECLARED: dict[str, frozenset[Shown]] = {}
TOLD: dict[str, str] = {}
_convicted: set[Shown] = set()


def shows(*pairs: Shown, lie: str | None = None) -> Callable[[Callable[Arguments, None]], Callable[Arguments, None]]:
    def declare(test: Callable[Arguments, None]) -> Callable[Arguments, None]:
        DECLARED[test.__qualname__] = frozenset(pairs)
        if lie is not None:
            TOLD[test.__qualname__] = lie

        @wraps(test)
        def told(*args: Arguments.args, **kwargs: Arguments.kwargs) -> None:
            _convicted.clear()
            test(*args, **kwargs)
            assert _convicted == set(pairs)

        return told

    return declare


class Auditor:
    """Somebody with the log's key and a folder of their own, who runs nothing but the command."""

    def __init__(self, folder: Path, log: Verifier) -> None:
        self.folder = folder
        self.log = log
        self._files: list[Path] = []
        folder.mkdir()

    def finds(self, url: str, *options: str) -> list[tuple[str, int | None, int]]:
        """Code, index and count of each finding, sorted; all could be looked at."""
        status, result = self._audit(url, *options)
        assert (status, result["unchecked"]) == (1 if result["findings"] else 0, []), result
        self._files = [self.folder / each["file"] for each in result["findings"]]
        found = [(each["code"], each["index"], each["count"]) for each in result["findings"]]
        return sorted(found, key=lambda each: (each[0], each[1] or 0))

    def misses(self, url: str, *options: str) -> list[str]:
        """What could not be looked at; nothing is found."""
        status, result = self._audit(url, *options)
        assert (status, result["findings"]) == (2, []), result
        return list(result["unchecked"])

    def _audit(self, url: str, *options: str) -> tuple[int, dict[str, Any]]:
        command = ("audit", url, "--key", str(self.log), "--state", "state", "--json")
        status, said = staylog(*command, *options, cwd=self.folder)
        return status, json.loads(said)

    def convict(self) -> list[Shown]:
        """Each file of the last audit convicts the log: the first of its kind in a process that has only it and the
        key. It does not convict another log, and not this one after a character in it was changed."""
        assert self._files
        frauds = [json.loads(file.read_bytes()) for file in self._files]
        for kind in {fraud["kind"] for fraud in frauds}:
            self._convict_apart(next(fraud for fraud in frauds if fraud["kind"] == kind))
        for fraud in frauds:
            convict_here(fraud, self.log)
        return [(fraud["kind"], fraud["code"]) for fraud in frauds]

    def _convict_apart(self, fraud: Fraud) -> None:
        alone = self.folder / f"only-{fraud['kind']}"
        alone.mkdir()
        (alone / "fraud.json").write_text(json.dumps(fraud))
        status, said = staylog("audit", "check-fraud", "fraud.json", "--key", str(self.log), cwd=alone)
        assert status == 0, said
        assert f"{fraud['proof']} proof of {fraud['code']} against {self.log.name}" in said
        (alone / "bent.json").write_text(json.dumps(next(bent(fraud))))
        stranger = Verifier(self.log.name, ED25519, STRANGER)
        for name, key in (("fraud.json", stranger), ("bent.json", self.log)):
            refused = CliRunner().invoke(main, ["audit", "check-fraud", str(alone / name), "--key", str(key)])
            assert (refused.exit_code, "refused" in refused.output) == (1, True), refused.output


def staylog(*command: str, cwd: Path) -> tuple[int, str]:
    """Exit status and output of a process that gets nothing from our environment."""
    ended = subprocess.run(
        [STAYLOG, *command],
        cwd=cwd,
        env={},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
        timeout=60,
    )
    return ended.returncode, ended.stdout


def convict_here(fraud: Fraud, log: Verifier = LOG) -> None:
    """The same without a process, and with more of what is changed."""
    report = check_fraud(json.dumps(fraud).encode(), log)
    assert report.proved
    # What is signed needs nobody's word but the log's.
    assert bool(report.not_proved) == (fraud["proof"] != "signed")
    stranger = Verifier(log.name, ED25519, STRANGER)
    # Whoever puts another key into the file has not signed with it.
    for named, key in ((log, stranger), (stranger, stranger), (stranger, log)):
        _refused({**fraud, "log": str(named)}, key)
    # Nobody's word becomes the log's own.
    _refused({**fraud, "proof": "observed" if fraud["proof"] == "signed" else "signed"}, log)
    variants = list(bent(fraud))
    for variant in variants[:: -(-len(variants) // BENT)]:
        _refused(variant, log)
    for member, value in (("kind", "entries"), ("kind", "unshown"), ("code", "time_falls"), ("code", "rolled_back")):
        if fraud[member] != value:
            _refused({**fraud, member: value}, log)
    _convicted.add((fraud["kind"], fraud["code"]))


def _refused(fraud: Fraud, log: Verifier) -> None:
    with pytest.raises(StaylogError):
        check_fraud(json.dumps(fraud).encode(), log)


def bent(fraud: Fraud) -> Iterator[Fraud]:
    """The file with one character or number of its evidence changed, in each place on which it rests."""
    evidence = fraud["evidence"]
    for place in list(_places(evidence)):
        if place[0] in FREE.get(fraud["kind"], ()):
            continue
        changed = deepcopy(evidence)
        part: Any = changed
        for step in place[:-1]:
            part = part[step]
        part[place[-1]] = _other(part[place[-1]])
        yield {**fraud, "evidence": changed}
    if fraud["kind"] == "answer":
        for name in ("checkpoint", "map_head"):
            answer = json.loads(evidence["documents"][0])
            answer["proof"][name] = _other(answer["proof"][name])
            yield {**fraud, "evidence": {**evidence, "documents": [json.dumps(answer), *evidence["documents"][1:]]}}


def _places(value: Any) -> Iterator[tuple[str | int, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        if isinstance(inner, str | int) and inner != "":
            yield (name,)
        yield from ((name, *rest) for rest in _places(inner))


def _other(value: str | int) -> str | int:
    """Another number, or the text with another letter or digit in the middle of it."""
    if isinstance(value, int):
        return value + 1
    place = next(at for at in (*range(len(value) // 2, len(value)), 0) if value[at].isalnum())
    letter = value[place]
    other = str((int(letter) + 1) % 10) if letter.isdigit() else "A" if letter != "A" else "B"
    return value[:place] + other + value[place + 1 :]


def audit(forger: Forger, state: Path | None = None, options: Options | None = None) -> Findings:
    """What an auditor finds in a log that a forger serves."""
    with serving(forger) as url, opened(state, LOG) as kept:
        source = WebSource(url, pause=0)
        # Wherever it is served: another port each time, which tells nothing.
        source.name = LOG.name
        checking = Audit(source, LOG, kept, options or Options(), clock=forger.clock, pause=0)
        checking.run()
    return checking.findings


def convicted(findings: Findings) -> list[tuple[str, int | None]]:
    """Code and index of each, sorted, once it is proved."""
    for each in findings.found:
        convict_here(each.fraud.as_json(LOG))
    return sorted(((each.fraud.code, each.index) for each in findings.found), key=lambda each: (each[0], each[1] or 0))
