"""Evidence that an answer about a host was served that does not say what the signed log says of it.

An answer is not signed, but its proof leads to what is: so the file shows, without the log, what the answer should have
said. That it was this answer that came is the word of whoever recorded it.
"""

from collections.abc import Sequence
from typing import Any

from audits.answer import parse_answer
from audits.evidence import OBSERVED, Evidence, Fraud, Shown, unproved
from audits.face import verify_plain
from audits.report import Report
from audits.verify import verify_answer, verify_pages
from ledger.canon import strict_json
from ledger.errors import BrokenRule, Malformed, NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.note import Verifier

WITHHELD = "text_withheld"
# What an answer to the right question can be wrong in. That another question was asked shows nothing.
CODES = {
    "face_mismatch",
    "history_mismatch",
    "opening_mismatch",
    "opening_unexpected",
    "record_mismatch",
    "record_invalid",
    "root_mismatch",
    "sub_root_mismatch",
    "map_root_mismatch",
    "map_head_not_last",
    "map_other_elsewhere",
    "absent_with_events",
    "foreign_event",
    "time_falls",
    "index_order",
    "index_out_of_range",
    "proof_length",
}


def verify_served(documents: Sequence[bytes], log: Verifier, host: str) -> Report:
    """An answer in one document, or in pages, for which all texts were asked."""
    try:
        if len(documents) == 1 and parse_answer(documents[0]).kind != "page":
            return verify_answer(documents[0], log, host, kind="full", text="all")
        return verify_pages(documents, log, host, text="all")
    except BrokenRule as rule:
        # Of all events none breaks a rule, or the log itself is wrong: some are left out, or have been changed.
        raise NotProved("record_mismatch", f"no record follows from the events that are shown: {rule}") from None


def prove(code: str, claim: str, host: str, documents: Sequence[bytes], plain: bytes | None = None) -> Fraud:
    """`plain` is what came when no proof was asked for, if it is that which is wrong."""
    evidence: dict[str, Any] = {"host": host, "documents": [_text(document) for document in documents]}
    if plain is not None:
        evidence["plain"] = _text(plain)
    return Fraud("answer", code, claim, OBSERVED, evidence)


def check(code: str, evidence: Evidence, log: Verifier) -> Shown:
    host, documents = evidence["host"], [text.encode() for text in evidence["documents"]]
    checkpoint = _checkpoint(documents[0], log)
    signed = f"{log.name} signed a tree of {checkpoint.size} entries, and the answer about {host} is by that tree"
    try:
        report = verify_served(documents, log, host)
        if "plain" in evidence:
            verify_plain(evidence["plain"].encode(), [parse_answer(document) for document in documents])
    except (NotProved, Malformed) as error:
        if error.code != code or code not in CODES:
            unproved(f"the answer is wrong in another way than is claimed: {error.code}")
        return checkpoint, [signed, f"the answer does not say what that tree says: {error}"]
    if code != WITHHELD or not report.withheld:
        unproved("the answer is as it must be")
    texts = sorted(index for index, state in report.texts.items() if state == "withheld")
    where = ", ".join(map(str, texts[:20])) + (", ..." if len(texts) > 20 else "")
    return checkpoint, [signed, f"it opens no text for entries {where}, of which that tree has no redaction"]


def _checkpoint(document: bytes, log: Verifier) -> Checkpoint:
    """Only an answer with this log's signature in it says anything about this log."""
    value = strict_json.loads(document)
    return open_checkpoint(value["proof"]["checkpoint"], log)


def _text(document: bytes) -> str:
    return document.decode(errors="replace")
