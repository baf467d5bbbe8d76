"""Offline verification of receipts, tlog-proofs and checkpoints: one entry at a time (protocol.md 6, 7)."""

from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from audits.report import REAL_STAYS, Report
from ledger.canon import base64, jcs, proofs, strict_json
from ledger.canon.times import format_time, parse_time
from ledger.errors import BadBase64, Malformed, NotAccepted, NotProved
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import Entry, parse_entry
from ledger.log.note import Verifier
from ledger.log.openings import Opening
from ledger.log.policy import Policy
from ledger.log.proofs import verify_consistency
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import EMPTY_ROOT, leaf_hash
from ledger.reviews.entry_binding import Opened, follow, require_opens

_MEMBERS = {
    "review_id": str,
    "status": str,
    "index": int,
    "entry": str,
    "openings": dict,
    "checkpoint": str,
    "tlog_proof": str,
}
_REFUSAL = {"type", "submission_sha256", "code", "at", "proof"}
_INTAKE = {"type", "submission_sha256", "received_at", "decide_by", "proof"}
# The commitment that the speaker alone can open, and what it would show, by the type of the entry.
_OWN = {"review": "evidence", "response": "statement", "upgrade": "evidence"}
_OF = {"review": "", "response": "the response to ", "upgrade": "the upgrade of "}
_WHOSE = {
    "review": "whose review it is: show the signed submission too (it includes private feedback)",
    "upgrade": "by which evidence: show the signed supplement too",
    "response": "whose response it is: show the signed response too",
}


def verify_receipt(
    data: bytes,
    log: Verifier,
    *,
    policy: Policy | None = None,
    submission: bytes | None = None,
    booking: bytes | None = None,
) -> Report:
    """Check the answer to an accepted review or response, or to evidence that came later. With the signed submission
    (and the booking statement that was used, if neither the submission nor the receipt carries it) it also shows whose
    it is, and that what the entry says follows from it.

    Raises NotProved `entry_differs_from_submission` when no honest ledger makes this entry of that submission.
    """
    receipt = parse_receipt(data)
    entry = parse_entry(receipt["entry"].encode())
    members = entry.members
    if entry.type not in _OWN or receipt["status"] != "accepted":
        raise NotProved("receipt_mismatch", "the receipt is not of an accepted review, response or upgrade")
    if (receipt["review_id"], receipt.get("verification_level")) != (members["review_id"], members.get("level")):
        raise NotProved("receipt_mismatch", "review_id or verification_level differ from the entry")
    proof = TlogProof.parse(receipt["tlog_proof"])
    proof.require_plain()
    if proof.index != receipt["index"] or proof.checkpoint != receipt["checkpoint"]:
        raise NotProved("receipt_mismatch", "index or checkpoint differ from the tlog_proof")
    salt, opening = _read_openings(receipt["openings"], entry)
    checkpoint = proof.verify(entry.leaf_hash, log)
    if proof.index >= checkpoint.size - 1:
        raise NotProved(
            "map_head_not_last", f"the last leaf of a published checkpoint must be a map head, not a {entry.type}"
        )
    report = Report(f"receipt of {_OF[entry.type]}{members['review_id']}", checkpoint.size, str(members["at"]))
    report.proved.append(
        f"the {entry.type} is entry {proof.index} of a tree of {checkpoint.size} that {log.name} signed"
    )
    report.witnessed(proof.checkpoint, log, policy)
    if entry.type != "response":
        report.not_proved.append(REAL_STAYS)
    _verify_text(opening, entry, report)
    if submission is None:
        report.not_proved.append(_WHOSE[entry.type])
        return report
    beside = None if booking is None else strict_json.loads(booking)
    opened = Opened.of(receipt, strict_json.loads(submission), beside)
    require_opens(entry, opened, salt)
    report.proved.append(f"the {entry.type} rests on exactly this signed submission")
    speakers = follow(entry, opened)
    report.proved += speakers.proved
    report.not_proved += speakers.not_checked
    return report


def verify_refusal(data: bytes, key: bytes, *, submission: bytes | None = None) -> Report:
    """Check a ledger's signed refusal by its key for statements; with the submission, that it is what was refused."""
    refusal, signer = _signed(strict_json.loads(data), "Refusal", _REFUSAL, key)
    report = Report("refusal", 0, str(refusal["at"]))
    report.proved.append(f"{signer} refused a submission as {refusal['code']}, at {refusal['at']}")
    _verify_subject(refusal, submission, "refusal", "it is this submission that was refused", report)
    report.not_proved.append("that the reason was right")
    return report


def verify_intake(data: bytes, key: bytes, *, now: datetime, submission: bytes | None = None) -> Report:
    """Check a ledger's signed word that it has a submission and will decide on it, alone or in the answer that it came
    with, by its key for statements; with the submission, that it is what was taken in."""
    value = strict_json.loads(data)
    intake, signer = read_intake(value.get("intake", value) if isinstance(value, dict) else value, key)
    report = Report("intake receipt", 0, str(intake["received_at"]))
    report.proved.append(
        f"{signer} took in a submission at {intake['received_at']}, to decide on it by {intake['decide_by']}"
    )
    _verify_subject(intake, submission, "intake receipt", "it is this submission that was taken in", report)
    if now > parse_time(intake["decide_by"]):
        report.proved.append(f"the time to decide is over, by the clock here: {format_time(now)}")
        report.not_proved.append("that it was not decided: if the ledger has no decision to show, it broke its word")
    else:
        report.not_proved.append(f"what it will decide: there is time until {intake['decide_by']}")
    return report


def read_intake(value: Any, key: bytes) -> tuple[dict[str, Any], str]:
    """What an intake receipt says, once its signature holds, and the name of the key that signed."""
    intake, signer = _signed(value, "IntakeReceipt", _INTAKE, key)
    try:
        parse_time(intake["received_at"])
        parse_time(intake["decide_by"])
    except ValueError as error:
        raise Malformed("receipt_malformed", f"received_at or decide_by of the intake receipt: {error}") from None
    return intake, signer


def _signed(value: Any, kind: str, members: set[str], key: bytes) -> tuple[dict[str, Any], str]:
    """What the ledger said, once its signature holds, and the name of the key that signed."""
    if not isinstance(value, dict) or value.keys() != members or value["type"] != kind:
        raise Malformed("receipt_malformed", f"the type {kind} and exactly {', '.join(sorted(members))} expected")
    proof = value["proof"]
    if not isinstance(proof, dict):
        raise Malformed("receipt_malformed", f"the proof of the {kind} is not an object")
    said = {name: inner for name, inner in value.items() if name != "proof"}
    try:
        proofs.verify(said, proof, [key])
    except (NotAccepted, KeyError, TypeError) as error:
        raise NotProved("signature_invalid", f"the signature of the {kind} does not hold: {error}") from None
    return said, str(proof["verificationMethod"])


def _verify_subject(said: dict[str, Any], submission: bytes | None, what: str, proved: str, report: Report) -> None:
    """Whether the ledger's word is about this submission, if one is shown."""
    if submission is None:
        report.not_proved.append("which submission it is about: show the signed submission too")
    elif sha256(jcs.dumps(strict_json.loads(submission))).hexdigest() != said["submission_sha256"]:
        raise NotProved("receipt_mismatch", f"the {what} is about another submission")
    else:
        report.proved.append(proved)


def verify_tlog_proof(text: str, data: bytes, log: Verifier, *, policy: Policy | None = None) -> Report:
    """Check that the log holds `data`, the exact bytes of an entry; with a policy, that enough witnesses saw it."""
    proof = TlogProof.parse(text)
    checkpoint = proof.verify(leaf_hash(data), log)
    report = Report("tlog-proof", checkpoint.size)
    report.proved.append(f"the entry is number {proof.index} of a tree of {checkpoint.size} that {log.name} signed")
    report.witnessed(proof.checkpoint, log, policy)
    return report


def verify_checkpoint(note: str, log: Verifier, *, policy: Policy | None = None) -> Report:
    """Check a signed checkpoint by itself; with a policy, that enough witnesses saw it."""
    checkpoint = open_checkpoint(note, log)
    report, root = Report("checkpoint", checkpoint.size), base64.encode(checkpoint.root)
    report.proved.append(f"{log.name} signed a tree of {checkpoint.size} entries with root {root}")
    report.witnessed(note, log, policy)
    return report


def verify_growth(
    older: str, newer: str, proof: Sequence[bytes], log: Verifier, *, policy: Policy | None = None
) -> Report:
    """Check two signed checkpoints and the consistency proof between them: nothing was changed or taken away. With a
    policy, that enough witnesses saw the newer one."""
    first, second = open_checkpoint(older, log), open_checkpoint(newer, log)
    for checkpoint in (first, second):
        if not checkpoint.size and checkpoint.root != EMPTY_ROOT:
            raise NotProved("root_mismatch", "the empty tree has one root")
    if first.size:
        verify_consistency(first.size, second.size, first.root, second.root, proof)
    elif proof:
        raise NotProved("proof_length", "every tree extends the empty one: the proof is empty")
    report = Report("consistency", second.size)
    report.proved.append(
        f"the tree of {second.size} that {log.name} signed contains its tree of {first.size} unchanged"
    )
    report.witnessed(newer, log, policy)
    return report


def parse_receipt(data: bytes) -> dict[str, Any]:
    """The members of a receipt, each of its kind. Raises Malformed `receipt_malformed` when one is missing."""
    receipt = strict_json.loads(data)
    if not isinstance(receipt, dict):
        raise Malformed("receipt_malformed", "a receipt must be a JSON object")
    for name, kind in _MEMBERS.items():
        if type(receipt.get(name)) is not kind:
            raise Malformed("receipt_malformed", f"a receipt must have the member {name}")
    return receipt


def _read_openings(openings: dict[str, Any], entry: Entry) -> tuple[bytes, Opening | None]:
    """The salt of the commitment that is for the speaker alone, and what opens the text, if it is shown."""
    own = _OWN[entry.type]
    if openings.keys() != {"text", own} or not isinstance(openings[own], dict) or openings[own].keys() != {"salt"}:
        raise Malformed("receipt_malformed", f"the openings of a receipt must be text and the salt of the {own}")
    try:
        salt = base64.decode_hash(openings[own]["salt"])
    except (BadBase64, TypeError) as error:
        raise Malformed("receipt_malformed", f"the {own} salt is {error}") from None
    return salt, None if openings["text"] is None else Opening.parse(openings["text"])


def _verify_text(opening: Opening | None, entry: Entry, report: Report) -> None:
    """The text is the one that the entry commits to."""
    committed = entry.members.get("text")
    if opening is None:
        if committed is not None:
            report.withheld.append("the text that the entry commits to: it was redacted, or is not shown")
        return
    if committed is None:
        raise NotProved("opening_unexpected", "the entry commits to no text, and one is opened")
    opening.require(committed)
    report.proved.append("the text is the one the entry commits to")
