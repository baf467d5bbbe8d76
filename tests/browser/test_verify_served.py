"""`/verify` as a log serves it, and as a copy on a disk: what it asks, what it may do, how it looks and reads."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ledger.log.cosignature import cosign
from ledger.log.note import COSIGNATURE, Note, Verifier
from tests.api.conftest import BUSY, HOSTS, Service, _fill, run_service
from tests.browser.browser import Browser
from tests.browser.looks import OUTSIDE, contrast, luminance
from tests.browser.test_verify_differential import BOTH, ELSEWHERE, FIRST, SECOND, STRANGER, cosigned
from tests.browser.test_verify_page import BY_NAME, COTTAGE, fill, give, shown, values
from tests.browser.verifying import PAGE, RECEIPTS, Case
from tests.ledger.log.test_witnessing import OTHER_KEY, WITNESS_KEY
from tests.waiting import until

ABSENT = "did:web:nobody.example"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """About 1,300 entries; one host has 1,005 events."""
    yield from run_service(tmp_path_factory.mktemp("verified"), None, _fill)


def visit(browser: Browser, service: Service, **screen: Any) -> str:
    """The page as served, once it has asked for the key; its address."""
    address = f"http://127.0.0.1:{service.port}"
    browser.open(f"{address}/verify", **screen)
    until(lambda: browser.evaluate("document.querySelector('#key').value"), 5)
    return address


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


# From a copy on disk.


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    kept = tmp_path / "staylog-verify.html"
    kept.write_bytes(PAGE.read_bytes())
    return kept


@pytest.mark.parametrize("name", ["own full", "own rating-changed", "own receipt", "own receipt text-changed"])
def test_a_copy_on_disk_checks_without_a_network(browser: Browser, copy: Path, tmp_path: Path, name: str) -> None:
    case = BY_NAME[name]
    browser.show(copy)
    fill(browser, case)
    give(browser, case, "paste", tmp_path)
    assert shown(browser)["verdict"] == ("proved" if case.code is None else "wrong")
    assert browser.requests() == [copy.as_uri()]
    assert browser.messages() == []


def test_a_copy_on_disk_asks_nobody_and_says_so(browser: Browser, copy: Path) -> None:
    browser.show(copy)
    [ask] = browser.all("#ask")
    assert not ask.is_enabled()
    assert "nothing is fetched" in browser.all("#ask-note")[0].text
    assert "asks nobody anything" in browser.all("header .on-disk")[0].text
    browser.type("#host", COTTAGE.host + "\n")
    assert browser.requests() == [copy.as_uri()]
    assert browser.messages() == []


@pytest.mark.parametrize(("gone", "reason"), [("crypto", "https"), ("Ed25519", "newer one")])
def test_a_browser_that_cannot_check_says_what_to_do(browser: Browser, copy: Path, gone: str, reason: str) -> None:
    """The page is given such a browser by a line before its script."""
    break_it = {
        "crypto": "Object.defineProperty(crypto, 'subtle', { value: undefined }); "
        "Object.defineProperty(window, 'isSecureContext', { value: false });",
        "Ed25519": "crypto.subtle.importKey = async () => { throw new DOMException('', 'NotSupportedError'); };",
    }
    text = copy.read_text("utf-8").replace(
        '<script type="module">', f"<script>{break_it[gone]}</script><script type='module'>"
    )
    copy.write_text(text, "utf-8")
    browser.show(copy)
    [notice] = browser.all("#notice")
    until(lambda: bool(notice.text), 5)
    assert reason in notice.text
    assert notice.get_attribute("data-code") == "crypto_missing"
    assert not browser.all("#check")[0].is_enabled()


# Witnesses, by hand.


@pytest.mark.parametrize(
    ("lines", "policy", "state", "code", "says"),
    [
        ((FIRST, SECOND), BOTH + "group g 2 w1 w2\nquorum g", "proved", None, "2 of 2 witnesses agree, quorum met: w1 at 2026-02-15T09:30:00Z"),
        ((FIRST, STRANGER), BOTH + "group g 1 w1 w2\nquorum g", "proved", None, "1 of 2 witnesses agree, quorum met"),
        ((FIRST,), BOTH + "group g all w1 w2\nquorum g", "wrong", "quorum_missing", "1 of 2 witnesses agree"),
        ((FIRST, ELSEWHERE), BOTH + "quorum w1", "wrong", "cosignature_invalid", "witness.example/w1"),
        ((FIRST,), BOTH + "quorum none", "warning", None, "1 of 2 witnesses agree, none was asked for: w1 at"),
        ((STRANGER,), BOTH + "quorum none", "unchecked", None, "0 of 2 witnesses agree, and the policy asks for none"),
        ((FIRST,), "", "unchecked", None, "witness.example/w1"),
        ((FIRST,), "nonsense", "wrong", "policy_malformed", "line 1"),
    ],
)  # fmt: skip
def test_witnesses(
    browser: Browser, tmp_path: Path, lines: tuple[str, ...], policy: str, state: str, code: str | None, says: str
) -> None:
    browser.show(PAGE)
    browser.click("#witnessing summary")
    browser.paste("#policy", policy)
    case = Case("", (json.dumps(cosigned(*lines)),), RECEIPTS["golden"]["vkey"])
    fill(browser, case)
    give(browser, case, "paste", tmp_path)
    page = shown(browser)
    assert page["verdict"] == ("wrong" if code else "proved")
    [step] = browser.all("[data-step=witnesses]")
    assert (step.get_attribute("data-state"), step.get_attribute("data-code")) == (state, code)
    assert says in step.text
    if state != "proved":
        assert "the same log" in browser.all("#open")[0].text or code
    assert browser.messages() == []


def test_witnesses_of_an_answer(browser: Browser, tmp_path: Path) -> None:
    """Of one answer, and of pages whose checkpoints were cosigned at different times."""
    answer = json.loads(COTTAGE.documents[0])
    note = answer["proof"]["checkpoint"]
    signers = {
        name: Verifier(name, COSIGNATURE, bytes(key.verify_key))
        for name, key in (("w1", WITNESS_KEY), ("w2", OTHER_KEY))
    }
    lines = [
        cosign(Note.parse(note).text, name, key, 1_771_147_800).line()
        for name, key in (("w1", WITNESS_KEY), ("w2", OTHER_KEY))
    ]
    named = "".join(f"witness {name} {key}\n" for name, key in signers.items())
    for cosigners, state in ((lines, "proved"), (lines[:1], "wrong")):
        answer["proof"]["checkpoint"] = note + "".join(cosigners)
        browser.show(PAGE)
        browser.click("#witnessing summary")
        browser.paste("#policy", f"log {COTTAGE.key}\n{named}group both all w1 w2\nquorum both")
        case = Case("", (json.dumps(answer),), COTTAGE.key, COTTAGE.host)
        fill(browser, case)
        give(browser, case, "paste", tmp_path)
        shown(browser)
        assert browser.all("[data-step=witnesses]")[0].get_attribute("data-state") == state


class Log(ThreadingHTTPServer):
    """A log with a witness policy, which answers every question about a host with one answer."""

    def __init__(self, policy: str | None, answer: str) -> None:
        self.answers = {
            "/verify": ("text/html", PAGE.read_text("utf-8")),
            "/v1/log/key": ("application/json", json.dumps({"vkey": COTTAGE.key})),
            "/v1/log/witnesses": ("application/json", json.dumps({"policy": policy})),
        }
        self.answer = answer
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Log)
        kind, body = self.server.answers.get(self.path, ("application/json", self.server.answer))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: Any) -> None:
        pass


@pytest.mark.parametrize(
    ("cosigners", "own", "state", "says"),
    [
        ((1, 2), False, "warning", "2 of 2 witnesses agree, chosen by the log itself: w1 at"),
        ((1,), False, "warning", "1 of 2 witnesses agree, chosen by the log itself: w1 at"),
        ((), False, "warning", "0 of 2 witnesses agree, chosen by the log itself; the quorum both is not met"),
        ((1, 2), True, "proved", "so far as these witnesses are honest and independent"),
        ((1,), True, "wrong", "1 of 2 witnesses agree, which does not make the quorum"),
        # A bad cosignature is bad whoever chose the witness.
        ((1, -2), False, "wrong", "w2"),
        ((1, -2), True, "wrong", "w2"),
    ],
)
def test_the_policy_of_the_log_itself_is_taken_and_called_what_it_is(
    browser: Browser, cosigners: tuple[int, ...], own: bool, state: str, says: str
) -> None:
    """Only what a person entered is demanded, and only that shows that others see the same."""
    answer = json.loads(COTTAGE.documents[0])
    note = answer["proof"]["checkpoint"]
    keys = {1: WITNESS_KEY, 2: OTHER_KEY}
    signed = {sign: Note.parse(note).text + ("" if sign else "x") for sign in (True, False)}
    lines = [cosign(signed[at > 0], f"w{abs(at)}", keys[abs(at)], 1_771_147_800).line() for at in cosigners]
    answer["proof"]["checkpoint"] = note + "".join(lines)
    named = [f"witness w{at} {Verifier(f'w{at}', COSIGNATURE, bytes(key.verify_key))}" for at, key in keys.items()]
    # With line ends that a text field has not.
    policy = "\r\n".join([f"log {COTTAGE.key}", *named, "group both all w1 w2", "quorum both"]) + "\r\n"
    with Log(policy, json.dumps(answer)) as log:
        Thread(target=log.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{log.server_port}/verify")
        until(lambda: bool(browser.evaluate("document.querySelector('#policy').value")), 5)
        assert browser.evaluate("document.querySelector('#policy').value") == policy.replace("\r", "")
        assert "came from the log itself" in browser.all("#policy-note")[0].text
        if own:
            browser.all("#policy")[0].send_keys("# mine")
        browser.type("#host", COTTAGE.host + "\n")
        page = shown(browser)
        log.shutdown()
    assert page["verdict"] == ("wrong" if state == "wrong" else "proved")
    [step] = browser.all("[data-step=witnesses]")
    assert step.get_attribute("data-state") == state
    assert says in step.text
    if state != "wrong":
        assert ("that others are shown the same log" in browser.all("#open")[0].text) is (state == "warning")
    assert browser.messages() == []


# How it looks and reads.

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
    assert order[:6] == ["key", "SUMMARY", "host", "file", "document", "check"]
    browser.evaluate("document.querySelector('#document').focus()")
    browser.paste("#document", "{}")
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
