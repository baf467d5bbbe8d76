"""Processes under strace, which makes one of their system calls fail, or kills them at it."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.crash.harness import Child

# The name of a call, and its number among those of that name.
Call = tuple[str, int]


class Tracer:
    """Runs processes under strace, which looks at these `calls`, with a fault or without."""

    def __init__(self, folder: Path, calls: str) -> None:
        found = shutil.which("strace")
        if found is None:
            pytest.skip("strace is not installed")
        self._strace = found
        self._calls = calls
        self._trace = folder / "trace"

    def trace(self) -> str:
        """What the last run did, a line for each call."""
        return self._trace.read_text()

    def run(self, fault: str, target: Callable[..., None], *arguments: Any) -> tuple[list[bytes], int]:
        """What the process said, and how it ended."""
        child = Child(target, *arguments)
        assert child.channel.recv_bytes() == b"ready"
        command = [
            self._strace,
            "-y",
            "-o",
            str(self._trace),
            "-e",
            f"trace={self._calls}",
            "-p",
            str(child.process.pid),
        ]
        if fault:
            command += ["-e", f"inject={fault}"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as tracer:
            assert tracer.stderr is not None
            if "attached" not in (said := tracer.stderr.readline()):
                child.kill()
                child.wait()
                pytest.skip(f"strace may not trace here: {said.strip()}")
            child.channel.send_bytes(b"go on")
            answers = []
            try:
                while True:
                    answers.append(child.channel.recv_bytes())
            except (EOFError, ConnectionResetError):
                status = child.wait()
        return answers, status
