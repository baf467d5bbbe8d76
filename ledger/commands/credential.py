"""`staylog credential`: verdicts on credentials; issuing them is in `issue`."""

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import click

from ledger.canon import multikey
from ledger.canon.times import format_time, parse_moment
from ledger.clock import utc_now
from ledger.commands.common import from_command_line, printable, refusals
from ledger.commands.issue import issue
from ledger.commands.judging import StepFailed, Verdict, judge
from ledger.errors import Malformed, NotAccepted, StaylogError


@click.group()
def credential() -> None:
    """Issue credentials of guests and hosts (OpenSTR RFC-004), and verify them."""


credential.add_command(issue)


@credential.command()
@click.argument("source", metavar="URL|FILE")
@click.option("--key", "keys", metavar="MULTIKEY", multiple=True, help="Trust the credential's issuer with this key.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    envvar="STAYLOG_DATA",
    show_envvar=True,
    help="Trust the issuers that the ledger in this folder trusts.",
)
@click.option("--database-url", envvar="STAYLOG_DATABASE_URL", show_envvar=True, help="That ledger's database.")
@click.option("--listing", metavar="ID", help="Also require that a host's credential covers this listing.")
@click.option("--offline", is_flag=True, help="Ask nobody: neither for the issuer's key nor whether it was revoked.")
@click.option(
    "--at",
    metavar="TIME",
    help="Judge as of this time, as 2026-07-04T09:30:00Z; status lists say how it is now.  [default: now]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def verify(
    source: str,
    keys: tuple[str, ...],
    data: Path | None,
    database_url: str | None,
    listing: str | None,
    offline: bool,
    at: str | None,
    as_json: bool,
) -> None:
    """Verify a credential: form, contexts, issuer, times, proof, and whether it was revoked.

    It is at URL, an https address, or in FILE; "-" is standard input. Without --key and --data the issuer's key is
    looked up where the issuer publishes it; that shows who signed, not that they are to be trusted.

    Exit status 0 means that it holds; 1 that it does not, and one line says why, with the step of RFC-004 that a host's
    credential fails at; 2 that it could not be found out now ("valid" is then null in JSON).

    \b
      staylog credential verify credential.json
      staylog credential verify https://idv.example/credentials/55 --listing rose-cottage
    """
    if keys and from_command_line("data"):
        raise click.UsageError("--key and --data are two ways to trust an issuer: give one.")
    if offline and "://" in source:
        raise click.UsageError("--offline goes with a file: what is at an address has to be asked for.")
    now = _time(at)
    with refusals(2):
        try:
            verdict = asyncio.run(judge(source, keys, data, database_url, listing, offline, now))
        except StaylogError as refusal:
            step = refusal if isinstance(refusal, StepFailed) else None
            # All else says something of us, or of the network, and nothing of the credential.
            judged = isinstance(step.reason if step else refusal, NotAccepted | Malformed)
            if as_json:
                told = {"valid": False if judged else None, "code": refusal.code, "message": refusal.message}
                click.echo(json.dumps(told | ({"step": step.step} if step else {}), indent=1))
            with refusals(1 if judged else 2):
                raise
    _show(verdict, as_json)


def _time(at: str | None) -> datetime:
    try:
        return parse_moment(at) if at is not None else utc_now()
    except ValueError as error:
        raise click.UsageError(f"--at: {error}") from None


def _show(verdict: Verdict, as_json: bool) -> None:
    credential = verdict.credential
    facts: dict[str, Any] = {
        "role": credential.role,
        "subject": credential.subject,
        "issuer": credential.issuer,
        "trusted": verdict.trusted,
        "proof": f"{credential.suite} by {multikey.encode(credential.key)}",
        "until": format_time(credential.valid_until),
        "revoked": verdict.revoked,
    }
    if as_json:
        click.echo(json.dumps({"valid": True, **facts, "claims": credential.claims}, indent=1, ensure_ascii=False))
        return
    click.secho(f"valid credential of a {credential.role}", fg="green")
    says = {name: value for name, value in credential.claims.items() if name not in ("id", "properties")}
    says |= {"listings": ", ".join(place["listing_id"] for place in credential.claims.get("properties", ()))}
    for name, value in {**facts, **says}.items():
        if name != "role" and value != "":
            click.echo(f"  {name.replace('_', ' '):<22} {printable(str(value))}")
