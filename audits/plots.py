"""Ratings and redactions of an audited log, drawn; each plot also says in words what it shows."""

from collections.abc import Mapping
from functools import partial

from ledger.log.members import BASES, LEVELS
from ledger.pictures import svg
from ledger.pictures.plots import span, words
from ledger.pictures.timeline import Timeline


def stars(tenths: int) -> str:
    return f"{tenths // 10}.{tenths % 10}"


def by_basis(redactions: Mapping[str, int]) -> dict[str, int]:
    """Every basis that there is, also those that nobody used."""
    return dict.fromkeys(BASES, 0) | dict(redactions)


def ratings(timeline: Timeline) -> str:
    """The mean overall rating of the reviews of each bin; a line for each level, which are never mixed."""
    present = [level for level in LEVELS if timeline.total.rated[level]]
    if not present:
        return svg.nothing("No ratings")
    axes = svg.Axes([bin_.label for bin_ in timeline.bins], 10, 50)
    lines, parts = [], []
    for level in present:
        means = [bin_.mean(level) for bin_ in timeline.bins]
        lines.append(svg.line(axes, level, means, partial(_rated, level)))
        known = [mean for mean in means if mean is not None]
        parts.append(f"{words(level)} between {stars(min(known))} and {stars(max(known))}")
    legend = svg.legend([(level, words(level)) for level in present], of_bars=False)
    says = f"Mean overall rating from 1 to 5 stars, {span(timeline)}: {', '.join(parts)}."
    plot = axes.around("".join(lines), range(10, 51, 10), lambda tenths: str(tenths // 10))
    return svg.picture(says, plot + legend)


def redactions(numbers: Mapping[str, int]) -> str:
    """How often each legal basis was given."""
    shown = by_basis(numbers)
    most = max(shown.values())
    if not most:
        return svg.nothing("No redactions")
    parts = []
    for row, (basis, number) in enumerate(shown.items()):
        y, width = 12 + row * 46, number / most * 160
        parts.append(svg.text(0, y + 16, words(basis)[:20]))
        parts.append(svg.bar("redactions", 112, y, width, 24, f"{words(basis)}: {number:,}"))
        parts.append(svg.text(112 + width + 6, y + 16, f"{number:,}"))
    says = f"Redactions by legal basis: {', '.join(f'{words(basis)} {number:,}' for basis, number in shown.items())}."
    return svg.picture(says, "".join(parts), len(shown) * 46)


def _rated(level: str, tenths: int) -> str:
    return f"{stars(tenths)}, {words(level)}"
