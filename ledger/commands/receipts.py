"""Receipts of what was sent: checked against the log's key and against what was signed, then told."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click

from ledger.canon import base64
from ledger.commands import client
from ledger.commands.errand import ELSEWHERE, RESPONSE, REVIEW, SUPPLEMENT, Errand, line, tell_command
from ledger.errors import Malformed, NotProved, StaylogError
from ledger.log.checkpoint import Checkpoint
from ledger.log.entries import Entry, parse_entry
from ledger.log.note import Verifier
from ledger.log.tlog_proof import TlogProof
from ledger.reviews.entry_binding import Opened, follow, require_opens
from ledger.reviews.statement_signer import DIFFERS


@dataclass(frozen=True, slots=True)
class Form:
    """The type of the entry that a kind of statement becomes, and the commitment that only who signed can open."""

    entry: str
    own: str = "evidence"


FORMS = {
    REVIEW: Form("review"),
    ELSEWHERE: Form("review"),
    RESPONSE: Form("response", own="statement"),
    SUPPLEMENT: Form("upgrade"),
}
_OF = {"response": "your response to ", "upgrade": "your evidence for "}
_SHOWN = {
    "BookingNotice": "the host's notice of it",
    "BookingClaim": "your own claim, verified before check-in",
    "BookingVerification": "the host's answer when the ledger asked",
}


def settle(errand: Errand, body: Mapping[str, Any], receipt: Mapping[str, Any], *, repeated: bool) -> None:
    """Check a receipt that is saved, and tell what it shows."""
    log, entry, checkpoint = _checked(errand, body, receipt)
    _tell(errand, receipt, repeated, log, entry, checkpoint)


def _checked(errand: Errand, body: Mapping[str, Any], receipt: Mapping[str, Any]) -> tuple[Verifier, Entry, Checkpoint]:
    try:
        log = errand.log or client.log_key(errand.ledger)
    except StaylogError as error:
        raise StaylogError(
            error.code, f"the receipt is in {errand.out}, and is not checked: the log's key is not to be had. {error}"
        ) from None
    try:
        return log, *check_receipt(errand.kind, receipt, body, log)
    except StaylogError as error:
        raise StaylogError(
            error.code,
            f"the ledger took the {errand.word}, but its receipt does not hold: {error}. Keep {errand.out} and "
            f"{errand.submission}; together they show that{_hint(errand, error, log)}",
        ) from None


def _hint(errand: Errand, error: StaylogError, log: Verifier) -> str:
    """How to make a file that convicts, where there is one to make."""
    if error.code != DIFFERS:
        return ""
    files = f"{shlex.quote(str(errand.out))} --key {log} --submission {shlex.quote(str(errand.submission))}"
    return f". `staylog verify {files} --fraud fraud.json` makes a file that anybody can check"


def check_receipt(
    kind: str, receipt: Mapping[str, Any], body: Mapping[str, Any], log: Verifier
) -> tuple[Entry, Checkpoint]:
    """The entry, and the checkpoint by `log` that it stands under; it says and seals exactly what was signed."""
    form = FORMS[kind]
    try:
        entry, proof = parse_entry(receipt["entry"].encode()), TlogProof.parse(receipt["tlog_proof"])
        salt = base64.decode_hash(receipt["openings"][form.own]["salt"])
        opened = Opened.of(receipt, dict(body))
    except (KeyError, TypeError, AttributeError) as error:
        raise Malformed("receipt_malformed", f"the receipt lacks something, or has it wrong: {error}") from None
    members = entry.members
    if entry.type != form.entry or (receipt.get("review_id"), receipt.get("index")) != (
        members["review_id"],
        proof.index,
    ):
        raise NotProved("receipt_mismatch", f"the receipt is not that of a {form.entry}, or not of one entry")
    proof.require_plain()
    checkpoint = proof.verify(entry.leaf_hash, log)
    require_opens(entry, opened, salt)
    follow(entry, opened)
    return entry, checkpoint


def _tell(
    errand: Errand, receipt: Mapping[str, Any], repeated: bool, log: Verifier, entry: Entry, checkpoint: Checkpoint
) -> None:
    members, word = entry.members, errand.word
    line("accepted", f"{_OF.get(entry.type, '')}{members['review_id']}")
    if entry.type != "response":
        _tell_level(members, receipt)
    line("entry", f"{receipt['index']} of {log.name}, which signed for {checkpoint.size} entries")
    if repeated:
        line("before", f"the ledger had this {word} already, and gives its receipt again")
    line("checked", f"offline: the {word} in the log is the one you signed, and the log's key signed for it")
    if members.get("text") is not None and receipt["openings"].get("text") is None:
        line("", "but for its text, which the ledger does not show any more: it was redacted, or is withheld")
    line("log key", str(log))
    if errand.log is None:
        line("", "had from the ledger itself, and believed on first sight: compare it with one from elsewhere")
    _tell_feedback(receipt.get("private_feedback"))
    more = ", and with that your DID, credential, booking and private words" if errand.kind == REVIEW else ""
    click.echo(f"\nKeep {errand.out} and {errand.submission}. The first alone shows, without this ledger, that")
    click.echo(f"the log has the {word}; the second shows that it is yours{more}.")
    files = f"{shlex.quote(str(errand.out))} --key {log} --submission {shlex.quote(str(errand.submission))}"
    tell_command(f"staylog verify {files}")


def _tell_level(members: Mapping[str, Any], receipt: Mapping[str, Any]) -> None:
    rests = members["evidence"]
    who = "" if rests["issuer"] is None else f" and a credential ({rests['idv_level']}) of {rests['issuer']}"
    if members["level"] == "unconfirmed":
        line("level", f"unconfirmed, by your word{who}: nothing shows that the stay was booked")
        line("", "it is listed and counted apart, not part of any average; a stay receipt raises it at any time:")
        tell_command(f"staylog review evidence {members['review_id']} --receipt stay-receipt.json --key KEY")
        return
    line("level", f"{members['level']}, by {rests['booking']}{who}")
    booking = receipt.get("booking")
    if booking is not None:
        what = _SHOWN.get(str(booking.get("type")), "a statement")
        line("booking", f"shown by {what}, which is in the receipt as `booking`")


def _tell_feedback(became: Any) -> None:
    if became == "sealed":
        line("feedback", "sealed: the host can fetch your private words for a year, and nobody else can read them")
    elif became == "undeliverable":
        line("feedback", "NOT delivered: the ledger did not keep your private words, and the host will not see them")
