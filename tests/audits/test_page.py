"""The page says what the JSON says, shows everything of a log as text, and needs nothing but itself."""

import re
import shlex
from copy import deepcopy
from itertools import pairwise

import pytest
from hypothesis import given, settings

from audits.page import render
from audits.report import REAL_STAYS
from ledger.log.members import LEVELS
from tests.audits.audited import EMPTY, HOSTILE, KEY, Audit, audits, full, hostile
from tests.audits.html_page import Page
from tests.ledger.pictures.drawn import true_mean

ELEMENTS = {
    *("html", "head", "meta", "link", "title", "style", "body", "main", "section", "article", "div", "h1", "h2", "h3"),
    *("p", "ul", "li", "dl", "dt", "dd", "code", "pre", "b", "strong", "data", "time", "details", "summary"),
    *("table", "caption", "thead", "tbody", "tr", "th", "td", "figure", "figcaption", "svg", "g", "path", "rect"),
    "text",
}


@given(audits())
@settings(max_examples=60)
def test_any_audit_becomes_a_whole_page(audit: Audit) -> None:
    source = render(audit)
    source.encode()
    page = Page(source)
    assert {path[-1] for path, _ in page.parts} <= ELEMENTS
    assert source.count("<svg") == (4 if audit["days"] else 0)


def test_numbers_are_those_of_the_json() -> None:
    audit = full()
    source = render(audit)
    page = Page(source)
    for name, value in audit["figures"].items():
        title = name.replace("_", " ").capitalize()
        assert f'<dt>{title}</dt><dd><data value="{value}">{value:,}</data></dd>' in source
    text = page.text("main")
    assert f"{audit['size']:,}\n entries, as of \n2026-10-05 09:30:00 UTC" in text
    for value in (audit["log"], audit["key"], audit["root"], audit["source"]):
        assert value in page.text("code").splitlines()
    for line in (*audit["checked"], *audit["unchecked"]):
        assert line in page.text("li").splitlines()
    issuers = page.rows("Who vouched for the guests, and what the log says last of each")
    assert issuers == {row["issuer"]: [f"{row['reviews']:,}", row["status"] or "no entry"] for row in audit["issuers"]}
    witnesses = page.rows("Who else has signed checkpoints of this log, and the largest size")
    assert witnesses == {
        row["name"]: [f"{row['cosigned']:,}", "–" if row["newest"] is None else f"{row['newest']:,}"]
        for row in audit["witnesses"]
    }


def test_sums_and_means_are_those_of_the_days() -> None:
    audit = full()
    days = audit["days"]
    page = Page(render(audit))
    levels = page.rows("All reviews, by the level at which they came in")
    assert len(levels) == len(LEVELS)
    for (name, (reviews, mean)), level in zip(levels.items(), LEVELS, strict=True):
        assert name == level.replace("_", "-").capitalize()
        assert reviews == f"{sum(day['reviews'][level] for day in days.values()):,}"
        assert mean == f"{(true_mean(days, level) or 0) / 10:.1f}"
    july = {day: happened for day, happened in days.items() if day.startswith("2026-07")}
    by_month = page.rows("Reviews per month, by the level at which they came in")
    assert by_month["2026-07"] == [f"{sum(day['reviews'][level] for day in july.values()):,}" for level in LEVELS]
    means = page.rows("Mean overall rating of the reviews of each month, 1 to 5 stars")
    assert means["2026-07"] == [f"{(true_mean(july, level) or 0) / 10:.1f}" for level in LEVELS]
    until = [happened for day, happened in days.items() if day < "2026-08"]
    growth = page.rows("Entries and reviews so far, at the end of each month")
    entries, reviews_so_far = sum(day["entries"] for day in until), sum(sum(day["reviews"].values()) for day in until)
    assert growth["2026-07"] == [f"{entries:,}", f"{reviews_so_far:,}"]
    redactions = page.rows("Texts taken out for legal reasons, by the reason given")
    assert redactions["GDPR Article 17"] == [f"{sum(day['redactions'].get('gdpr_17', 0) for day in days.values()):,}"]
    besides = page.rows("What else the log says of stays")
    assert besides["Responses of hosts"] == [f"{sum(day['responses'] for day in days.values()):,}"]
    assert besides["Bookings that hosts denied"] == [
        f"{sum(day['checks'].get('denied', 0) for day in days.values()):,}"
    ]


@pytest.mark.parametrize(
    ("changes", "heading", "explained"),
    [
        ({"verdict": "clean", "findings": [], "unchecked": []}, "Clean", "All that was checked is as it has to be."),
        ({"verdict": "incomplete", "findings": []}, "Could not check everything", "What could be checked is as it has to be"),
        ({}, "2\n findings", "not as it has to be"),
        ({"findings": full()["findings"][:1]}, "1\n finding", "not as it has to be"),
    ],
)  # fmt: skip
def test_the_verdict_comes_first(changes: Audit, heading: str, explained: str) -> None:
    page = Page(render({**full(), **changes}))
    assert page.text("main").startswith(f"Audit of ledger.example/log\n{heading}\n")
    assert explained in page.text("div", "p")


def test_an_incomplete_audit_does_not_hide_what_it_found() -> None:
    page = Page(render({**full(), "verdict": "incomplete"}))
    assert "as it has to be" not in page.text("div", "p")
    assert page.text("article")


@pytest.mark.parametrize("name", ["findings/map_root_mismatch-77.json", "a b/$(id)'\"; echo.json"])
def test_each_finding_has_the_command_that_checks_it(name: str) -> None:
    audit = full()
    audit["findings"][0]["file"] = name
    page = Page(render(audit))
    commands = page.text("pre").splitlines()
    files = [finding["file"] for finding in audit["findings"]]
    assert [shlex.split(command) for command in commands] == [
        ["staylog", "audit", "check-fraud", file, "--key", KEY] for file in files
    ]
    text = page.text("article")
    for finding in audit["findings"]:
        assert finding["claim"] in text
        assert finding["code"] in text
        assert f"entry \n{finding['index']:,}" in text
    assert "3\n places" in text


def test_signed_and_observed_are_told_apart() -> None:
    audit = full()
    both = Page(render(audit)).text("section", "dl")
    assert "own signatures convict it" in both
    assert "that it came from this operator is the auditor's word" in both
    signed = Page(render({**audit, "findings": audit["findings"][:1]})).text("section", "dl")
    assert "auditor's word" not in signed


def test_a_finding_without_a_file_has_no_command() -> None:
    audit = full()
    audit["findings"] = [{**audit["findings"][1], "file": None, "index": None}]
    page = Page(render(audit))
    assert page.text("pre") == ""
    assert "There is no file of it." in page.text("article")


def test_what_no_audit_can_show_is_said() -> None:
    audit = full()
    newest = audit["witnesses"][0]["newest"]
    assert REAL_STAYS in Page(render(audit)).text("li")
    assert f"same log beyond {newest:,} entries" in Page(render(audit)).text("li")
    silent = {**audit, "witnesses": audit["witnesses"][1:]}
    for alone in (silent, {**audit, "witnesses": []}, EMPTY):
        page = Page(render(alone))
        assert REAL_STAYS in page.text("li")
        assert "that everybody is shown the same log: no witness has signed it" in page.text("li")


def test_an_empty_log_has_a_page() -> None:
    page = Page(render(EMPTY))
    text = page.text("main")
    assert "The log is empty." in text
    assert "The log holds no entries." in text
    assert "No review names an issuer." in text
    assert "Witnesses" not in text
    assert page.text("svg") == ""


def test_everything_from_the_log_is_text() -> None:
    audit = hostile()
    source = render(audit)
    page = Page(source)
    assert {tag for tag, _, _ in page.attributes} <= ELEMENTS
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name in ("src", "style")]
    assert {value for _, name, value in page.attributes if name == "href"} == {"data:,"}
    for text in HOSTILE[:3]:
        assert text in page.text("li").splitlines()
        assert text in page.text("article")
    assert "ledger\ufffdelpmaxe\ufffd\ufffd\ufffd\ufffd" in page.text("li").splitlines()
    assert all(letter.isprintable() or letter == "\n" for letter in source)


def test_a_hostile_name_changes_nothing_else() -> None:
    """The same elements in the same order, whatever the texts say."""
    plain = deepcopy(full())
    tricky = {**deepcopy(plain), "log": HOSTILE[0], "source": HOSTILE[1], "key": HOSTILE[2]}
    shape = [path for path, data in Page(render(plain)).parts if not data]
    assert [path for path, data in Page(render(tricky)).parts if not data] == shape


def test_the_page_needs_nothing_but_itself() -> None:
    source = render(full())
    assert not re.search(r"<script|@import|url\(|<iframe|<img|<object", source)
    addresses = set(re.findall(r"(?:https?:)?//[^\s\"'<)]+", source))
    assert addresses <= {
        "http://www.w3.org/2000/svg",
        *(row["issuer"] for row in full()["issuers"]),
        "https://ledger.example",
    }
    assert "default-src 'none'" in source


def test_the_page_promises_no_more_than_the_log_does() -> None:
    text = Page(render(full())).text("body").lower()
    assert "tamper-evident" in text
    assert "immutable" not in text


def test_tables_and_headings_can_be_heard() -> None:
    source = render(full())
    page = Page(source)
    assert source.count("<table>") == source.count("<caption>")
    assert {value for tag, name, value in page.attributes if tag == "th" and name == "scope"} == {"col", "row"}
    assert len(re.findall(r"<th[ >]", source)) == len(re.findall(r"<th scope=", source))
    headings = [int(level) for level in re.findall(r"<h([1-6])", source)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(headings))
