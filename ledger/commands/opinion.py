"""What a review says, as options: stars, and a text."""

from collections.abc import Callable, Mapping
from typing import Any

import click

from ledger.commands.common import Command
from ledger.errors import BadForm, BadJSON
from ledger.log.members import CATEGORIES, OPTIONAL_CATEGORIES

RATINGS = tuple(half / 2 for half in range(2, 11))
NEEDED = tuple(name for name in CATEGORIES if name not in OPTIONAL_CATEGORIES)
# More than any text may have.
MAX_TEXT = 64 * 1024


def rating_options(command: Command) -> Command:
    for name in reversed(CATEGORIES):
        needed = "Optional: 1 to 5" if name in OPTIONAL_CATEGORIES else "1 to 5"
        command = click.option(f"--{name}", metavar="STARS", callback=_rating, help=f"{needed}, in steps of a half.")(
            command
        )
    return command


def text_options(most: int) -> Callable[[Command], Command]:
    def add(command: Command) -> Command:
        for option in (
            click.option(
                "--text-file", type=click.File("rb"), metavar="FILE", help='The same from a file; "-": standard input.'
            ),
            click.option("--text", help=f"What you say to everybody: at most {most} characters."),
        ):
            command = option(command)
        return command

    return add


def ratings_of(options: Mapping[str, Any]) -> dict[str, float]:
    return {name: options[name] for name in CATEGORIES if options[name] is not None}


def text_of(options: Mapping[str, Any]) -> str | None:
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
