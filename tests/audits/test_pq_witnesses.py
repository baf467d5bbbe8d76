"""Audits count ML-DSA-44 cosignatures, and name those that they cannot check."""

import pytest

from audits.audit import Options
from audits.contradictions import Placed
from audits.findings import Findings
from ledger.canon import mldsa
from ledger.canon.times import seconds
from ledger.log.note import Note
from ledger.log.policy import Policy
from tests.audits import bent
from tests.audits.forger import Forger
from tests.ledger.log import mldsa_witness
from tests.running import Writer
from tests.world import LOG

POLICY = f"log {LOG}\nwitness pq {mldsa_witness.WITNESS}\nquorum {{}}\n"


def cosigned(forger: Forger) -> str:
    text = Note.parse(forger.notes[forger.size]).text
    at = seconds(Placed.read(forger.size - 1, forger.data[-1]).get("at"))
    return forger.notes[forger.size] + mldsa_witness.cosign(text, at).line()


def audited(forger: Forger, quorum: str) -> Findings:
    note = cosigned(forger).encode()
    options = Options(policy=Policy.parse(POLICY.format(quorum)))
    return bent.audit(forger, lambda path: note if path == "log/checkpoint" else None, options=options)


def test_an_audit_counts_them(writer: Writer) -> None:
    found = audited(Forger.begun(writer), "pq")
    assert (found.unchecked, found.figures["cosignatures"]) == ([], 1)


@pytest.mark.parametrize("quorum", ["none", "pq"])
def test_an_audit_names_what_it_cannot_check(writer: Writer, monkeypatch: pytest.MonkeyPatch, quorum: str) -> None:
    monkeypatch.setattr(mldsa, "CAN_VERIFY", False)
    found = audited(Forger.begun(writer), quorum)
    assert (found.found, found.figures["cosignatures"], found.verdict) == ([], 0, "incomplete")
    assert any(
        "witness.example/pq" in each and "pq is not installed" in each or "staylog[pq]" in each
        for each in found.unchecked
    )
