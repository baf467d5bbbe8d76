"""The front page as people see it: on a telephone, in the dark, read aloud; new, grown and watched."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.api.home_page import HOSTILE, grow, twin, watched
from tests.api.site import Site, serving
from tests.browser.browser import Browser
from tests.browser.looks import COLOUR, OPENED, OUTSIDE, TOUCHING, contrast, luminance

KINDS = ("empty", "grown", "watched")
# What is shown, by the address of its twin: as programs read it where it is spelled for people.
SHOWN = """Object.fromEntries([...document.querySelectorAll('[data-twin]')].map(
    part => [part.dataset.twin, part.getAttribute('value') ?? part.getAttribute('datetime') ?? part.textContent]))"""


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Site]]:
    with ExitStack() as stack:
        made = {
            "empty": serving(tmp_path_factory.mktemp("empty")),
            "grown": serving(tmp_path_factory.mktemp("grown"), prepare=grow),
            "watched": watched(tmp_path_factory.mktemp("watched"), lambda running: grow(running, 3)),
        }
        yield {kind: stack.enter_context(site) for kind, site in made.items()}


@pytest.fixture(params=KINDS)
def site(request: pytest.FixtureRequest, sites: dict[str, Site]) -> Site:
    return sites[request.param]


def address(site: Site) -> str:
    return f"http://127.0.0.1:{site.port}/"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_quiet_fits_a_telephone_and_asks_nobody(browser: Browser, site: Site, scheme: str) -> None:
    browser.open(address(site), 360, scheme)
    browser.evaluate(OPENED)
    assert browser.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(TOUCHING) == []
    assert browser.messages() == []
    assert browser.requests() == [address(site)]


def test_a_wide_screen_has_room_for_everything(browser: Browser, site: Site) -> None:
    browser.open(address(site))
    browser.evaluate(OPENED)
    assert browser.evaluate(OUTSIDE) == []
    assert browser.evaluate(TOUCHING) == []
    assert browser.messages() == []


def test_what_is_seen_is_what_the_json_says(browser: Browser, site: Site) -> None:
    browser.open(address(site))
    browser.evaluate(OPENED)
    shown = browser.evaluate(SHOWN)
    assert len(shown) >= 12
    # A replacement character stands for what turns letters around.
    assert shown == {place: twin(site.get, place).replace("\u202e", "\ufffd") for place in shown}
    for place in browser.all("data[data-twin]"):
        assert place.text == f"{int(place.get_dom_attribute('value') or ''):,}"


def test_everything_has_a_name(browser: Browser, site: Site) -> None:
    browser.open(address(site))
    browser.evaluate(OPENED)
    plots = browser.all("svg")
    assert len(plots) == 3
    for plot in plots:
        assert plot.aria_role in ("img", "image")
        assert len(plot.accessible_name) >= len("No reviews")
    for selector in ("table", "a", "summary", "nav", "section"):
        assert browser.all(selector)
        for part in browser.all(selector):
            assert part.accessible_name, (selector, part.text)
    assert len(browser.all("h1")) == 1
    assert browser.evaluate("document.documentElement.lang") == "en"


def test_a_hostile_name_is_text(browser: Browser, sites: dict[str, Site]) -> None:
    browser.open(address(sites["watched"]))
    names = [name.text for name in browser.all(".witness strong")]
    assert names == ["w", HOSTILE.replace("\u202e", "\ufffd")]
    assert browser.evaluate("document.querySelectorAll('script, img, main style').length") == 0
    assert browser.evaluate("document.title") == "Staylog"
    assert browser.messages() == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everything_stands_out_in_light_and_dark(browser: Browser, sites: dict[str, Site], scheme: str) -> None:
    browser.open(address(sites["watched"]), scheme=scheme)
    paper = browser.evaluate(COLOUR.format("body", "background-color"))
    assert (luminance(paper) > 0.5) == (scheme == "light")
    soft = browser.evaluate(COLOUR.format(".figures div", "background-color"))
    assert browser.evaluate(COLOUR.format("pre", "background-color")) == soft
    on_paper = ("body", "figcaption", "main a", "summary", ".about dt", ".quiet", ".levels dt")
    on_soft = (".figures dt", ".figures dd", "pre", "code", ".cosigned b", ".unreachable b", ".witness .quiet")
    for selectors, back in ((on_paper, paper), (on_soft, soft)):
        for selector in selectors:
            assert contrast(browser.evaluate(COLOUR.format(selector, "color")), back) >= 4.5, selector
    for selector in ("svg text", "svg .legend"):
        assert contrast(browser.evaluate(COLOUR.format(selector, "fill")), paper) >= 4.5, selector
    for name in ("good", "bad", "open"):
        assert contrast(browser.evaluate(COLOUR.format("body", f"--{name}")), soft) >= 4.5, name
    for name in ("blue", "orange", "grey", "green", "purple"):
        assert contrast(browser.evaluate(COLOUR.format("body", f"--{name}")), paper) >= 3, name


def test_light_and_dark_look_different_and_neither_is_blank(browser: Browser, site: Site) -> None:
    pictures = []
    for scheme in ("light", "dark"):
        browser.open(address(site), scheme=scheme)
        pictures.append(browser.screenshot())
    browser.open("about:blank")
    assert pictures[0] != pictures[1]
    assert all(picture.startswith(b"\x89PNG") and len(picture) > 5 * len(browser.screenshot()) for picture in pictures)


def test_it_leads_to_the_verifier(browser: Browser, sites: dict[str, Site]) -> None:
    browser.open(address(sites["grown"]))
    browser.click("#verify ~ p a")
    assert browser.evaluate("location.pathname") == "/verify"
