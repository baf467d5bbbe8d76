"""One line at the bottom of a terminal that says where a long watch stands; silent where nobody watches."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click
from rich.console import Console
from rich.status import Status
from rich.text import Text

from audits.terminal import printable


class StatusLine:
    """Without a `status` there is no terminal: lines are written, and that is all."""

    def __init__(self, status: Status | None) -> None:
        self._status = status

    def say(self, message: str) -> None:
        if self._status is not None:
            # One line, whatever is said: a longer one would climb up the screen.
            self._status.update(Text(printable(message)[: self._status.console.width - 4]))

    def progress(self, phase: str, done: int, total: int) -> None:
        self.say(f"{phase}: {done:,} of {total:,}")

    def write(self, line: str) -> None:
        """What is told goes to the output as it is, wherever that leads; the status makes room for it."""
        if self._status is not None:
            self._status.stop()
        click.echo(line)
        if self._status is not None:
            self._status.start()


@contextmanager
def status_line() -> Iterator[StatusLine]:
    if not sys.stderr.isatty():
        yield StatusLine(None)
        return
    with Console(stderr=True, emoji=False).status("looking") as status:
        yield StatusLine(status)
