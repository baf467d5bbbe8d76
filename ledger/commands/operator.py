"""What an operator types: `staylog init`, `fsck`, and `log` with `add`, `show`, `marks`, `key`; `serve` is in `api`."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.markup import escape

from ledger.commands.common import (
    FilePath,
    accept_clock_option,
    data_option,
    data_options,
    opening_options,
    printable,
    progress_bar,
    refusals,
    settings_to_open,
)
from ledger.commands.network import stated_base_url
from ledger.errors import Misconfigured, StaylogError
from ledger.settings import DEFAULT_BASE_URL, Settings, is_loopback

if TYPE_CHECKING:
    from ledger.folder import Ledger
    from ledger.log.drafts import Draft
    from ledger.log.note import Verifier

# What adds each entry about a host to a ledger that others reach. By hand it would rest on no signature but the log's.
_OWN_WAY = {
    "review": "a guest signs it: `staylog review submit`",
    "response": "a host signs it: `staylog review respond`",
    "upgrade": "a guest signs what it rests on: `staylog review evidence`",
    "booking_check": "the ledger writes it itself, from what hosts and guests signed",
    "redaction": "it needs a decision and a legal basis: `staylog redact`",
}
# Refusals of a file that are shown; the rest are counted.
MOST_SHOWN = 20


@click.command()
@data_options
@click.option(
    "--base-url",
    default=DEFAULT_BASE_URL,
    show_default=True,
    envvar="STAYLOG_BASE_URL",
    show_envvar=True,
    help="How the world reaches the service. Without its scheme, and with /log, it is the log's name for ever.",
)
@click.option("--previous", metavar="ORIGIN", help="The log that this one follows, when that one has ended.")
def init(data: Path, database_url: str | None, base_url: str, previous: str | None) -> None:
    """Create a ledger: keys, database, and the first signed checkpoint.

    \b
      staylog init --data ./data --base-url https://ledger.example
    """
    with refusals():
        from ledger.folder import init_folder

        verifier = init_folder(Settings.of(data, database_url, base_url), previous=previous)
    click.echo(f"New log {verifier.name}\nIts public key, for everyone who verifies:\n  {verifier}")
    click.echo(f"Its secret keys are in {data}; back them up, and never restore a database older than what was signed.")


@click.command()
@data_options
@click.option(
    "--checkpoint",
    "checkpoints",
    type=FilePath,
    multiple=True,
    help="A checkpoint that the log signed, or a receipt or answer with one; may be repeated.",
)
@click.option("--mark", "marks", metavar="WHERE", multiple=True, help="As for `staylog log marks`; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def fsck(
    data: Path, database_url: str | None, checkpoints: Sequence[Path], marks: Sequence[str], as_json: bool
) -> None:
    """Derive everything from the entries again and compare it with what is stored.

    Tiles, host records, every version of the map, checkpoints, texts; the mark in the folder, and every other mark and
    checkpoint that is named, are of the same history. Changes nothing, and may run beside a service.
    Exit status 0 means that all of it is as it must be, 1 that something is not, 2 that it could not be checked.
    """
    with refusals(status=2):
        from ledger.folder import open_store
        from ledger.log.fsck import fsck as check
        from ledger.log.mark_comparison import read_checkpoint, read_mark
        from ledger.log.mark_file import MarkFile
        from ledger.net.fetch import user_agent
        from ledger.store.schema import require_newest

        settings = Settings.of(data, database_url)
        verifier = _public_key(settings)
        mark = MarkFile(settings.mark).read()
        agent, shared = user_agent(settings.base_url), [settings.mark_url] if settings.mark_url else []
        known = {where: read_mark(where, verifier.name, agent) for where in [*marks, *shared]}
        known |= {str(path): read_checkpoint(path, verifier) for path in checkpoints}
        store = open_store(settings)
        with progress_bar("checking") as progress:
            require_newest(store)
            with store.snapshot() as connection:
                report = check(connection, verifier, mark, progress, known)
        store.close()
    if as_json:
        figures = {name: getattr(report, name) for name in ("entries", "hosts", "checkpoints", "pages")}
        click.echo(json.dumps({"origin": verifier.name, **figures, "findings": report.findings}, indent=1))
    else:
        for finding in report.findings:
            Console(stderr=True, emoji=False).print(f"[red]wrong[/] {escape(finding)}", soft_wrap=True)
        if not report.findings:
            click.echo(
                f"clean: {report.entries:,} entries of {report.hosts:,} hosts, {report.checkpoints:,} signed "
                f"checkpoints, {report.pages:,} map pages; all as the entries of {verifier.name} give them"
            )
    raise SystemExit(1 if report.findings else 0)


@click.group()
def log() -> None:
    """Look into the log, and add to it by hand."""


@log.command()
@click.argument("file", type=click.File("rb"))
@accept_clock_option
@opening_options
def add(file: Any, accept_clock: bool, data: Path, database_url: str | None) -> None:
    """Add the entries in FILE ("-" is standard input): all of them, or none.

    One JSON object per line: an entry of the protocol without `at`. Where an entry commits to a text, the text itself
    may stand, as {"text": "...", "salt": "..."}, and is then served; the salt may be left out. Works while a service
    runs, and is seen there within a second.

    An entry about a host is added so only where no other machine reaches the ledger: for development and tests. With
    any other base URL it is refused (entry_not_by_hand); reviews, responses and evidence are signed and handed in.

    \b
      echo '{"type":"policy","v":1,"policy":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}' | staylog log add -
    """
    with refusals():
        from ledger.folder import open_ledger
        from ledger.log.integrate import SomeRefused

        drafts, lines = _read_drafts(file)
        settings = settings_to_open(data, database_url, stated_base_url())
        ledger = open_ledger(settings, accept_clock=accept_clock)
        try:
            _require_own_way(drafts, lines, ledger)
            with progress_bar("adding") as progress:
                added = ledger.sequencer.append(drafts, lambda done: progress("entries", done, len(drafts)))
            if any(draft.type == "redaction" for draft in drafts):
                ledger.store.scrub("entry")
        except SomeRefused as error:
            _refuse_lines({lines[place]: refusal for place, refusal in error.refusals.items()})
        finally:
            ledger.close()
    if added:
        first, last = added[0], added[-1]
        click.echo(f"{len(added)} entries added, {first.index} to {last.index}; signed at size {last.published.size}")
    else:
        click.echo("FILE has no entries; nothing was added")


@log.command()
@opening_options
@click.option("--start", type=click.IntRange(0), help="The first entry to show.  [default: the last ten]")
@click.option("--count", type=click.IntRange(1, 10_000), default=10, show_default=True, help="How many to show.")
@click.option("--json", "as_json", is_flag=True, help="Print the entries as they are, one per line, and nothing else.")
def show(data: Path, database_url: str | None, start: int | None, count: int, as_json: bool) -> None:
    """Show where the log stands, and its entries."""
    with refusals():
        from ledger.folder import open_ledger

        ledger = open_ledger(settings_to_open(data, database_url))
        try:
            published = ledger.reader.published
            first = max(published.size - count, 0) if start is None else start
            entries = ledger.reader.entries(first, first + count)
        finally:
            ledger.close()
    if not as_json:
        click.echo(f"{published.note}\nsigned map head of {published.at}; public key {ledger.verifier}\n")
    for index, entry in enumerate(entries, first):
        click.echo(entry.decode() if as_json else f"{index:>8}  {entry.decode()}")


@log.command()
@click.argument("places", metavar="[WHERE]...", nargs=-1)
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def marks(places: Sequence[str], data: Path, database_url: str | None, as_json: bool) -> None:
    """Compare the marks of all services of this log: which is newest, and whether they are of one history.

    WHERE is the file last-signed of another service, its folder, or the address of a mark in etcd. The mark in --data,
    that of STAYLOG_MARK_URL and the newest checkpoint in the database are compared too. Changes nothing. Exit status 0
    means that all are of one history which the database has in full, 1 that they are not, 2 that it could not be told.

    \b
      staylog log marks other/last-signed https://etcd.example:2379/staylog --data ./data
    """
    with refusals(status=2):
        from contextlib import closing

        from ledger.log.mark_comparison import compare, read_mark
        from ledger.log.mark_file import MarkFile
        from ledger.net.fetch import user_agent
        from ledger.store.engine import Store
        from ledger.store.schema import require_newest

        settings = Settings.of(data, database_url)
        origin, agent = _public_key(settings).name, user_agent(settings.base_url)
        shared = [settings.mark_url] if settings.mark_url else []
        found = {where: read_mark(where, origin, agent) for where in [*places, *shared]}
        own = MarkFile(settings.mark).read()
        if own is not None:
            found = {str(settings.mark): own, **found}
        with closing(Store(settings.database_url)) as store:
            require_newest(store)
            with store.snapshot() as connection:
                result = compare(connection, found)
    if as_json:
        listed = [{"where": where, "checkpoint": str(mark)} for where, mark in result.marks.items()]
        click.echo(json.dumps({"origin": origin, "marks": listed, "findings": result.findings}, indent=1))
    else:
        for where, mark in result.marks.items():
            click.echo(f"{mark}  {printable(where)}{'  (newest)' if where == result.newest else ''}")
        for finding in result.findings:
            Console(stderr=True, emoji=False).print(f"[red]wrong[/] {escape(printable(finding))}", soft_wrap=True)
        if not result.findings:
            click.echo("one history, and the database has all of it")
    raise SystemExit(1 if result.findings else 0)


@log.command()
@data_option
def key(data: Path) -> None:
    """Print the log's public key, `name+id+base64`: what verifiers, auditors and witnesses are given."""
    with refusals():
        click.echo(str(_public_key(Settings.of(data))))


def _public_key(settings: Settings) -> "Verifier":
    from ledger.folder import is_empty
    from ledger.keys import read_log_key
    from ledger.log.note import ED25519, Verifier

    if is_empty(settings):
        raise Misconfigured("not_initialised", f"{settings.data} has no ledger: run `staylog init`, or name its folder")
    origin, key = read_log_key(settings.log_key)
    return Verifier(origin, ED25519, bytes(key.verify_key))


def _read_drafts(file: Any) -> tuple[list["Draft"], list[int]]:
    """The drafts and the numbers of their lines; empty lines are passed over."""
    from ledger.log.drafts import parse_draft

    drafts, lines = [], []
    wrong: dict[int, StaylogError] = {}
    for number, line in enumerate(file, 1):
        if not line.strip():
            continue
        try:
            drafts.append(parse_draft(line.rstrip(b"\r\n"), os.urandom(32)))
            lines.append(number)
        except StaylogError as error:
            wrong[number] = error
    if wrong:
        _refuse_lines(wrong)
    return drafts, lines


def _require_own_way(drafts: list["Draft"], lines: list[int], ledger: "Ledger") -> None:
    """Ends the command when there is an entry about a host, and the ledger has, or was made with, a base URL that other
    machines reach."""
    if all(map(is_loopback, (ledger.made_as, ledger.settings.base_url))):
        return
    others = {line: _OWN_WAY[draft.type] for line, draft in zip(lines, drafts, strict=True) if draft.type in _OWN_WAY}
    if others:
        _refuse_lines(
            {
                line: Misconfigured("entry_not_by_hand", f"this entry is not added by hand on {ledger.made_as}: {way}")
                for line, way in others.items()
            }
        )


def _refuse_lines(wrong: dict[int, StaylogError]) -> None:
    console = Console(stderr=True, emoji=False)
    for number, error in sorted(wrong.items())[:MOST_SHOWN]:
        console.print(f"[red]line {number}[/] [dim]({error.code})[/] {escape(error.message)}", soft_wrap=True)
    if len(wrong) > MOST_SHOWN:
        console.print(f"... and {len(wrong) - MOST_SHOWN} more lines")
    console.print("Nothing was added.")
    raise SystemExit(1)
