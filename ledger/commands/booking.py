"""`staylog booking`: what a host gives a guest at booking time."""

from pathlib import Path
from typing import Any

import click

from ledger.canon.times import format_time
from ledger.clock import utc_now
from ledger.commands.common import FilePath, printable, refusals
from ledger.commands.statement import Speaker, encode, require_free, save, speaker_options

KIND = "StayReceipt"


@click.group()
def booking() -> None:
    """Give guests what shows that their stay was booked."""


@booking.command()
@speaker_options(required=True)
@click.option("--reference", required=True, metavar="TEXT", help="Your own name for the booking. It is not published.")
@click.option("--listing", required=True, metavar="ID", help="The place that is booked.")
@click.option("--guest", required=True, metavar="DID", help="Who booked: the DID in the guest's credential.")
@click.option("--check-in", required=True, metavar="DATE", help="The first day, as 2026-05-20.")
@click.option("--check-out", required=True, metavar="DATE", help="The last day.")
@click.option("--out", type=FilePath, default="stay-receipt.json", show_default=True, help="Where the receipt goes.")
def receipt(reference: str, listing: str, guest: str, check_in: str, check_out: str, out: Path, **options: Any) -> None:
    """Sign a stay receipt for a guest: your word that this stay is booked. Nothing is sent anywhere.

    Give it when the stay is booked. A review needs it, and nobody knows yet what the review will say; a host who gives
    receipts to all guests has no say in who reviews.

    \b
      staylog booking receipt --key host.key --reference B-1042 --listing rose-cottage --guest did:key:z6Mk... \\
        --check-in 2026-05-20 --check-out 2026-05-24
    """
    with refusals():
        require_free(out)
        host = Speaker.of(options)
        body = {
            "type": KIND,
            "booking_reference": reference,
            "listing_id": listing,
            "host_did": host.did,
            "guest_did": guest,
            "check_in": check_in,
            "check_out": check_out,
            "issued_at": format_time(utc_now()),
        }
        # Without a domain: the guest chooses the ledger.
        save(out, encode(host.sign(body, KIND, None)))
    click.echo(f"stay receipt {out}")
    click.echo(f"  for        {guest}")
    click.echo(f"  booking    {printable(reference)}: {listing}, {check_in} to {check_out}")
    click.echo(f"  signed by  {host.did}")
    click.echo(
        "Give the file to the guest now. It goes into a review after the stay, at a ledger of the guest's choice:"
    )
    click.echo(f"  staylog review submit --receipt {printable(out.name)} ...")
