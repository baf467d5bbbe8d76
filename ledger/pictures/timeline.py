"""The days of a log, gathered into few enough bins to be drawn: days, then months, then years."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from ledger.log.members import LEVELS
from ledger.log.record import mean_tenths

MOST_DAYS = 60
# A log may claim any times: centuries of them still make a page that opens.
MOST_BINS = 120

Days = Mapping[str, Mapping[str, Any]]


@dataclass(slots=True)
class Bin:
    """What happened in one stretch of time. Reviews stand at the level at which they came in. A day has `entries` and
    `reviews`; what else it has depends on who counted."""

    label: str
    counts: Counter[str] = field(default_factory=Counter)
    reviews: Counter[str] = field(default_factory=Counter)
    rated: Counter[str] = field(default_factory=Counter)
    half_stars: Counter[str] = field(default_factory=Counter)
    redactions: Counter[str] = field(default_factory=Counter)
    checks: Counter[str] = field(default_factory=Counter)

    def add(self, day: Mapping[str, Any]) -> None:
        self.counts.update({name: day.get(name, 0) for name in ("entries", "hosts", "responses", "upgrades")})
        self.reviews.update(day["reviews"])
        for level, (count, half_stars) in day.get("overall", {}).items():
            self.rated[level] += count
            self.half_stars[level] += half_stars
        self.redactions.update(day.get("redactions", {}))
        self.checks.update(day.get("checks", {}))

    def join(self, other: "Bin") -> None:
        for name in ("counts", "reviews", "rated", "half_stars", "redactions", "checks"):
            getattr(self, name).update(getattr(other, name))

    def all_reviews(self) -> int:
        return sum(self.reviews[level] for level in LEVELS)

    def mean(self, level: str) -> int | None:
        """Of the overall ratings, in tenths of a star."""
        return mean_tenths(self.half_stars[level], self.rated[level]) if self.rated[level] else None


@dataclass(frozen=True, slots=True)
class Timeline:
    """`unit` is what one bin spans, in words; no span between the first bin and the last is left out."""

    unit: str
    bins: tuple[Bin, ...]
    total: Bin


def timeline(days: Days) -> Timeline:
    total = Bin("in all")
    if not days:
        return Timeline("day", (), total)
    unit, labels, label_of = _spans(date.fromisoformat(min(days)), date.fromisoformat(max(days)))
    bins = {label: Bin(label) for label in labels}
    for day, happened in days.items():
        bins[label_of(day)].add(happened)
    for bin_ in bins.values():
        total.join(bin_)
    return Timeline(unit, tuple(bins.values()), total)


def _spans(first: date, last: date) -> tuple[str, list[str], Callable[[str], str]]:
    """What a bin spans, the labels of all bins, and the label of the bin that a day belongs to."""
    if (apart := (last - first).days) < MOST_DAYS:
        return "day", [(first + timedelta(n)).isoformat() for n in range(apart + 1)], lambda day: day
    months = range(first.year * 12 + first.month - 1, last.year * 12 + last.month)
    if len(months) <= MOST_BINS:
        return "month", [f"{n // 12:04}-{n % 12 + 1:02}" for n in months], lambda day: day[:7]
    step = next(step for step in (1, 10, 100) if (last.year - first.year) // step < MOST_BINS - 1)

    def label_of(day: str) -> str:
        return f"{int(day[:4]) // step * step:04}"

    years = range(int(label_of(first.isoformat())), last.year + 1, step)
    return "year" if step == 1 else f"{step} years", [f"{year:04}" for year in years], label_of
