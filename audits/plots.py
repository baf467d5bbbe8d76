"""What an audited log looks like over time, drawn; each plot also says in words what it shows."""

from collections.abc import Mapping
from functools import partial
from itertools import accumulate

from audits import svg
from audits.timeline import Timeline
from ledger.log.members import BASES, LEVELS

_WORDS = {
    "guest_verified": "guest-verified",
    "host_attested": "host-attested",
    "gdpr_17": "GDPR Article 17",
    "third_party_data": "third-party data",
}


def words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


def stars(tenths: int) -> str:
    return f"{tenths // 10}.{tenths % 10}"


def by_basis(redactions: Mapping[str, int]) -> dict[str, int]:
    """Every basis that there is, also those that nobody used."""
    return dict.fromkeys(BASES, 0) | dict(redactions)


def growth(timeline: Timeline) -> str:
    """Entries and reviews so far, at the end of each bin."""
    if not timeline.bins:
        return svg.nothing("No entries")
    entries = list(accumulate(bin_.counts["entries"] for bin_ in timeline.bins))
    reviews = list(accumulate(bin_.all_reviews() for bin_ in timeline.bins))
    heights = svg.ticks(max(entries[-1], reviews[-1]))
    axes = svg.Axes([bin_.label for bin_ in timeline.bins], 0, heights[-1])
    edge = "L".join(f"{axes.x(at):.1f} {axes.y(value):.1f}" for at, value in enumerate(entries))
    area = f'<path class="area entries" d="M{axes.x(0):.1f} {svg.FLOOR}L{edge}V{svg.FLOOR}z"/>'
    lines = svg.line(axes, "entries", entries, "{:,} entries".format)
    lines += svg.line(axes, "reviews", reviews, "{:,} reviews".format)
    legend = svg.legend([("entries", "all entries"), ("reviews", "reviews")], of_bars=False)
    busiest = max(timeline.bins, key=lambda bin_: bin_.counts["entries"])
    says = (
        f"Growth of the log {_span(timeline)}: {entries[-1]:,} entries at the end, {reviews[-1]:,} of them reviews. "
        f"The most came in {busiest.label}: {busiest.counts['entries']:,} entries."
    )
    return svg.picture(says, axes.around(area + lines, heights) + legend)


def levels(timeline: Timeline) -> str:
    """The reviews of each bin, stacked by the level at which they came in."""
    most = max((bin_.all_reviews() for bin_ in timeline.bins), default=0)
    if not most:
        return svg.nothing("No reviews")
    heights = svg.ticks(most)
    axes = svg.Axes([bin_.label for bin_ in timeline.bins], 0, heights[-1])
    width = axes.band if axes.dense else min(axes.band * 0.78, 36)
    bars = []
    for at, bin_ in enumerate(timeline.bins):
        below = 0
        for level in (level for level in LEVELS if bin_.reviews[level]):
            number = bin_.reviews[level]
            height = axes.y(below) - axes.y(below + number)
            below += number
            says = f"{bin_.label}: {number:,} {words(level)}"
            bars.append(svg.bar(level, axes.x(at) - width / 2, axes.y(below), width, height, says))
    legend = svg.legend([(level, words(level)) for level in LEVELS], of_bars=True)
    parts = ", ".join(f"{timeline.total.reviews[level]:,} {words(level)}" for level in LEVELS)
    busiest = max(timeline.bins, key=lambda bin_: bin_.all_reviews())
    says = f"Reviews {_span(timeline)}: {parts}. The most came in {busiest.label}: {busiest.all_reviews():,} reviews."
    plot = axes.around("".join(bars), heights) + legend
    return svg.picture(says, f'<g class="dense">{plot}</g>' if axes.dense else plot)


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
    says = f"Mean overall rating from 1 to 5 stars, {_span(timeline)}: {', '.join(parts)}."
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


def _span(timeline: Timeline) -> str:
    first, last = timeline.bins[0].label, timeline.bins[-1].label
    return f"in {first}" if first == last else f"by {timeline.unit}, {first} to {last}"
