"""Bookings over HTTP: notices, claims, what waits and what becomes of it, evidence that comes later, feedback."""

from base64 import b64decode
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema_rs import Draft202012Validator
from nacl.public import SealedBox

from audits.receipts import verify_receipt
from ledger.store.rows import run
from tests.api.hosts_and_guests import NEXT, add_host, asking, entry_of, feedback_request, settle, state, wait_out
from tests.api.refusals import check_signed, said
from tests.api.site import Person, Site, problem, serving, submission_sha256, verify_signed
from tests.hosting import claim, evidence, notice
from tests.identities import NOW, Speaker
from tests.reviewing import DOMAIN, HOST, encoded, review, stay_receipt
from tests.schemas.validators import validator
from tests.waiting import until

KEPT_UNTIL = "2026-10-12"


@pytest.fixture
def own(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A service of one's own on each engine, whose clock may be set."""
    with serving(tmp_path, database_url) as site:
        yield site


@pytest.fixture
def guest(request: pytest.FixtureRequest) -> Person:
    return Person(f"guest of {request.node.nodeid}")


def documented(site: Site, answer: httpx.Response, path: str, method: str = "post") -> Any:
    """The body, which is nobody else's, once it is what the OpenAPI document says of its status."""
    document = site.get("/schema/openapi.json").json()
    content = document["paths"][path][method]["responses"][str(answer.status_code)]["content"]
    [(media_type, described)] = content.items()
    assert answer.headers["content-type"] == media_type
    assert answer.headers["cache-control"] == "no-store"
    Draft202012Validator({"components": document["components"], **described["schema"]}).validate(answer.json())
    return answer.json()


def rows(site: Site, table: str) -> int:
    with site.ledger.store.read() as connection:
        return int(run(connection, f"SELECT count(*) FROM {table}")[0][0])


# Notices


def test_a_notice_is_kept_once(own: Site, guest: Person) -> None:
    """201, the same again 200, a newer one replaces it, and its words are nowhere to be read."""
    sent = notice(HOST, guest, now=NOW, **NEXT)
    first, again = own.post("/v1/bookings", sent), own.post("/v1/bookings", sent)
    assert (first.status_code, again.status_code) == (201, 200)
    told = documented(own, first, "/v1/bookings")
    assert told == documented(own, again, "/v1/bookings")
    assert told == {
        "type": "BookingNotice",
        "status": "kept",
        "before_check_in": True,
        "received_at": "2026-06-01T12:00:00Z",
        "kept_until": KEPT_UNTIL,
    }
    assert "location" not in first.headers
    newer = notice(HOST, guest, status="cancelled", now=NOW + timedelta(seconds=1), **NEXT)
    assert own.post("/v1/bookings", newer).status_code == 201
    problem(own.post("/v1/bookings", sent), "notice_outdated")
    assert rows(own, "booking") == 1
    with own.ledger.store.read() as connection:
        [(sealed,)] = run(connection, "SELECT sealed FROM booking")
    assert b"rose-cottage" not in bytes(sealed)


def test_a_notice_after_check_in_says_so(own: Site, guest: Person) -> None:
    answer = own.post("/v1/bookings", notice(HOST, guest, now=NOW))
    assert answer.status_code == 201
    assert documented(own, answer, "/v1/bookings")["before_check_in"] is False


def test_a_review_rests_on_a_notice(own: Site, guest: Person) -> None:
    """The receipt carries what the guest did not have: without it the evidence could not be opened."""
    own.running.clock.now = NOW - timedelta(days=50)
    said_then = notice(HOST, guest)
    own.post("/v1/bookings", said_then)
    own.running.clock.now = NOW
    sent = asking(guest, HOST)
    answer = own.submit(sent)
    assert answer.status_code == 201
    receipt = documented(own, answer, "/v1/reviews")
    validator("receipt.v1.json").validate(receipt)
    assert receipt["booking"] == said_then
    assert entry_of(receipt)["evidence"]["booking"] == "booking_notice"
    assert own.submit(sent).json() == receipt
    report = verify_receipt(answer.content, own.ledger.verifier, submission=encoded(sent))
    assert not any("whose review" in line for line in report.not_proved)


# Claims


def test_a_claim_with_a_receipt_is_verified_at_once(own: Site, guest: Person) -> None:
    sent = claim(HOST, guest, now=NOW, booking_evidence=stay_receipt(guest, **NEXT), **NEXT)
    first, again = own.post("/v1/bookings", sent), own.post("/v1/bookings", sent)
    assert (first.status_code, again.status_code) == (201, 200)
    told = documented(own, first, "/v1/bookings")
    assert told == again.json()
    received = {"received_at": "2026-06-01T12:00:00Z", "kept_until": KEPT_UNTIL}
    assert told == {"type": "BookingClaim", "status": "verified", **received}
    # It is nobody's business yet.
    assert said(own)["entries"] == []


def test_a_claim_is_verified_by_asking(own: Site, guest: Person) -> None:
    host = add_host(own, "confirming.example")
    host.book(guest, check_in=NEXT["check_in"], check_out=NEXT["check_out"])
    answer = own.post("/v1/bookings", claim(host.speaker, guest, now=NOW, **NEXT))
    assert answer.status_code == 201
    assert documented(own, answer, "/v1/bookings")["status"] == "verified"
    assert host.asked == ["B-1"]


def test_a_claim_waits_and_is_verified_later(own: Site, guest: Person) -> None:
    host = add_host(own, "late.example")
    host.down = 500
    sent = claim(host.speaker, guest, now=NOW, **NEXT)
    first, again = own.post("/v1/bookings", sent), own.post("/v1/bookings", sent)
    assert (first.status_code, again.status_code) == (202, 202)
    waiting = documented(own, first, "/v1/bookings")
    assert waiting == again.json()
    host.down = None
    host.book(guest, check_in=NEXT["check_in"], check_out=NEXT["check_out"])
    own.running.clock.forward(minutes=1)
    settle(own)
    done = own.get(f"/v1/submissions/{waiting['submission_id']}")
    assert documented(own, done, "/v1/submissions/{submission_id}", "get") == {
        "status": "accepted",
        "decide_by": "2026-06-04T12:00:00Z",
    }
    assert own.post("/v1/bookings", sent).status_code == 200


def test_a_claim_is_not_waited_for_longer_than_until_check_in(own: Site, guest: Person) -> None:
    """Rejected then, signed, and nothing is told of the host: nobody has stayed anywhere."""
    host = add_host(own, "mute.example")
    host.down = 503
    soon: dict[str, Any] = {"check_in": "2026-06-03", "check_out": "2026-06-05"}
    sent = claim(host.speaker, guest, now=NOW, **soon)
    waiting = own.post("/v1/bookings", sent).json()
    # Midnight in London, where the listing is.
    assert waiting["intake"]["decide_by"] == "2026-06-02T23:00:00Z"
    own.running.clock.forward(days=2)
    settle(own)
    # Not by one look at the clock.
    looks = 1
    while (done := state(own, waiting["submission_id"]))["status"] == "pending":
        own.running.clock.forward(minutes=1)
        settle(own)
        looks += 1
        assert looks <= 5
    assert looks > 1
    assert (done["status"], done["code"]) == ("rejected", "booking_unverifiable")
    check_signed(own, done["refusal"], "booking_unverifiable", sent)
    assert said(own)["entries"] == []


# What waits


def test_a_review_waits_for_the_host(own: Site, guest: Person) -> None:
    """202 with where to look and the ledger's signed word; the same again is the same submission, asked for once."""
    host = add_host(own, "slow.example")
    host.down = 503
    host.book(guest)
    sent = asking(guest, host.speaker, private_feedback="The tap drips.")
    first, again = own.submit(sent), own.submit(sent)
    assert (first.status_code, again.status_code) == (202, 202)
    waiting = documented(own, first, "/v1/reviews")
    assert waiting == again.json()
    assert host.asked == ["B-1"]
    assert waiting["status_url"] == f"{DOMAIN}/v1/submissions/{waiting['submission_id']}"
    assert first.headers["location"] == f"/v1/submissions/{waiting['submission_id']}"
    validator("intake.v1.json").validate(waiting["intake"])
    assert verify_signed(waiting["intake"], *own.statements_key()) == {
        "type": "IntakeReceipt",
        "submission_sha256": submission_sha256(sent),
        "received_at": "2026-06-01T12:00:00Z",
        "decide_by": "2026-06-04T12:00:00Z",
    }
    pending = own.get(first.headers["location"])
    assert documented(own, pending, "/v1/submissions/{submission_id}", "get") == {
        "status": "pending",
        "decide_by": "2026-06-04T12:00:00Z",
        "intake": waiting["intake"],
    }
    assert own.reputation(host.speaker)["total_reviews"] == 0
    host.down = None
    own.running.clock.forward(minutes=1)
    settle(own)
    done = own.get(first.headers["location"])
    told = documented(own, done, "/v1/submissions/{submission_id}", "get")
    assert told.keys() == {"status", "decide_by", "receipt"}
    receipt = told["receipt"]
    validator("receipt.v1.json").validate(receipt)
    assert (receipt["verification_level"], receipt["private_feedback"]) == ("guest_verified", "sealed")
    assert receipt["booking"]["type"] == "BookingVerification"
    assert entry_of(receipt)["evidence"]["booking"] == "callback"
    # Whoever sends it again gets the same: the id may be lost.
    repeated = own.submit(sent)
    assert (repeated.status_code, repeated.json()) == (200, receipt)
    assert host.asked == ["B-1", "B-1"]


def test_the_service_itself_asks_again(own: Site, guest: Person) -> None:
    """Its own worker, which looks every two seconds."""
    host = add_host(own, "soon.example")
    host.down = 503
    host.book(guest)
    waiting = own.submit(asking(guest, host.speaker)).json()
    host.down = None
    own.running.clock.forward(minutes=1)
    until(lambda: state(own, waiting["submission_id"])["status"] == "accepted", 20)


def test_a_submission_that_is_denied_later_is_rejected_with_a_signature(own: Site, guest: Person) -> None:
    host = add_host(own, "denying.example")
    host.down = 503
    sent = asking(guest, host.speaker)
    waiting = own.submit(sent).json()
    host.down = None
    own.running.clock.forward(minutes=1)
    settle(own)
    done = own.get(f"/v1/submissions/{waiting['submission_id']}")
    told = documented(own, done, "/v1/submissions/{submission_id}", "get")
    assert (told["status"], told["code"]) == ("rejected", "booking_denied")
    assert told["detail"]
    validator("refusal.v1.json").validate(told["refusal"])
    check_signed(own, told["refusal"], "booking_denied", sent)
    record = own.reputation(host.speaker)
    assert (record["total_reviews"], record["statistics"]["checks"]["denied"]) == (0, 1)


def test_a_submission_is_told_for_90_days(own: Site, guest: Person) -> None:
    host = add_host(own, "once.example")
    host.down = 503
    waiting = own.submit(asking(guest, host.speaker)).json()
    host.down = None
    own.running.clock.forward(minutes=1)
    settle(own)
    own.running.clock.forward(days=90, seconds=-1)
    own.ledger.worker(DOMAIN).tidy()
    assert state(own, waiting["submission_id"])["status"] == "rejected"
    own.running.clock.forward(seconds=1)
    own.ledger.worker(DOMAIN).tidy()
    problem(own.get(f"/v1/submissions/{waiting['submission_id']}"), "submission_not_found")
    assert rows(own, "submission") == 0


def test_a_receipt_whose_host_cannot_be_looked_up_waits(own: Site, guest: Person) -> None:
    """Nobody can say whether it holds: a host that takes its document down gains three days, and no veto."""
    host = Speaker(61, "did:web:away.example", "#key-1")
    own.outside.host("away.example")
    own.outside.take_down("away.example")
    answer = own.submit(review(guest, host))
    assert answer.status_code == 202
    wait_out(own)
    receipt = state(own, answer.json()["submission_id"])["receipt"]
    assert receipt["verification_level"] == "unconfirmed"
    record = own.reputation(host)
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 0)


def test_one_denial_of_a_person_is_told_for_ever(own: Site, guest: Person) -> None:
    """Invented references cannot fill an honest host's record."""
    host = add_host(own, "honest.example")
    for reference in ("X-1", "X-2", "X-3"):
        problem(own.submit(asking(guest, host.speaker, reference)), "booking_denied")
    assert own.reputation(host.speaker)["statistics"]["checks"]["denied"] == 1
    refused = problem(own.submit(asking(guest, host.speaker, "X-4")), "quota_exceeded")
    assert "3 reviews" in refused["detail"]
    assert host.asked == ["X-1", "X-2", "X-3"]


# Evidence that comes later


def test_evidence_that_comes_later(own: Site, guest: Person) -> None:
    host = add_host(own, "silent.example")
    host.down = 503
    waiting = own.submit(asking(guest, host.speaker)).json()
    wait_out(own)
    receipt = state(own, waiting["submission_id"])["receipt"]
    assert receipt["verification_level"] == "unconfirmed"
    path = f"/v1/reviews/{receipt['review_id']}/evidence"
    sent = evidence(receipt["review_id"], stay_receipt(guest, host.speaker), guest, now=own.running.clock())
    first, again = own.post(path, sent), own.post(path, sent)
    assert (first.status_code, again.status_code) == (201, 200)
    upgrade = documented(own, first, "/v1/reviews/{review_id}/evidence")
    assert upgrade == again.json()
    validator("upgrade-receipt.v1.json").validate(upgrade)
    assert first.headers["location"] == f"/v1/reviews/{receipt['review_id']}"
    report = verify_receipt(first.content, own.ledger.verifier, submission=encoded(sent))
    assert report.not_proved == verify_receipt(again.content, own.ledger.verifier, submission=encoded(sent)).not_proved
    record = own.reputation(host.speaker)
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 1)
    assert record["review_history"][0]["evidence"]["booking"] == "stay_receipt"
    # Once is enough.
    second = evidence(
        receipt["review_id"], stay_receipt(guest, host.speaker, nonce="again"), guest, now=own.running.clock()
    )
    problem(own.post(path, second), "already_verified")


# Feedback


def test_feedback_is_for_the_host_alone(own: Site, guest: Person) -> None:
    """Sealed when it comes in, fetched by who signs as the host, and gone when that says so."""
    host = Person("host of feedback")
    receipts = [own.review(guest, host, f"B-{n}", private_feedback=f"The tap drips, {n}.") for n in range(2)]
    assert [each["private_feedback"] for each in receipts] == ["sealed", "sealed"]
    answer = own.post("/v1/feedback", feedback_request(host))
    items = documented(own, answer, "/v1/feedback")["items"]
    assert [each["review_id"] for each in items] == [each["review_id"] for each in receipts]
    key = SealedBox(host.key.to_curve25519_private_key())
    opened = [key.decrypt(b64decode(each["sealed"])) for each in items]
    assert [each.rstrip(b"\0") for each in opened] == [b"The tap drips, 0.\x80", b"The tap drips, 1.\x80"]
    assert {each["key"] for each in items} == {host.method}
    # Another host gets nothing, and cannot take anything away.
    other = Person("another host")
    assert own.post("/v1/feedback", feedback_request(other, items[0]["review_id"])).json() == {"items": []}
    left = own.post("/v1/feedback", feedback_request(host, items[0]["review_id"])).json()["items"]
    assert left == items[1:]
    assert own.post("/v1/feedback", feedback_request(host, items[1]["review_id"])).json() == {"items": []}
    assert rows(own, "feedback") == 0


def test_other_methods_are_refused(own: Site) -> None:
    before = said(own)
    for path in ("/v1/bookings", "/v1/feedback", "/v1/reviews/cross-platform"):
        problem(own.get(path), "method_not_allowed")
    for method in ("PUT", "PATCH", "DELETE"):
        problem(own.client.request(method, f"/v1/submissions/sub-{'a' * 26}"), "method_not_allowed")
    assert said(own) == before
