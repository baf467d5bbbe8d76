"""The parts of a plot as SVG text: axes with few ticks, lines, bars, marks and a legend.

A series has a colour, and a shape or a dash as well. Colours are CSS variables, which the page sets for light, dark and
paper. A plot is drawn for the width of a telephone, so that its letters keep their size everywhere.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, groupby

from ledger.pictures.markup import visible

WIDTH, HEIGHT = 360, 214
LEFT, RIGHT, TOP, BOTTOM = 38, 8, 30, 28
FLOOR = HEIGHT - BOTTOM

STYLE = """
svg { display: block; width: 100%; max-width: 30rem; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--quiet); font-variant-numeric: tabular-nums; }
svg .legend { fill: var(--ink); }
.grid { stroke: var(--grid); } .base { stroke: var(--quiet); }
.guest_verified { --hue: var(--blue); } .host_attested { --hue: var(--orange); } .unconfirmed { --hue: var(--grey); }
.entries { --hue: var(--green); } .reviews { --hue: var(--purple); } .redactions { --hue: var(--slate); }
.line { fill: none; stroke: var(--hue); stroke-width: 2; stroke-linejoin: round; }
.line.host_attested, .line.reviews { stroke-dasharray: 6 3; } .line.unconfirmed { stroke-dasharray: 2 3; }
.area { fill: var(--hue); opacity: .14; }
.mark, .bar { fill: var(--hue); } .bar { stroke: var(--paper); stroke-width: .75; }
.mark.unconfirmed { fill: var(--paper); stroke: var(--hue); stroke-width: 1.5; }
.bar.unconfirmed { fill: var(--hollow); stroke: var(--hue); }
.dense .bar { fill: var(--hue); stroke: none; }
"""
# With more values than this, marks would hide the line; with bars narrower than this, outlines would hide the bars.
_MARKED, _OUTLINED = 31, 4


def compact(number: int) -> str:
    """An axis has room for some four letters."""
    for unit, letter in ((10**12, "T"), (10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= unit:
            return f"{number / unit:g}{letter}"
    return str(number)


def ticks(most: int) -> list[int]:
    """From zero to `most` or just above, in at most five steps of 1, 2 or 5 times a power of ten."""
    step = next(digit * 10**power for power in count() for digit in (1, 2, 5) if digit * 10**power * 5 >= most)
    return [step * n for n in range(max(-(-most // step), 1) + 1)]


@dataclass(frozen=True, slots=True)
class Axes:
    """Bins from left to right, values from `low` up to `high`."""

    labels: Sequence[str]
    low: int
    high: int

    @property
    def band(self) -> float:
        return (WIDTH - LEFT - RIGHT) / len(self.labels)

    @property
    def dense(self) -> bool:
        return self.band < _OUTLINED

    def x(self, at: int) -> float:
        return LEFT + (at + 0.5) * self.band

    def y(self, value: int) -> float:
        return FLOOR - (value - self.low) / (self.high - self.low) * (FLOOR - TOP)

    def around(self, body: str, values: Iterable[int], spelled: Callable[[int], str] = compact) -> str:
        """The body between grid and base line, with the values beside it and some of the labels below."""
        parts = []
        for value in values:
            y = self.y(value)
            parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
            parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{spelled(value)}</text>')
        parts.append(f'{body}<path class="base" d="M{LEFT} {FLOOR}H{WIDTH - RIGHT}"/>')
        last = len(self.labels) - 1
        for at in sorted({0, last // 2, last}):
            # Centred below the last of many bins, a label would leave the plot.
            anchor, x = ("middle", self.x(at)) if self.x(at) < WIDTH - 36 else ("end", WIDTH - RIGHT)
            parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 7}" text-anchor="{anchor}">{visible(self.labels[at])}</text>')
        return "".join(parts)


def picture(says: str, body: str, height: int = HEIGHT) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}" '
        f'aria-label="{visible(says)}">{body}</svg>'
    )


def nothing(says: str) -> str:
    return picture(says, f'<text class="legend" x="{LEFT}" y="36">{visible(says)}</text>', 56)


def text(x: float, y: float, content: str) -> str:
    return f'<text class="legend" x="{x:.1f}" y="{y:.1f}">{visible(content)}</text>'


def bar(kind: str, x: float, y: float, width: float, height: float, says: str) -> str:
    """What it says is shown when pointed at."""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="bar {kind}" {place}><title>{visible(says)}</title></rect>'


def mark(kind: str, x: float, y: float, says: str) -> str:
    if kind in ("host_attested", "reviews"):
        path = f"M{x - 3:.1f} {y - 3:.1f}h6v6h-6z"
    elif kind == "unconfirmed":
        path = f"M{x:.1f} {y - 4:.1f}l4 4l-4 4l-4 -4z"
    else:
        path = f"M{x - 3.5:.1f} {y:.1f}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"
    return f'<path class="mark {kind}" d="{path}"><title>{visible(says)}</title></path>'


def legend(names: Iterable[tuple[str, str]], of_bars: bool) -> str:
    """Kinds with their names, in a row above the plot."""
    parts, x = [], 8.0
    for kind, name in names:
        if of_bars:
            parts.append(bar(kind, x, 5, 14, 10, name))
        else:
            parts.append(f'<path class="line {kind}" d="M{x:.1f} 10h20"/>' + mark(kind, x + 10, 10, name))
        x += 19 if of_bars else 25
        parts.append(text(x, 14, name))
        x += len(name) * 6.2 + 10
    return "".join(parts)


def line(axes: Axes, kind: str, values: Sequence[int | None], says: Callable[[int], str]) -> str:
    """Through neighbours only: where there is no value there is no line, and a value by itself is a mark."""
    runs = groupby(enumerate(values), lambda place: place[1] is None)
    stretches = [[(at, value) for at, value in run if value is not None] for absent, run in runs if not absent]
    parts = []
    for stretch in stretches:
        if len(stretch) > 1:
            points = "L".join(f"{axes.x(at):.1f} {axes.y(value):.1f}" for at, value in stretch)
            parts.append(f'<path class="line {kind}" d="M{points}"/>')
        if len(stretch) == 1 or len(values) <= _MARKED:
            marked = stretch
        else:
            marked = stretch[-1:] if stretch is stretches[-1] else []
        parts += [mark(kind, axes.x(at), axes.y(value), f"{axes.labels[at]}: {says(value)}") for at, value in marked]
    return "".join(parts)
