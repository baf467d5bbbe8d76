"""`python -m benchmarks.floods`: what readers notice of attacks at the socket, with uvicorn alone and with our guard.

Both servers run in turn, each in a process of its own, on the same ledger. Readers and attackers are other processes on
this machine, so that the figures are of the whole machine: compare them with those of the quiet server in the same run.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from socket import create_connection

import click
from rich.console import Console
from rich.table import Table

from benchmarks.flooders import ATTACKS, LARGE, SMALL
from benchmarks.measure import require
from ledger.folder import init_folder, open_ledger
from ledger.settings import Settings
from tests.running import Writer

QUIET = "quiet"
SERVERS = ("plain", "ours")
LARGE_EVENTS, SMALL_EVENTS = 900, 5
# A reader that has waited so long has failed.
PATIENCE = 3.0


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one server under one attack. Times are in milliseconds, memory in MiB."""

    p50: float
    p99: float
    asked: int
    failed: int
    memory: float


def read(port: int, seconds: float) -> tuple[list[float], int]:
    """Asks again and again, each time on a new connection, for some 50 answers a second; milliseconds, and how many
    failed. What failed counts as the whole patience."""
    times, failed, number = [], 0, 0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        number += 1
        began = time.perf_counter()
        try:
            ok = _ask(port, number)
        except OSError:
            ok = False
        failed += not ok
        times.append((time.perf_counter() - began if ok else PATIENCE) * 1000)
        time.sleep(0.02)
    return times, failed


def _ask(port: int, number: int, what: str = f"{SMALL}/reputation") -> bool:
    """Each time as another client, whom the trusted proxy 127.0.0.1 names."""
    head = f"X-Forwarded-For: 10.{number >> 16}.{number >> 8 & 255}.{number & 255}\r\nConnection: close\r\n\r\n"
    with create_connection(("127.0.0.1", port), PATIENCE) as connection:
        connection.settimeout(PATIENCE)
        connection.sendall(f"GET /v1/hosts/{what} HTTP/1.1\r\nHost: a\r\n{head}".encode())
        answer = b""
        while part := connection.recv(65536):
            answer += part
        return answer.startswith(b"HTTP/1.1 200")


def measure(port: int, pid: int, attack: str, seconds: float) -> Figures:
    """Half a second after the attack has begun, for `seconds`."""
    # The first of these takes a while to make.
    _ask(port, 0, f"{LARGE}/reputation?proof=full")
    attacker = None
    if attack != QUIET:
        command = [sys.executable, "-m", "benchmarks.flooders", attack, str(port), str(seconds + 1.5)]
        attacker = subprocess.Popen(command, cwd=Path(__file__).parent.parent)
        time.sleep(1)
    times, failed = read(port, seconds)
    memory = _memory(pid)
    if attacker is not None:
        attacker.wait()
    cut = statistics.quantiles(times, n=100) if len(times) > 1 else times * 99
    return Figures(statistics.median(times), cut[98], len(times), failed, memory)


def _memory(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM"))


@contextmanager
def serving(side: str, data: Path) -> Iterator[tuple[int, int]]:
    """Port and process id. 1,024 open files, as is usual, of which a process may make 4,096."""
    limit = "import resource, runpy, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 4096)); "
    code = limit + "sys.argv[:] = sys.argv[1:]; runpy.run_module('benchmarks.server', run_name='__main__')"
    command = [sys.executable, "-c", code, "server", side, str(data)]
    pipe, root = subprocess.PIPE, Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        port = process.stdout.readline().rpartition(b":")[2]
        require(port.strip().isdigit(), "a server that starts")
        try:
            yield int(port), process.pid
        finally:
            process.kill()


def fill(data: Path) -> None:
    """A host with many events, and one with few."""
    settings = Settings.of(data)
    init_folder(settings)
    ledger, writer = open_ledger(settings), Writer(1)
    ledger.sequencer.append([writer.review(LARGE, text="Quiet and dry. " * 10) for _ in range(LARGE_EVENTS)])
    ledger.sequencer.append([writer.review(SMALL, text="Quiet and dry.") for _ in range(SMALL_EVENTS)])
    ledger.close()


@click.command()
@click.option("--rounds", default=3, show_default=True, help="Servers take turns; medians are shown.")
@click.option("--seconds", default=4.0, show_default=True, help="For each attack on each server.")
@click.option("--attack", "attacks", type=click.Choice(list(ATTACKS)), multiple=True, help="Only these.")
def main(rounds: int, seconds: float, attacks: tuple[str, ...]) -> None:
    """Readers' times, failures and the server's memory under each attack, with and without the guard."""
    found: dict[tuple[str, str], list[Figures]] = {}
    with tempfile.TemporaryDirectory(prefix="staylog-floods-") as folder:
        fill(Path(folder, "data"))
        for number in range(rounds):
            for attack in (QUIET, *(attacks or ATTACKS)):
                for side in SERVERS if number % 2 else reversed(SERVERS):
                    with serving(side, Path(folder, "data")) as (port, pid):
                        found.setdefault((attack, side), []).append(measure(port, pid, attack, seconds))
    show(found, {"plain": "uvicorn", "ours": "with the guard"})


def show(found: dict[tuple[str, str], list[Figures]], names: dict[str, str]) -> None:
    """Medians of all rounds; the ratio is to the same server without an attack."""
    table = Table("attack", "server", "p50 ms", "p99 ms", "p99 / quiet", "failed", "memory MiB")
    for (attack, side), rounds in found.items():
        p99 = statistics.median(each.p99 for each in rounds)
        quiet = statistics.median(each.p99 for each in found[QUIET, side])
        table.add_row(
            attack,
            names[side],
            f"{statistics.median(each.p50 for each in rounds):.1f}",
            f"{p99:.1f}",
            f"{p99 / quiet:.2f}",
            f"{sum(each.failed for each in rounds)} of {sum(each.asked for each in rounds)}",
            f"{statistics.median(each.memory for each in rounds):.0f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks.floods")
