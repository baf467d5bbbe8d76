"""`/verify` with what was signed: the page refuses the same receipts as the library, for the same reason."""

import json
from pathlib import Path
from random import Random

import pytest

from audits.receipts import verify_receipt
from ledger.errors import StaylogError
from tests.audits.bound import HONEST, LYING, Bound, bent_case
from tests.audits.test_bound_receipts import refusal
from tests.browser.browser import Browser
from tests.browser.by_hand import shown
from tests.browser.verifying import PAGE
from tests.waiting import until
from tests.world import LOG

Verdict = tuple[str, str | None, str]
RUN = """(async () => {
    const reports = [];
    for (const options of arguments[0]) reports.push(await staylog.verify(options));
    return reports.map(({ verdict, code, step, steps, notProved }) =>
        ({ verdict, code, step, says: steps.at(-1).says, notProved }));
})()"""


def options(case: Bound) -> dict[str, object]:
    return {"documents": [json.dumps(case.receipt)], "submission": json.dumps(case.signed), "key": str(LOG)}


def test_the_page_says_what_the_library_says(browser: Browser) -> None:
    browser.show(PAGE)
    cases = [*HONEST, *LYING]
    for case, found in zip(cases, browser.evaluate(RUN, [options(case) for case in cases]), strict=True):
        if case.differs is None:
            assert (found["verdict"], found["code"]) == ("proved", None), (case.name, found)
            assert "rests on exactly this statement" in found["says"], case.name
            is_open = any(part in case.name for part in ("with a domain", "its response", "unconfirmed, "))
            assert ("Not checked" in found["says"]) == (is_open or case.name in ("an upgrade", REDACTED)), case.name
        else:
            error = refusal(case)
            assert (found["verdict"], found["code"], found["step"]) == ("wrong", error.code, "submission"), case.name
            if error.code == "entry_differs_from_submission":
                assert plain(found["says"])[:24] == plain(error.message)[:24], case.name
    assert browser.messages() == []


REDACTED = "with a text that was redacted"


def plain(text: str) -> str:
    return text.replace("\u2019", "'")


def test_the_page_says_the_same_of_statements_of_any_form(browser: Browser) -> None:
    browser.show(PAGE)
    random = Random(25)
    cases = [bent_case(random) for _ in range(200)]
    for case, found in zip(cases, browser.evaluate(RUN, [options(case) for case in cases]), strict=True):
        code = None
        try:
            verify_receipt(json.dumps(case.receipt).encode(), LOG, submission=json.dumps(case.signed).encode())
        except StaylogError as error:
            code = error.code
        assert found["code"] == code, (case.signed, found)


def files(folder: Path, case: Bound) -> list[Path]:
    (folder / "receipt.json").write_text(json.dumps(case.receipt), "utf-8")
    (folder / "review.json").write_text(json.dumps(case.signed), "utf-8")
    return [folder / "review.json", folder / "receipt.json"]


@pytest.mark.parametrize("way", ["paste", "drop"])
def test_by_hand_what_was_signed_is_given_with_its_receipt(browser: Browser, tmp_path: Path, way: str) -> None:
    for case in (HONEST[0], LYING[0]):
        browser.show(PAGE, 360)
        browser.paste("#key", str(LOG))
        if way == "drop":
            browser.drop(*files(tmp_path, case))
        else:
            browser.click("#signing summary")
            browser.paste("#submission", json.dumps(case.signed))
            browser.paste("#document", json.dumps(case.receipt))
            browser.click("#check")
        page = shown(browser)
        [last] = [step for step in page["steps"] if step["step"] == "submission"]
        assert last["state"] == ("proved" if case.differs is None else "wrong")
        assert page["verdict"] == last["state"]
    assert "ratings.overall is 1 in the entry, and 4.5 in the submission" in page["says"]
    assert "--fraud OUT" in page["says"]
    assert browser.messages() == []


def test_refuses_a_submission_without_its_receipt(browser: Browser) -> None:
    browser.show(PAGE)
    browser.paste("#key", str(LOG))
    browser.click("#signing summary")
    browser.paste("#submission", json.dumps(HONEST[0].signed))
    browser.paste("#document", HONEST[0].receipt["checkpoint"])
    browser.click("#check")
    until(lambda: "together with its receipt" in browser.all("#notice")[0].text, 5)
