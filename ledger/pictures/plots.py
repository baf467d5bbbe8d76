"""Growth and levels of a log over time, drawn; each plot also says in words what it shows."""

from collections.abc import Mapping
from itertools import accumulate

from ledger.log.members import LEVELS
from ledger.pictures import svg
from ledger.pictures.timeline import Timeline

_WORDS = {
    "guest_verified": "guest-verified",
    "host_attested": "host-attested",
    "gdpr_17": "GDPR Article 17",
    "third_party_data": "third-party data",
}


def words(name: str) -> str:
    return _WORDS.get(name, name.replace("_", " "))


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
        f"Growth of the log {span(timeline)}: {entries[-1]:,} entries at the end, {reviews[-1]:,} of them reviews. "
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
    says = f"Reviews {span(timeline)}: {parts}. The most came in {busiest.label}: {busiest.all_reviews():,} reviews."
    plot = axes.around("".join(bars), heights) + legend
    return svg.picture(says, f'<g class="dense">{plot}</g>' if axes.dense else plot)


def mix(reviews: Mapping[str, int]) -> str:
    """How many of all reviews have each level: one bar, and the shares in words."""
    total = sum(reviews.values())
    if not total:
        return svg.nothing("No reviews")
    # An outline needs room of its own.
    parts, x = [], 1.0
    for row, level in enumerate(LEVELS):
        number, width = reviews[level], (svg.WIDTH - 2) * reviews[level] / total
        share = f"{number:,} {words(level)}, {_percent(number, total)}"
        if number:
            parts.append(svg.bar(level, x, 8, width, 30, share))
        parts.append(svg.bar(level, 1, 58 + row * 24, 14, 10, words(level)) + svg.text(22, 67 + row * 24, share))
        x += width
    says = ", ".join(f"{reviews[level]:,} {words(level)}" for level in LEVELS)
    return svg.picture(f"Of {total:,} reviews: {says}.", "".join(parts), 58 + len(LEVELS) * 24)


def _percent(number: int, total: int) -> str:
    """Whole ones; what is there is never 0, and what is not all is never 100."""
    if number in (0, total):
        return "100 %" if number else "0 %"
    share = min(max((200 * number + total) // (2 * total), 1), 99)
    return f"{share} %"


def span(timeline: Timeline) -> str:
    """From when to when, in words."""
    first, last = timeline.bins[0].label, timeline.bins[-1].label
    return f"in {first}" if first == last else f"by {timeline.unit}, {first} to {last}"
