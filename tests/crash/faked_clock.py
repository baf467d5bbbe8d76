"""`staylog serve` as a process of its own whose wall clock tests set (Debian's faketime), and whose elapsed time is
real."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

import httpx
import pytest

from ledger.clock import utc_now
from ledger.settings import Settings
from tests.ports import free_port

STAYLOG = str(Path(sys.executable).with_name("staylog"))
# Debian has one folder for each architecture; elsewhere there is one, or it was built by hand.
_LIBRARIES = ("/usr/lib/*/faketime", "/usr/lib*/faketime", "/usr/local/lib/faketime")


@cache
def library() -> str:
    """The preloaded library, for processes with threads; skips the test where it is not installed."""
    for pattern in _LIBRARIES:
        for found in sorted(Path("/").glob(f"{pattern[1:]}/libfaketimeMT.so.1")):
            return str(found)
    pytest.skip("libfaketime is not installed: apt-get install faketime")


class FakedClock:
    """Ahead of the real clock by as much as was set last, for all processes that have its environment."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self._ahead = timedelta()
        self.set()

    def set(self, **ahead: float) -> None:
        self._ahead = timedelta(**ahead)
        # In one step: a process that reads it half written would see the real time.
        written = self._file.with_suffix(".new")
        written.write_text(f"{self._ahead.total_seconds():+.0f}\n")
        written.replace(self._file)

    def __call__(self) -> datetime:
        return utc_now() + self._ahead

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "LD_PRELOAD": library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        }


@contextmanager
def serving(settings: Settings, clock: FakedClock, *arguments: str) -> Iterator[httpx.Client]:
    """The service, until the end of the block; it stops in order."""
    where = ["--data", str(settings.data), "--database-url", settings.database_url, "--no-limits"]
    command = [STAYLOG, "serve", "--port", str(free_port()), *where, *arguments]
    output, environment = subprocess.PIPE, clock.environment
    with subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, text=True, env=environment) as process:
        assert process.stdout is not None
        told = []
        for line in process.stdout:
            told.append(line)
            if "listens on" in line:
                break
        else:
            raise AssertionError("".join(told))
        try:
            with httpx.Client(base_url=line.split()[-1], trust_env=False, timeout=60) as client:
                yield client
        finally:
            process.terminate()
            rest = process.stdout.read()
    assert "Traceback" not in rest, rest
