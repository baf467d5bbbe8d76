"""`/verify` and the witnesses: how many agree, whether that makes the quorum, and who chose them."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ledger.log.cosignature import cosign
from ledger.log.note import COSIGNATURE, Note, Verifier
from tests.browser.browser import Browser
from tests.browser.by_hand import COTTAGE, fill, give, shown
from tests.browser.cosigning import BOTH, ELSEWHERE, FIRST, SECOND, STRANGER, cosigned
from tests.browser.verifying import PAGE, RECEIPTS, Case
from tests.ledger.log.worked_example import OTHER_KEY, WITNESS_KEY
from tests.waiting import until


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
        ((FIRST,), BOTH + "quorum w1\xa0", "wrong", "policy_malformed", "line 4"),
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


def test_a_policy_with_control_characters_is_not_taken(browser: Browser) -> None:
    """A text field makes a line of each carriage return: of `# note CR quorum none` it would make a quorum."""
    crooked = f"log {COTTAGE.key}\n# note\rquorum none\n"
    with Log(crooked, COTTAGE.documents[0]) as log:
        Thread(target=log.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{log.server_port}/verify")
        until(lambda: "control characters" in browser.all("#policy-note")[0].text, 5)
        assert browser.evaluate("document.querySelector('#policy').value") == ""
        log.shutdown()
    paste = (
        "(text => { const data = new DataTransfer(); data.setData('text/plain', text); const field = "
        "document.querySelector('#policy'); return field.dispatchEvent(new ClipboardEvent('paste', "
        "{ clipboardData: data, bubbles: true, cancelable: true })); })"
    )
    browser.show(PAGE)
    for text, taken in ((crooked, False), (crooked.replace("\r", "\x1b"), False), ("# a\r\nquorum none\r\n", True)):
        assert browser.evaluate(f"{paste}({json.dumps(text)})") is taken
    assert browser.messages() == []


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
    policy = "\n".join([f"log {COTTAGE.key}", *named, "group both all w1 w2", "quorum both"]) + "\n"
    with Log(policy, json.dumps(answer)) as log:
        Thread(target=log.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{log.server_port}/verify")
        until(lambda: bool(browser.evaluate("document.querySelector('#policy').value")), 5)
        assert browser.evaluate("document.querySelector('#policy').value") == policy
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
