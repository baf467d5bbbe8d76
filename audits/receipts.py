"""Offline verification of receipts, tlog-proofs and checkpoints: one entry at a time (protocol.md 6, 7)."""

from collections.abc import Sequence
from typing import Any

from audits.report import REAL_STAYS, Report
from ledger.canon import base64, jcs, strict_json
from ledger.errors import BadBase64, Malformed, NotProved
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import Entry, parse_entry
from ledger.log.note import Verifier
from ledger.log.openings import Opening, commitment
from ledger.log.policy import Policy
from ledger.log.proofs import verify_consistency
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import leaf_hash

_MEMBERS = {
    "review_id": str,
    "status": str,
    "verification_level": str,
    "index": int,
    "entry": str,
    "openings": dict,
    "checkpoint": str,
    "tlog_proof": str,
}


def verify_receipt(
    data: bytes, log: Verifier, *, submission: bytes | None = None, booking: bytes | None = None
) -> Report:
    """Check the answer to an accepted review. With the signed submission (and the booking statement that was used,
    if the submission does not carry it) it also shows whose review it is."""
    receipt = _parse_receipt(data)
    entry = parse_entry(receipt["entry"].encode())
    members = entry.members
    if entry.type != "review" or receipt["status"] != "accepted":
        raise NotProved("receipt_mismatch", "the receipt is not of an accepted review")
    if (receipt["review_id"], receipt["verification_level"]) != (members["review_id"], members["level"]):
        raise NotProved("receipt_mismatch", "review_id or verification_level differ from the entry")
    proof = TlogProof.parse(receipt["tlog_proof"])
    proof.require_plain()
    if proof.index != receipt["index"] or proof.checkpoint != receipt["checkpoint"]:
        raise NotProved("receipt_mismatch", "index or checkpoint differ from the tlog_proof")
    checkpoint = proof.verify(entry.leaf_hash, log)
    report = Report(f"receipt of {members['review_id']}", checkpoint.size, str(members["at"]))
    report.proved.append(
        f"the review stands at index {proof.index} of a tree of {checkpoint.size} that {log.name} signed"
    )
    report.not_proved.append(REAL_STAYS)
    _verify_openings(receipt["openings"], entry, submission, booking, report)
    return report


def verify_tlog_proof(text: str, data: bytes, log: Verifier | None = None, *, policy: Policy | None = None) -> Report:
    """Check that the log holds `data`, the exact bytes of an entry; with a policy, that enough witnesses saw it."""
    proof = TlogProof.parse(text)
    report = Report("tlog-proof", 0)
    if policy is not None:
        _, cosigned = policy.verify(proof.checkpoint)
        report.proved += [f"{c.witness.name} cosigned the checkpoint at {c.timestamp}" for c in cosigned]
        log = log or next(known for known in policy.logs if known.name == proof.checkpoint.split("\n", 1)[0])
    if log is None:
        raise ValueError("a log key or a policy is needed")
    checkpoint = proof.verify(leaf_hash(data), log)
    report.size = checkpoint.size
    report.proved.insert(
        0, f"the entry stands at index {proof.index} of a tree of {checkpoint.size} that {log.name} signed"
    )
    return report


def verify_growth(older: str, newer: str, proof: Sequence[bytes], log: Verifier) -> Report:
    """Check two signed checkpoints and the consistency proof between them: nothing was changed or taken away."""
    first, second = open_checkpoint(older, log), open_checkpoint(newer, log)
    if first.size:
        verify_consistency(first.size, second.size, first.root, second.root, proof)
    elif proof:
        raise NotProved("proof_length", "every tree extends the empty one: the proof is empty")
    report = Report("consistency", second.size)
    report.proved.append(
        f"the tree of {second.size} that {log.name} signed contains its tree of {first.size} unchanged"
    )
    return report


def _parse_receipt(data: bytes) -> dict[str, Any]:
    receipt = strict_json.loads(data)
    if not isinstance(receipt, dict):
        raise Malformed("receipt_malformed", "a receipt is a JSON object")
    for name, kind in _MEMBERS.items():
        if type(receipt.get(name)) is not kind:
            raise Malformed("receipt_malformed", f"a receipt has the member {name}")
    openings = receipt["openings"]
    evidence = openings.get("evidence")
    if openings.keys() != {"text", "evidence"} or not isinstance(evidence, dict) or evidence.keys() != {"salt"}:
        raise Malformed("receipt_malformed", "the openings of a receipt are text and the salt of the evidence")
    return receipt


def _verify_openings(
    openings: dict[str, Any], entry: Entry, submission: bytes | None, booking: bytes | None, report: Report
) -> None:
    text, committed = openings["text"], entry.members["text"]
    if (text is None) != (committed is None):
        raise NotProved("opening_unexpected", "the text is opened exactly when the entry commits to one")
    if text is not None:
        Opening.parse(text).require(committed)
        report.proved.append("the text is the one the entry commits to")
    try:
        salt = base64.decode_hash(openings["evidence"]["salt"])
    except (BadBase64, TypeError) as error:
        raise Malformed("receipt_malformed", f"the evidence salt is {error}") from None
    if submission is None:
        report.not_proved.append("whose review it is: show the signed submission too (it includes private feedback)")
        return
    statement = {
        "submission": strict_json.loads(submission),
        "booking": None if booking is None else strict_json.loads(booking),
    }
    if commitment(salt, jcs.dumps(statement)) != entry.members["evidence"]["commitment"]:
        raise NotProved("opening_mismatch", "the submission does not open the evidence commitment of the entry")
    report.proved.append("the review rests on exactly this signed submission")
