"""`staylog listing`: what an operator knows of listings: when stays there end, and where to ask about bookings."""

import json
import sys
from contextlib import closing
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ledger.commands.common import opening_options, refusals, settings_to_open


@click.group()
def listing() -> None:
    """Say in which time zone listings are, and where their bookings can be verified.

    A stay can be reviewed when its last day is over there. Where nobody has said, it must be over everywhere on Earth,
    which takes up to a day longer. Guests who have no stay receipt can submit a review where the host can be asked.
    """


@listing.command()
@click.argument("host_did", metavar="HOST_DID")
@click.argument("listing_id", metavar="LISTING_ID")
@click.option("--timezone", metavar="NAME", help="A time zone of the IANA database, as Europe/London.")
@click.option(
    "--booking-endpoint",
    metavar="URL",
    help="Where the host takes bookings (OpenSTR RFC-003): its address with /REFERENCE/verify is asked about bookings.",
)
@opening_options
def add(
    host_did: str,
    listing_id: str,
    timezone: str | None,
    booking_endpoint: str | None,
    data: Path,
    database_url: str | None,
) -> None:
    """Say where the listing LISTING_ID of HOST_DID is, and where its bookings can be verified. What was said of it
    before is replaced.

    It holds at once, also in a service that runs. It is not part of the log.

    \b
      staylog listing add did:web:cottage.example rose-cottage --timezone Europe/London \\
        --booking-endpoint https://cottage.example/openstr/booking --data ./data
    """
    with refusals():
        from ledger.folder import open_ledger
        from ledger.reviews.listings import add_listing

        with closing(open_ledger(settings_to_open(data, database_url))) as ledger, ledger.store.write() as connection:
            add_listing(connection, host_did, listing_id, timezone, "operator", booking_endpoint)
    if timezone is not None:
        click.echo(f"{listing_id} of {host_did} is in {timezone}")
    if booking_endpoint is not None:
        click.echo(f"its bookings are verified at {booking_endpoint}")


@listing.command("list")
@opening_options
@click.option("--json", "as_json", is_flag=True, help="Print the list as JSON.")
def list_(data: Path, database_url: str | None, as_json: bool) -> None:
    """Show what is known of listings.

    \b
      staylog listing list --data ./data
    """
    with refusals():
        from ledger.folder import open_ledger
        from ledger.reviews.listings import all_listings

        with closing(open_ledger(settings_to_open(data, database_url))) as ledger, ledger.store.read() as connection:
            known = all_listings(connection)
    if as_json:
        names = ("host_did", "listing_id", "timezone", "booking_endpoint", "source")
        click.echo(json.dumps([dict(zip(names, each, strict=True)) for each in known], indent=1))
        return
    if not known:
        click.echo("No listing is known: staylog listing add --help")
        return
    table = Table("host", "listing", "time zone", "booking endpoint", "said by")
    for each in known:
        table.add_row(*(escape(value or "") for value in each))
    Console(width=None if sys.stdout.isatty() else 240, emoji=False).print(table)
