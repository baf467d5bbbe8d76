"""What `staylog review` makes of ledgers that misbehave: all is kept, little is believed, and the terminal is safe."""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import jcs
from ledger.commands import client
from ledger.user_agent import USER_AGENT
from tests.identities import Speaker, did_document
from tests.ledger.commands import fake_ledger, served
from tests.ledger.commands.fake_ledger import FakeLedger
from tests.ledger.commands.served import Place, accepted, booking, refused, staylog, write_key
from tests.reviewing import GUESTS, HOST

place, here, fake = served.place, served.here, fake_ledger.fake


def problem(code: object, **more: Any) -> bytes:
    return json.dumps({"type": "about:blank", "detail": "No.", "code": code, "errors": [], **more}).encode()


@pytest.mark.parametrize(
    ("answer", "code", "told"),
    [
        ((307, {"Location": "http://127.0.0.1:9/v1/reviews"}, b""), "answer_malformed", "elsewhere"),
        ((201, {}, b"not JSON"), "answer_malformed", "(201) cannot be read"),
        ((201, {"Content-Length": "500"}, b'{"review_id":'), "answer_malformed", "cannot be read"),
        ((201, {}, b"[]"), "answer_malformed", "not a JSON object"),
        ((203, {}, b"{}"), "answer_malformed", "answered 203"),
        ((500, {}, b"<html>"), "answer_malformed", "(500)"),
        ((500, {}, problem("[red]no[/]")), "answer_malformed", "answered 500"),
        ((500, {}, problem(7)), "answer_malformed", "answered 500"),
        ((200, {}, b'"' + b"x" * client.MAX_ANSWER + b'"'), "answer_malformed", "more than 2048 KiB"),
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
    assert (method, agent) == ("POST", USER_AGENT)


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


def taken_in(fake: FakeLedger, statements: Speaker, body: Any, **changes: Any) -> dict[str, Any]:
    """What a ledger answers that takes a review in, whose key is that of `statements`."""
    times = {"received_at": "2026-06-01T12:00:00Z", "decide_by": "2026-06-04T12:00:00Z"}
    said = {"type": "IntakeReceipt", "submission_sha256": sha256(jcs.dumps(body)).hexdigest(), **times}
    name = "sub-" + "a" * 26
    place = {"submission_id": name, "status_url": f"{fake.url}/v1/submissions/{name}"}
    return {**place, "intake": statements.sign(said, domain=None), **changes}


WORD = Speaker(7, "did:web:127.0.0.1", "#statements")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda answer: None, None),
        (lambda answer: answer.clear(), "answer_malformed"),
        (lambda answer: answer.pop("intake"), "answer_malformed"),
        (lambda answer: answer.update(status_url="https://other.example/v1/x"), "answer_malformed"),
        (lambda answer: answer.update(submission_id="sub-" + "b" * 26), "answer_malformed"),
        (
            lambda answer: answer.update(status_url=f"https://other.example/v1/submissions/sub-{'a' * 26}"),
            "receipt_mismatch",
        ),
        (lambda answer: answer["intake"].update(submission_sha256="ab" * 32), "receipt_mismatch"),
        (lambda answer: answer["intake"].update(type="Refusal"), "receipt_mismatch"),
        (lambda answer: answer["intake"].update(decide_by="2027-06-04T12:00:00Z"), "proof_invalid"),
        (lambda answer: answer["intake"].pop("proof"), "signature_invalid"),
        (lambda answer: answer["intake"]["proof"].update(verificationMethod="x#y"), "signer_unknown"),
    ],
)
def test_a_word_that_it_will_be_decided_is_kept_and_held_against_the_ledger(
    place: Place, here: Path, fake: FakeLedger, change: Callable[[dict[str, Any]], Any], code: str | None
) -> None:
    """Signed first: the ledger's word is about what is in the file."""
    refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "answer_malformed")
    answer = taken_in(fake, WORD, json.loads((here / "review.json").read_bytes()))
    change(answer)
    fake.answers["/v1/reviews"] = (202, {}, json.dumps(answer).encode())
    fake.answers["/.well-known/did.json"] = (200, {}, json.dumps(did_document(WORD)).encode())
    done = staylog("submit", "--again", "review.json")
    assert json.loads((here / "receipt.pending.json").read_bytes()) == answer
    if code is None:
        assert "taken in" in accepted(done)
        return
    output = refused(done, code)
    assert "its word does not hold" in output
    assert "Keep receipt.pending.json and review.json" in output


def test_a_response_does_not_wait(place: Place, here: Path, fake: FakeLedger) -> None:
    write_key(here / "host.key", HOST)
    review_id = "rev-" + "a" * 26
    fake.answers[f"/v1/reviews/{review_id}/response"] = (202, {}, b"{}")
    given = ["respond", review_id, "--key", "host.key", "--text", "Thanks."]
    assert "answered 202" in refused(staylog(*given), "answer_malformed")


@pytest.mark.parametrize("answer", [{}, {"type": "BookingClaim", "status": "kept"}, {"type": "BookingNotice"}])
def test_a_notice_that_the_ledger_does_not_say_it_keeps(here: Path, fake: FakeLedger, answer: Any) -> None:
    fake.answers["/v1/bookings"] = (201, {}, json.dumps(answer).encode())
    days = ["--check-in", "2026-05-20", "--check-out", "2026-05-24"]
    stay = ["--reference", "B-1", "--listing", "rose-cottage", "--guest", GUESTS[0].did, *days]
    key = write_key(here / "host.key", HOST)
    assert "does not say that it keeps the notice" in refused(
        booking("notice", "--key", key, *stay), "answer_malformed"
    )


@pytest.mark.parametrize("found", [{}, {"status": "accepted"}, {"status": "rejected", "code": "[red]"}, {"status": 7}])
def test_a_ledger_that_does_not_say_what_became_of_it(place: Place, here: Path, fake: FakeLedger, found: Any) -> None:
    refused(staylog("submit", *place.guest_of(here, GUESTS[0])), "answer_malformed")
    answer = taken_in(fake, WORD, json.loads((here / "review.json").read_bytes()))
    (here / "receipt.pending.json").write_text(json.dumps(answer))
    fake.answers[f"/v1/submissions/{answer['submission_id']}"] = (200, {}, json.dumps(found).encode())
    assert "what became of it" in refused(staylog("status", "receipt.pending.json"), "answer_malformed")
    assert not (here / "receipt.json").exists()


def receipt_of(place: Place, here: Path, options: list[str]) -> dict[str, Any]:
    names = ["--submission", "real.json", "--out", "real-receipt.json"]
    accepted(staylog("submit", *options, "--ledger", place.url, *names))
    return dict(json.loads((here / "real-receipt.json").read_bytes()))


@pytest.mark.parametrize(
    ("change", "more", "code"),
    [
        # The receipt of the same review, as it was signed for another ledger.
        (lambda receipt: None, [], "opening_mismatch"),
        (lambda receipt: None, ["--overall", "1"], "opening_mismatch"),
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
        (lambda receipt: receipt.update(booking={"type": "BookingNotice"}), [], "opening_mismatch"),
        (lambda receipt: receipt.update(booking="x"), [], "receipt_malformed"),
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
