"""`staylog verify`: the offline checks of this package for people at a terminal."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape

from audits.receipts import verify_receipt, verify_tlog_proof
from audits.report import Report
from audits.verify import verify_answer, verify_pages
from ledger.canon import strict_json
from ledger.canon.times import format_time
from ledger.errors import StaylogError
from ledger.log.note import Verifier
from ledger.log.policy import Policy
from ledger.log.tlog_proof import HEADER

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
# A clock may be a little ahead; a map head from next year is no mistake of a clock.
CLOCK_SKEW = timedelta(minutes=5)


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=FILE)
@click.option("--key", "vkey", required=True, help="The log's public key, `name+id+base64`, from a source you trust.")
@click.option("--host", help="The DID an answer is about. Required for answers.")
@click.option("--max-age", type=float, metavar="HOURS", help="Refuse an answer whose map head is older.")
@click.option("--kind", type=click.Choice(["full", "aggregate", "page"]), help="Refuse an answer of another kind.")
@click.option(
    "--text", type=click.Choice(["verified", "all", "none"]), default="verified", help="What ?text= asked for."
)
@click.option("--entry", type=FILE, help="The exact bytes of the entry that a tlog-proof is about.")
@click.option("--policy", type=FILE, help="A tlog-policy: demand its quorum of witnesses for a tlog-proof.")
@click.option("--submission", type=FILE, help="The signed review of a receipt, to show that it is yours.")
@click.option("--booking", type=FILE, help="The booking statement it rests on, when the submission does not carry it.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def verify(
    files: tuple[Path, ...],
    vkey: str,
    host: str | None,
    max_age: float | None,
    kind: str | None,
    text: str,
    entry: Path | None,
    policy: Path | None,
    submission: Path | None,
    booking: Path | None,
    as_json: bool,
) -> None:
    """Check a reputation answer, a receipt or a tlog-proof, offline.

    Nothing but the key is trusted, and nothing is fetched. Prints what was proved and what was not; exit status 1
    and the first thing that is wrong otherwise. Name all pages of a host to check them as one answer.

    \b
      staylog verify answer.json --key VKEY --host did:web:cottage.example
      staylog verify page0.json page1.json --key VKEY --host did:web:cottage.example
      staylog verify receipt.json --key VKEY
      staylog verify review.tlog-proof --key VKEY --entry entry.json
    """
    try:
        log = Verifier.parse(vkey)
        data = [path.read_bytes() for path in files]
        if data[0].startswith(HEADER.encode()):
            if entry is None:
                raise click.UsageError("a tlog-proof does not contain its entry: name it with --entry")
            quorum = Policy.parse(_text(policy.read_bytes())) if policy else None
            report = verify_tlog_proof(_text(data[0]), entry.read_bytes(), log, policy=quorum)
        elif "tlog_proof" in _members(data[0]):
            opened, used = (path.read_bytes() if path else None for path in (submission, booking))
            report = verify_receipt(data[0], log, submission=opened, booking=used)
        elif host is None:
            raise click.UsageError("an answer is about a host: name the DID you asked for with --host")
        else:
            now = datetime.now(UTC)
            oldest = None if max_age is None else format_time(now - timedelta(hours=max_age))
            newest = None if max_age is None else format_time(now + CLOCK_SKEW)
            if len(data) > 1:
                report = verify_pages(data, log, host, oldest=oldest, newest=newest, text=text)
            else:
                report = verify_answer(data[0], log, host, kind=kind, oldest=oldest, newest=newest, text=text)
    except StaylogError as error:
        if as_json:
            click.echo(json.dumps({"code": error.code, "wrong": error.message}, indent=1))
        else:
            Console(stderr=True).print(f"[red]wrong[/] {escape(error.message)} [dim]({error.code})[/]", soft_wrap=True)
        raise SystemExit(1) from None
    if as_json:
        click.echo(json.dumps(report.as_json(), indent=1))
    else:
        show(report)


def show(report: Report) -> None:
    console = Console()
    console.print(f"[bold]{escape(report.subject)}[/]", soft_wrap=True)
    for title, style, lines in (
        ("proved", "green", report.proved),
        ("redacted", "yellow", report.redacted),
        ("withheld", "red", report.withheld),
        ("not proved", "dim", report.not_proved),
    ):
        for line in lines:
            console.print(f"  [{style}]{title:<10}[/]  {escape(line)}", soft_wrap=True)


def _members(data: bytes) -> dict[str, object]:
    value = strict_json.loads(data)
    return value if isinstance(value, dict) else {}


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise StaylogError("not_utf8", "the file is not UTF-8 text") from None
