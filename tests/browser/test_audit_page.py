"""The report of an audit as people see it: on a telephone, in the dark, read aloud, and without a network."""

from datetime import date
from pathlib import Path

import pytest

from audits.page import render
from tests.audits.audited import EMPTY, Audit, full, hostile
from tests.browser.browser import Browser
from tests.browser.looks import COLOUR, OPENED, OUTSIDE, TOUCHING, contrast, luminance
from tests.ledger.pictures.drawn import grown, quiet_day

CENTURIES = {"1970-01-01": quiet_day(), "9999-12-31": {**grown(date(2026, 1, 1), 5)["2026-01-05"], "entries": 10**12}}
AUDITS: dict[str, Audit] = {
    "full": full(),
    "empty": EMPTY,
    "hostile": hostile(),
    "one day": {**full(), "days": grown(date(2026, 7, 4), 1)},
    "four days": {**full(), "days": grown(date(2026, 7, 4), 4)},
    "sixty days": {**full(), "verdict": "clean", "findings": [], "days": grown(date(2026, 7, 4), 60)},
    "ten years": {**full(), "verdict": "incomplete", "findings": [], "days": grown(date(2016, 2, 1), 3600)},
    "centuries": {**full(), "size": 10**15, "days": CENTURIES},
}


@pytest.fixture(params=AUDITS)
def page(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(render(AUDITS[request.param]), "utf-8")
    return path


@pytest.fixture
def full_page(tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    path.write_text(render(AUDITS["full"]), "utf-8")
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_quiet_fits_a_telephone_and_asks_nobody(browser: Browser, page: Path, scheme: str) -> None:
    browser.show(page, 360, scheme)
    browser.evaluate(OPENED)
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(TOUCHING) == []
    assert browser.messages() == []
    assert browser.requests() == [page.as_uri()]


def test_a_wide_screen_has_room_for_everything(browser: Browser, page: Path) -> None:
    browser.show(page)
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(TOUCHING) == []
    assert browser.messages() == []


def test_a_hostile_log_runs_nothing(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(hostile()), "utf-8")
    browser.show(page)
    assert browser.evaluate("document.querySelectorAll('script, img, main svg [onload], main style').length") == 0
    assert browser.evaluate("document.title").startswith("Audit of log </style></title><script>")


def test_what_is_drawn_is_also_said(browser: Browser, page: Path) -> None:
    browser.show(page)
    browser.evaluate(OPENED)
    for plot in browser.all("svg"):
        assert plot.aria_role in ("img", "image")
        assert len(plot.accessible_name) > 10
    for table in browser.all("table"):
        assert table.accessible_name
    assert len(browser.all("h1")) == 1


def test_the_plots_say_their_numbers(browser: Browser, full_page: Path) -> None:
    browser.show(full_page)
    audit = AUDITS["full"]
    names = [plot.accessible_name for plot in browser.all("svg")]
    assert f"{sum(day['entries'] for day in audit['days'].values()):,} entries at the end" in names[0]
    verified = sum(day["reviews"]["guest_verified"] for day in audit["days"].values())
    assert f"{verified:,} guest-verified" in names[1]
    assert "Mean overall rating" in names[2]
    assert f"GDPR Article 17 {sum(day['redactions'].get('gdpr_17', 0) for day in audit['days'].values())}" in names[3]


def test_what_is_seen_is_what_the_json_says(browser: Browser, full_page: Path) -> None:
    browser.show(full_page)
    audit = AUDITS["full"]
    shown = [figure.text.split("\n") for figure in browser.all(".figures div")]
    expected = [[name.replace("_", " ").capitalize(), f"{value:,}"] for name, value in audit["figures"].items()]
    assert shown == expected
    assert browser.all(".verdict strong")[0].text == "2 findings"
    assert [finding.text for finding in browser.all(".finding h3")] == [row["claim"] for row in audit["findings"]]
    assert [code.text for code in browser.all(".about code")][:3] == [audit["log"], audit["root"], audit["key"]]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_stands_out_in_light_and_dark(browser: Browser, full_page: Path, scheme: str) -> None:
    browser.show(full_page, scheme=scheme)
    paper = browser.evaluate(COLOUR.format("body", "background-color"))
    assert (luminance(paper) > 0.5) == (scheme == "light")
    soft = browser.evaluate(COLOUR.format(".verdict", "background-color"))
    for selector, back in (("body", paper), ("figcaption", paper), (".verdict strong", soft), (".figures dt", soft)):
        assert contrast(browser.evaluate(COLOUR.format(selector, "color")), back) >= 4.5, selector
    for selector in ("svg text", "svg .legend"):
        assert contrast(browser.evaluate(COLOUR.format(selector, "fill")), paper) >= 4.5, selector
    for name in ("good", "bad", "open"):
        assert contrast(browser.evaluate(COLOUR.format("body", f"--{name}")), soft) >= 4.5, name
    for name in ("blue", "orange", "grey", "green", "purple", "slate"):
        assert contrast(browser.evaluate(COLOUR.format("body", f"--{name}")), paper) >= 3, name


def test_light_and_dark_look_different_and_neither_is_blank(browser: Browser, full_page: Path) -> None:
    pictures = []
    for scheme in ("light", "dark"):
        browser.show(full_page, scheme=scheme)
        pictures.append(browser.screenshot())
    blank = full_page.with_name("blank.html")
    blank.write_text("<!doctype html><title>blank</title>", "utf-8")
    browser.show(blank)
    assert pictures[0] != pictures[1]
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 5 * len(browser.screenshot()) for picture in pictures)
