"""A plot with its caption, and the same in numbers for who cannot see it or wants them exactly."""

from collections.abc import Mapping
from itertools import accumulate

from ledger.log.members import LEVELS
from ledger.pictures import plots
from ledger.pictures.markup import number, table
from ledger.pictures.plots import words
from ledger.pictures.timeline import Timeline


def figure(heading: str, plot: str, caption: str, numbers: str) -> str:
    """All are HTML already."""
    return (
        f"<figure>\n<h3>{heading}</h3>\n{plot}\n<figcaption>{caption}</figcaption>\n"
        f"<details><summary>{heading} in numbers</summary>\n{numbers}</details>\n</figure>\n"
    )


def growth(over_time: Timeline) -> str:
    bins = over_time.bins
    entries = accumulate(bin_.counts["entries"] for bin_ in bins)
    reviews = accumulate(bin_.all_reviews() for bin_ in bins)
    rows = [
        (bin_.label, number(entry), number(review)) for bin_, entry, review in zip(bins, entries, reviews, strict=True)
    ]
    caption = f"Entries and reviews so far, at the end of each {over_time.unit}"
    numbers = table(caption, ("Until", "Entries", "Reviews"), rows)
    return figure("Growth", plots.growth(over_time), caption + ".", numbers)


def mix(reviews: Mapping[str, int]) -> str:
    """Of all reviews, by the level that they have now."""
    caption = "All reviews, by the level that they have now"
    rows = [(words(level).capitalize(), number(reviews[level])) for level in LEVELS]
    return figure("Levels now", plots.mix(reviews), caption + ".", table(caption, ("Level", "Reviews"), rows))


def levels(over_time: Timeline) -> str:
    rows = [(bin_.label, *(number(bin_.reviews[level]) for level in LEVELS)) for bin_ in over_time.bins]
    caption = f"Reviews per {over_time.unit}, by the level at which they came in"
    head = ("In", *(words(level).capitalize() for level in LEVELS))
    return figure("Levels", plots.levels(over_time), caption + ".", table(caption, head, rows))
