"""Which stay a guest speaks of, as options: the one of the host's receipt, or one that is described by hand."""

from collections.abc import Mapping
from typing import Any

import click

from ledger.clock import utc_now
from ledger.commands.common import Command
from ledger.commands.statement import InFile, read_json

RECEIPT = "StayReceipt"
# What a receipt says, by the names of options and of members.
_SAID = {"host": "host_did", "reference": "booking_reference", "listing": "listing_id"}
_DAYS = ("check_in", "check_out")


def stay_options(command: Command) -> Command:
    """The receipt, or else what it would say. `stay_of` reads them."""
    for option in (
        click.option("--check-out", metavar="DATE", help="The last day.  [default with --receipt: as booked]"),
        click.option(
            "--check-in", metavar="DATE", help="The first day, as 2026-05-20.  [default with --receipt: as booked]"
        ),
        click.option("--listing", metavar="ID", help="Without --receipt: the place."),
        click.option("--reference", metavar="TEXT", help="Without --receipt: the host's name for the booking."),
        click.option("--host", metavar="DID", help="Without --receipt: the host."),
        click.option("--receipt", type=InFile, metavar="FILE", help="The stay receipt that the host gave you."),
    ):
        command = option(command)
    return command


def needed_of(options: Mapping[str, Any]) -> list[str]:
    """The options that say which stay it is. What the receipt says is not said again."""
    if options["receipt"] is None:
        return [*_SAID, *_DAYS]
    if given := [f"--{name}" for name in _SAID if options[name] is not None]:
        raise click.UsageError(f"the stay receipt says {', '.join(given)} already: leave it out.")
    return []


def receipt_in(options: Mapping[str, Any]) -> dict[str, Any] | None:
    from ledger.identity import statements

    if options["receipt"] is None:
        return None
    receipt = read_json(options["receipt"])
    statements.check(receipt, RECEIPT)
    return receipt


def stay_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """The members of a statement that say which stay it is about, with the receipt if there is one."""
    receipt = receipt_in(options)
    if receipt is None:
        return {
            **{member: options[name] for name, member in _SAID.items()},
            **{name: options[name] for name in _DAYS},
        }
    return {
        **{member: receipt[member] for member in _SAID.values()},
        **{name: options[name] or receipt[name] for name in _DAYS},
        "booking_evidence": receipt,
    }


def judge(body: Mapping[str, Any], guest: str, ledger: str) -> None:
    """Whether the stay receipt in what a guest signs is for this guest and these dates and, where the host's DID itself
    says its key, by this host: better told here than by the ledger."""
    from ledger.identity.did import is_offline, offline
    from ledger.identity.resolution import HostKeys
    from ledger.reviews import evidence

    receipt = evidence.receipt_of(body, guest)
    if receipt is not None and is_offline(receipt["host_did"]):
        evidence.judge(receipt, HostKeys(offline(receipt["host_did"])), domain=ledger, now=utc_now())
