"""What the commands of this package print: reports, refusals, and how far a long run has come."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from audits.report import Report
from ledger.errors import Misconfigured, StaylogError

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
OUT = click.Path(dir_okay=False, path_type=Path)


def show(report: Report) -> None:
    console = Console(emoji=False)
    console.print(f"[bold]{escape(report.subject)}[/]", soft_wrap=True)
    tell(console, "proved", "green", report.proved)
    tell(console, "redacted", "yellow", report.redacted)
    tell(console, "withheld", "red", report.withheld)
    tell(console, "not proved", "dim", report.not_proved)


@contextmanager
def telling(as_json: bool) -> Iterator[Callable[[Report], None]]:
    """Print a report; or what was refused instead, with exit status 1."""
    try:
        yield lambda report: click.echo(json.dumps(report.as_json(), indent=1)) if as_json else show(report)
    except StaylogError as error:
        if as_json:
            click.echo(json.dumps({"code": error.code, "refused": error.message}, indent=1))
        else:
            say_refusal(error)
        raise SystemExit(1) from None


def tell(console: Console, title: str, style: str, lines: list[str]) -> None:
    for line in lines:
        console.print(f"  [{style}]{title:<10}[/]  {escape(printable(line))}", soft_wrap=True)


def say_refusal(error: StaylogError) -> None:
    message = escape(printable(error.message))
    Console(stderr=True, emoji=False).print(f"[red]refused[/] [dim]({error.code})[/] {message}", soft_wrap=True)


def printable(text: str) -> str:
    """What a file says must not move the cursor or turn the line around."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@contextmanager
def progress_bar(what: str) -> Iterator[tuple[Callable[[str, int, int], None], Callable[[str], None]]]:
    """A bar on the terminal, silent where nobody watches; and a way to say why it stands still."""
    console = Console(stderr=True, emoji=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(what, total=None)

        def progress(phase: str, done: int, total: int) -> None:
            bar.update(task, description=f"{what} {phase}", completed=done, total=total)

        yield progress, lambda message: bar.update(task, description=f"{what}: {escape(printable(message))}")


def write_text(path: Path, text: str) -> None:
    """Whole or not at all."""
    try:
        beside = path.with_name(f"{path.name}.new")
        beside.write_text(text, encoding="utf-8")
        os.replace(beside, path)
    except OSError as error:
        raise Misconfigured("file_unwritable", f"{path}: {error.strerror or error}") from None
