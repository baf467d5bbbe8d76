"""A row of the table: two medians, their ratio, the bar, and whether it is met."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from rich.console import Console
from rich.table import Table

from benchmarks.measure import Samples

RATE = "/s"
_SCALES = {"us": 1e6, "ms": 1e3, "s": 1.0, "MB": 1e-6, "lines": 1.0, RATE: 1.0}


@dataclass(frozen=True, slots=True)
class Bar:
    """`less`: the peer must need at least `limit` times ours. `most`: ours may be at most `limit` times the bound.
    `share`: our rate must be at least `limit` of the peer's."""

    limit: float
    kind: Literal["less", "most", "share"]

    def __str__(self) -> str:
        texts = {"less": f"{self.limit:,g}x less", "most": f"at most {self.limit:,g}x"}
        return texts.get(self.kind, f"at least {self.limit:.0%}")


def at_most(limit: float) -> Bar:
    return Bar(limit, "most")


def times_less(limit: float) -> Bar:
    return Bar(limit, "less")


def at_least(share: float) -> Bar:
    return Bar(share, "share")


@dataclass(frozen=True, slots=True)
class Row:
    """`samples` of "ours" and of the "peer" are in seconds, bytes or lines, or are rates. Without a bar a row is there
    to be read; with one that does not gate it warns."""

    number: int
    work: str
    peer: str
    unit: str
    samples: Mapping[str, Samples]
    bar: Bar | None
    gates: bool = True

    @property
    def kind(self) -> str:
        return self.bar.kind if self.bar else "share" if self.unit == RATE else "less"

    @property
    def ratio(self) -> float:
        ours, peer = median(self.samples["ours"]), median(self.samples["peer"])
        return peer / ours if self.kind == "less" else ours / peer

    @property
    def met(self) -> bool | None:
        if self.bar is None:
            return None
        return self.ratio <= self.bar.limit if self.kind == "most" else self.ratio >= self.bar.limit

    @property
    def shown_ratio(self) -> str:
        if self.kind == "share":
            return f"{self.ratio:.0%}"
        ratio = f"{self.ratio:,.0f}x" if self.ratio >= 100 else f"{self.ratio:.2f}x"
        return f"{ratio} less" if self.kind == "less" else ratio

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "no bar"
        return "yes" if self.met else "NO" if self.gates else "no (warns)"

    def amount(self, side: str) -> str:
        value = median(self.samples[side]) * _SCALES[self.unit]
        return (
            f"{value:,.0f} {self.unit}" if value >= 100 or self.unit in ("lines", RATE) else f"{value:.3g} {self.unit}"
        )

    def as_json(self) -> dict[str, Any]:
        scaled = {side: [sample * _SCALES[self.unit] for sample in self.samples[side]] for side in ("ours", "peer")}
        return {
            "row": self.number,
            "work": self.work,
            "peer": self.peer,
            "unit": self.unit,
            "median": {side: median(values) for side, values in scaled.items()},
            "rounds": scaled,
            "ratio": self.ratio,
            "bar": str(self.bar) if self.bar else None,
            "met": self.met,
            "verdict": self.verdict,
            "gates": self.gates and self.bar is not None,
        }


def missed(rows: Sequence[Row], *, quick: bool) -> list[Row]:
    """The rows that fail a run. A quick run is too small to judge by."""
    return [] if quick else [row for row in rows if row.gates and row.met is False]


def show(console: Console, rows: Sequence[Row], machine: dict[str, Any], notes: Sequence[str], *, quick: bool) -> None:
    title = "Staylog benchmarks (quick: small sizes, nothing gates)" if quick else "Staylog benchmarks"
    table = Table(title=title, show_lines=False)
    for name in ("#", "work", "peer or bound", "ours", "ratio", "bar", "met?"):
        table.add_column(name, justify="right" if name in ("ours", "ratio") else "left")
    last = rows[0].number if rows else 0
    for row in rows:
        if row.number != last:
            table.add_section()
            last = row.number
        style = {"NO": "red", "yes": "green"}.get(row.verdict, "dim")
        table.add_row(
            str(row.number),
            row.work,
            f"{row.peer}: {row.amount('peer')}",
            row.amount("ours"),
            row.shown_ratio,
            str(row.bar) if row.bar else "-",
            f"[{style}]{row.verdict}[/]",
        )
    console.print(table)
    console.print(
        f"This machine: Python {machine['python']}, SQLite {machine['sqlite']}, {machine['cpus']} CPUs, "
        f"fdatasync {machine['fdatasync_ms']:.2f} ms, Ed25519 verify {machine['ed25519_verify_us']:.1f} us."
    )
    for note in notes:
        console.print(note, style="dim", markup=False)


def write(path: Path, rows: Sequence[Row], machine: dict[str, Any], *, quick: bool, seconds: float) -> None:
    results = {
        "quick": quick,
        "seconds": round(seconds, 1),
        "machine": machine,
        "rows": [row.as_json() for row in rows],
    }
    path.write_text(json.dumps(results, indent=1) + "\n")
