"""What is drawn stands beside it in numbers."""

from datetime import date
from itertools import accumulate

from ledger.log.members import LEVELS
from ledger.pictures import figures
from ledger.pictures.timeline import timeline
from tests.audits.html_page import Page
from tests.ledger.pictures.drawn import grown


def test_growth_and_levels_are_there_in_numbers() -> None:
    over_time = timeline(grown(date(2026, 1, 1), 20))
    growth = Page(figures.growth(over_time)).rows("Entries and reviews so far, at the end of each day")
    assert list(growth) == [bin_.label for bin_ in over_time.bins]
    entries = accumulate(bin_.counts["entries"] for bin_ in over_time.bins)
    reviews = accumulate(bin_.all_reviews() for bin_ in over_time.bins)
    assert list(growth.values()) == [[f"{e:,}", f"{r:,}"] for e, r in zip(entries, reviews, strict=True)]
    levels = Page(figures.levels(over_time)).rows("Reviews per day, by the level at which they came in")
    assert list(levels.values()) == [[str(bin_.reviews[level]) for level in LEVELS] for bin_ in over_time.bins]


def test_the_mix_is_there_in_numbers() -> None:
    page = Page(figures.mix({"guest_verified": 1200, "host_attested": 0, "unconfirmed": 3}))
    assert page.rows("All reviews, by the level that they have now") == {
        "Guest-verified": ["1,200"],
        "Host-attested": ["0"],
        "Unconfirmed": ["3"],
    }
