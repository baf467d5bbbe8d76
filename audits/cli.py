"""`staylog verify`: the offline checks of this package for people at a terminal."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import click

from audits import entry_differs
from audits.given import read_policy
from audits.receipts import (
    verify_checkpoint,
    verify_growth,
    verify_intake,
    verify_receipt,
    verify_refusal,
    verify_tlog_proof,
)
from audits.report import Report
from audits.terminal import FILE, OUT, printable, telling, write_text
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64, multikey, strict_json
from ledger.canon.times import format_time
from ledger.errors import BadJSON, Malformed, StaylogError
from ledger.log.note import Verifier
from ledger.log.tlog_proof import HEADER
from ledger.reviews.statement_signer import DIFFERS

# A clock may be a little ahead; a map head from next year is no mistake of a clock.
CLOCK_SKEW = timedelta(minutes=5)
# How the first signature line of a note begins.
SIGNATURE = "\n\n— ".encode()
# Which options belong to which kind of document. Any other is refused: an ignored option is a check not made.
OPTIONS = {
    "an answer": {"host", "max_age", "kind", "text", "policy"},
    "a set of pages": {"host", "max_age", "text", "policy"},
    "a receipt": {"policy", "submission", "booking", "fraud"},
    "a tlog-proof": {"policy", "entry"},
    "a refusal": {"submission"},
    "an intake receipt": {"submission"},
    "a checkpoint": {"policy"},
    "a pair of checkpoints": {"consistency", "policy"},
}


def _hours(_context: click.Context, _option: click.Parameter, value: float | None) -> float | None:
    if value is not None and not (math.isfinite(value) and 0 <= value <= 1e6):
        raise click.BadParameter("hours from 0 to 1,000,000 expected")
    return value


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option(
    "--key",
    "vkey",
    required=True,
    help="The log's public key, `name+id+base64`, from a source you trust; of a refusal or intake the key #statements.",
)
@click.option("--host", help="The DID you asked about: says that FILE is a reputation answer.")
@click.option(
    "--max-age", type=float, metavar="HOURS", callback=_hours, help="Refuse an older map head, or one from the future."
)
@click.option("--kind", type=click.Choice(["full", "aggregate", "page"]), help="Refuse an answer of another kind.")
@click.option("--text", type=click.Choice(["verified", "all", "none"]), help="What ?text= asked for.  [verified]")
@click.option("--entry", type=FILE, help="The exact bytes of the entry that a tlog-proof is about.")
@click.option("--policy", type=FILE, help="A tlog-policy: demand its quorum of witnesses.")
@click.option("--consistency", type=FILE, help="The answer of /v1/log/consistency for two checkpoints, older first.")
@click.option(
    "--submission",
    type=FILE,
    help="What was signed and is answered by this: shows that it is yours, and that the entry of a receipt says it.",
)
@click.option("--booking", type=FILE, help="The booking statement it rests on, when the submission does not carry it.")
@click.option(
    "--fraud", type=OUT, help="Write a file that convicts the log, if the entry is not what --submission says."
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify(files: tuple[Path, ...], vkey: str, as_json: bool, **options: Any) -> None:
    """Check a reputation answer, a receipt, a refusal, an intake receipt, a tlog-proof or checkpoints, offline.

    Nothing but the key is trusted, and nothing is fetched. Prints what was proved and what was not. Otherwise exits
    with status 1 and names the first thing that is wrong. Name all pages of a host, or one
    file with an array of them, to check them as one answer.

    \b
      staylog verify answer.json --key VKEY --host did:web:cottage.example
      staylog verify answer.json --key VKEY --host did:web:cottage.example --policy tlog-policy
      staylog verify page0.json page1.json --key VKEY --host did:web:cottage.example
      staylog verify receipt.json --key VKEY --submission review.json
      staylog verify review.refusal.json --key z6Mk... --submission review.json
      staylog verify receipt.pending.json --key z6Mk... --submission review.json
      staylog verify review.tlog-proof --key VKEY --entry entry.json
      staylog verify checkpoint.txt --key VKEY --policy policy.txt
      staylog verify older.txt newer.txt --key VKEY --consistency proof.json
    """
    given = {name: value for name, value in options.items() if value is not None}
    with telling(as_json) as tell:
        data = [path.read_bytes() for path in files]
        document = _document(data, given)
        for name in sorted(given.keys() - OPTIONS[document]):
            raise click.UsageError(f"--{name.replace('_', '-')} does not apply to {document}")
        if document == "a refusal":
            report = verify_refusal(data[0], multikey.decode(vkey), **_read(given, "submission"))
        elif document == "an intake receipt":
            shown = _read(given, "submission")
            report = verify_intake(data[0], multikey.decode(vkey), now=datetime.now(UTC), **shown)
        else:
            report = _CHECKS[document](data, Verifier.parse(vkey), given)
        tell(report)


def _document(data: list[bytes], given: dict[str, Any]) -> str:
    """The caller says whether an answer is meant, by --host; a file must not choose what it is checked as."""
    if "host" in given:
        is_list = data[0].lstrip(b" \t\r\n").startswith(b"[")
        return "an answer" if len(data) == 1 and not is_list else "a set of pages"
    if "consistency" in given and len(data) == 2:
        return "a pair of checkpoints"
    if len(data) > 1:
        raise click.UsageError("several files are the pages of one --host, or two checkpoints with --consistency")
    if data[0].startswith(HEADER.encode()):
        return "a tlog-proof"
    if SIGNATURE in data[0] and not data[0].startswith(b"{"):
        return "a checkpoint"
    value = strict_json.loads(data[0])
    if isinstance(value, dict) and "tlog_proof" in value:
        return "a receipt"
    if isinstance(value, dict) and value.get("type") == "Refusal":
        return "a refusal"
    if isinstance(value, dict) and (value.get("type") == "IntakeReceipt" or "intake" in value):
        return "an intake receipt"
    raise click.UsageError("an answer is about a host: name the DID you asked for with --host")


def _check_answer(data: list[bytes], log: Verifier, given: dict[str, Any]) -> Report:
    return verify_answer(data[0], log, given["host"], kind=given.get("kind"), **_asked(given))


def _check_pages(data: list[bytes], log: Verifier, given: dict[str, Any]) -> Report:
    return verify_pages(data, log, given["host"], **_asked(given))


def _asked(given: dict[str, Any]) -> dict[str, Any]:
    asked: dict[str, Any] = {"text": given.get("text", "verified"), "policy": read_policy(given.get("policy"))}
    if "max_age" in given:
        now = datetime.now(UTC)
        asked["oldest"] = format_time(now - timedelta(hours=given["max_age"]))
        asked["newest"] = format_time(now + CLOCK_SKEW)
    return asked


def _check_receipt(data: list[bytes], log: Verifier, given: dict[str, Any]) -> Report:
    if "fraud" in given and "submission" not in given:
        raise click.UsageError("--fraud needs what was signed: name it with --submission")
    signed = _read(given, "submission", "booking")
    try:
        report = verify_receipt(data[0], log, policy=read_policy(given.get("policy")), **signed)
    except StaylogError as error:
        if error.code == DIFFERS or "fraud" in given:
            _offer_fraud(data[0], signed, log, given.get("fraud"))
        raise
    if "fraud" in given:
        click.echo(f"{printable(str(given['fraud']))} is not written: there is nothing to convict of", err=True)
    return report


def _offer_fraud(receipt: bytes, signed: dict[str, bytes], log: Verifier, out: Path | None) -> None:
    """Say what a file that convicts reveals, and then write it if it is asked for. On standard error, which is not the
    report. Where no file convicts, there is nothing to say but what was refused."""
    try:
        fraud = entry_differs.prove(receipt, signed["submission"], signed.get("booking"), log)
    except StaylogError:
        return
    named = "With --fraud FILE you get a file" if out is None else f"{printable(str(out))} is a file"
    click.echo(f"{named} that convicts the log before anyone who has its key. It reveals what you signed:", err=True)
    for each in entry_differs.reveals(fraud):
        click.echo(f"  {printable(each)}", err=True)
    if out is not None:
        write_text(out, json.dumps(fraud.as_json(log), indent=1) + "\n")


def _read(given: dict[str, Any], *names: str) -> dict[str, bytes]:
    return {name: given[name].read_bytes() for name in names if name in given}


def _check_tlog_proof(data: list[bytes], log: Verifier, given: dict[str, Any]) -> Report:
    if "entry" not in given:
        raise click.UsageError("a tlog-proof does not contain its entry: name it with --entry")
    return verify_tlog_proof(_text(data[0]), given["entry"].read_bytes(), log, policy=read_policy(given.get("policy")))


def _check_checkpoint(data: list[bytes], log: Verifier, given: dict[str, Any]) -> Report:
    return verify_checkpoint(_text(data[0]), log, policy=read_policy(given.get("policy")))


def _check_growth(data: list[bytes], log: Verifier, given: dict[str, Any]) -> Report:
    answer = strict_json.loads(given["consistency"].read_bytes())
    proof = answer.get("proof") if isinstance(answer, dict) else None
    if not isinstance(proof, list) or not all(isinstance(text, str) for text in proof):
        raise Malformed("answer_malformed", "a consistency proof must be an object with a list of hashes as its proof")
    hashes = [base64.decode_hash(text) for text in proof]
    return verify_growth(_text(data[0]), _text(data[1]), hashes, log, policy=read_policy(given.get("policy")))


_CHECKS: dict[str, Callable[[list[bytes], Verifier, dict[str, Any]], Report]] = {
    "an answer": _check_answer,
    "a set of pages": _check_pages,
    "a receipt": _check_receipt,
    "a tlog-proof": _check_tlog_proof,
    "a checkpoint": _check_checkpoint,
    "a pair of checkpoints": _check_growth,
}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise BadJSON("not_utf8", "the file is not UTF-8 text") from None
