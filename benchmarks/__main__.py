"""`python -m benchmarks`: one table, and benchmarks/results.json."""

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from benchmarks import (
    answer,
    audit,
    credentials,
    growth,
    guest_reference,
    integration,
    receipt,
    report,
    reputation,
    submission,
    tree,
)
from benchmarks.measure import machine_facts
from benchmarks.workspace import FULL, QUICK, Workspace

ROWS = {
    1: tree,
    2: growth,
    3: integration,
    4: receipt,
    5: submission,
    6: reputation,
    7: answer,
    9: audit,
    11: credentials,
    12: guest_reference,
}


class RowNumbers(click.ParamType[list[int]]):
    name = "1,2,..."

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        if isinstance(value, list):
            return value
        chosen = str(value).split(",")
        if not all(number.isdigit() and int(number) in ROWS for number in chosen):
            self.fail(f"rows are {', '.join(map(str, ROWS))}, separated by commas", param, ctx)
        return sorted({int(number) for number in chosen})


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rows", type=RowNumbers(), default=list(ROWS), show_default="all", help="Which rows to measure.")
@click.option("--quick", is_flag=True, help="Small sizes, seconds instead of minutes; shows ratios, gates nothing.")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(__file__).with_name("results.json"),
    show_default="benchmarks/results.json",
    help="Where the figures go.",
)
def main(rows: list[int], quick: bool, out: Path) -> None:
    """Measure Staylog beside its peers and bounds, in one run on this machine.

    \b
    Row 1  tree and tiles, a million leaves, against pymerkle 7 SqliteTree
    Row 2  growth from ten thousand leaves to a million, against itself
    Row 3  durable integration while 64 wait, a hundred thousand hosts, against one entry at a time
    Row 4  one lone review to its signed receipt, against fdatasync
    Row 5  whole reviews over HTTP, from the signed body to the receipt, against Argon2 alone
    Row 6  reputation answers over HTTP, cold and warm, against a bare handler
    Row 7  verifying a full proof of 24 reviews, against Ed25519 verification
    Row 9  the audit of a whole log, every map head derived again, against hashing its leaves
    Row 11 verdicts on credentials by suite, against Ed25519 verification; refusing poison, against 10 ms
    Row 12 guest references on one thread and on two

    Sides take turns, medians count, times are CPU times unless a row says wall or is about waiting. Exit status 1 means
    that a row missed its bar; wall times only warn. Rows 3 and 4 run on SQLite and, where its wheel is installed, on
    PostgreSQL. Databases live in the temporary directory (TMPDIR, PostgreSQL's in /tmp) during the run.
    """
    started = time.monotonic()
    # No refreshing thread: its CPU time would be counted.
    progress = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        auto_refresh=False,
        transient=True,
    )
    task = progress.add_task("starting", total=None)

    def step(what: str) -> None:
        progress.update(task, description=what, refresh=True)

    found: list[report.Row] = []
    with tempfile.TemporaryDirectory(prefix="staylog-bench-") as directory, ExitStack() as running, progress:
        step("timing fdatasync and Ed25519")
        machine = machine_facts(Path(directory))
        work = Workspace(Path(directory), QUICK if quick else FULL, step, running)
        for number in rows:
            found += ROWS[number].rows(work)
    seconds = time.monotonic() - started
    report.write(out, found, machine, quick=quick, seconds=seconds)
    console = Console(width=None if sys.stdout.isatty() else 180)
    notes = [*(note for number in rows for note in ROWS[number].NOTES), *work.notes]
    report.show(console, found, machine, notes, quick=quick)
    console.print(f"Took {seconds:.0f} s; every round is in {out.name}.")
    if below := report.missed(found, quick=quick):
        console.print(f"[red]{len(below)} of {len(found)} rows missed their bar.[/]")
        raise SystemExit(1)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
