"""`staylog review status`: what became of a review or claim that had to wait."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ledger.canon.times import format_time
from ledger.clock import utc_now
from ledger.commands import client, receipts, words
from ledger.commands.common import FilePath, refusals
from ledger.commands.errand import CLAIM, REVIEW, Errand, line, tell_command
from ledger.commands.signing import log_key_option
from ledger.commands.statement import InFile, encode, read_json, require_free, save
from ledger.errors import BadForm, BadJSON, Malformed, NotProved
from ledger.log.note import Verifier
from ledger.settings import check_base_url

_PENDING = re.compile(r"\.pending(-[0-9]+)?$")


@click.command(short_help="Look what became of a review or claim that waits.")
@click.argument("file", type=InFile)
@click.option("--submission", type=InFile, help="What you signed.  [default: the file beside FILE that it is about]")
@click.option("--out", type=FilePath, help="Where the receipt goes.  [default: the name of FILE without .pending]")
@log_key_option
def status(file: Path, submission: Path | None, out: Path | None, log_key: str | None) -> None:
    """Look what became of a review or claim that had to wait. FILE is what the ledger answered, as it was saved.

    While it waits, that is told. If the review was accepted, its receipt is saved and checked, as when it is accepted
    at once. If it was rejected, the ledger's signed refusal is saved and checked, and the exit status is 1. The ledger
    tells for 90 days after the decision.

    \b
      staylog review status receipt.pending.json
      staylog review status claim.pending.json
    """
    with refusals():
        log = Verifier.parse(log_key) if log_key is not None else None
        saved = read_json(file)
        ledger, path = words.place_of(saved)
        submission, body = _submission(file, saved, submission)
        kind = str(body.get("type", REVIEW))
        # A claim gets no receipt.
        goes_to = None if kind == CLAIM else out or _receipt_beside(file)
        if body["proof"].get("domain") != check_base_url(ledger):
            raise NotProved(
                "receipt_mismatch", f"{submission.name} was not signed for {ledger}, which {file.name} names"
            )
        if goes_to is not None:
            require_free(goes_to)
        errand = Errand(kind, ledger, submission, goes_to, log)
        _tell(errand, body, client.look_up(ledger, path), file)


def _receipt_beside(file: Path) -> Path:
    """receipt.json for receipt.pending.json."""
    stem, found = _PENDING.subn("", file.stem)
    return file.with_stem(stem if found and stem else f"{file.stem}.receipt")


def _submission(file: Path, saved: Mapping[str, Any], named: Path | None) -> tuple[Path, dict[str, Any]]:
    """What was signed: the file that is named, or the one in the same folder that the ledger's word is about."""
    intake = saved.get("intake")
    if not isinstance(intake, dict):
        raise Malformed("answer_malformed", f"{file.name} has no intake receipt")
    for path in [named] if named is not None else sorted(filter(Path.is_file, file.parent.glob("*.json"))):
        try:
            body = read_json(path)
            found = words.is_about(intake, body)
        except (BadForm, BadJSON, OSError):
            found = False
        if found and body.get("type", REVIEW) in (REVIEW, CLAIM) and isinstance(body.get("proof"), dict):
            return path, body
    if named is not None:
        raise NotProved("receipt_mismatch", f"{file.name} is not about {named.name}")
    raise click.UsageError(f"what you signed is not beside {file.name}: name it with --submission.")


def _tell(errand: Errand, body: Mapping[str, Any], found: Mapping[str, Any], file: Path) -> None:
    became, decide_by = found.get("status"), found.get("decide_by")
    if became == "pending":
        _tell_pending(errand, str(decide_by), file)
    elif became == "rejected" and client.is_code(found.get("code")):
        explained = f"{errand.ledger}/problems/{found['code']}"
        words.tell_refusal(errand, body, client.TurnedAway({"type": explained, **found}, 403, None), waited=True)
        raise SystemExit(1)
    elif became == "accepted" and errand.out is None:
        line(
            "verified", f"{body['booking_reference']}: {body['listing_id']}, {body['check_in']} to {body['check_out']}"
        )
        line("counts", "from now on: your review of this stay needs nothing more from the host")
    elif became == "accepted" and errand.out is not None and isinstance(receipt := found.get("receipt"), dict):
        save(errand.out, encode(receipt))
        receipts.settle(errand, body, receipt, repeated=False)
    else:
        raise Malformed("answer_malformed", "the ledger does not say what became of it")


def _tell_pending(errand: Errand, decide_by: str, file: Path) -> None:
    line("pending", f"nothing shows yet that the stay of your {errand.word} is booked; the host is asked")
    line("decided", f"by {decide_by} at the latest")
    if decide_by < format_time(utc_now()):
        line("", f"that time is over: {file} and {errand.submission} are evidence that the ledger is late")
        return
    click.echo("To look again:")
    tell_command(f"staylog review status {shlex.quote(str(file))}")
