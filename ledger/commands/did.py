"""`staylog did`: which keys speak for a DID, and the document by which a did:web says so."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.canon import did as dids
from ledger.canon import multikey
from ledger.clock import utc_now
from ledger.commands.common import FilePath, printable, refusals
from ledger.commands.network import command_fetcher
from ledger.errors import BadDID, StaylogError
from ledger.keys import read_key
from ledger.settings import Settings

if TYPE_CHECKING:
    from ledger.identity.archive import Remembered


@click.group()
def did() -> None:
    """Look up the keys that speak for a DID, and make the document that says so of yours."""


@did.command()
@click.argument("name", metavar="DID")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Also show the keys that the ledger in this folder has seen before.",
)
@click.option("--database-url", help="That ledger's database.")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON.")
def resolve(name: str, data: Path | None, database_url: str | None, as_json: bool) -> None:
    """Show the keys of DID: those that may assert something in its name now.

    It is a did:key, did:jwk or did:web. The document of a did:web is fetched from its domain, the way a ledger does it:
    https, a public address, no redirects, 64 KiB and 3 seconds at most. Exit status 0 when it has a key, otherwise 1.

    \b
      staylog did resolve did:web:cottage.example
    """
    with refusals():
        dids.check(name)
        remembered, changed_at = _remembered(name, data, database_url) if data is not None else ([], None)
        names = ("method", "multikey", "first_seen", "last_seen")
        past = {
            "remembered": [{each: getattr(key, each) for each in names} for key in remembered],
            "host_key_changed_at": changed_at,
        }
        facts: dict[str, Any] = {"did": name, **(past if data is not None else {})}
        try:
            source, keys = asyncio.run(_resolve(name))
        except StaylogError as refusal:
            # What was seen before is of use when nothing can be seen now.
            if as_json:
                click.echo(json.dumps({**facts, "code": refusal.code, "message": refusal.message}, indent=1))
            else:
                _show_past(name, remembered, changed_at)
            raise
    shown = {method: multikey.encode(key) for method, key in keys.items()}
    if as_json:
        click.echo(json.dumps({**facts, "document": source, "keys": shown}, indent=1))
    else:
        _show(name, source, shown)
        _show_past(name, remembered, changed_at)
    raise SystemExit(0 if shown else 1)


async def _resolve(name: str) -> tuple[str | None, Mapping[str, bytes]]:
    """Where the document is, if there is one, and the keys in it."""
    from ledger.identity.did import document_url, is_offline, offline
    from ledger.identity.resolution import Resolution

    if is_offline(name):
        return None, offline(name)
    resolution = Resolution(command_fetcher(), utc_now)
    document = (await resolution.resolve(name)).document
    return document_url(name), document.keys(utc_now())


def _remembered(name: str, data: Path, database_url: str | None) -> tuple[list["Remembered"], str | None]:
    from ledger.folder import open_ledger

    with closing(open_ledger(Settings.of(data, database_url))) as ledger:
        return ledger.archive.recall(name), ledger.archive.changed_at(name)


def _show(name: str, source: str | None, keys: Mapping[str, str]) -> None:
    click.echo(f"{name}\n  {source or 'has its key in its name; nobody was asked'}")
    for method, key in keys.items():
        click.echo(f"  {key}  {printable(method.removeprefix(name))}")
    if not keys:
        click.secho("  no Ed25519 key may assert for it (assertionMethod)", fg="red")


def _show_past(name: str, remembered: Sequence["Remembered"], changed_at: str | None) -> None:
    for each in remembered:
        method = printable(each.method.removeprefix(name))
        click.echo(f"  seen {each.first_seen} to {each.last_seen}: {each.multikey}  {method}")
    if changed_at is not None:
        click.echo(f"  the keys were last seen to change at {changed_at}")


@did.command()
@click.argument("name", metavar="DID")
@click.option(
    "--key", "keys", type=FilePath, multiple=True, required=True, help="A secret key file of yours; repeat for more."
)
def document(name: str, keys: tuple[Path, ...]) -> None:
    """Print the document of a did:web, to be published on its domain. It has the public keys only.

    While you change from one key to another, name both: what the old one signed stays good meanwhile.

    \b
      staylog key new host.key
      staylog did document did:web:cottage.example --key host.key > did.json
      # publish it at https://cottage.example/.well-known/did.json
    """
    with refusals():
        from ledger.identity.did import document_url
        from ledger.net.guard import check_url

        if not dids.check(name).startswith("did:web:"):
            raise BadDID("a did:web expected: did:key and did:jwk need no document")
        # Where no ledger would ask, no document helps.
        url = check_url(document_url(name)).url
        publics = [multikey.encode(bytes(read_key(path).verify_key)) for path in keys]
    methods = [
        {"id": f"{name}#{public}", "type": "Multikey", "controller": name, "publicKeyMultibase": public}
        for public in dict.fromkeys(publics)
    ]
    made = {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": name,
        "verificationMethod": methods,
        "assertionMethod": [method["id"] for method in methods],
    }
    click.echo(json.dumps(made, indent=1))
    click.echo(f"publish it as application/json at {url}", err=True)
