"""`staylog listing`: what an operator knows of listings, so that stays end when they end there."""

import json
import sys
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledger.commands.common import data_options, refusals
from ledger.settings import Settings


@click.group()
def listing() -> None:
    """Say in which time zone listings are.

    A stay can be reviewed when its last day is over there. Where nobody has said, it must be over everywhere on Earth,
    which takes up to a day longer.
    """


@listing.command()
@click.argument("host_did", metavar="HOST_DID")
@click.argument("listing_id", metavar="LISTING_ID")
@click.option("--timezone", required=True, metavar="NAME", help="A time zone of the IANA database, as Europe/London.")
@data_options
def add(host_did: str, listing_id: str, timezone: str, data: Path, database_url: str | None) -> None:
    """Say where the listing LISTING_ID of HOST_DID is. What was said of it before is replaced.

    It holds at once, also in a service that runs. It is not part of the log.

    \b
      staylog listing add did:web:cottage.example rose-cottage --timezone Europe/London --data ./data
    """
    with refusals():
        from ledger.folder import open_ledger
        from ledger.reviews.listings import add_listing

        with closing(open_ledger(Settings.of(data, database_url))) as ledger, ledger.store.write() as connection:
            add_listing(connection, host_did, listing_id, timezone, "operator")
    click.echo(f"{listing_id} of {host_did} is in {timezone}")


@listing.command("list")
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_(data: Path, database_url: str | None, as_json: bool) -> None:
    """Show the listings whose time zone is known.

    \b
      staylog listing list --data ./data
    """
    with refusals():
        from ledger.folder import open_ledger
        from ledger.reviews.listings import all_listings

        with closing(open_ledger(Settings.of(data, database_url))) as ledger, ledger.store.read() as connection:
            known = all_listings(connection)
    if as_json:
        names = ("host_did", "listing_id", "timezone", "source")
        click.echo(json.dumps([dict(zip(names, each, strict=True)) for each in known], indent=1))
        return
    if not known:
        click.echo("No listing is known: staylog listing add --help")
        return
    table = Table("host", "listing", "time zone", "said by")
    for each in known:
        table.add_row(*map(escape, each))
    Console(width=None if sys.stdout.isatty() else 240, emoji=False).print(table)
