"""Proof that an entry is not what its speaker signed: the entry itself commits to a statement that contradicts it.

The operator wrote the commitment into its own log, so the entry, what opens the commitment, and the log's key are
enough. Who has a receipt and the signed statement can make the proof, and reveals the statement with it.
"""

from collections.abc import Mapping
from typing import Any

from audits.evidence import SIGNED, Evidence, Fraud, Shown, unproved
from audits.receipts import parse_receipt
from ledger.canon import base64, jcs, strict_json
from ledger.errors import Malformed, NotProved, StaylogError
from ledger.log.entries import Entry, parse_entry
from ledger.log.note import Verifier
from ledger.log.openings import Opening
from ledger.log.tlog_proof import TlogProof
from ledger.reviews.entry_binding import Opened, follow, require_opens
from ledger.reviews.statement_signer import DIFFERS

_MEMBERS = {"entry", "tlog_proof", "salt", "statement", "booking", "opening"}
_REVEALS = {
    "guest_credential": "the guest's credential: their DID, its issuer, and all that it says of them",
    "guest_statement": "the guest's consent with their credential: their DID, its issuer, and all that it says of them",
    "host_credential": "the host's credential",
    "booking_reference": "the booking reference",
    "booking_evidence": "the stay receipt, which names guest, host and booking",
    "private_feedback": "the private feedback, which was for the host alone",
    "review_text": "the text of the review, even where it was redacted",
    "response_text": "the text of the response, even where it was redacted",
}


def prove(receipt: bytes, submission: bytes, booking: bytes | None, log: Verifier) -> Fraud:
    """That the receipt's entry differs from the submission.

    Raises NotProved `fraud_unproved` when it does not, or when no file could convict because of it.
    """
    given = parse_receipt(receipt)
    try:
        beside = None if booking is None else strict_json.loads(booking)
        opened = Opened.of({**given, "keys_seen": {}}, strict_json.loads(submission), beside)
        [own] = given["openings"].keys() - {"text"}
        salt = given["openings"][own]["salt"]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise Malformed("receipt_malformed", f"the openings of the receipt cannot be read: {error!r}") from None
    evidence = {
        "entry": given["entry"],
        "tlog_proof": given["tlog_proof"],
        "salt": salt,
        "statement": jcs.dumps(opened.statement).decode(),
        "booking": None if opened.booking is None else jcs.dumps(opened.booking).decode(),
        "opening": None if opened.text is None else opened.text.as_json(),
    }
    _, shown = check(DIFFERS, evidence, log)
    return Fraud(DIFFERS, DIFFERS, shown[-1], SIGNED, evidence)


def reveals(fraud: Fraud) -> list[str]:
    """What the file shows of its speaker beside what the log shows already."""
    statement = strict_json.loads(fraud.evidence["statement"])
    told = [words for name, words in _REVEALS.items() if statement.get(name)]
    booking = fraud.evidence["booking"]
    if booking is not None:
        told.append(f"the {strict_json.loads(booking).get('type')} that showed the booking")
    return told


def check(code: str, evidence: Evidence, log: Verifier) -> Shown:
    """The checkpoint, and what is shown. Raises NotProved when the entry may well follow from the statement."""
    if code != DIFFERS or evidence.keys() != _MEMBERS:
        unproved(f"evidence of {DIFFERS} has exactly {', '.join(sorted(_MEMBERS))}")
    entry, proof = parse_entry(evidence["entry"].encode()), TlogProof.parse(evidence["tlog_proof"])
    if entry.type not in ("review", "response", "upgrade"):
        unproved(f"a {entry.type} is not made from a statement")
    proof.require_plain()
    checkpoint = proof.verify(entry.leaf_hash, log)
    opened = _opened(evidence, entry)
    require_opens(entry, opened, base64.decode_hash(evidence["salt"]))
    return checkpoint, [
        f"entry {proof.index} is in a tree of {checkpoint.size} that {log.name} signed",
        f"that {entry.type} commits to the signed statement in this file",
        f"no honest log makes it from that: {_difference(entry, opened)}",
    ]


def _opened(evidence: Mapping[str, Any], entry: Entry) -> Opened:
    statement, booking, opening = (evidence[name] for name in ("statement", "booking", "opening"))
    text = None if opening is None else Opening.parse(opening)
    if text is not None:
        text.require(str(entry.members.get("text")))
    return Opened(_canonical(statement), None if booking is None else _canonical(booking), text)


def _canonical(text: str) -> dict[str, Any]:
    value = strict_json.loads(text)
    if not isinstance(value, dict) or jcs.dumps(value).decode() != text:
        unproved("a statement is a JSON object in its one spelling")
    return value


def _difference(entry: Entry, opened: Opened) -> str:
    """What no honest log makes of the statement. Raises NotProved when there is nothing of that kind."""
    why = "the entry follows from the statement, as far as can be told offline"
    try:
        follow(entry, opened)
    except StaylogError as error:
        if error.code == DIFFERS:
            return error.message
        why = error.message
    raise NotProved("fraud_unproved", why)
