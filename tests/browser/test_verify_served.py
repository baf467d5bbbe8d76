"""`/verify` as a log serves it: what it asks the log, what it makes of the answers, and what it may do."""

import re

import pytest

from tests.api.conftest import BUSY, HOSTS, Service
from tests.browser.browser import Browser
from tests.browser.by_hand import shown, values, visit
from tests.waiting import until

ABSENT = "did:web:nobody.example"


def complaints(browser: Browser) -> list[str]:
    """What the console says, but for the browser's own line about each answer that is a problem."""
    return [line for line in browser.messages() if "Failed to load resource" not in line]


@pytest.mark.parametrize("host", HOSTS)
def test_a_typed_did_is_asked_about_and_proved(browser: Browser, service: Service, host: str) -> None:
    address = visit(browser, service)
    browser.type("#host", host + "\n")
    page = shown(browser)
    assert page["verdict"] == "proved"
    answer = service.get(f"/v1/hosts/{host.replace('%', '%25')}/reputation").json()
    seen = values(browser)
    assert seen["total_reviews"] == str(answer["total_reviews"])
    for category, mean in answer["average_ratings"].items():
        assert seen[f"guest_verified.{category}"] == ("–" if mean is None else f"{mean:.1f}")
    asked = [url.removeprefix(address) for url in browser.requests()]
    about = f"/v1/hosts/{re.sub('[:%]', lambda mark: f'%{ord(mark[0]):X}', host)}/reputation?proof=full&limit=100"
    assert asked == ["/verify", "/v1/log/key", "/v1/log/witnesses", about]
    assert browser.messages() == []


def test_the_key_of_the_log_itself_is_called_what_it_is(browser: Browser, service: Service) -> None:
    visit(browser, service)
    assert browser.evaluate("document.querySelector('#key').value") == str(service.ledger.verifier)
    until(lambda: "agrees with itself" in browser.all("#key-note")[0].text, 5)
    assert browser.all("header a")[0].get_attribute("download")


def test_absence_is_proved(browser: Browser, service: Service) -> None:
    visit(browser, service)
    browser.type("#host", ABSENT)
    browser.click("#ask")
    page = shown(browser)
    assert page["verdict"] == "proved"
    assert "no reviews" in page["says"]
    assert values(browser) == {"total_reviews": "0", "verified_reviews": "0"}
    assert browser.messages() == []


@pytest.mark.parametrize(
    ("did", "code"),
    [
        *((did, "did_not_canonical") for did in ("did:web:Upper.example", "did:plc:abc", "nobody", "did:web:a?x#y")),
        # No path of the service has one more segment.
        ("did:web:a.example/path", "not_found"),
    ],
)
def test_a_problem_is_shown_with_its_detail(browser: Browser, service: Service, did: str, code: str) -> None:
    visit(browser, service)
    browser.type("#host", did)
    browser.click("#ask")
    [notice] = browser.all("#notice")
    until(lambda: bool(notice.text), 5)
    assert notice.get_attribute("data-code") == code
    assert len(notice.text) > 20
    assert not browser.all("#verdict *")
    assert complaints(browser) == []


def test_many_events_come_in_pages_and_are_proved_as_one(browser: Browser, service: Service) -> None:
    address = visit(browser, service)
    browser.type("#host", BUSY)
    browser.click("#ask")
    page = shown(browser)
    assert page["verdict"] == "proved"
    assert "3 pages" in browser.all("[data-step=read]")[0].text
    assert "1,005 events" in browser.all("[data-step=completeness]")[0].text
    assert values(browser)["denied"] == "1005"
    asked = [url.removeprefix(address).split("?")[1] for url in browser.requests() if "?" in url]
    size = service.ledger.reader.published.size
    pages = [f"proof=page&from={at}&count=500&size={size}" for at in (500, 1000)]
    assert asked == ["proof=full&limit=100", "proof=page&from=0&count=500", *pages]
    assert complaints(browser) == []


def test_a_log_that_answers_with_another_host_is_red(browser: Browser, service: Service) -> None:
    visit(browser, service)
    other = service.get(f"/v1/hosts/{HOSTS[0]}/reputation?proof=full").text
    # What a lying server would send, whoever is asked about.
    browser.evaluate("window.fetch = async () => new Response(arguments[0])", other)
    browser.type("#host", HOSTS[2])
    browser.click("#ask")
    page = shown(browser)
    assert page["verdict"] == "wrong"
    assert [step["code"] for step in page["steps"] if "code" in step] == ["foreign_event"]


def test_a_log_that_answers_with_less_than_was_asked_is_red(browser: Browser, service: Service) -> None:
    visit(browser, service)
    less = service.get(f"/v1/hosts/{HOSTS[0]}/reputation?proof=aggregate").text
    browser.evaluate("window.fetch = async () => new Response(arguments[0])", less)
    browser.type("#host", HOSTS[0])
    browser.click("#ask")
    assert [step["code"] for step in shown(browser)["steps"] if "code" in step] == ["wrong_kind"]


def test_the_policy_is_in_force(browser: Browser, service: Service) -> None:
    """Were there a hole in the page, nothing that came in by it could run, or reach anybody."""
    address = visit(browser, service)
    browser.messages()
    blocked = browser.evaluate("fetch('http://127.0.0.1:9/').then(() => 'sent', () => 'blocked')")
    assert blocked == "blocked"
    assert any("connect-src" in line or "Content Security Policy" in line for line in browser.messages())
    tried = """(() => { const made = document.createElement('div');
        try { made.innerHTML = '<img src=x onerror="window.ran = true">'; return 'taken'; } catch (error) { return error.name; } })()"""
    assert browser.evaluate(tried) == "TypeError"
    assert browser.evaluate("window.ran") is None
    browser.messages()
    assert browser.evaluate("location.href") == f"{address}/verify"
