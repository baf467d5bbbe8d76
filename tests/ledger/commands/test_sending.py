"""What `staylog review` makes of ledgers that misbehave: all is kept, little is believed, and the terminal is safe."""

import json
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from ledger.commands import client
from tests.ledger.commands import served
from tests.ledger.commands.served import Place, accepted, refused, staylog
from tests.reviewing import GUESTS

place, here = served.place, served.here


Answers = dict[str, tuple[int, Mapping[str, str], bytes]]


class FakeLedger(ThreadingHTTPServer):
    """Answers as it is told, by path."""

    answers: Answers
    requests: list[tuple[str, str, str]]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: FakeLedger

    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.requests.append((self.command, self.path, self.headers["User-Agent"]))
        status, headers, body = self.server.answers.get(self.path, (404, {}, b"{}"))
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = _answer  # noqa: N815

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def fake(here: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLedger]:
    with FakeLedger(("127.0.0.1", 0), _Handler) as server:
        server.answers, server.requests = {}, []
        monkeypatch.setenv("STAYLOG_LEDGER", server.url)
        # Nobody is asked on the way to this machine.
        monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def problem(code: object, **more: Any) -> bytes:
    return json.dumps({"type": "about:blank", "detail": "No.", "code": code, "errors": [], **more}).encode()


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        ((307, {"Location": "http://127.0.0.1:9/v1/reviews"}, b""), "answer_malformed", "elsewhere"),
        ((201, {}, b"not JSON"), "answer_malformed", "(201) cannot be read"),
        ((201, {"Content-Length": "500"}, b'{"review_id":'), "answer_malformed", "cannot be read"),
        ((201, {}, b"[]"), "answer_malformed", "not a JSON object"),
        ((202, {}, b"{}"), "answer_malformed", "answered 202"),
        ((500, {}, b"<html>"), "answer_malformed", "(500)"),
        ((500, {}, problem("[red]no[/]")), "answer_malformed", "answered 500"),
        ((500, {}, problem(7)), "answer_malformed", "answered 500"),
        ((200, {}, b'"' + b"x" * client.MAX_ANSWER + b'"'), "answer_malformed", "more than 1024 KiB"),
    ],
)
def test_what_a_ledger_does_not_answer(
    place: Place, here: Path, fake: FakeLedger, answer: Any, code: str, told: str
) -> None:
    fake.answers["/v1/reviews"] = answer
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0])), code)
    assert told in output
    assert "Your signed review is in review.json" in output
    assert not (here / "receipt.json").exists()
    [(method, _, agent)] = fake.requests
    assert (method, agent) == ("POST", "staylog/0.1.0")


def test_a_name_that_cannot_be_looked_up(place: Place, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for proxy in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(proxy, raising=False)
    options = ["--ledger", f"http://{'a' * 64}.example"]
    refused(staylog("submit", *place.guest_of(here, GUESTS[0]), *options), "ledger_unreachable")


def test_a_refusal_is_told_in_full_and_commands_no_terminal(place: Place, here: Path, fake: FakeLedger) -> None:
    errors = [{"field": "ratings\x1b[2J", "message": "[red]odd[/]"}, "odd"]
    body = problem("rate_limited", detail="Slow \x1b[31mdown.", errors=errors, type=f"{fake.url}/problems/rate_limited")
    fake.answers["/v1/reviews"] = (429, {"Retry-After": "17"}, body)
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "rate_limited")
    for told in (
        "Slow \\x1b[31mdown.",
        "ratings\\x1b[2J: [red]odd[/]",
        f"{fake.url}/problems/rate_limited",
        "Try again in 17 seconds: staylog review submit --again review.json --key KEY",
    ):
        assert told in output
    assert "\x1b" not in output


@pytest.mark.parametrize("wait", ["soon", "-5", ""])
def test_a_wait_that_is_no_number_is_left_out(place: Place, here: Path, fake: FakeLedger, wait: str) -> None:
    fake.answers["/v1/reviews"] = (503, {"Retry-After": wait}, problem("busy", errors=None, refusal="no"))
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "busy")
    assert "Try again in" not in output
    assert "signed refusal" not in output


@pytest.mark.parametrize("document", [b"{}", b'{"assertionMethod":["x#statements"],"verificationMethod":[{}]}', b"["])
@pytest.mark.parametrize("proof", [None, {}, {"verificationMethod": "x#statements"}])
def test_a_refusal_that_does_not_hold_is_kept_and_told(
    place: Place, here: Path, fake: FakeLedger, document: bytes, proof: Any
) -> None:
    fake.answers["/v1/reviews"] = (403, {}, problem("self_review", refusal={"type": "Refusal", "proof": proof}))
    fake.answers["/.well-known/did.json"] = (200, {}, document)
    output = refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "self_review")
    assert "should be the ledger's signed refusal, but that does not hold" in output
    assert (here / "review.refusal.json").exists()


def test_a_refusal_of_something_else_is_no_evidence(place: Place, here: Path, fake: FakeLedger) -> None:
    """A real one, shown again by somebody else."""
    options = place.guest_of(here, GUESTS[0])
    accepted(staylog("submit", *options, "--ledger", place.url))
    names = ["--submission", "2.json", "--out", "3.json"]
    refused(staylog("submit", *options, *names, "--text", "x", "--ledger", place.url), "already_reviewed")
    real = json.loads((here / "2.refusal.json").read_bytes())
    fake.answers["/v1/reviews"] = (409, {}, problem("already_reviewed", refusal=real))
    output = refused(staylog("submit", *options, "--submission", "4.json", "--out", "5.json"), "already_reviewed")
    assert "it is about something else" in output


def receipt_of(place: Place, here: Path, options: list[str]) -> dict[str, Any]:
    names = ["--submission", "real.json", "--out", "real-receipt.json"]
    accepted(staylog("submit", *options, "--ledger", place.url, *names))
    return dict(json.loads((here / "real-receipt.json").read_bytes()))


@pytest.mark.parametrize(
    ("change", "more", "code"),
    [
        # The receipt of the same review, as it was signed for another ledger.
        (lambda receipt: None, [], "opening_mismatch"),
        (lambda receipt: None, ["--overall", "1"], "receipt_mismatch"),
        (lambda receipt: None, ["--text", "Other words."], "opening_mismatch"),
        (lambda receipt: receipt["openings"].update(text=None), [], "opening_mismatch"),
        (lambda receipt: receipt.update(index=2), [], "receipt_mismatch"),
        (lambda receipt: receipt.update(review_id="rev-x"), [], "receipt_mismatch"),
        (
            lambda receipt: receipt.update(entry=receipt["entry"].replace("4.5", "5")),
            ["--overall", "5"],
            "root_mismatch",
        ),
        (lambda receipt: receipt.pop("entry"), [], "receipt_malformed"),
        (lambda receipt: receipt.update(entry=7), [], "receipt_malformed"),
        (lambda receipt: receipt["openings"].update(evidence=None), [], "receipt_malformed"),
        (lambda receipt: receipt["openings"].update(text="x"), [], "opening_malformed"),
        (lambda receipt: receipt.update(tlog_proof="x"), [], "tlog_proof_malformed"),
    ],
)
def test_a_receipt_that_does_not_hold_is_kept_and_told(
    place: Place, here: Path, fake: FakeLedger, change: Callable[[dict[str, Any]], Any], more: list[str], code: str
) -> None:
    options = [*place.guest_of(here, GUESTS[0]), "--text", "Dry."]
    receipt = receipt_of(place, here, options)
    change(receipt)
    fake.answers["/v1/reviews"] = (201, {}, json.dumps(receipt).encode())
    key = ["--log-key", str(place.ledger.verifier)]
    output = refused(staylog("submit", *options, *more, *key), code)
    assert "the ledger took the review, but its receipt does not hold" in output
    assert json.loads((here / "receipt.json").read_bytes()) == receipt


@pytest.mark.parametrize(
    ("answer", "code"),
    [((200, {}, b"{}"), "answer_malformed"), ((200, {}, b'{"vkey":"x"}'), "vkey_malformed")],
)
def test_a_log_key_that_is_not_to_be_had(place: Place, here: Path, fake: FakeLedger, answer: Any, code: str) -> None:
    options = place.guest_of(here, GUESTS[0])
    fake.answers["/v1/reviews"] = (201, {}, json.dumps(receipt_of(place, here, options)).encode())
    fake.answers["/v1/log/key"] = answer
    output = refused(staylog("submit", *options), code)
    assert "the receipt is in receipt.json, and is not checked" in output
