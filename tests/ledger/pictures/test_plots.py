"""Plots show the numbers that they are given: nothing is lost between days and bins, and what is drawn is to scale."""

from collections import Counter
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.log.members import LEVELS
from ledger.pictures import plots, svg
from ledger.pictures.timeline import MOST_BINS, MOST_DAYS, timeline
from tests.ledger.pictures.drawn import (
    Day,
    assert_framed,
    bars,
    days,
    grown,
    marks,
    one_day,
    parsed,
    quiet_day,
    said,
    true_mean,
)

PLOTS = (plots.growth, plots.levels)


@given(days())
def test_every_day_is_in_one_bin_and_no_bin_is_left_out(days: dict[str, Day]) -> None:
    made = timeline(days)
    assert len(made.bins) <= MOST_BINS
    labels = [bin_.label for bin_ in made.bins]
    assert labels == sorted(set(labels))
    for name in ("entries", "hosts", "responses", "upgrades"):
        expected = sum(day[name] for day in days.values())
        assert made.total.counts[name] == sum(bin_.counts[name] for bin_ in made.bins) == expected
    for name in ("reviews", "redactions", "checks"):
        expected_counts: Counter[str] = Counter()
        for day in days.values():
            expected_counts.update(day[name])
        binned: Counter[str] = Counter()
        for bin_ in made.bins:
            binned.update(getattr(bin_, name))
        assert getattr(made.total, name) == binned == expected_counts
    for level in LEVELS:
        expected_mean = true_mean(days, level)
        assert made.total.mean(level) == expected_mean


@pytest.mark.parametrize(
    ("first", "last", "unit", "bins", "last_label"),
    [
        ("2026-07-04", "2026-07-04", "day", 1, "2026-07-04"),
        ("2024-02-28", "2024-03-01", "day", 3, "2024-03-01"),
        ("2026-01-01", "2026-03-01", "day", MOST_DAYS, "2026-03-01"),
        ("2026-01-01", "2026-03-02", "month", 3, "2026-03"),
        ("2025-12-31", "2026-03-01", "month", 4, "2026-03"),
        ("2016-01-31", "2025-12-01", "month", MOST_BINS, "2025-12"),
        ("2016-01-31", "2026-01-01", "year", 11, "2026"),
        ("1970-01-01", "2106-02-07", "10 years", 14, "2100"),
        ("0001-01-01", "9999-12-31", "100 years", 100, "9900"),
    ],
)
def test_days_then_months_then_years(first: str, last: str, unit: str, bins: int, last_label: str) -> None:
    made = timeline({first: quiet_day(), last: quiet_day()})
    assert (made.unit, len(made.bins), made.bins[-1].label) == (unit, bins, last_label)


@given(st.integers(0, 10**15))
def test_ticks_are_few_and_round(most: int) -> None:
    made = svg.ticks(most)
    step = made[1]
    assert made == list(range(0, made[-1] + 1, step))
    assert made[-2] < max(most, 1) <= made[-1]
    assert len(made) <= 6
    assert str(step).rstrip("0") in ("1", "2", "5")
    assert all(len(svg.compact(tick)) <= 5 for tick in made)


@pytest.mark.parametrize(
    ("number", "short"),
    [(0, "0"), (999, "999"), (1000, "1k"), (1500, "1.5k"), (250_000, "250k"), (2 * 10**6, "2M"), (5 * 10**9, "5B")],
)
def test_an_axis_says_it_short(number: int, short: str) -> None:
    assert svg.compact(number) == short


def test_bars_stand_on_each_other_and_are_to_scale() -> None:
    made = timeline(grown(date(2026, 1, 1), 200))
    drawn = plots.levels(made)
    heights = {level: [float(bar.attrib["height"]) for bar in bars(drawn, level)] for level in LEVELS}
    numbers = {level: [bin_.reviews[level] for bin_ in made.bins if bin_.reviews[level]] for level in LEVELS}
    scale = sum(map(sum, heights.values())) / sum(map(sum, numbers.values()))
    for level in LEVELS:
        assert heights[level] == pytest.approx([number * scale for number in numbers[level]], abs=0.15)
    for bin_ in made.bins:
        stack = [bar for level in LEVELS for bar in bars(drawn, level) if said(bar).startswith(f"{bin_.label}:")]
        floors = [float(bar.attrib["y"]) + float(bar.attrib["height"]) for bar in stack]
        assert floors == pytest.approx([svg.FLOOR, *(float(bar.attrib["y"]) for bar in stack[:-1])], abs=0.15)


def test_growth_adds_up() -> None:
    made = timeline(grown(date(2026, 1, 1), 20))
    shown = [said(mark) for mark in marks(plots.growth(made), "entries")]
    total = 0
    for bin_, words in zip(made.bins, shown, strict=True):
        total += bin_.counts["entries"]
        assert words == f"{bin_.label}: {total:,} entries"
    assert f"{total:,} entries at the end" in parsed(plots.growth(made)).attrib["aria-label"]


@given(days())
def test_any_log_is_drawn_within_its_frame_and_named(days: dict[str, Day]) -> None:
    made = timeline(days)
    for plot in PLOTS:
        assert_framed(plot(made))


def test_an_empty_log_says_so() -> None:
    drawn = [plot(timeline({})) for plot in PLOTS]
    labels = ["No entries", "No reviews"]
    assert [parsed(plot).get("aria-label") for plot in drawn] == labels
    assert [parsed(plot).findtext("text") for plot in drawn] == labels


def test_a_log_without_reviews_grows_all_the_same() -> None:
    made = one_day(entries=3)
    assert [said(mark) for mark in marks(plots.growth(made), "entries")] == ["2026-07-04: 3 entries"]
    assert parsed(plots.levels(made)).get("aria-label") == "No reviews"


def test_one_day_is_seen() -> None:
    made = one_day(entries=12, reviews={"guest_verified": 3, "host_attested": 0, "unconfirmed": 1})
    assert [said(mark) for mark in marks(plots.growth(made), "reviews")] == ["2026-07-04: 4 reviews"]
    assert [said(bar) for bar in bars(plots.levels(made), "guest_verified")] == ["2026-07-04: 3 guest-verified"]
    for plot in PLOTS:
        assert "in 2026-07-04" in parsed(plot(made)).attrib["aria-label"]


def test_a_day_may_have_nothing_but_entries_and_reviews() -> None:
    made = timeline({"2026-07-04": {"entries": 12, "reviews": {"guest_verified": 3, "unconfirmed": 1}}})
    assert (made.total.counts["entries"], made.total.all_reviews(), made.total.counts["hosts"]) == (12, 4, 0)
    assert not made.total.redactions


@given(st.fixed_dictionaries({level: st.integers(0, 40) | st.integers(0, 10**12) for level in LEVELS}))
def test_a_mix_is_one_bar_to_scale(reviews: dict[str, int]) -> None:
    drawn = plots.mix(reviews)
    assert_framed(drawn)
    total = sum(reviews.values())
    if not total:
        assert parsed(drawn).get("aria-label") == "No reviews"
        return
    shown = [bar for bar in parsed(drawn).iter("rect") if "%" in said(bar)]
    assert [said(bar).split(",")[0] for bar in shown] == [
        f"{reviews[level]:,} {plots.words(level)}".split(",")[0] for level in LEVELS if reviews[level]
    ]
    edge = 1.0
    for bar, level in zip(shown, [level for level in LEVELS if reviews[level]], strict=True):
        assert float(bar.attrib["x"]) == pytest.approx(edge, abs=0.06)
        edge += (svg.WIDTH - 2) * reviews[level] / total
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) == pytest.approx(edge, abs=0.11)
    for level in LEVELS:
        assert f"{reviews[level]:,} {plots.words(level)}" in parsed(drawn).attrib["aria-label"]


@pytest.mark.parametrize(
    ("reviews", "shares"),
    [
        ((1, 0, 0), ["100 %", "0 %", "0 %"]),
        ((1, 1, 1), ["33 %", "33 %", "33 %"]),
        ((999, 1, 0), ["99 %", "1 %", "0 %"]),
        ((5, 1, 1), ["71 %", "14 %", "14 %"]),
        ((1, 1, 6), ["13 %", "13 %", "75 %"]),
    ],
)
def test_what_is_there_is_never_nothing_and_what_is_not_all_is_never_everything(
    reviews: tuple[int, ...], shares: list[str]
) -> None:
    drawn = plots.mix(dict(zip(LEVELS, reviews, strict=True)))
    assert [(text.text or "").rpartition(", ")[2] for text in parsed(drawn).iter("text")] == shares
