"""`staylog review`: a guest submits a review, a host responds to one."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from ledger.clock import utc_now
from ledger.commands.common import Command, FilePath, from_command_line, refusals
from ledger.commands.sending import RESPONSE, REVIEW, Errand, deliver
from ledger.commands.statement import InFile, Speaker, encode, next_free, read_json, require_free, save, speaker_options
from ledger.errors import BadForm, BadJSON
from ledger.log.members import CATEGORIES, OPTIONAL_CATEGORIES
from ledger.log.note import Verifier
from ledger.settings import DEFAULT_BASE_URL, check_base_url

RATINGS = tuple(half / 2 for half in range(2, 11))
# More than any text may have.
MAX_TEXT = 64 * 1024
# Options that say what is signed; what was signed already has all of it.
_CONTENT = ("credential", "receipt", "check_in", "check_out", *CATEGORIES, "text", "text_file", "feedback", "review_id")

Content = Callable[[Mapping[str, Any]], dict[str, Any]]


@click.group()
def review() -> None:
    """Submit a review of a stay, or respond to one as its host.

    What you sign is saved before it is sent, the receipt is saved before it is looked at, and no file is ever
    overwritten. Both files together prove for ever what you said, and that it is in the log.
    """


def _rating(_context: click.Context, _option: click.Parameter, value: str | None) -> float | None:
    if value is None:
        return None
    try:
        stars = float(value)
    except ValueError:
        stars = 0
    if stars not in RATINGS:
        raise click.BadParameter("1 to 5 stars in steps of a half expected, as 4.5")
    return int(stars) if stars.is_integer() else stars


def _rating_options(command: Command) -> Command:
    for name in reversed(CATEGORIES):
        needed = "Optional: 1 to 5" if name in OPTIONAL_CATEGORIES else "1 to 5"
        command = click.option(f"--{name}", metavar="STARS", callback=_rating, help=f"{needed}, in steps of a half.")(
            command
        )
    return command


def _sending_options(statement: str, receipt: str) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--again", type=InFile, metavar="FILE", help="Send what is in this file, signed before, once more."
            ),
            click.option(
                "--log-key",
                metavar="VKEY",
                help="The log's public key, from a source you trust, to check the receipt by.  [default: ask the "
                "ledger, and say so]",
            ),
            click.option("--out", type=FilePath, default=receipt, show_default=True, help="Where the receipt goes."),
            click.option(
                "--submission", type=FilePath, help=f"Where what you sign goes, first of all.  [default: {statement}]"
            ),
            speaker_options(required=False),
            click.option(
                "--ledger",
                metavar="URL",
                default=DEFAULT_BASE_URL,
                show_default=True,
                envvar="STAYLOG_LEDGER",
                show_envvar=True,
                help="The ledger, by its base URL: the signature holds for this one alone.",
            ),
        ):
            command = option(command)
        return command

    return add


@review.command()
@_sending_options("review.json", "receipt.json")
@click.option("--credential", type=InFile, metavar="FILE", help="Your credential, from an issuer the ledger trusts.")
@click.option("--receipt", type=InFile, metavar="FILE", help="The stay receipt that the host gave you.")
@click.option("--check-in", metavar="DATE", help="If you came later than was booked.  [default: as booked]")
@click.option("--check-out", metavar="DATE", help="If you left earlier than was booked.  [default: as booked]")
@_rating_options
@click.option("--text", help="What you say to everybody: at most 2000 characters.")
@click.option("--text-file", type=click.File("rb"), metavar="FILE", help='The same from a file; "-": standard input.')
@click.option("--feedback", help="What you say to the host alone. Today ledgers do not deliver it, and say so.")
def submit(**options: Any) -> None:
    """Submit a review of a stay that is over, and keep its receipt.

    The stay receipt says which booking, listing and host it is about. Your credential says that you are somebody; the
    review is signed with your key, because others have copies of the credential.

    \b
      staylog review submit --ledger https://ledger.example --key guest.key --credential credential.json \\
        --receipt stay-receipt.json --overall 4.5 --accuracy 5 --cleanliness 4 --communication 5 --value 4 \\
        --text "Quiet, and dry."

    If the ledger could not be reached, send the same file again: it is never taken twice. With --key it is signed anew
    where the ledger says that it came too late.

    \b
      staylog review submit --again review.json --key guest.key
    """
    _run(REVIEW, options, _review, Path("review.json"))


@review.command()
@click.argument("review_id", metavar="[REVIEW_ID]", required=False)
@_sending_options("response.json", "response-receipt.json")
@click.option("--text", help="What you say to everybody: at most 500 characters.")
@click.option("--text-file", type=click.File("rb"), metavar="FILE", help='The same from a file; "-": standard input.')
def respond(**options: Any) -> None:
    """Respond to the review REVIEW_ID as its host: once, within 30 days, for everybody to read.

    Your key is enough: no credential is asked for. The response stays as it is, as the review does.

    \b
      staylog review respond rev-qruemgwlvrk6eirnfe4yefas4u --ledger https://ledger.example --key host.key \\
        --text "Thank you. The gutter is mended."
      staylog review respond --again response.json --key host.key
    """
    _run(RESPONSE, options, _response, Path("response.json"))


def _run(kind: str, options: Mapping[str, Any], content: Content, default: Path) -> None:
    again: Path | None = options["again"]
    if again is None:
        _require(kind, options)
    elif given := [_spelled(name) for name in _CONTENT if options.get(name) is not None]:
        raise click.UsageError(f"--again sends what was signed before: {', '.join(given)} cannot change it.")
    with refusals():
        log = Verifier.parse(options["log_key"]) if options["log_key"] is not None else None
        if again is not None:
            _send_again(kind, again, log, options)
            return
        errand = Errand(kind, check_base_url(options["ledger"]), options["submission"] or default, options["out"], log)
        if errand.submission == errand.out:
            raise click.UsageError("--submission and --out are two files.")
        require_free(errand.submission, errand.out)
        deliver(errand, _signed(errand, content(options), options))


def _signed(errand: Errand, body: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The statement, in its file before anybody else hears of it."""
    signed = Speaker.of(options).sign(body, errand.kind, errand.ledger)
    if errand.kind == REVIEW:
        _judge(signed, errand.ledger)
    save(errand.submission, encode(signed))
    click.echo(f"signed     {errand.submission}")
    return signed


def _send_again(kind: str, file: Path, log: Verifier | None, options: Mapping[str, Any]) -> None:
    """It goes to the ledger that it was signed for, as it is; with a key it can be signed anew into another file."""
    from ledger.identity import statements

    body = read_json(file)
    statements.check(body, kind)
    domain = check_base_url(body["proof"]["domain"])
    if from_command_line("ledger") and options["ledger"] != domain:
        raise click.UsageError(f"{file.name} was signed for {domain}, and holds nowhere else: leave out --ledger.")
    errand = Errand(kind, domain, file, options["out"], log)
    anew = options["submission"] or next_free(file)
    require_free(errand.out, anew)

    def sign_anew() -> tuple[Errand, dict[str, Any]]:
        fresh = Errand(kind, domain, anew, errand.out, log)
        return fresh, _signed(fresh, body, options)

    deliver(errand, body, sign_anew if options["key"] is not None else None)


def _review(options: Mapping[str, Any]) -> dict[str, Any]:
    from ledger.identity import statements

    receipt = read_json(options["receipt"])
    statements.check(receipt, "StayReceipt")
    body = {
        "type": REVIEW,
        **{name: receipt[name] for name in ("booking_reference", "listing_id", "host_did")},
        **{name: options[name] or receipt[name] for name in ("check_in", "check_out")},
        "guest_credential": read_json(options["credential"]),
        "ratings": {name: options[name] for name in CATEGORIES if options[name] is not None},
        "review_text": _text(options),
        "private_feedback": options["feedback"],
        "booking_evidence": receipt,
    }
    return {name: value for name, value in body.items() if value is not None}


def _response(options: Mapping[str, Any]) -> dict[str, Any]:
    host = Speaker.of(options).did
    return {"type": RESPONSE, "review_id": options["review_id"], "host_did": host, "response_text": _text(options)}


def _judge(body: Mapping[str, Any], ledger: str) -> None:
    """Whether the stay receipt is for this guest and these dates and, where the host's DID itself says its key, by this
    host: better told here than by the ledger."""
    from ledger.identity.did import is_offline, offline
    from ledger.identity.resolution import HostKeys
    from ledger.identity.statements import speaker_of
    from ledger.reviews import evidence

    receipt = evidence.receipt_of(body, str(speaker_of(body, REVIEW)))
    if receipt is not None and is_offline(body["host_did"]):
        evidence.judge(receipt, HostKeys(offline(body["host_did"])), domain=ledger, now=utc_now())


def _text(options: Mapping[str, Any]) -> str | None:
    """From the option or the file; an editor ends a file with a line feed, which nobody means."""
    text: str | None = options["text"]
    if options["text_file"] is None:
        return text
    data: bytes = options["text_file"].read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise BadForm("text_too_long", f"the text has more than {MAX_TEXT // 1024} KiB")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise BadJSON("not_utf8", "the text is not UTF-8") from None


def _require(kind: str, options: Mapping[str, Any]) -> None:
    """What is needed to sign, unless it was signed before."""
    if options["text"] is not None and options["text_file"] is not None:
        raise click.UsageError("--text and --text-file are two ways to say it: give one.")
    needed = ["key"]
    if kind == REVIEW:
        needed += ["credential", "receipt", *(name for name in CATEGORIES if name not in OPTIONAL_CATEGORIES)]
    else:
        needed += ["review_id", *(["text"] if options["text_file"] is None else [])]
    if missing := [_spelled(name) for name in needed if options[name] is None]:
        raise click.UsageError(f"missing: {', '.join(missing)}. What was signed before is sent with --again FILE.")


def _spelled(name: str) -> str:
    return "REVIEW_ID" if name == "review_id" else f"--{name.replace('_', '-')}"
