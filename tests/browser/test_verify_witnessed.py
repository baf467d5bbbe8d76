"""`/verify` of a log that is watched: by a witness that runs, and by one that has fallen behind."""

import json
from pathlib import Path

from tests.api.site import Person
from tests.api.watched_site import watched
from tests.browser.browser import Browser
from tests.browser.by_hand import shown, values
from tests.interop.vectors import golden
from tests.ledger.log.crooked import wait_for
from tests.reviewing import encoded, review
from tests.waiting import until


def visit(browser: Browser, port: int, host: str) -> None:
    """By a link that names the host, once the page has asked for key and policy."""
    browser.open("about:blank")
    browser.open(f"http://127.0.0.1:{port}/verify#{host}")
    until(lambda: browser.evaluate("document.querySelector('#policy').value"), 5)
    assert browser.evaluate("document.querySelector('#host').value") == host


def witnesses(browser: Browser) -> tuple[str | None, str]:
    [step] = browser.all("[data-step=witnesses]")
    return step.get_attribute("data-state"), step.text


def own_policy(browser: Browser) -> None:
    """Take the policy over: with one letter more it is the person's, no longer the log's."""
    browser.paste("#policy", browser.evaluate("document.querySelector('#policy').value") + "\n# mine")


def test_an_answer_with_its_witness_turns_green(browser: Browser, tmp_path: Path) -> None:
    with watched(tmp_path, f"sqlite:///{tmp_path}/ledger.db", lambda _: "quorum w\n") as (site, _):
        host = Person("host")
        site.review(Person("guest"), host)
        wait_for(lambda: site.get("/v1/log/witnesses").json()["quorum"] is True)
        visit(browser, site.port, host.did)
        browser.click("#ask")
        assert shown(browser)["verdict"] == "proved"
        state, says = witnesses(browser)
        assert state == "warning"
        assert "1 of 1 witnesses agree, chosen by the log itself" in says
        own_policy(browser)
        browser.click("#ask")
        assert shown(browser)["verdict"] == "proved"
        state, says = witnesses(browser)
        assert state == "proved"
        assert "1 of 1 witnesses agree, quorum met" in says
        assert values(browser)["total_reviews"] == "1"
        assert browser.messages() == []
        body = encoded(review(Person("another guest"), host, now=site.running.clock()))
        site.submit(body)
        wait_for(lambda: site.get("/v1/log/witnesses").json()["quorum"] is True)
        browser.paste("#document", site.submit(body).text)
        browser.click("#check")
        assert shown(browser)["verdict"] == "proved"
        assert witnesses(browser)[0] == "proved"


def test_a_log_that_is_ahead_of_its_witness_is_asked_for_what_has_one(browser: Browser, tmp_path: Path) -> None:
    with watched(tmp_path, f"sqlite:///{tmp_path}/ledger.db", lambda _: "quorum w\n") as (site, _):
        host = Person("host")
        site.review(Person("guest"), host)
        wait_for(lambda: site.get("/v1/log/witnesses").json()["quorum"] is True)
        size = site.size
        # It hears of nothing more.
        site.ledger.witnesses.close()
        site.review(Person("another guest"), host)
        assert site.get("/v1/log/witnesses").json()["quorum"] is False
        visit(browser, site.port, host.did)
        own_policy(browser)
        browser.click("#ask")
        assert shown(browser)["verdict"] == "proved"
        assert witnesses(browser)[0] == "proved"
        assert f"a tree of {size} entries" in browser.all("[data-step=signature]")[0].text
        assert values(browser)["total_reviews"] == "1"


def test_a_receipt_of_another_log_is_not_held_against_this_logs_policy(browser: Browser, tmp_path: Path) -> None:
    other = golden("receipt.json")
    with watched(tmp_path, f"sqlite:///{tmp_path}/ledger.db", lambda _: "quorum w\n") as (site, _):
        visit(browser, site.port, "did:web:nobody.example")
        browser.paste("#host", "")
        browser.paste("#key", other["vkey"])
        browser.paste("#document", json.dumps(other["receipt"]))
        browser.click("#check")
        assert shown(browser)["verdict"] == "proved"
        assert witnesses(browser)[0] == "unchecked"
        own_policy(browser)
        browser.click("#check")
        assert (shown(browser)["verdict"], witnesses(browser)[0]) == ("wrong", "wrong")
