"""`staylog review`: a guest submits a review, a host responds to one."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ledger.commands.elsewhere import consent, import_
from ledger.commands.errand import RESPONSE, REVIEW
from ledger.commands.opinion import NEEDED, rating_options, ratings_of, text_of, text_options
from ledger.commands.signing import Making, run, sending_options
from ledger.commands.statement import InFile, Speaker, read_json
from ledger.commands.status import status
from ledger.commands.stay import judge, needed_of, stay_of, stay_options
from ledger.commands.supplement import evidence


@click.group()
def review() -> None:
    """Submit a review of a stay, look what became of it, or respond to one as its host.

    What you sign is saved before it is sent, the receipt is saved before it is looked at, and no file is ever
    overwritten. Both files together prove for ever what you said, and that it is in the log.
    """


@review.command(short_help="Submit a review of a stay that is over.")
@sending_options("review.json", "receipt.json")
@click.option("--credential", type=InFile, metavar="FILE", help="Your credential, from an issuer the ledger trusts.")
@stay_options
@rating_options
@text_options(2000)
@click.option("--feedback", help="What you say to the host alone: sealed, so that nobody else can read it.")
def submit(**options: Any) -> None:
    """Submit a review of a stay that is over, and keep its receipt.

    The stay receipt says which booking, listing and host it is about. Your credential says that you are somebody; the
    review is signed with your key, because others have copies of the credential.

    \b
      staylog review submit --ledger https://ledger.example --key guest.key --credential credential.json \\
        --receipt stay-receipt.json --overall 4.5 --accuracy 5 --cleanliness 4 --communication 5 --value 4 \\
        --text "Quiet, and dry."

    Without a stay receipt, say which stay it was. If the ledger has the host's notice or your claim of it, that is
    enough. If not, the host is asked, for 72 hours: the ledger signs that it has your review, and you look later what
    became of it (staylog review status). If the host never answers, the review is published as unconfirmed: listed and
    counted apart, in no average, until you have a stay receipt (staylog review evidence). If the host denies the
    booking, the review is refused, and the log says that it was denied. A host whom the ledger cannot ask cannot be
    reviewed so: ask for a stay receipt, at best when you book.

    \b
      staylog review submit --key guest.key --credential credential.json --host did:web:cottage.example \\
        --reference B-1042 --listing rose-cottage --check-in 2026-05-20 --check-out 2026-05-24 \\
        --overall 4.5 --accuracy 5 --cleanliness 4 --communication 5 --value 4

    If the ledger could not be reached, send the same file again: it is never taken twice. With --key it is signed anew
    where the ledger says that it came too late.

    \b
      staylog review submit --again review.json --key guest.key
    """
    run(_REVIEWS, options)


@review.command(short_help="Respond to a review, as its host.")
@click.argument("review_id", metavar="[REVIEW_ID]", required=False)
@sending_options("response.json", "response-receipt.json")
@text_options(500)
def respond(**options: Any) -> None:
    """Respond to the review REVIEW_ID as its host: once, within 30 days, for everybody to read.

    Your key is enough: no credential is asked for. The response stays as it is, as the review does.

    \b
      staylog review respond rev-qruemgwlvrk6eirnfe4yefas4u --ledger https://ledger.example --key host.key \\
        --text "Thank you. The gutter is mended."
      staylog review respond --again response.json --key host.key
    """
    run(_RESPONSES, options)


for _command in (status, evidence, import_, consent):
    review.add_command(_command)


def _needed(options: Mapping[str, Any]) -> list[str]:
    return ["credential", *needed_of(options), *NEEDED]


def _content(options: Mapping[str, Any], _guest: Speaker) -> dict[str, Any]:
    body = {
        "type": REVIEW,
        **stay_of(options),
        "guest_credential": read_json(options["credential"]),
        "ratings": ratings_of(options),
        "review_text": text_of(options),
        "private_feedback": options["feedback"],
    }
    return {name: value for name, value in body.items() if value is not None}


def _needed_to_respond(options: Mapping[str, Any]) -> list[str]:
    return ["review_id", *(["text"] if options["text_file"] is None else [])]


def _response(options: Mapping[str, Any], host: Speaker) -> dict[str, Any]:
    return {
        "type": RESPONSE,
        "review_id": options["review_id"],
        "host_did": host.did,
        "response_text": text_of(options),
    }


_REVIEWS = Making(REVIEW, Path("review.json"), _needed, _content, judge)
_RESPONSES = Making(RESPONSE, Path("response.json"), _needed_to_respond, _response)
