"""Ratings and redactions of an audited log: to scale, with gaps where nothing was, and text whatever it says."""

import re
from datetime import date, timedelta

import pytest
from hypothesis import given

from audits import plots
from ledger.log.members import BASES, LEVELS
from ledger.pictures import svg
from ledger.pictures.timeline import Bin, timeline
from tests.audits.audited import HOSTILE
from tests.ledger.pictures.drawn import (
    Day,
    assert_framed,
    days,
    grown,
    marks,
    of_class,
    one_day,
    parsed,
    quiet_day,
    said,
)


@given(days())
def test_any_log_is_drawn_within_its_frame_and_named(days: dict[str, Day]) -> None:
    made = timeline(days)
    assert_framed(plots.ratings(made))
    assert_framed(plots.redactions(made.total.redactions))


def test_an_empty_log_says_so() -> None:
    drawn = [plots.ratings(timeline({})), plots.redactions({})]
    labels = ["No ratings", "No redactions"]
    assert [parsed(plot).get("aria-label") for plot in drawn] == labels
    assert [parsed(plot).findtext("text") for plot in drawn] == labels
    assert parsed(plots.ratings(one_day(entries=3))).get("aria-label") == "No ratings"


def test_one_day_is_seen() -> None:
    drawn = plots.ratings(one_day(overall={"guest_verified": [3, 27], "host_attested": [0, 0], "unconfirmed": [1, 2]}))
    assert [said(mark) for mark in marks(drawn, "guest_verified")] == ["2026-07-04: 4.5, guest-verified"]
    assert [said(mark) for mark in marks(drawn, "unconfirmed")] == ["2026-07-04: 1.0, unconfirmed"]
    assert not of_class(drawn, "host_attested")
    assert "in 2026-07-04" in parsed(drawn).attrib["aria-label"]


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
