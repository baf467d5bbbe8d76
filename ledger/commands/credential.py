"""`staylog credential`: verdicts on credentials; issuing them is in `issue`."""

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.canon import multikey, strict_json
from ledger.canon.times import format_time, parse_moment
from ledger.clock import utc_now
from ledger.commands.common import from_command_line, printable, refusals
from ledger.commands.issue import issue
from ledger.errors import BadForm, NotAccepted, StaylogError
from ledger.settings import Settings

if TYPE_CHECKING:
    from ledger.identity.credentials import Credential
    from ledger.identity.issuers import Registry


@click.group()
def credential() -> None:
    """Issue credentials of guests and hosts (OpenSTR RFC-004), and verify them."""


credential.add_command(issue)


@credential.command()
@click.argument("file", type=click.File("rb"))
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
@click.option("--at", metavar="TIME", help="Judge as of this time, as 2026-07-04T09:30:00Z.  [default: now]")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def verify(
    file: Any,
    keys: tuple[str, ...],
    data: Path | None,
    database_url: str | None,
    listing: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Verify the credential in FILE ("-" is standard input), offline: form, contexts, issuer, times and proof.

    Exit status 0 means that it holds; otherwise one line says why not. Whether it was revoked is not looked up.
    """
    if keys and from_command_line("data"):
        raise click.UsageError("--key and --data are two ways to trust an issuer: give one.")
    now = _time(at)
    with refusals():
        try:
            verdict, trusted = _judge(file, keys, data, database_url, listing, now)
        except StaylogError as refusal:
            if as_json:
                click.echo(json.dumps({"valid": False, "code": refusal.code, "message": refusal.message}, indent=1))
            raise
    _show(verdict, trusted, as_json)


def _judge(
    file: Any,
    keys: tuple[str, ...],
    data: Path | None,
    database_url: str | None,
    listing: str | None,
    now: datetime,
) -> tuple["Credential", str]:
    """The verdict, and in words what the trust in its issuer rests on."""
    from ledger.identity.contexts import canonicaliser
    from ledger.identity.credentials import MAX_BYTES, role_of
    from ledger.identity.credentials import verify as judge

    raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise BadForm("too_large", f"a credential has at most {MAX_BYTES // 1024} KiB")
    document = strict_json.loads(raw)
    role = role_of(document)
    registry, trusted = _trust(document, role, keys, data, database_url)
    verdict = judge(document, role, registry, now, canonicaliser().canonize)
    if listing is not None:
        if role != "host":
            raise NotAccepted("wrong_credential_type", "only a host's credential covers listings")
        verdict.require_listing(listing)
    return verdict, trusted


def _time(at: str | None) -> datetime:
    try:
        return parse_moment(at) if at is not None else utc_now()
    except ValueError as error:
        raise click.UsageError(f"--at: {error}") from None


def _trust(
    document: Mapping[str, Any], role: str, keys: tuple[str, ...], data: Path | None, database_url: str | None
) -> tuple["Registry", str]:
    """Whom to trust, and in words what that rests on."""
    from ledger.identity.did import OFFLINE, method_of, offline
    from ledger.identity.issuers import Issuer, Registry

    named = document.get("issuer")
    issuer = str(named.get("id") if isinstance(named, dict) else named)
    if keys:
        for pinned in keys:
            multikey.decode(pinned)
        return Registry([Issuer(role, issuer, "trusted", keys)]), "yes, with the key you gave"
    if data is not None:
        from ledger.folder import open_ledger

        ledger = open_ledger(Settings.of(data, database_url))
        try:
            return ledger.issuers(), "yes, by this ledger"
        finally:
            ledger.close()
    if issuer.startswith("did:") and method_of(f"{issuer}::") in OFFLINE:
        own = tuple(multikey.encode(public) for public in offline(issuer).values())
        return Registry([Issuer(role, issuer, "trusted", own)]), "not asked: give --data to judge as a ledger does"
    raise NotAccepted(
        "issuer_not_trusted", f"no key of {issuer[:200]} is known: give one with --key, or a ledger with --data"
    )


def _show(verdict: "Credential", trusted: str, as_json: bool) -> None:
    lists = [str(status["statusListCredential"]) for status in verdict.statuses]
    facts: dict[str, Any] = {
        "role": verdict.role,
        "subject": verdict.subject,
        "issuer": verdict.issuer,
        "trusted": trusted,
        "proof": f"{verdict.suite} by {multikey.encode(verdict.key)}",
        "until": format_time(verdict.valid_until),
        "revoked": f"not looked up: {', '.join(lists)}" if lists else "cannot be; it ends by itself",
    }
    if as_json:
        click.echo(json.dumps({"valid": True, **facts, "claims": verdict.claims}, indent=1, ensure_ascii=False))
        return
    click.secho(f"valid credential of a {verdict.role}", fg="green")
    says = {name: value for name, value in verdict.claims.items() if name not in ("id", "properties")}
    says |= {"listings": ", ".join(place["listing_id"] for place in verdict.claims.get("properties", ()))}
    for name, value in {**facts, **says}.items():
        if name != "role" and value != "":
            click.echo(f"  {name.replace('_', ' '):<22} {printable(str(value))}")
