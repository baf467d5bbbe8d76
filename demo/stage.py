"""How the story is told: chapters, commands, facts; and that nothing is told which did not come out so."""

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table

from demo.service import ENVIRONMENT, STAYLOG

WIDTH = 96
# Longer arguments, which are keys and DIDs, are shown by their beginning.
READABLE = 40
_INDENT = (0, 0, 0, 2)
VERIFIER = Path(__file__).parents[1] / "audits" / "standalone_verify.py"
_PROGRAMS = {"staylog": STAYLOG, "python": sys.executable}


class Unexpected(Exception):
    """Something did not come out as told."""

    def __init__(self, what: str, expected: object, came: object) -> None:
        super().__init__(f"{what}\n  expected  {expected}\n  came      {came}")


def expect(what: str, expected: object, came: object) -> None:
    if came != expected:
        raise Unexpected(what, expected, came)


def short(name: str) -> str:
    """A key or a DID by its beginning."""
    return f"{name[:20]}..."


class Stage:
    """A terminal, or no terminal; and the folder in which everything is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._console = Console(emoji=False, highlight=False)
        self._console.width = min(self._console.width, WIDTH)
        self._chapters = 0

    def chapter(self, title: str, text: str) -> None:
        self._chapters += 1
        self.heading(f"{self._chapters}  {title}")
        self.say(text)

    def heading(self, title: str) -> None:
        self._console.print()
        self._console.print(Rule(f"[bold]{title}[/]", align="left", style="dim"))

    def say(self, text: str) -> None:
        self._console.print(escape(text))

    def facts(self, *rows: tuple[str, ...], style: str = "cyan") -> None:
        """Lines in columns; the first says what the others are about."""
        table = Table.grid(padding=(0, 2))
        table.add_column(style=style, no_wrap=True)
        for row in rows:
            table.add_row(*map(escape, row))
        self._console.print(Padding(table, _INDENT, expand=False))

    def report(self, text: str) -> None:
        """What a verifier printed: a word, and what it is about."""
        lines = [line.strip().partition("  ") for line in text.splitlines()]
        for word, _, rest in lines:
            self.facts((f"{word:<10}", rest.strip()), style="green" if word == "proved" else "dim")

    def line(self, text: str) -> None:
        """To be copied, and so never broken."""
        self._console.print(f"  {escape(text)}", soft_wrap=True)

    def command(self, *words: str) -> None:
        shown = shlex.join(short(word) if len(word) > READABLE else word for word in words).replace("'", "")
        self._console.print(Padding(f"[dim]$ {escape(shown)}[/]", _INDENT, expand=False))

    def run(self, program: str, *arguments: str, says: str, status: int = 0) -> str:
        """What a program says in the folder, which must be this among other things, and end with this status."""
        command = [_PROGRAMS[program], *arguments]
        done = subprocess.run(command, cwd=self.folder, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        said = done.stdout + done.stderr
        if done.returncode != status or says not in said:
            expected = f"exit status {status}, and: {says}"
            raise Unexpected(f"{program} {arguments[0]}", expected, f"exit status {done.returncode}, and: {said}")
        return said

    def verify(self, name: str, log_key: str, host: str, *, says: str, status: int = 0) -> str:
        """What the verifier says of an answer in a file, likewise."""
        options = ("--key", log_key, "--host", host)
        return self.run("python", str(VERIFIER), name, *options, says=says, status=status).strip()

    def keep(self, name: str, document: Mapping[str, Any]) -> None:
        (self.folder / name).write_text(json.dumps(document, indent=1, ensure_ascii=False), "utf-8")
