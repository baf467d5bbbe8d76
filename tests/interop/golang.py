"""Go's own golang.org/x/mod/sumdb as a judge: the program in go/, built once per worker and asked in batches."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import IO, Any, NoReturn

import pytest

SOURCE = Path(__file__).with_name("go") / "main.go"
PACKAGES = ("golang.org/x/mod/sumdb/note", "golang.org/x/mod/sumdb/tlog")
# Where Debian's golang-golang-x-mod-dev puts x/mod; a GOPATH of one's own is searched before it.
DEBIAN_GOPATH = "/usr/share/gocode"

Request = dict[str, Any]
Verdict = dict[str, Any]


class Go:
    """The program in go/main.go: a batch of requests goes in, their verdicts come out in the same order."""

    def __init__(self, requests: IO[str], verdicts: IO[str]) -> None:
        self._requests = requests
        self._verdicts = verdicts

    def ask(self, requests: Iterable[Request]) -> list[Verdict]:
        lines = [json.dumps(request) + "\n" for request in requests]
        # Both pipes are shorter than a batch: writing goes on while verdicts are read.
        writer = Thread(target=self._write, args=(lines,))
        writer.start()
        answers = [self._verdicts.readline() for _ in lines]
        writer.join()
        assert all(answers), "the Go program ended early: see its standard error"
        return [json.loads(answer) for answer in answers]

    def results(self, requests: Iterable[Request]) -> list[Any]:
        """What Go answers to requests that it must not refuse."""
        verdicts = self.ask(requests)
        assert [verdict["error"] for verdict in verdicts if verdict["error"]] == []
        return [verdict["result"] for verdict in verdicts]

    def accepts(self, requests: Iterable[Request]) -> list[bool]:
        return [not verdict["error"] for verdict in self.ask(requests)]

    def _write(self, lines: list[str]) -> None:
        # When the program has ended, the reader says so.
        with suppress(BrokenPipeError):
            self._requests.writelines(lines)
            self._requests.flush()


def build(folder: Path, source: Path = SOURCE) -> Path:
    """Compile the program. It takes half a second: each worker of a parallel run has its own."""
    command = shutil.which("go") or absent("the Go compiler (Debian: golang-go)")
    environment = {**os.environ, "GO111MODULE": "off", "GOFLAGS": "", "GOCACHE": str(folder / "cache")}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([command, *arguments], env=environment, capture_output=True, text=True, check=False)

    own = run("env", "GOPATH").stdout.strip()
    environment["GOPATH"] = os.pathsep.join(filter(None, [own, DEBIAN_GOPATH]))
    if run("list", *PACKAGES).returncode:
        absent("golang.org/x/mod below a GOPATH (Debian: golang-golang-x-mod-dev)")
    built = run("build", "-o", str(folder / "program"), str(source))
    assert built.returncode == 0, built.stderr
    return folder / "program"


def absent(what: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{what} is missing, and under CI these tests must run")
    pytest.skip(f"{what} is missing")
