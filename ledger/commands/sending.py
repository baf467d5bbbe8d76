"""What `staylog review submit` and `respond` share: a signed statement goes to a ledger, and what comes back is saved
first, then checked against the log's key, then told."""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from ledger.canon import base64, jcs, proofs
from ledger.commands import client
from ledger.commands.common import printable
from ledger.commands.statement import encode, next_free, save
from ledger.errors import Malformed, NotProved, StaylogError
from ledger.log.checkpoint import Checkpoint
from ledger.log.entries import Entry, parse_entry
from ledger.log.note import Verifier
from ledger.log.openings import Opening, commitment
from ledger.log.tlog_proof import TlogProof

REVIEW, RESPONSE = "ReviewSubmission", "HostResponse"
_WORDS = {REVIEW: "review", RESPONSE: "response"}
_COMMANDS = {REVIEW: "staylog review submit", RESPONSE: "staylog review respond"}
# What the entry repeats of what was signed, and the commitment that only its speaker can open.
_REPEATED = {
    REVIEW: ("host_did", "listing_id", "check_in", "check_out", "ratings"),
    RESPONSE: ("review_id", "host_did"),
}
_OWN = {REVIEW: "evidence", RESPONSE: "statement"}
_TEXT = {REVIEW: "review_text", RESPONSE: "response_text"}
# What the same statement, signed anew, may get past.
_PASSING = ("stale_proof", "stay_not_over")


@dataclass(frozen=True, slots=True)
class Errand:
    """Which statement goes where, and the files it leaves. `log` is the key its receipt is checked by, if known."""

    kind: str
    ledger: str
    submission: Path
    out: Path
    log: Verifier | None

    @property
    def word(self) -> str:
        return _WORDS[self.kind]

    @property
    def again(self) -> str:
        return f"{_COMMANDS[self.kind]} --again {shlex.quote(str(self.submission))}"

    def path(self, body: Mapping[str, Any]) -> str:
        return "/v1/reviews" if self.kind == REVIEW else f"/v1/reviews/{body['review_id']}/response"


SignAnew = Callable[[], tuple[Errand, dict[str, Any]]]


def deliver(errand: Errand, body: Mapping[str, Any], sign_anew: SignAnew | None = None) -> None:
    """Send it, save and check the receipt, and say what to keep. What the ledger finds too old is signed anew where
    somebody can: a ledger that had taken it before would have answered with its receipt."""
    try:
        repeated, receipt = _send(errand, body)
    except client.TurnedAway as turned:
        if turned.code == "stale_proof" and sign_anew is not None:
            deliver(*sign_anew())
            return
        _tell_refusal(errand, body, turned)
        raise SystemExit(1) from None
    log, entry, checkpoint = _checked(errand, body, receipt)
    _tell(errand, receipt, repeated, log, entry, checkpoint)


def _send(errand: Errand, body: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    try:
        answer, receipt = client.submit(errand.ledger, errand.path(body), encode(body))
        save(errand.out, answer.data)
    except client.TurnedAway:
        raise
    except StaylogError as error:
        hint = f"it may have arrived or not; the same file gets the same receipt: {errand.again}"
        raise StaylogError(
            error.code, f"{error.message}. Your signed {errand.word} is in {errand.submission}; {hint}"
        ) from None
    return answer.status == 200, receipt


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
            f"{errand.submission}; together they show that",
        ) from None


def check_receipt(
    kind: str, receipt: Mapping[str, Any], body: Mapping[str, Any], log: Verifier
) -> tuple[Entry, Checkpoint]:
    """The entry, and the checkpoint by `log` that it stands under; it says and seals exactly what was signed."""
    try:
        entry, proof = parse_entry(receipt["entry"].encode()), TlogProof.parse(receipt["tlog_proof"])
        opened, salt = receipt["openings"]["text"], base64.decode_hash(receipt["openings"][_OWN[kind]]["salt"])
    except (KeyError, TypeError, AttributeError) as error:
        raise Malformed("receipt_malformed", f"the receipt lacks something, or has it wrong: {error}") from None
    members = entry.members
    if entry.type != _WORDS[kind] or (receipt.get("review_id"), receipt.get("index")) != (
        members["review_id"],
        proof.index,
    ):
        raise NotProved("receipt_mismatch", f"the receipt is not that of a {_WORDS[kind]}, or not of one entry")
    if any(members[name] != body[name] for name in _REPEATED[kind]):
        raise NotProved("receipt_mismatch", "the entry says something else than what was signed")
    proof.require_plain()
    checkpoint = proof.verify(entry.leaf_hash, log)
    if (members["text"] is None) != (not body.get(_TEXT[kind])):
        raise NotProved("receipt_mismatch", "the entry has a text where none was signed, or none where one was")
    # A text that was redacted meanwhile is not opened any more.
    if opened is not None:
        opening = Opening.parse(opened)
        opening.require(str(members["text"]))
        if opening.text != body.get(_TEXT[kind]):
            raise NotProved("opening_mismatch", "the entry commits to another text than the one that was signed")
    signed = {"submission": body, "booking": None} if kind == REVIEW else body
    sealed = members["evidence"]["commitment"] if kind == REVIEW else members["statement"]
    if commitment(salt, jcs.dumps(signed)) != sealed:
        raise NotProved("opening_mismatch", "the entry does not rest on what was signed")
    return entry, checkpoint


def _tell(
    errand: Errand, receipt: Mapping[str, Any], repeated: bool, log: Verifier, entry: Entry, checkpoint: Checkpoint
) -> None:
    members = entry.members
    _line("accepted", f"{'' if errand.kind == REVIEW else 'your response to '}{members['review_id']}")
    if errand.kind == REVIEW:
        rests = members["evidence"]
        by = f"{rests['booking']} and a credential ({rests['idv_level']}) of {rests['issuer']}"
        _line("level", f"{members['level']}, by {by}")
    _line("entry", f"{receipt['index']} of {log.name}, which signed for {checkpoint.size} entries")
    if repeated:
        _line("before", f"the ledger had this {errand.word} already, and gives its receipt again")
    _line("checked", f"offline: the {errand.word} in the log is the one you signed, and the log's key signed for it")
    if members["text"] is not None and receipt["openings"]["text"] is None:
        _line("", "but for its text, which the ledger does not show any more: it was redacted, or is withheld")
    _line("log key", str(log))
    if errand.log is None:
        _line("", "had from the ledger itself, and believed on first sight: compare it with one from elsewhere")
    if receipt.get("private_feedback") == "undeliverable":
        _line("feedback", "NOT delivered: the ledger did not keep your private words, and the host will not see them")
    more = ", and with that your DID, credential, booking and private words" if errand.kind == REVIEW else ""
    click.echo(f"\nKeep {errand.out} and {errand.submission}. The first alone shows, without this ledger, that")
    click.echo(f"the log has the {errand.word}; the second shows that it is yours{more}.")
    files = f"{shlex.quote(str(errand.out))} --key {log} --submission {shlex.quote(str(errand.submission))}"
    click.echo(f"  staylog verify {printable(files)}")


def _line(name: str, text: str) -> None:
    click.echo(f"{name:<10} {printable(text)}")


def _tell_refusal(errand: Errand, body: Mapping[str, Any], turned: client.TurnedAway) -> None:
    """All that the ledger said, and what can be done."""
    console = Console(stderr=True, emoji=False)

    def say(text: str) -> None:
        console.print(escape(printable(text)), soft_wrap=True)

    console.print(f"[red]refused[/] [dim]({turned.code})[/] {escape(printable(turned.message))}", soft_wrap=True)
    for field, message in turned.fields:
        say(f"  {field}: {message}")
    if turned.explained:
        say(f"explained at {turned.explained}")
    if turned.refusal is not None:
        say(_keep_refusal(errand, body, turned.code, turned.refusal))
    if turned.status >= 500:
        say(f"It may be taken in all the same; what you signed is in {errand.submission}, and is never taken twice.")
    else:
        say(f"Nothing was taken in; what you signed is in {errand.submission}.")
    if turned.retry_after is not None:
        say(f"Try again in {turned.retry_after} seconds: {errand.again} --key KEY")
    elif turned.code in _PASSING:
        say(f"When it can be taken, sign the same again: {errand.again} --key KEY")
    else:
        say("To send another one, give it another name: --submission FILE")


def _keep_refusal(errand: Errand, body: Mapping[str, Any], code: str, refusal: Mapping[str, Any]) -> str:
    """Save the ledger's signed word, whatever it is worth, and say what it is worth."""
    path = next_free(errand.submission.with_stem(f"{errand.submission.stem}.refusal"))
    save(path, encode(refusal))
    try:
        _check_refusal(errand.ledger, body, code, refusal)
    except StaylogError as error:
        return f"{path} should be the ledger's signed refusal, but that does not hold: {error}"
    return (
        f"{path} is the ledger's signed refusal. With {errand.submission} it shows anybody that this ledger turned "
        "this away, when, and for which reason"
    )


def _check_refusal(ledger: str, body: Mapping[str, Any], code: str, refusal: Mapping[str, Any]) -> None:
    said = (refusal.get("type"), refusal.get("submission_sha256"), refusal.get("code"))
    if said != ("Refusal", sha256(jcs.dumps(body)).hexdigest(), code):
        raise NotProved("receipt_mismatch", "it is about something else")
    proof = refusal.get("proof")
    if not isinstance(proof, dict):
        raise NotProved("signature_invalid", "it is not signed")
    key = client.statements_key(ledger, str(proof.get("verificationMethod")))
    proofs.verify({name: value for name, value in refusal.items() if name != "proof"}, proof, [key])
