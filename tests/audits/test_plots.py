"""Plots show the numbers that they are given: nothing is lost between days and bins, and what is drawn is to scale."""

import re
from collections import Counter
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits import plots, svg
from audits.timeline import MOST_BINS, MOST_DAYS, Bin, Timeline, timeline
from ledger.log.members import BASES, LEVELS
from tests.audits.audited import HOSTILE, Audit, days, grown, quiet_day

PLOTS = (plots.growth, plots.levels, plots.ratings)
POINT = re.compile(r"[ML](-?[\d.]+) (-?[\d.]+)")


def parsed(drawn: str) -> ElementTree.Element:
    """What any reader of XML makes of it, without the name of its namespace."""
    root = ElementTree.fromstring(drawn)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
    return root


def of_class(drawn: str, *names: str) -> list[ElementTree.Element]:
    return [element for element in parsed(drawn).iter() if set(names) <= set(element.get("class", "").split())]


def said(element: ElementTree.Element) -> str:
    return element.findtext("title", "")


def bars(drawn: str, kind: str) -> list[ElementTree.Element]:
    """Those with numbers; the legend has one of each kind as well."""
    return [bar for bar in of_class(drawn, "bar", kind) if ":" in said(bar)]


def marks(drawn: str, kind: str) -> list[ElementTree.Element]:
    return [mark for mark in of_class(drawn, "mark", kind) if ":" in said(mark)]


def one_day(**changes: object) -> Timeline:
    return timeline({"2026-07-04": {**quiet_day(), **changes}})


@given(days())
def test_every_day_is_in_one_bin_and_no_bin_is_left_out(days: dict[str, Audit]) -> None:
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


def true_mean(days: dict[str, Audit], level: str) -> int | None:
    count, half_stars = (sum(day["overall"][level][part] for day in days.values()) for part in (0, 1))
    if not count:
        return None
    mean = Decimal(half_stars) / 2 / count
    return int(mean.quantize(Decimal("0.1"), ROUND_HALF_UP) * 10)


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


@given(days())
def test_any_log_is_drawn_within_its_frame_and_named(days: dict[str, Audit]) -> None:
    made = timeline(days)
    for drawn in (*(plot(made) for plot in PLOTS), plots.redactions(made.total.redactions)):
        root = parsed(drawn)
        assert (root.tag, root.get("role")) == ("svg", "img")
        assert root.get("aria-label")
        width, height = (float(side) for side in root.attrib["viewBox"].split()[2:])
        for element in root.iter():
            assert 0 <= float(element.get("x", 0)) + float(element.get("width", 0)) <= width
            assert 0 <= float(element.get("y", 0)) + float(element.get("height", 0)) <= height
            for x, y in POINT.findall(element.get("d", "")):
                assert 0 <= float(x) <= width
                assert 0 <= float(y) <= height


def test_an_empty_log_says_so() -> None:
    nothing = timeline({})
    drawn = [plot(nothing) for plot in PLOTS] + [plots.redactions({})]
    labels = ["No entries", "No reviews", "No ratings", "No redactions"]
    assert [parsed(plot).get("aria-label") for plot in drawn] == labels
    assert [parsed(plot).findtext("text") for plot in drawn] == labels


def test_a_log_without_reviews_grows_all_the_same() -> None:
    made = one_day(entries=3)
    assert [said(mark) for mark in marks(plots.growth(made), "entries")] == ["2026-07-04: 3 entries"]
    assert parsed(plots.levels(made)).get("aria-label") == "No reviews"
    assert parsed(plots.ratings(made)).get("aria-label") == "No ratings"


def test_one_day_is_seen() -> None:
    overall = {"guest_verified": [3, 27], "host_attested": [0, 0], "unconfirmed": [1, 2]}
    reviews = {"guest_verified": 3, "host_attested": 0, "unconfirmed": 1}
    made = one_day(entries=12, reviews=reviews, overall=overall)
    assert [said(mark) for mark in marks(plots.growth(made), "reviews")] == ["2026-07-04: 4 reviews"]
    assert [said(mark) for mark in marks(plots.ratings(made), "guest_verified")] == ["2026-07-04: 4.5, guest-verified"]
    assert [said(mark) for mark in marks(plots.ratings(made), "unconfirmed")] == ["2026-07-04: 1.0, unconfirmed"]
    assert not of_class(plots.ratings(made), "host_attested")
    assert [said(bar) for bar in bars(plots.levels(made), "guest_verified")] == ["2026-07-04: 3 guest-verified"]
    for plot in PLOTS:
        assert "in 2026-07-04" in parsed(plot(made)).attrib["aria-label"]


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


def test_a_line_has_a_gap_where_there_was_no_review() -> None:
    made = grown(date(2026, 1, 1), 9)
    for n, count in enumerate((1, 1, 0, 1, 0, 0, 1, 1, 1)):
        overall = {"guest_verified": [count, 8 * count], "host_attested": [0, 0], "unconfirmed": [0, 0]}
        made[(date(2026, 1, 1) + timedelta(n)).isoformat()] = {**quiet_day(), "overall": overall}
    drawn = plots.ratings(timeline(made))
    lines = [
        line.attrib["d"].count("L") + 1
        for line in of_class(drawn, "line", "guest_verified")
        if "h20" not in line.attrib["d"]
    ]
    assert lines == [2, 3]
    assert len(marks(drawn, "guest_verified")) == 6


def test_growth_adds_up() -> None:
    made = timeline(grown(date(2026, 1, 1), 20))
    shown = [said(mark) for mark in marks(plots.growth(made), "entries")]
    total = 0
    for bin_, words in zip(made.bins, shown, strict=True):
        total += bin_.counts["entries"]
        assert words == f"{bin_.label}: {total:,} entries"
    assert f"{total:,} entries at the end" in parsed(plots.growth(made)).attrib["aria-label"]


def test_all_bases_are_named_with_their_numbers() -> None:
    drawn = plots.redactions({"court_order": 1500, "gdpr_17": 750})
    shown = of_class(drawn, "bar", "redactions")
    assert [said(bar) for bar in shown] == [
        "GDPR Article 17: 750", "court order: 1,500", "illegal content: 0", "third-party data: 0",
    ]  # fmt: skip
    widths = [float(bar.attrib["width"]) for bar in shown]
    assert widths == pytest.approx([widths[1] / 2, widths[1], 0, 0])
    assert len(shown) == len(BASES)


def test_a_basis_that_nobody_knows_is_text() -> None:
    for name in HOSTILE:
        labels = [element.text for element in parsed(plots.redactions({name: 1})).iter("text")]
        assert len(labels) == 2 * (len(BASES) + 1)


def test_series_differ_by_more_than_colour() -> None:
    drawn = plots.ratings(timeline(grown(date(2026, 1, 1), 20)))
    shapes = [re.sub(r"[\d.-]+ [\d.-]+", "", marks(drawn, level)[0].attrib["d"], count=1) for level in LEVELS]
    assert len(set(shapes)) == len(LEVELS)
    assert all(f".line.{level}" in svg.STYLE for level in ("host_attested", "unconfirmed"))


def test_a_mean_is_half_up() -> None:
    made = Bin("in all")
    made.add({**quiet_day(), "overall": {"guest_verified": [2, 17]}})
    assert plots.stars(made.mean("guest_verified") or 0) == "4.3"
