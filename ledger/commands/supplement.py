"""`staylog review evidence`: a stay receipt for a review that is unconfirmed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ledger.commands import stay
from ledger.commands.errand import SUPPLEMENT
from ledger.commands.signing import Making, run, sending_options
from ledger.commands.statement import InFile, Speaker


@click.command(short_help="Hand in a stay receipt for an unconfirmed review.")
@click.argument("review_id", metavar="[REVIEW_ID]", required=False)
@sending_options("evidence.json", "evidence-receipt.json")
@click.option("--receipt", type=InFile, metavar="FILE", help="The stay receipt that the host gave you.")
def evidence(**options: Any) -> None:
    """Hand in a stay receipt for your review REVIEW_ID that is unconfirmed: from then on it counts as verified.

    Only the guest of the review can do this, at any time, with the key that signed it. The host knows by now what the
    review says, so nothing that the host tells the ledger changes it any more; a receipt that you have does.

    \b
      staylog review evidence rev-qruemgwlvrk6eirnfe4yefas4u --ledger https://ledger.example --key guest.key \\
        --receipt stay-receipt.json
      staylog review evidence --again evidence.json --key guest.key
    """
    run(_EVIDENCE, options)


def _content(options: Mapping[str, Any], _guest: Speaker) -> dict[str, Any]:
    receipt = stay.receipt_in(options) or {}
    return {
        "type": SUPPLEMENT,
        "review_id": options["review_id"],
        "booking_reference": receipt["booking_reference"],
        "booking_evidence": receipt,
    }


def _judge(body: Mapping[str, Any], guest: str, ledger: str) -> None:
    """The review is in the log, and not looked at here: the receipt is held against itself."""
    receipt = body["booking_evidence"]
    stay.judge({**receipt, "booking_evidence": receipt}, guest, ledger)


_EVIDENCE = Making(SUPPLEMENT, Path("evidence.json"), lambda _options: ["review_id", "receipt"], _content, _judge)
