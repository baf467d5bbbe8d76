"""`/verify` and a log that answers with something else, too much or too late; and a person who does many things."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from ledger.canon import base64, jcs
from ledger.log.entries import make_entry
from ledger.log.proofs import multiproof_root
from ledger.log.record import empty_record, sublog_leaf
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import inclusion_subtrees
from tests.browser.browser import Browser
from tests.browser.by_hand import BY_NAME, COTTAGE, fill, give, shown
from tests.browser.verifying import ANSWERS, AT, FORGED, PAGE, RECEIPTS, Case, forged, reports
from tests.waiting import until

KEY, RECEIPT = RECEIPTS["own"]["vkey"], RECEIPTS["own"]["receipt"]
ELSEWHERE = "did:web:elsewhere.example"
HARBOUR = BY_NAME["own set page-6+page-0+page-3"].host
TOO_LARGE = (400, json.dumps({"code": "proof_too_large", "detail": "ask for pages"}))
Reply = Callable[[str], str | tuple[int, str]]


class Log(ThreadingHTTPServer):
    """A log with a key and no policy, which answers questions about hosts as it likes."""

    def __init__(self, reply: Reply, key: str) -> None:
        self.reply, self.asked = reply, list[str]()
        self.own = {
            "/verify": PAGE.read_text("utf-8"),
            "/v1/log/key": json.dumps({"vkey": key}),
            "/v1/log/witnesses": json.dumps({"policy": None}),
        }
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        log = self.server
        assert isinstance(log, Log)
        found = log.own.get(self.path)
        if found is None:
            log.asked.append(self.path)
        answer = log.reply(self.path) if found is None else found
        status, body = (200, answer) if isinstance(answer, str) else answer
        try:
            self.send_response(status)
            self.send_header("Content-Type", "text/html" if self.path == "/verify" else "application/json")
            self.end_headers()
            self.wfile.write(body.encode())
        except OSError:
            pass  # who asked has gone

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def visited(browser: Browser, reply: Reply, key: str = KEY) -> Iterator[Log]:
    with Log(reply, key) as log:
        Thread(target=log.serve_forever, daemon=True).start()
        browser.open(f"http://127.0.0.1:{log.server_port}/verify")
        until(lambda: bool(browser.evaluate("document.querySelector('#key').value")), 5)
        yield log
        log.shutdown()


def wrong(browser: Browser) -> tuple[str, str]:
    [step] = [step for step in shown(browser)["steps"] if step["state"] == "wrong"]
    return step["step"], step["code"]


def noticed(browser: Browser) -> str | None:
    [notice] = browser.all("#notice")
    until(lambda: bool(notice.text), 10)
    return notice.get_attribute("data-code")


def answer(name: str) -> str:
    return json.dumps(ANSWERS[f"own {name}"][0]["answer"])


# Something else than what was asked for.


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        (json.dumps(RECEIPT), "answer_malformed"),
        (RECEIPT["checkpoint"], "malformed_json"),
        (RECEIPT["tlog_proof"], "malformed_json"),
        (f"[{answer('page-0')},{answer('page-3')},{answer('page-6')}]", "answer_malformed"),
    ],
)
def test_a_log_that_is_asked_must_answer(browser: Browser, sent: str, code: str) -> None:
    """Each is a good document, and none an answer about the host, even where it is about it."""
    with visited(browser, lambda _: sent):
        browser.type("#host", HARBOUR + "\n")
        assert wrong(browser) == ("read", code)


def test_a_receipt_about_another_host_than_the_one_typed_is_red(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    fill(browser, Case("", (), KEY, ELSEWHERE))
    give(browser, BY_NAME["own receipt"], "paste", tmp_path)
    assert wrong(browser) == ("read", "receipt_mismatch")
    says = browser.all("#verdict")[0].text
    assert f"this receipt is about {COTTAGE.host}, not about the host you typed" in says
    browser.type("#host", COTTAGE.host)
    browser.click("#check")
    assert shown(browser)["verdict"] == "proved"


@pytest.mark.parametrize(
    ("host", "sent", "step", "code"),
    [
        (COTTAGE.host, "aggregate", "read", "wrong_kind"),
        (COTTAGE.host, "full", "read", "wrong_kind"),
        (HARBOUR, "page-0", "completeness", "pages_incomplete"),
        (HARBOUR, "page-3", "completeness", "pages_incomplete"),
        (ELSEWHERE, "page-0", "inclusion", "foreign_event"),
    ],
)
def test_who_is_asked_for_pages_must_send_them_all(
    browser: Browser, host: str, sent: str, step: str, code: str
) -> None:
    with visited(browser, lambda path: TOO_LARGE if "proof=full" in path else answer(sent)) as log:
        browser.type("#host", host + "\n")
        assert wrong(browser) == (step, code)
        assert len(log.asked) == 2


def many(events: int) -> str:
    """One page of so many events, under a good signature."""
    entry = make_entry("booking_check", host_did=ELSEWHERE, at=AT, outcome="denied", booking=base64.encode(bytes(32)))
    path = [bytes([number]) * 32 for number, _ in enumerate(inclusion_subtrees(0, events))]
    root = multiproof_root([(0, sublog_leaf(2, entry.leaf_hash))], events, path)
    record = empty_record(ELSEWHERE) | {"events": events, "root": base64.encode(root), "last_event": AT}
    record["checks"] |= {"denied": events}
    made = forged(ELSEWHERE, jcs.dumps(record).decode(), [entry.data.decode()])
    made["proof"] |= {"from": 0, "sub_proof": [base64.encode(node) for node in path]}
    means = dict.fromkeys(ANSWERS["own full"][0]["answer"]["average_ratings"])
    face = {"host_did": ELSEWHERE, "host_since": None, "verified_reviews": 0, "total_reviews": 0}
    return json.dumps({**face, "average_ratings": means, **made})


def test_a_log_cannot_keep_a_browser_asking(browser: Browser) -> None:
    """Even one that signs whatever it says."""
    page = many(1_000_001)
    with visited(browser, lambda path: TOO_LARGE if "proof=full" in path else page, str(FORGED)) as log:
        browser.type("#host", ELSEWHERE + "\n")
        assert noticed(browser) == "too_many_pages"
        assert len(log.asked) == 2
    # The same page again is not the next one.
    page = many(1_000_000)
    with visited(browser, lambda path: TOO_LARGE if "proof=full" in path else page, str(FORGED)) as log:
        browser.type("#host", ELSEWHERE + "\n")
        assert wrong(browser) == ("completeness", "pages_incomplete")
        assert len(log.asked) == 3


# Too late.


def test_only_what_was_done_last_is_shown(browser: Browser, tmp_path: Path) -> None:
    late = Event()

    def reply(_: str) -> str:
        late.wait(20)
        return answer("full")

    with visited(browser, reply) as log:
        browser.type("#host", COTTAGE.host + "\n")
        until(lambda: bool(log.asked), 5)
        give(browser, BY_NAME["own receipt"], "paste", tmp_path)
        assert "in the log" in shown(browser)["says"]
        late.set()
        assert browser.evaluate("new Promise(done => setTimeout(() => done('waited'), 500))") == "waited"
        assert "in the log" in shown(browser)["says"]
        assert not browser.all("#notice *")


def test_a_file_that_is_read_slowly_is_not_shown_in_place_of_a_newer_one(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    fill(browser, COTTAGE)
    slow = """(() => { const read = Blob.prototype.arrayBuffer; let isFirst = true;
        Blob.prototype.arrayBuffer = async function () { const wait = isFirst ? 700 : 0; isFirst = false;
            await new Promise(done => setTimeout(done, wait)); return read.call(this); }; })()"""
    browser.evaluate(slow)
    (tmp_path / "a").mkdir()
    give(browser, COTTAGE, "drop", tmp_path / "a")
    give(browser, BY_NAME["own receipt"], "drop", tmp_path)
    assert "in the log" in shown(browser)["says"]
    browser.evaluate("new Promise(done => setTimeout(done, 900))")
    assert "in the log" in shown(browser)["says"]
    browser.click("#check")
    assert "in the log" in shown(browser)["says"]


@pytest.mark.parametrize("field", ["key", "host", "policy"])
def test_what_is_shown_is_of_what_is_entered(browser: Browser, tmp_path: Path, field: str) -> None:
    browser.show(PAGE)
    browser.click("#witnessing summary")
    fill(browser, COTTAGE)
    give(browser, COTTAGE, "paste", tmp_path)
    shown(browser)
    [entered] = browser.all(f"#{field}")
    entered.send_keys("x")
    assert not browser.all("#verdict *")
    assert not browser.all("#result")[0].is_displayed()


def test_a_new_link_on_the_same_page_names_another_host(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    fill(browser, COTTAGE)
    give(browser, COTTAGE, "paste", tmp_path)
    shown(browser)
    browser.evaluate(f"location.hash = '{ELSEWHERE}'")
    until(lambda: browser.evaluate("document.querySelector('#host').value") == ELSEWHERE, 5)
    assert not browser.all("#verdict *")
    browser.evaluate("location.hash = 'nonsense'")
    assert browser.evaluate("document.querySelector('#host').value") == ELSEWHERE


# What is said, and no more.


def test_the_key_of_the_log_is_called_that_beside_the_verdict(browser: Browser) -> None:
    with visited(browser, lambda _: answer("full")):
        browser.type("#host", COTTAGE.host + "\n")
        assert "The key came from the log itself" in shown(browser)["says"]


def test_the_key_of_the_person_is_not(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    fill(browser, COTTAGE)
    give(browser, COTTAGE, "paste", tmp_path)
    assert "came from the log" not in shown(browser)["says"]


def test_withheld_texts_are_in_the_headline(browser: Browser, tmp_path: Path) -> None:
    browser.show(PAGE)
    fill(browser, BY_NAME["own full-withheld"])
    give(browser, BY_NAME["own full-withheld"], "paste", tmp_path)
    page = shown(browser)
    assert "Proved, but 1 text is withheld" in page["says"]
    assert {step["step"]: step["state"] for step in page["steps"]}["texts"] == "warning"


@pytest.mark.parametrize("text", [json.dumps(RECEIPT), RECEIPT["checkpoint"], RECEIPT["tlog_proof"]])
def test_what_is_no_page_comes_alone(browser: Browser, tmp_path: Path, text: str) -> None:
    browser.show(PAGE)
    fill(browser, Case("", (), KEY, COTTAGE.host))
    give(browser, Case("", (text, text), KEY), "drop", tmp_path)
    assert wrong(browser) == ("read", "answer_malformed")
    assert "one at a time" in browser.all("#verdict")[0].text


def test_a_proof_alone_claims_an_entry_that_the_tree_can_have(browser: Browser) -> None:
    browser.show(PAGE)
    proof = TlogProof.parse(RECEIPT["tlog_proof"])
    texts = [str(TlogProof(index, proof.path, proof.checkpoint)) for index in (6, 7)]
    last, beyond = reports(browser, [Case("", (text,), KEY) for text in texts])
    assert (last.verdict, last.states["inclusion"]) == ("proved", "unchecked")
    assert "claims" in last.says["read"]
    assert (beyond.step, beyond.code) == ("inclusion", "index_out_of_range")


def test_a_name_counts_only_where_it_belongs(browser: Browser, tmp_path: Path) -> None:
    given = json.loads(answer("full"))
    given |= {"review_text": "Wonderful", "beside": 1}
    given["review_history"][-1] |= {"total_reviews": 99, "statistics": {}}
    browser.show(PAGE)
    fill(browser, COTTAGE)
    give(browser, Case("", (json.dumps(given),), KEY), "paste", tmp_path)
    assert shown(browser)["verdict"] == "proved"
    [said] = [part.text for part in browser.all("#open li") if "what else the answer says" in part.text]
    assert {"review_text", "beside", "total_reviews", "statistics"} <= set(said.split(": ")[1].split(", "))
    pages = [json.loads(answer(f"page-{start}")) for start in (0, 3, 6)]
    pages[2]["stars"] = 5
    browser.paste("#host", HARBOUR)
    give(browser, Case("", (json.dumps(pages),), KEY), "paste", tmp_path)
    assert shown(browser)["verdict"] == "proved"
    assert "what else the answer says: stars" in browser.all("#open")[0].text


def test_characters_that_newer_browsers_know_as_formats_are_never_shown(browser: Browser, tmp_path: Path) -> None:
    name = "a" + "".join(map(chr, (0x200B, *range(0x13439, 0x13440)))) + "b\U00013440c"
    (tmp_path / name).write_text("{}")
    browser.show(PAGE)
    browser.drop(tmp_path / name)
    until(lambda: "ab\U00013440c" in browser.all("#file-note")[0].text, 5)
