"""`staylog review import` and `staylog review consent`: reviews that were given on other platforms (RFC-005 7.6)."""

from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from ledger.clock import utc_now
from ledger.commands.common import FilePath, refusals
from ledger.commands.errand import ELSEWHERE, Document, line
from ledger.commands.opinion import NEEDED, rating_options, ratings_of, text_of, text_options
from ledger.commands.signing import Making, ledger_option, require_options, run, sending_options
from ledger.commands.statement import InFile, Speaker, encode, read_json, require_free, save, speaker_options
from ledger.errors import BadForm, Misconfigured, NotAccepted
from ledger.settings import check_base_url

CONSENT = "GuestConsent"
_DOCUMENT_HELP = "What shows the booking there: a PDF, or a JSON object, of at most 5 MiB."


@click.command("import", short_help="Import a review from another platform, as its host.")
@sending_options("import.json", "import-receipt.json")
@click.option("--credential", type=InFile, metavar="FILE", help="Your credential as a host, for this listing.")
@click.option("--platform", metavar="NAME", help="Where the stay was booked and reviewed. It is not published.")
@click.option("--reference", metavar="TEXT", help="The name of the booking there. It is not published.")
@click.option("--listing", metavar="ID", help="The place.")
@click.option("--check-in", metavar="DATE", help="The first day, as 2026-05-20.")
@click.option("--check-out", metavar="DATE", help="The last day.")
@click.option("--document", type=InFile, metavar="FILE", help=_DOCUMENT_HELP)
@rating_options
@text_options(2000)
@click.option("--consent", type=InFile, metavar="FILE", help="The guest's consent, signed less than 5 minutes ago.")
def import_(**options: Any) -> None:
    """Attest, as a host, a review that a guest gave on another platform, with the booking's document.

    It is published as host_attested: your word, listed and counted apart, in no average. With the guest's own consent
    (staylog review consent) it counts as the guest's. The ledger looks at the document and keeps only its hash; keep
    the document. Each booking of a platform can be imported once.

    \b
      staylog review import --ledger https://ledger.example --key host.key --credential host-credential.json \\
        --platform "Example Stays" --reference HX-77 --listing rose-cottage --check-in 2026-05-20 \\
        --check-out 2026-05-24 --document booking.pdf --overall 4.5 --accuracy 5 --cleanliness 4 \\
        --communication 5 --value 4 --text "Quiet, and dry."
      staylog review import --again import.json --document booking.pdf --key host.key
    """
    run(_IMPORTS, options)


@click.command(short_help="Consent to the import of your review, as its guest.")
@ledger_option
@speaker_options(required=True)
@click.option("--out", type=FilePath, default="consent.json", show_default=True, help="Where the consent goes.")
@click.option("--credential", type=InFile, required=True, metavar="FILE", help="Your credential.")
@click.option("--document", type=InFile, required=True, metavar="FILE", help="The document, from the host.")
@rating_options
@text_options(2000)
def consent(**options: Any) -> None:
    """Consent, as a guest, that a review you gave on another platform is published here. Nothing is sent anywhere.

    You sign the same stars, the same text and the hash of the same document that the host will submit; with any other
    your consent does not hold. Give the file to the host at once: it must be at the ledger within five minutes.

    \b
      staylog review consent --ledger https://ledger.example --key guest.key --credential credential.json \\
        --document booking.pdf --overall 4.5 --accuracy 5 --cleanliness 4 --communication 5 --value 4 \\
        --text "Quiet, and dry."
    """
    require_options(NEEDED, options)
    if options["text"] is not None and options["text_file"] is not None:
        raise click.UsageError("--text and --text-file are two ways to say it: give one.")
    out: Path = options["out"]
    with refusals():
        require_free(out)
        guest, document = Speaker.of(options), read_document(options)
        body = {
            "type": CONSENT,
            "consent": True,
            "document_sha256": sha256(document.data).hexdigest(),
            "ratings": ratings_of(options),
            "review_text": text_of(options),
            "guest_credential": read_json(options["credential"]),
        }
        said = {name: value for name, value in body.items() if value is not None}
        save(out, encode(guest.sign(said, CONSENT, check_base_url(options["ledger"]))))
    line("signed", str(out))
    line("by", guest.did)
    line("document", f"{document.path.name}, SHA-256 {body['document_sha256']}")
    click.echo("Give the file to the host at once: the ledger takes it within five minutes from now, and not later.")


def read_document(options: Mapping[str, Any]) -> Document:
    """The document, and what it is by its content."""
    from ledger.reviews.crossplatform import MAX_DOCUMENT, type_of

    path: Path = options["document"]
    try:
        with path.open("rb") as file:
            data = file.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise Misconfigured("file_unreadable", f"{path.name} cannot be read: {error.strerror}") from None
    if len(data) > MAX_DOCUMENT:
        raise BadForm("too_large", f"{path.name} has more than {MAX_DOCUMENT >> 20} MiB")
    found = type_of(data)
    if found is None:
        raise BadForm("document_invalid", f"{path.name} is neither a whole PDF nor a JSON object")
    return Document(path, found, data)


def _needed(_options: Mapping[str, Any]) -> list[str]:
    stay = ("platform", "reference", "listing", "check_in", "check_out")
    return ["credential", *stay, "document", *NEEDED]


def _content(options: Mapping[str, Any], host: Speaker) -> dict[str, Any]:
    document = read_document(options)
    body = {
        "type": ELSEWHERE,
        "host_did": host.did,
        "listing_id": options["listing"],
        "platform": options["platform"],
        "booking_reference": options["reference"],
        "check_in": options["check_in"],
        "check_out": options["check_out"],
        "document_sha256": sha256(document.data).hexdigest(),
        "document_type": document.media_type,
        "ratings": ratings_of(options),
        "review_text": text_of(options),
        "host_credential": read_json(options["credential"]),
        "guest_statement": read_json(options["consent"]) if options["consent"] is not None else None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _judge(body: Mapping[str, Any], _host: str, ledger: str) -> None:
    """Whether the guest's consent is one, and still holds: it cannot be signed anew here."""
    from ledger.identity import statements

    consent = body.get("guest_statement")
    if consent is None:
        return
    try:
        statements.check(consent, CONSENT)
        statements.claimed(consent, CONSENT, domain=ledger, now=utc_now())
    except NotAccepted as error:
        raise NotAccepted(error.code, f"the guest's consent does not hold: {error.message}") from None


_IMPORTS = Making(ELSEWHERE, Path("import.json"), _needed, _content, _judge, read_document)
