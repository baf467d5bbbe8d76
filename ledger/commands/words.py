"""The ledger's signed words about a submission, saved before they are looked at: that it was refused, or that it was
taken in and will be decided."""

import re
import shlex
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape

from ledger.canon import jcs, proofs, strict_json
from ledger.canon.times import check_time
from ledger.commands import client
from ledger.commands.common import printable
from ledger.commands.errand import REVIEW, Errand, line, tell_command
from ledger.commands.statement import encode, next_free, save
from ledger.errors import BadJSON, Malformed, NotProved, StaylogError

# What the same statement, signed anew, may get past.
_PASSING = ("stale_proof", "stay_not_over")
_SUBMISSION = re.compile(r"(.{1,300})(/v1/submissions/(sub-[a-z2-7]{26}))")


def tell_refusal(errand: Errand, body: Mapping[str, Any], turned: client.TurnedAway, *, waited: bool = False) -> None:
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
        outcome = "It was decided so" if waited else "Nothing was taken in"
        say(f"{outcome}; what you signed is in {errand.submission}.")
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
        if refusal.get("code") != code:
            raise NotProved("receipt_mismatch", "it is about something else")
        _check(errand.ledger, body, refusal, "Refusal")
    except StaylogError as error:
        return f"{path} should be the ledger's signed refusal, but that does not hold: {error}"
    return (
        f"{path} is the ledger's signed refusal. With {errand.submission} it shows anybody that this ledger turned "
        "this away, when, and for which reason"
    )


def keep_intake(errand: Errand, body: Mapping[str, Any], answer: client.Answer) -> None:
    """Save the answer that a submission waits, check what the ledger signed in it, and say how to look later."""
    path = _kept(errand.pending, answer.data)
    try:
        found = answer.json()
        ledger, _ = place_of(found)
        if ledger != errand.ledger:
            raise NotProved("receipt_mismatch", f"it says to look at {ledger}, which is not the ledger")
        intake = found.get("intake")
        if not isinstance(intake, dict):
            raise Malformed("answer_malformed", "it has no intake receipt")
        _check(errand.ledger, body, intake, "IntakeReceipt")
        check_time(intake.get("decide_by"))
    except (StaylogError, ValueError) as error:
        code = error.code if isinstance(error, StaylogError) else "answer_malformed"
        raise StaylogError(
            code,
            f"the ledger says that it took the {errand.word} in, but its word does not hold: {error}. Keep {path} and "
            f"{errand.submission}; together they show that. It may be decided all the same: {errand.again}",
        ) from None
    _tell_intake(errand, path, intake)


def _tell_intake(errand: Errand, path: Path, intake: Mapping[str, Any]) -> None:
    line("taken in", "and not decided: nothing that is at hand shows that the stay is booked, so the host is asked")
    line("decided", f"by {intake['decide_by']} at the latest; until then a host that is silent is asked again")
    if errand.kind == REVIEW:
        line("", "if it never answers, the review is published as unconfirmed, or refused where the policy says so")
    else:
        line("", "if it has not answered by then, the claim is refused")
    line("checked", "the ledger signed that it has this, and by when it decides, with its key #statements")
    click.echo(f"\nKeep {path} and {errand.submission}: together they show what the ledger")
    click.echo("must decide on, and until when. To look what became of it:")
    tell_command(f"staylog review status {shlex.quote(str(path))}")


def place_of(answer: Mapping[str, Any]) -> tuple[str, str]:
    """The ledger, and where in it is said what became of a submission."""
    match = _SUBMISSION.fullmatch(str(answer.get("status_url")))
    if match is None or match[3] != answer.get("submission_id"):
        raise Malformed("answer_malformed", "it does not say where to look what became of the submission")
    return match[1], match[2]


def is_about(word: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    return word.get("submission_sha256") == sha256(jcs.dumps(body)).hexdigest()


def _check(ledger: str, body: Mapping[str, Any], word: Mapping[str, Any], type_: str) -> None:
    """Whether the ledger signed this, about this submission."""
    if word.get("type") != type_ or not is_about(word, body):
        raise NotProved("receipt_mismatch", "it is about something else")
    proof = word.get("proof")
    if not isinstance(proof, dict):
        raise NotProved("signature_invalid", "it is not signed")
    key = client.statements_key(ledger, str(proof.get("verificationMethod")))
    proofs.verify({name: value for name, value in word.items() if name != "proof"}, proof, [key])


def _kept(path: Path, data: bytes) -> Path:
    """The file with this answer: the one that has it already, in whatever order, or a new one."""
    with suppress(OSError, BadJSON):
        if strict_json.loads(path.read_bytes()) == strict_json.loads(data):
            return path
    path = next_free(path)
    save(path, data)
    return path
