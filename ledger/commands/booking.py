"""`staylog booking`: what hosts and guests say of a booking, at booking time."""

from collections.abc import Callable, Mapping
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

import click

from ledger.canon.times import format_time
from ledger.clock import utc_now
from ledger.commands.common import Command, FilePath, printable, refusals
from ledger.commands.errand import CLAIM, NOTICE
from ledger.commands.signing import Making, run, sending_options
from ledger.commands.statement import InFile, Speaker, encode, read_json, require_free, save, speaker_options
from ledger.commands.stay import RECEIPT, judge, needed_of, stay_of, stay_options

STATUSES = ("confirmed", "cancelled")


@click.group()
def booking() -> None:
    """Say at booking time that a stay is booked, while nobody knows how it will be reviewed.

    \b
    As a host: give the guest a receipt, or send the ledger a notice. Either is enough.
    As a guest who has no receipt: claim the booking before check-in.
    """


def _booked(*, required: bool) -> Callable[[Command], Command]:
    """What is booked, by the host's word."""

    def add(command: Command) -> Command:
        for option in (
            click.option("--check-out", required=required, metavar="DATE", help="The last day."),
            click.option("--check-in", required=required, metavar="DATE", help="The first day, as 2026-05-20."),
            click.option(
                "--guest", required=required, metavar="DID", help="Who booked: the DID in the guest's credential."
            ),
            click.option("--listing", required=required, metavar="ID", help="The place that is booked."),
            click.option(
                "--reference",
                required=required,
                metavar="TEXT",
                help="Your own name for the booking. It is not published.",
            ),
        ):
            command = option(command)
        return command

    return add


@booking.command(short_help="Sign a stay receipt for a guest, as a host.")
@speaker_options(required=True)
@_booked(required=True)
@click.option("--out", type=FilePath, default="stay-receipt.json", show_default=True, help="Where the receipt goes.")
def receipt(reference: str, listing: str, guest: str, check_in: str, check_out: str, out: Path, **options: Any) -> None:
    """Sign a stay receipt for a guest: your word that this stay is booked. Nothing is sent anywhere.

    Give it when the stay is booked, while nobody knows yet what the review will say; a host who gives receipts to all
    guests has no say in who reviews.

    \b
      staylog booking receipt --key host.key --reference B-1042 --listing rose-cottage --guest did:key:z6Mk... \\
        --check-in 2026-05-20 --check-out 2026-05-24
    """
    with refusals():
        require_free(out)
        host = Speaker.of(options)
        body = {
            "type": RECEIPT,
            "booking_reference": reference,
            "listing_id": listing,
            "host_did": host.did,
            "guest_did": guest,
            "check_in": check_in,
            "check_out": check_out,
            "issued_at": format_time(utc_now()),
        }
        # Without a domain: the guest chooses the ledger.
        save(out, encode(host.sign(body, RECEIPT, None)))
    click.echo(f"stay receipt {out}")
    click.echo(f"  for        {guest}")
    click.echo(f"  booking    {printable(reference)}: {listing}, {check_in} to {check_out}")
    click.echo(f"  signed by  {host.did}")
    click.echo(
        "Give the file to the guest now. It goes into a review after the stay, at a ledger of the guest's choice:"
    )
    click.echo(f"  staylog review submit --receipt {printable(out.name)} ...")


@booking.command(short_help="Tell the ledger that a stay is booked or cancelled, as a host.")
@sending_options("notice.json, notice-2.json and so on")
@_booked(required=False)
@click.option("--status", type=click.Choice(STATUSES), help="What became of the booking.  [default: confirmed]")
def notice(**options: Any) -> None:
    """Tell the ledger, as a host or as who keeps a host's calendar, that a stay is booked or cancelled.

    Send notices for all bookings when they are made: then no review needs you later, and nobody can say that you chose
    your reviewers. One that comes before check-in is evidence that you cannot take back; one that comes later counts
    only as an answer that you would give when asked. The notice does not name the guest: it has a salted hash, which
    whoever knows the guest's DID can compare. The ledger keeps it encrypted, and erases it 90 days after check-out.

    \b
      staylog booking notice --ledger https://ledger.example --key host.key --reference B-1042 \\
        --listing rose-cottage --guest did:key:z6Mk... --check-in 2026-05-20 --check-out 2026-05-24

    Who keeps the calendar signs with a key of its own that the host's DID document lists, and names both. A booking
    that is cancelled before the day of check-in gets no review:

    \b
      staylog booking notice --key calendar.key --did did:web:cottage.example \\
        --verification-method did:web:cottage.example#calendar --reference B-1042 --listing rose-cottage \\
        --guest did:key:z6Mk... --check-in 2026-05-20 --check-out 2026-05-24 --status cancelled
      staylog booking notice --again notice.json
    """
    run(_NOTICES, options)


@booking.command(short_help="Claim a booking before check-in, as a guest.")
@sending_options("claim.json, claim-2.json and so on")
@click.option("--credential", type=InFile, metavar="FILE", help="Your credential, from an issuer the ledger trusts.")
@stay_options
def claim(**options: Any) -> None:
    """Claim a booking, as a guest, before check-in: your review of it will then need nothing more from the host.

    With a stay receipt it is verified at once, and later your review needs no receipt. Without one the host is asked
    now, while nobody knows how the stay will be; if it is silent, the claim waits for it, at most until check-in, and
    you look later what became of it (staylog review status). The ledger keeps the claim encrypted, and erases it 90
    days after check-out.

    \b
      staylog booking claim --ledger https://ledger.example --key guest.key --credential credential.json \\
        --receipt stay-receipt.json
      staylog booking claim --key guest.key --credential credential.json --host did:web:cottage.example \\
        --reference B-1042 --listing rose-cottage --check-in 2026-05-20 --check-out 2026-05-24
      staylog booking claim --again claim.json
    """
    run(_CLAIMS, options)


def _notice(options: Mapping[str, Any], host: Speaker) -> dict[str, Any]:
    from ledger.canon import did
    from ledger.reviews.guest_binding import bind

    # In the notice it is a hash: a mistake in it would be seen by nobody until the review comes.
    did.check(options["guest"])
    return {
        "type": NOTICE,
        "booking_reference": options["reference"],
        "listing_id": options["listing"],
        "host_did": host.did,
        "guest_binding": bind(token_urlsafe(24), options["guest"]),
        "check_in": options["check_in"],
        "check_out": options["check_out"],
        "status": options["status"] or STATUSES[0],
    }


def _claim(options: Mapping[str, Any], _guest: Speaker) -> dict[str, Any]:
    return {"type": CLAIM, **stay_of(options), "guest_credential": read_json(options["credential"])}


def _needed_of_notice(_options: Mapping[str, Any]) -> list[str]:
    return ["reference", "listing", "guest", "check_in", "check_out"]


def _needed_of_claim(options: Mapping[str, Any]) -> list[str]:
    return ["credential", *needed_of(options)]


_NOTICES = Making(NOTICE, Path("notice.json"), _needed_of_notice, _notice)
_CLAIMS = Making(CLAIM, Path("claim.json"), _needed_of_claim, _claim, judge)
