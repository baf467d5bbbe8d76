"""A person at `/verify`: what is filled in and handed over, and what is seen then."""

from pathlib import Path
from typing import Any

from tests.api.conftest import Service
from tests.browser.browser import Browser
from tests.browser.verifying import Case, vector_cases
from tests.waiting import until

CASES = vector_cases()
BY_NAME = {case.name: case for case in CASES}
COTTAGE = BY_NAME["own full"]


def visit(browser: Browser, service: Service, **screen: Any) -> str:
    """The page as served, once it has asked for the key; its address."""
    address = f"http://127.0.0.1:{service.port}"
    browser.open(f"{address}/verify", **screen)
    until(lambda: browser.evaluate("document.querySelector('#key').value"), 5)
    return address


def fill(browser: Browser, case: Case) -> None:
    browser.paste("#key", case.key)
    browser.paste("#host", case.host)


def give(browser: Browser, case: Case, way: str, folder: Path) -> None:
    """Hand the document to the page as people do."""
    if way == "paste":
        browser.paste("#document", case.documents[0])
        browser.click("#check")
        return
    files = [folder / f"{number}.json" for number in range(len(case.documents))]
    for file, text in zip(files, case.documents, strict=True):
        file.write_text(text, "utf-8")
    if way == "drop":
        browser.drop(*files)
    else:
        browser.type("#file", "\n".join(map(str, files)))


def shown(browser: Browser) -> dict[str, Any]:
    """The verdict and the steps, once they are there, as they are marked up."""
    until(lambda: browser.evaluate("document.querySelector('#verdict').childNodes.length > 0"), 10)
    steps = browser.evaluate("[...document.querySelectorAll('#steps li')].map(step => ({...step.dataset}))")
    [verdict] = browser.all("#verdict")
    assert verdict.aria_role == "status"
    state = browser.evaluate("document.querySelector('#verdict').dataset.verdict")
    return {"verdict": state, "says": verdict.text, "steps": steps}


def values(browser: Browser) -> dict[str, str]:
    return dict(
        browser.evaluate(
            "[...document.querySelectorAll('[data-value]')].map(part => [part.dataset.value, part.textContent])"
        )
    )
