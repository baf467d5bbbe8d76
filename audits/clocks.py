"""The log's times against the clocks of its witnesses (c2sp.org/tlog-cosignature).

A witness says when it saw a checkpoint, so what stands in that tree was there by then, and cannot be dated later. That
something was NOT there yet no cosignature shows: a witness may be asked about an old checkpoint at any time.
"""

from audits.evidence import WITNESSED, Audited, Evidence, Fraud, Shown, included, unproved, write_entries
from audits.report import moment
from ledger.canon.times import seconds
from ledger.log.checkpoint import open_checkpoint
from ledger.log.cosignature import Cosignature, cosignatures
from ledger.log.note import Note, Verifier

CODE = "postdated"
# Two clocks may differ by this much.
SKEW = 300


def is_postdated(size: int, cosigned: int, index: int, at: str) -> bool:
    """Whether an entry in a tree of `size` says that it came after the tree was cosigned."""
    return index < size and seconds(at) > cosigned + SKEW


def prove(log: Audited, index: int, note: str, cosignature: Cosignature) -> Fraud:
    placed = log.placed(index)
    time = moment(cosignature.timestamp)
    claim = f"entry {index} says {placed[0].get('at')}; {cosignature.witness.name} had seen a tree with it at {time}"
    shown = {"entries": write_entries(placed), "log_proof": log.multiproof(placed)}
    evidence = {"checkpoint": log.note, "cosigned": note, "witness": str(cosignature.witness), **shown}
    return Fraud("clock", CODE, claim, WITNESSED, evidence)


def check(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint, [placed] = included(evidence, log)
    seen, witness = open_checkpoint(evidence["cosigned"], log), Verifier.parse(evidence["witness"])
    at = placed.get("at")
    for each in cosignatures(Note.parse(evidence["cosigned"]), [witness]):
        if code == CODE and at is not None and is_postdated(seen.size, each.timestamp, placed.index, at):
            return checkpoint, [
                f"entry {placed.index} of the tree of {checkpoint.size} that {log.name} signed says that it is of {at}",
                f"whoever has the key {witness} cosigned a tree with it at {moment(each.timestamp)}",
            ]
    return unproved("no cosignature here contradicts the time of the entry")
