"""`staylog issuer`: whose credentials this ledger believes."""

import asyncio
import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledger.canon.times import parse_time
from ledger.clock import utc_now
from ledger.commands.common import accept_clock_option, opening_options, refusals, settings_to_open
from ledger.commands.network import stated_base_url, warn
from ledger.errors import Misconfigured
from ledger.log.members import IDV_LEVELS, ROLES

if TYPE_CHECKING:
    from ledger.folder import Ledger
    from ledger.identity.watch import Sighting
    from ledger.log.drafts import Draft

_role = click.argument("role", type=click.Choice(ROLES), metavar="guest|host")
_issuer = click.argument("issuer", metavar="ISSUER")


@click.group()
def issuer() -> None:
    """Trust the issuers of credentials, and stop trusting them.

    Keys are pinned: a credential counts only if one of these keys signed it. What issuers publish is watched, and never
    trusted by itself. Every change is an entry in the log, for everybody to see.
    """


@issuer.command()
@_role
@_issuer
@click.option(
    "--key", "keys", metavar="MULTIKEY", multiple=True, help="A public key of the issuer, as z6Mk...; repeat."
)
@click.option(
    "--max-level",
    type=click.Choice(IDV_LEVELS),
    help="The highest level that guests are believed to have from this issuer.  [default: any]",
)
@accept_clock_option
@opening_options
def add(
    role: str,
    issuer: str,
    keys: tuple[str, ...],
    max_level: str | None,
    accept_clock: bool,
    data: Path,
    database_url: str | None,
) -> None:
    """Trust ISSUER, an https URL or a DID, for credentials of guests or of hosts.

    Run it again with another --key to add that key: the old ones stay, for the credentials they signed. A did:key or
    did:jwk needs no --key.

    \b
      staylog issuer add guest https://idv.example --key z6Mk... --max-level identity_verified --data ./data
    """
    if role == "host" and max_level is not None:
        raise click.UsageError("--max-level is for issuers of guest credentials: hosts have no levels.")
    with refusals():
        from ledger.identity.issuers import trust

        with _ledger(data, database_url, accept_clock=accept_clock) as ledger:
            draft = trust(ledger.issuers(), role, issuer, keys, max_level)
            if draft is None:
                click.echo(f"{issuer} is trusted so already; nothing was changed")
                return
            _change(ledger, draft)


@issuer.command()
@_role
@_issuer
@click.option(
    "--compromised-since",
    metavar="TIME",
    help="Its keys were in other hands since then, as 2026-07-04T00:00:00Z. Its keys can then not be pinned again.",
)
@accept_clock_option
@opening_options
def remove(
    role: str, issuer: str, compromised_since: str | None, accept_clock: bool, data: Path, database_url: str | None
) -> None:
    """Stop trusting ISSUER: none of its credentials counts from now on.

    Reviews that are in the log stay as they are, and name their issuer.

    \b
      staylog issuer remove guest https://idv.example --data ./data
    """
    if compromised_since is not None:
        _check_past(compromised_since)
    with refusals():
        from ledger.identity.issuers import distrust

        with _ledger(data, database_url, accept_clock=accept_clock) as ledger:
            _change(ledger, distrust(ledger.issuers(), role, issuer, compromised_since))


@issuer.command("list")
@opening_options
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_(data: Path, database_url: str | None, as_json: bool) -> None:
    """Show who is trusted and who was. Of those that are: how the keys that they published when last looked at compare
    with the pinned ones."""
    with refusals(), _ledger(data, database_url) as ledger:
        known, sightings = list(ledger.issuers()), ledger.watch.sightings()
    seen = [sightings.get(each.issuer) if each.status == "trusted" else None for each in known]
    if as_json:
        names = ("role", "issuer", "status", "keys", "max_idv_level", "since", "index", "at")
        rows = [{name: getattr(each, name) for name in names} for each in known]
        told = [{**row, "published": _sighted(sighting)} for row, sighting in zip(rows, seen, strict=True)]
        click.echo(json.dumps(told, indent=1))
        return
    if not known:
        click.echo("No issuer is trusted yet: staylog issuer add --help")
        return
    table = Table("role", "issuer", "status", "up to", "keys", "entry", "at", "published keys")
    for each, sighting in zip(known, seen, strict=True):
        status = each.status + (f" since {each.since}" if each.since else "")
        level = each.max_idv_level or ("any level" if each.role == "guest" else "-")
        published = _STATES[sighting.state] if sighting else "-"
        row = (each.role, escape(each.issuer), status, level, "\n".join(each.keys), str(each.index), each.at, published)
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else 240, emoji=False).print(table)


@issuer.command()
@opening_options
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def check(data: Path, database_url: str | None, as_json: bool) -> None:
    """Compare the keys that trusted issuers publish now with those that are pinned.

    The service does so every hour. Whatever is found, nothing is trusted by it: ask the issuer by a way that you trust,
    then `staylog issuer add`. Keys that are pinned and not published any more are most likely those of old credentials.

    Exit status 0: nothing new; 1: an issuer publishes keys that are not pinned, or none; 2: the keys of one could not
    be fetched or read.

    \b
      staylog issuer check --data ./data
    """
    with refusals(2), _ledger(data, database_url) as ledger:
        warn(ledger.fetcher.development)
        # What it would log is told below.
        logging.getLogger("ledger.identity.watch").addHandler(logging.NullHandler())
        found = asyncio.run(ledger.watch.look())
        pinned = ledger.watch.pinned()
    if as_json:
        click.echo(json.dumps([{"issuer": each.issuer, **(_sighted(each) or {})} for each in found], indent=1))
    elif not found:
        click.echo("Nothing to compare: no trusted issuer has an address of its own, an https URL or a did:web.")
    else:
        for each in found:
            colour = "green" if each.state == "as_pinned" else "yellow"
            why = f" ({each.reason})" if each.reason else ""
            click.secho(f"{each.issuer}: published keys {_STATES[each.state]}{why}", fg=colour)
            for key in sorted({*each.keys} - pinned[each.issuer]):
                click.echo(f"  new   {key}")
            for key in sorted(pinned[each.issuer] - {*each.keys}) if each.reason is None else ():
                click.echo(f"  gone  {key}")
        if any(each.state == "differs" for each in found):
            click.echo("Nothing was changed. If the issuer confirms it by another way: staylog issuer add --help")
    states = {each.state for each in found}
    raise SystemExit(1 if "differs" in states else 2 if states - {"as_pinned", "fewer"} else 0)


_STATES = {
    "as_pinned": "as pinned",
    "fewer": "as pinned, but for some",
    "differs": "other than pinned",
    "unreachable": "could not be fetched",
    "unreadable": "could not be read",
}


def _sighted(seen: "Sighting | None") -> dict[str, object] | None:
    if seen is None:
        return None
    facts = {"state": seen.state, "reason": seen.reason, "keys": list(seen.keys)}
    return {**facts, "since": seen.since, "checked_at": seen.checked_at}


def _check_past(time: str) -> None:
    try:
        if parse_time(time) > utc_now():
            raise ValueError("that lies in the future")
    except ValueError as error:
        raise click.UsageError(f"--compromised-since: {error}") from None


@contextmanager
def _ledger(data: Path, database_url: str | None, *, accept_clock: bool = False) -> Iterator["Ledger"]:
    """An open ledger for one command."""
    from ledger.folder import open_ledger

    ledger = open_ledger(settings_to_open(data, database_url, stated_base_url()), accept_clock=accept_clock)
    try:
        yield ledger
    finally:
        ledger.close()


def _change(ledger: "Ledger", draft: "Draft") -> None:
    [added] = ledger.sequencer.append([draft])
    if added.repeated:
        raise Misconfigured(
            "issuer_changed", "somebody else changed this issuer just now: look again, and decide again"
        )
    members = added.entry.members
    level = f", up to {members['max_idv_level']}" if members["max_idv_level"] else ""
    since = f" since {members['since']}" if members["since"] else ""
    click.echo(f"{members['issuer']} is {members['action']}{since} for credentials of a {members['role']}{level}")
    click.echo(f"entry {added.index}, signed at size {added.published.size}")
