"""`/verify` in a browser: what is valid turns green, what is tampered with turns red at the step that it breaks."""

import json
from itertools import cycle
from pathlib import Path

import pytest

from tests.browser.browser import Browser
from tests.browser.by_hand import BY_NAME, CASES, COTTAGE, fill, give, shown, values
from tests.browser.looks import OUTSIDE
from tests.browser.verifying import (
    ANSWERS,
    PAGE,
    RECEIPTS,
    Case,
    Report,
    check_report,
    expected_step,
    reports,
)
from tests.waiting import until

# One for each step, by hand: what is pasted, dropped and chosen.
BY_HAND = (
    *("own proof-with-more", "own checkpoint-size-changed", "own rating-changed", "own text-changed"),
    *("own event-omitted-repaired", "own average-raised", "own listed-text-cut"),
    *("own receipt entry-changed", "own receipt text-changed", "golden receipt an extra line"),
    *("golden second-response", "golden claimed-absent-zeros"),
)
VALID = ("own full", "golden full-12", "own full-redacted", "own aggregate", "own absent-other", "own receipt")
WAYS = ("paste", "drop", "choose")


@pytest.fixture(scope="module")
def found(browser: Browser) -> dict[str, Report]:
    """All cases go through one page."""
    browser.show(PAGE)
    return dict(zip(BY_NAME, reports(browser, CASES), strict=True))


def test_there_are_many_and_no_name_twice() -> None:
    assert len(CASES) == len(BY_NAME) > 250
    assert sum(case.code is not None for case in CASES) > 200


@pytest.mark.parametrize("name", BY_NAME)
def test_each_vector_turns_green_or_red_at_its_step(found: dict[str, Report], name: str) -> None:
    case = BY_NAME[name]
    code = case.code
    check_report(case, found[name], code, expected_step(case, code))


@pytest.mark.parametrize("name", ANSWERS)
def test_it_shows_what_the_answer_says_once_that_is_proved(found: dict[str, Report], name: str) -> None:
    answer, report = ANSWERS[name][0]["answer"], found[name]
    assert report.summary is not None
    assert report.summary == {member: answer[member] for member in report.summary}
    assert report.texts == ANSWERS[name][0]["texts"]
    if "review_history" in answer:
        listed = [
            {key: value for key, value in review.items() if key != "issuer_status"}
            for review in answer["review_history"]
        ]
        assert report.reviews[::-1] == listed


@pytest.mark.parametrize(("name", "way"), [*zip(BY_HAND, cycle(WAYS), strict=False)])
def test_by_hand_tampering_turns_red(browser: Browser, tmp_path: Path, name: str, way: str) -> None:
    case = BY_NAME[name]
    browser.show(PAGE, 360)
    fill(browser, case)
    give(browser, case, way, tmp_path)
    page, code = shown(browser), str(case.code)
    assert page["verdict"] == "wrong"
    assert "Not proved" in page["says"]
    [wrong] = [step for step in page["steps"] if step["state"] == "wrong"]
    assert wrong == {"step": expected_step(case, code), "state": "wrong", "code": code}
    assert [step["state"] for step in page["steps"][page["steps"].index(wrong) + 1 :]].count("unreached") == (
        len(page["steps"]) - 1 - page["steps"].index(wrong)
    )
    [marked] = browser.all("#steps li[data-state=wrong]")
    assert "Wrong" in marked.text
    assert code in marked.text
    assert browser.all("#values *") == []
    assert browser.evaluate(OUTSIDE) == []
    assert browser.messages() == []


@pytest.mark.parametrize(
    ("name", "way"), [*((VALID[0], way) for way in WAYS), *zip(VALID[1:], cycle(WAYS), strict=False)]
)
def test_by_hand_what_is_valid_turns_green(browser: Browser, tmp_path: Path, name: str, way: str) -> None:
    case = BY_NAME[name]
    browser.show(PAGE, 360)
    fill(browser, case)
    give(browser, case, way, tmp_path)
    page = shown(browser)
    assert page["verdict"] == "proved"
    assert page["says"].split("\n")[1].startswith("Proved")
    assert not {"wrong", "unreached"} & {step["state"] for step in page["steps"]}
    assert browser.evaluate(OUTSIDE) == []
    assert browser.messages() == []
    assert browser.requests() == [PAGE.as_uri()]


@pytest.mark.parametrize(
    "name", ["own full", "golden full-12", "own aggregate", "golden only-unconfirmed", "own absent-zeros"]
)
def test_what_is_seen_is_what_the_json_says(browser: Browser, tmp_path: Path, name: str) -> None:
    case = BY_NAME[name]
    browser.show(PAGE)
    fill(browser, case)
    give(browser, case, "paste", tmp_path)
    shown(browser)
    answer = json.loads(case.documents[0])
    record, seen = json.loads(answer["proof"]["record"] or "null"), values(browser)
    assert seen["total_reviews"] == str(answer["total_reviews"])
    assert seen["verified_reviews"] == str(answer["verified_reviews"])
    if record is None:
        assert not browser.all("#values table")
        return
    assert seen.get("host_since") == answer["host_since"]
    for category, mean in answer["average_ratings"].items():
        assert seen[f"guest_verified.{category}"] == ("–" if mean is None else f"{mean:.1f}")
    for names in (("repeats", "responses", "redactions"), *(record[part] for part in ("reviews", "checks"))):
        counts = {**record, **record["reviews"], **record["checks"]}
        for count in set(names) - {"guest_verified"}:
            assert seen.get(count, "0") == str(counts[count])
    for review, listed in zip(browser.all(".review"), answer.get("review_history", ()), strict=True):
        assert review.get_attribute("data-review") == listed["review_id"]
        assert f"{listed['ratings']['overall']:.1f} of 5" in review.text
        # People see the text with its lines folded as on any page.
        for text in (listed["review_text"], (listed["host_response"] or {}).get("response_text")):
            assert text is None or text in str(review.get_attribute("textContent"))


@pytest.mark.parametrize("about", RECEIPTS)
def test_a_receipt_shows_its_review(browser: Browser, tmp_path: Path, about: str) -> None:
    case = BY_NAME[f"{about} receipt"]
    browser.show(PAGE)
    browser.type("#key", case.key)
    give(browser, case, "drop", tmp_path)
    page, receipt = shown(browser), RECEIPTS[about]["receipt"]
    assert [step["step"] for step in page["steps"]] == [
        *("read", "signature", "witnesses", "inclusion", "texts", "submission")
    ]
    assert f"entry {receipt['index']} " in page["says"]
    [review] = browser.all(".review")
    assert review.get_attribute("data-review") == receipt["review_id"]
    assert receipt["openings"]["text"]["text"] in str(review.get_attribute("textContent"))
    assert "whose review it is" in browser.all("#open")[0].text


def test_pages_are_dropped_together_or_pasted_as_one_list(browser: Browser, tmp_path: Path) -> None:
    case = BY_NAME["own set page-6+page-0+page-3"]
    for way, documents in (("drop", case.documents), ("paste", (f"[{','.join(case.documents)}]",))):
        browser.show(PAGE)
        fill(browser, case)
        give(browser, Case(case.name, documents, case.key, case.host), way, tmp_path)
        page = shown(browser)
        assert page["verdict"] == "proved"
        assert "complete and right" in page["says"]
        assert len(browser.all(".review")) == int(values(browser)["total_reviews"])


def test_a_file_does_not_choose_whom_it_is_about(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    browser.paste("#key", COTTAGE.key)
    give(browser, COTTAGE, "drop", tmp_path)
    [notice] = browser.all("#notice")
    until(lambda: bool(notice.text), 5)
    assert "a file must not choose whom it is about" in notice.text
    assert notice.aria_role == "alert"
    assert not browser.all("#verdict *")
    browser.click("#notice button")
    assert shown(browser)["verdict"] == "proved"
    assert browser.evaluate("document.querySelector('#host').value") == COTTAGE.host


def test_another_host_than_the_one_typed_is_red(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    browser.paste("#key", COTTAGE.key)
    browser.type("#host", "did:web:elsewhere.example")
    give(browser, COTTAGE, "paste", tmp_path)
    [wrong] = [step for step in shown(browser)["steps"] if step["state"] == "wrong"]
    assert (wrong["step"], wrong["code"]) == ("inclusion", "foreign_event")


def test_without_a_key_or_a_document_it_says_so(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    browser.click("#check")
    until(lambda: "Paste a document" in browser.all("#notice")[0].text, 5)
    give(browser, COTTAGE, "paste", tmp_path)
    until(lambda: "public key" in browser.all("#notice")[0].text, 5)
    browser.paste("#key", COTTAGE.key[:-4])
    browser.paste("#host", COTTAGE.host)
    browser.click("#check")
    [wrong] = [step for step in shown(browser)["steps"] if step["state"] == "wrong"]
    assert (wrong["step"], wrong["code"]) == ("signature", "vkey_malformed")


def test_a_file_that_is_no_text_is_refused(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\xff\xfe")
    browser.show(PAGE)
    browser.drop(tmp_path / "picture.png")
    until(lambda: "not UTF-8" in browser.all("#notice")[0].text, 5)


def test_a_text_of_others_stays_text(browser: Browser, tmp_path: Path) -> None:
    """In codes and messages too, where a document that was not proved is quoted."""
    hostile = "<img src=x onerror=alert(1)>\u202e</script><script>alert(2)</script>"
    browser.show(PAGE)
    fill(browser, COTTAGE)
    answer = json.loads(COTTAGE.documents[0])
    for place in ("/checkpoint", "/map_head", "/record"):
        lie = json.dumps({**answer, "proof": {**answer["proof"], place[1:]: hostile}})
        give(browser, Case("", (lie,), ""), "paste", tmp_path)
        assert shown(browser)["verdict"] == "wrong"
    lie = json.dumps({**answer, "host_since": hostile, hostile: 1})
    give(browser, Case("", (lie,), ""), "paste", tmp_path)
    until(lambda: "img src" in browser.all("#verdict")[0].text, 5)
    assert "\u202e" not in browser.evaluate("document.body.textContent")
    assert browser.evaluate("document.querySelectorAll('main script, main img').length") == 0
    assert browser.messages() == []
