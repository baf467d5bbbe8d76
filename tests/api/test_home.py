"""The front page says what the JSON says, names what there is, and shows whatever others wrote as text."""

import re
import tomllib
from datetime import UTC, datetime, timedelta
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Literal, get_args

import click
import pytest

from api import home, twins
from api.shapes import ListedCheckpoint, WitnessReport, WitnessStatus
from api.witness_section import witness_section
from ledger.errors import NotStored, StaylogError, Unavailable
from ledger.log.census import Census, Counted, Counts
from ledger.log.members import LEVELS
from tests.api.conftest import Service
from tests.api.home_page import HOSTILE, grow, marked, twin, watched
from tests.api.site import serving
from tests.audits.html_page import Page

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
State = Literal["cosigned", "waiting", "unreachable", "refused", "ahead", "lying"]
VKEY = "ledger.example/log+758c21be+AY87lWD8cD/9V55To9gH57DsAV/eWF+IFr2kU0BUhroZ"


def test_values_are_those_of_their_twins(service: Service) -> None:
    shown = marked(service.get("/").text)
    assert shown == {address: twin(service.get, address) for address in shown}
    checkpoint = {f"/v1/log/checkpoint#/{name}" for name in ("origin", "size", "root", "at", "checkpoint")}
    numbers = {f"/v1/log/statistics#/{name}" for name in ("entries", "responses", "upgrades")}
    levels = {f"/v1/log/statistics#/reviews/{level}" for level in LEVELS}
    assert shown.keys() == checkpoint | numbers | levels | {"/v1/log/key#/vkey"}


def test_values_of_a_watched_log_are_those_of_their_twins(tmp_path: Path) -> None:
    with watched(tmp_path) as site:
        page = site.get("/").text
        shown = marked(page)
        # A replacement character stands for what turns letters around.
        assert shown == {address: twin(site.get, address).replace("\u202e", "\ufffd") for address in shown}
        assert {address for address in shown if address.startswith("/v1/log/witnesses")} == {
            "/v1/log/witnesses#/policy",
            *(f"/v1/log/witnesses#/witnesses/0/{name}" for name in ("name", "size", "at", "vkey")),
            *(f"/v1/log/witnesses#/witnesses/1/{name}" for name in ("name", "detail", "vkey")),
        }
        assert "1 of 2 witnesses cosigned the newest checkpoint: enough" in said(page, "p")
        assert "<script" not in page
        assert "<img" not in page


def said(page: str, *within: str) -> str:
    return Page(page).text(*within).replace("\n", "")


def test_the_page_is_whole_and_plain(service: Service) -> None:
    response = service.get("/")
    assert response.headers["cache-control"] == "public, max-age=10"
    assert "default-src 'none'" in response.headers["content-security-policy"]
    page = Page(response.text)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    anchors = [value[1:] for tag, name, value in page.attributes if (tag, name) == ("a", "href") and value[0] == "#"]
    labelled = [value for tag, name, value in page.attributes if (tag, name) == ("section", "aria-labelledby")]
    assert anchors == labelled
    assert set(anchors) <= set(ids)
    assert [path[-1] for path, data in page.parts if path[-1] in ("h1", "h2") and not data] == ["h1"] + ["h2"] * 7
    assert not {"script", "form", "iframe", "img"} & {path[-1] for path, _ in page.parts}


def test_it_says_what_the_ledger_is_and_is_not(service: Service) -> None:
    text = said(service.get("/").text, "main")
    assert "tamper-evident" in text
    assert "immutable" not in text.lower()
    assert "It is not a search site. Listings are found through the OpenSTR index" in text.replace("\n", " ")


def test_every_operation_that_it_names_is_one(service: Service) -> None:
    text = service.get("/").text
    paths = service.get("/schema/openapi.json").json()["paths"]
    named = re.findall(r"<code>POST (/[^<]*)</code>", text)
    assert set(named) == {"/v1/reviews", "/v1/bookings", "/v1/reviews/{review_id}/response"}
    assert all("post" in paths[path] for path in named)
    for target in set(re.findall(r'href="(/[^"]*)"', text)):
        assert service.get(target).status_code == 200, target


def test_every_command_that_it_names_is_one(service: Service) -> None:
    """With every option that it gives."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["staylog.commands"]
    lines = re.findall(r"(?:^|<code>|<pre>)staylog ([^<\n]*)", service.get("/").text, re.MULTILINE)
    assert {line.split()[0] for line in lines} == {
        "audit", "booking", "mirror", "monitor", "review", "verify", "witness",
    }  # fmt: skip
    for name, *words in map(str.split, lines):
        module, _, attribute = known[name].partition(":")
        command: click.Command = getattr(import_module(module), attribute)
        if name == "audit":
            words.insert(0, "run")
        if isinstance(command, click.Group) and words:
            command = command.commands[words[0]]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= options, name


def test_the_plots_say_the_numbers_of_the_twin(service: Service) -> None:
    text = service.get("/").text
    numbers = service.get("/v1/log/statistics").json()
    growth, levels, mix = re.findall(r'<svg [^>]*aria-label="([^"]*)"', text)
    reviews = sum(numbers["reviews"].values())
    assert f"{numbers['entries']:,} entries at the end, {reviews:,} of them reviews" in growth
    came_in = [sum(day["reviews"][level] for day in numbers["days"]) for level in LEVELS]
    for number, level in zip(came_in, LEVELS, strict=True):
        assert f"{number:,} {level.replace('_', '-')}" in levels
        assert f"{numbers['reviews'][level]:,} {level.replace('_', '-')}" in mix
    rows = Page(text).rows(next(data for path, data in Page(text).parts if path[-1] == "caption" and "so far" in data))
    assert list(rows.values())[-1] == [f"{numbers['entries']:,}", f"{reviews:,}"]


def test_a_log_that_grows_is_shown_as_it_grows(fresh: Service) -> None:
    for _ in range(2):
        shown = marked(fresh.get("/").text)
        assert shown == {address: twin(fresh.get, address) for address in shown}
        fresh.grow(fresh.world.review)


def test_an_empty_log_has_a_page_too(tmp_path: Path) -> None:
    with serving(tmp_path) as site:
        page = Page(site.get("/").text)
        assert page.text("svg").count("No reviews") == 2
        assert "Nobody watches this log yet." in page.text("strong")
        assert "overdue" not in page.text("strong")
        site.running.clock.forward(hours=24)
        assert "overdue" not in site.get("/").text.partition("</style>")[2]
        site.running.clock.forward(hours=2)
        assert "this one is overdue" in Page(site.get("/").text).text("strong")
        assert "26 hours ago" in said(site.get("/").text, "dd")


def test_what_is_not_counted_yet_is_not_passed_over(tmp_path: Path) -> None:
    none = dict.fromkeys(LEVELS, 0)
    nothing: Counts = {"entries": 0, "reviews": none, "responses": 0, "upgrades": 0, "redactions": {}, "checks": {}}
    counted = Counted(0, "", nothing, {})
    assert '<p id="partly">These are the first 0 of 1,000,000 entries' in home._holdings(counted, 10**6)
    assert "partly" not in home._holdings(counted, 0)
    with serving(tmp_path, prepare=lambda running: grow(running, 3)) as site:
        assert 'id="partly"' not in site.get("/").text


@pytest.mark.parametrize("error", [NotStored("damaged"), Unavailable("store_unavailable", "it is down")])
def test_what_cannot_be_read_does_not_take_the_page_down(
    error: StaylogError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise error

    with serving(tmp_path, prepare=lambda running: grow(running, 3)) as site:
        ledger = site.ledger
        counted = ledger.census.now().size
        ledger.census.close()
        monkeypatch.setattr(ledger.census, "_count", fail)
        monkeypatch.setattr("api.witnesses.report", fail)
        response = site.get("/")
        assert response.status_code == 200
        text = said(response.text, "main")
        assert "cannot be read just now" in text
        assert marked(response.text)["/v1/log/statistics#/entries"] == str(counted)
        monkeypatch.setattr(ledger, "census", Census(ledger.reader))
        monkeypatch.setattr(ledger.census, "_count", fail)
        text = said(site.get("/").text, "main")
        assert f"The {counted:,} entries cannot be counted just now." in text


def test_what_cannot_be_counted_is_said() -> None:
    none = dict.fromkeys(LEVELS, 0)
    nothing: Counts = {"entries": 2, "reviews": none, "responses": 0, "upgrades": 0, "redactions": {}, "checks": {}}

    class Failing:
        def now(self) -> Counted:
            raise NotStored("damaged")

        def so_far(self) -> Counted:
            return Counted(2, "2026-06-01T12:00:00Z", nothing, {"2026-06-01": nothing})

    census: Census = Failing()  # type: ignore[assignment]
    assert "These are the first 2 of 1,000 entries: the rest cannot be counted just now." in home._counted(census, 1000)


@pytest.mark.parametrize(
    ("passed", "words"),
    [
        (timedelta(seconds=-30), "just now"),
        (timedelta(seconds=1), "just now"),
        (timedelta(seconds=2), "2 seconds ago"),
        (timedelta(seconds=119), "119 seconds ago"),
        (timedelta(minutes=2), "2 minutes ago"),
        (timedelta(minutes=119, seconds=59), "119 minutes ago"),
        (timedelta(hours=47), "47 hours ago"),
        (timedelta(days=2), "2 days ago"),
        (timedelta(days=3650), "3,650 days ago"),
    ],
)
def test_an_age_is_said_in_words(passed: timedelta, words: str) -> None:
    assert twins.age(passed) == words


def report(*states: State, quorum: bool = False, witnessed: int | None = None) -> WitnessReport:
    places = count(1)
    found = [
        WitnessStatus(
            f"w{next(places)}", f"{HOSTILE}+key", None, state, 10 if state == "cosigned" else None, None, HOSTILE
        )
        for state in states
    ]
    listed = None if witnessed is None else ListedCheckpoint(witnessed, "note")
    return WitnessReport(f"# {HOSTILE}\nquorum none\n", 10, quorum, listed, found)


def test_every_state_of_a_witness_is_said() -> None:
    states: tuple[State, ...] = get_args(State)
    page = Page(f"<html>{witness_section(report(*states), VKEY, NOW)}</html>")
    assert page.text("b").splitlines() == [
        "has cosigned the newest checkpoint",
        "has not cosigned yet",
        "does not answer",
        "does not sign",
        "says that it has seen more of this log than there is",
        "signs or says what does not hold",
    ]
    classes = [value for tag, name, value in page.attributes if (tag, name) == ("li", "class")]
    assert classes == [f"witness {state}" for state in states]
    assert {path[-1] for path, _ in page.parts} <= {
        "html", "p", "ul", "li", "strong", "b", "data", "code", "details", "summary", "pre",
    }  # fmt: skip


def test_a_quorum_is_said_to_be_there_or_not() -> None:
    def line(found: WitnessReport) -> str:
        return said(f"<html>{witness_section(found, VKEY, NOW)}</html>", "p")

    assert "2 of 3 witnesses cosigned the newest checkpoint: enough" in line(
        report("cosigned", "cosigned", "waiting", quorum=True, witnessed=10)
    )
    missing = line(report("cosigned", "waiting", witnessed=7))
    assert "1 of 2 witnesses cosigned the newest checkpoint: not enough" in missing
    assert "The newest that had enough is of 7 entries." in missing
    assert "No checkpoint has had enough yet." in line(report("unreachable"))
    earlier = report("cosigned")
    earlier.witnesses[0] = WitnessStatus("w", "vkey", None, "cosigned", 8, "2026-06-01T11:00:00Z", None)
    assert "has cosigned an earlier checkpoint" in line(earlier)
    assert "last cosigned 8 entries, 2026-06-01 11:00:00 UTC, 60 minutes ago" in line(earlier)


def test_without_a_policy_nobody_watches_and_the_page_says_how_that_ends() -> None:
    page = Page(f"<html>{witness_section(WitnessReport(None, 10, None, None, []), VKEY, NOW)}</html>")
    assert page.text("strong") == "Nobody watches this log yet."
    assert page.text("pre").startswith(f"log {VKEY}\nwitness first ")
