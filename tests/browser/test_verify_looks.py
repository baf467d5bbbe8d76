"""How `/verify` looks and reads: names, keys, small screens, light and dark, and states without colours."""

from pathlib import Path

import pytest

from tests.api.conftest import HOSTS, Service
from tests.browser.browser import Browser
from tests.browser.by_hand import BY_NAME, fill, give, shown, visit
from tests.browser.looks import OUTSIDE, contrast, luminance
from tests.browser.verifying import PAGE
from tests.waiting import until

NAMELESS = (
    """[...document.querySelectorAll('input, textarea, button, summary, a')].filter(part => part.checkVisibility())"""
)


def test_everything_that_can_be_used_has_a_name(browser: Browser, service: Service) -> None:
    visit(browser, service)
    browser.click("#witnessing summary")
    browser.type("#host", HOSTS[0])
    browser.click("#ask")
    shown(browser)
    for part in browser.evaluate(NAMELESS):
        assert part.accessible_name, part.get_attribute("outerHTML")
    for control in ("key", "policy", "host", "file", "document"):
        assert browser.all(f"label[for={control}]")
    assert len(browser.all("h1")) == 1
    for table in browser.all("table"):
        assert table.accessible_name
    for region in browser.all("#result section"):
        assert region.accessible_name


def test_it_can_be_used_by_keyboard_alone(browser: Browser, copy: Path) -> None:
    browser.show(copy)
    order = []
    for _ in range(8):
        browser.press("Tab")
        order.append(browser.evaluate("document.activeElement.id || document.activeElement.tagName"))
        outline = browser.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        assert outline == "solid" or order[-1] == "BODY"
    assert order[:6] == ["key", "SUMMARY", "host", "file", "document", "SUMMARY"]
    assert order[6] == "check"
    browser.evaluate("document.querySelector('#document').focus()")
    browser.paste("#document", "{}")
    browser.press("Tab")
    browser.press("Tab")
    browser.press("Enter")
    until(lambda: "public key" in browser.all("#notice")[0].text, 5)


STATES = {"nothing yet": None, "proved": "own full", "wrong": "own text-changed", "many pages": "own set page-6+page-0+page-3",
          "receipt": "own receipt", "aggregate": "own aggregate", "unconfirmed": "own full-unconfirmed", "withheld": "own full-withheld"}  # fmt: skip


def arrange(browser: Browser, tmp_path: Path, state: str, scheme: str, width: int) -> None:
    browser.show(PAGE, width, scheme)
    browser.click("#witnessing summary")
    name = STATES[state]
    if name is not None:
        fill(browser, BY_NAME[name])
        give(browser, BY_NAME[name], "drop", tmp_path)
        shown(browser)


@pytest.mark.parametrize("state", STATES)
def test_it_fits_a_telephone_in_every_state(browser: Browser, tmp_path: Path, state: str) -> None:
    arrange(browser, tmp_path, state, "light", 360)
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.evaluate(OUTSIDE) == []
    assert browser.messages() == []


# Each text on the page with the colours of its letters and of what is behind them.
COLOURS = """[...document.querySelectorAll('body *')].filter(part => part.checkVisibility()
    && [...part.childNodes].some(child => child.nodeType === 3 && child.textContent.trim())).map(part => {
        let behind = part;
        while (behind && getComputedStyle(behind).backgroundColor === 'rgba(0, 0, 0, 0)') behind = behind.parentElement;
        const paper = getComputedStyle(behind ?? document.documentElement).backgroundColor;
        return [part.tagName + ' ' + part.textContent.trim().slice(0, 30), getComputedStyle(part).color, paper]; })"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("state", ["proved", "wrong", "withheld"])
def test_every_text_stands_out(browser: Browser, tmp_path: Path, state: str, scheme: str) -> None:
    arrange(browser, tmp_path, state, scheme, 1200)
    paper = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (luminance(paper) > 0.5) == (scheme == "light")
    found = browser.evaluate(COLOURS)
    assert len(found) > 50
    for text, ink, behind in found:
        assert contrast(ink, behind) >= 4.5, (text, ink, behind)


def test_light_and_dark_look_different_and_neither_is_blank(browser: Browser, tmp_path: Path) -> None:
    pictures = []
    for scheme in ("light", "dark"):
        arrange(browser, tmp_path, "proved", scheme, 1200)
        pictures.append(browser.screenshot())
    assert pictures[0] != pictures[1]
    assert all(len(picture) > 50_000 for picture in pictures)


def test_states_differ_by_word_and_shape_and_not_by_colour_alone(browser: Browser, tmp_path: Path) -> None:
    arrange(browser, tmp_path, "wrong", "light", 1200)
    shapes = {}
    for step in browser.all("#steps li"):
        state = str(step.get_attribute("data-state"))
        [mark], [word] = step.find_elements("class name", "mark"), step.find_elements("class name", "state")
        style = [mark.value_of_css_property(name) for name in ("border-radius", "border-top-style")]
        shapes[state] = (word.text, mark.text, *style)
    assert {"proved", "wrong", "unreached", "unchecked"} <= shapes.keys()
    assert (
        len({words for words, *_ in shapes.values()})
        == len({tuple(shape) for _, *shape in shapes.values()})
        == len(shapes)
    )
