"""What commands share that sign a statement and send it: their options, and that what was signed before is sent again
as it is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ledger.commands.common import Command, FilePath, from_command_line, refusals
from ledger.commands.errand import Document, Errand
from ledger.commands.sending import deliver
from ledger.commands.statement import InFile, Speaker, encode, next_free, read_json, require_free, save, speaker_options
from ledger.log.note import Verifier
from ledger.settings import DEFAULT_BASE_URL, check_base_url

# Options that do not say what is signed.
_HOW = ("again", "log_key", "out", "submission", "key", "did", "verification_method", "ledger", "document")

Options = Mapping[str, Any]


def _no_judge(_body: Mapping[str, Any], _speaker: str, _ledger: str) -> None:
    """Nothing can be said here that the ledger would not say."""


def _no_document(_options: Options) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Making:
    """How statements of a kind are made: by which options, into which file, and what is judged before they are sent.
    `document` reads what goes beside it."""

    kind: str
    default: Path
    needed: Callable[[Options], Sequence[str]]
    content: Callable[[Options, Speaker], dict[str, Any]]
    judge: Callable[[Mapping[str, Any], str, str], None] = _no_judge
    document: Callable[[Options], Document | None] = _no_document


def ledger_option(command: Command) -> Command:
    return click.option(
        "--ledger",
        metavar="URL",
        default=DEFAULT_BASE_URL,
        show_default=True,
        envvar="STAYLOG_LEDGER",
        show_envvar=True,
        help="The ledger, by its base URL: the signature holds for this one alone.",
    )(command)


def log_key_option(command: Command) -> Command:
    return click.option(
        "--log-key",
        metavar="VKEY",
        help="The log's public key, from a source you trust, to check the receipt by.  [default: ask the ledger, and "
        "say so]",
    )(command)


def sending_options(statement: str, receipt: str | None = None) -> Callable[[Command], Command]:
    """For what is signed and sent; `receipt` is the file that its receipt goes to, where there is one."""

    def add(command: Command) -> Command:
        again = click.option(
            "--again", type=InFile, metavar="FILE", help="Send what is in this file, signed before, once more."
        )
        command = again(command)
        if receipt is not None:
            out = click.option(
                "--out", type=FilePath, default=receipt, show_default=True, help="Where the receipt goes."
            )
            command = out(log_key_option(command))
        submission = click.option(
            "--submission", type=FilePath, help=f"Where what you sign goes, first of all.  [default: {statement}]"
        )
        return ledger_option(speaker_options(required=False)(submission(command)))

    return add


def run(making: Making, options: Options) -> None:
    """Sign and send, or send again."""
    again: Path | None = options["again"]
    if options.get("text") is not None and options.get("text_file") is not None:
        raise click.UsageError("--text and --text-file are two ways to say it: give one.")
    if again is None:
        require_options(["key", *making.needed(options)], options)
    else:
        _require_nothing_new(options)
    with refusals():
        log = Verifier.parse(options["log_key"]) if options.get("log_key") is not None else None
        if again is not None:
            _send_again(making, again, log, options)
            return
        out = options.get("out")
        # Of bookings there are many, and each has its file.
        submission = options["submission"] or (making.default if out else next_free(making.default))
        ledger = check_base_url(options["ledger"])
        errand = Errand(making.kind, ledger, submission, out, log, making.document(options))
        if errand.submission == errand.out:
            raise click.UsageError("--submission and --out are two files.")
        require_free(errand.submission, *([errand.out] if errand.out else []))
        speaker = Speaker.of(options)
        deliver(errand, _signed(making, errand, making.content(options, speaker), speaker))


def require_options(needed: Sequence[str], options: Options) -> None:
    """What is needed to sign."""
    if missing := [_spelled(name) for name in needed if options[name] is None]:
        hint = " What was signed before is sent with --again FILE." if "again" in options else ""
        raise click.UsageError(f"missing: {', '.join(missing)}.{hint}")


def _require_nothing_new(options: Options) -> None:
    names = [str(parameter.name) for parameter in click.get_current_context().command.params]
    if given := [_spelled(name) for name in names if name not in _HOW and options[name] is not None]:
        raise click.UsageError(f"--again sends what was signed before: {', '.join(given)} cannot change it.")
    if "document" in options:
        require_options(["document"], options)


def _signed(making: Making, errand: Errand, body: Mapping[str, Any], speaker: Speaker) -> dict[str, Any]:
    """The statement, in its file before anybody else hears of it."""
    signed = speaker.sign(body, errand.kind, errand.ledger)
    making.judge(signed, speaker.did, errand.ledger)
    save(errand.submission, encode(signed))
    click.echo(f"signed     {errand.submission}")
    return signed


def _send_again(making: Making, file: Path, log: Verifier | None, options: Options) -> None:
    """It goes to the ledger that it was signed for, as it is; with a key it can be signed anew into another file."""
    from ledger.identity import statements

    body = read_json(file)
    statements.check(body, making.kind)
    domain = check_base_url(body["proof"]["domain"])
    if from_command_line("ledger") and options["ledger"] != domain:
        raise click.UsageError(f"{file.name} was signed for {domain}, and holds nowhere else: leave out --ledger.")
    out, document = options.get("out"), making.document(options)
    errand = Errand(making.kind, domain, file, out, log, document)
    anew = options["submission"] or next_free(file)
    require_free(anew, *([out] if out else []))

    def sign_anew() -> tuple[Errand, dict[str, Any]]:
        fresh = Errand(making.kind, domain, anew, out, log, document)
        return fresh, _signed(making, fresh, body, Speaker.of(options))

    deliver(errand, body, sign_anew if options["key"] is not None else None)


def _spelled(name: str) -> str:
    return "REVIEW_ID" if name == "review_id" else f"--{name.replace('_', '-')}"
