"""OpenSTR RFC-005 7.3.2, how a booking is confirmed: the index asks the host's booking endpoint by a signed callback,
and what the host answers, or does not."""

import json
import re
from base64 import b64decode
from datetime import timedelta
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from audits.verify import verify_answer
from tests.api.hosts_and_guests import NEXT, add_host, asking, entry_of, settle, state, wait_out
from tests.api.refusals import check_signed
from tests.api.site import Person, Site, problem
from tests.hosting import HostSite, claim, evidence, notice
from tests.identities import NOW
from tests.interop.rfc005 import CATEGORIES
from tests.network import Request
from tests.reviewing import DOMAIN, HOST, credential, review, stay_receipt


def question_of(host: HostSite) -> Request:
    return next(asked for asked in reversed(host.outside.asked) if asked.url.startswith(host.endpoint))


def test_the_callback_is_signed(site: Site, guest: Person) -> None:
    """7.3.2 a signed callback: RFC 9421, by the key that the index publishes, over method, address and body; made now,
    for a minute, with a nonce. Verified here with nothing of the ledger's own code."""
    host = add_host(site, "signed.example")
    host.book(guest, "B/1 ä")
    assert site.submit(asking(guest, host.speaker, "B/1 ä")).status_code == 201
    asked = question_of(host)
    assert (asked.method, asked.url) == ("POST", f"{host.endpoint}/B%2F1%20%C3%A4/verify")
    label, _, params = asked.headers["signature-input"].partition("=")
    covered = re.findall(r'"([^"]+)"', params[: params.index(")")])
    values = {"@method": asked.method, "@target-uri": asked.url}
    lines = [f'"{name}": {values.get(name) or asked.headers[name]}' for name in covered]
    base = "\n".join([*lines, f'"@signature-params": {params}'])
    signature = b64decode(asked.headers["signature"].removeprefix(f"{label}=:").removesuffix(":"))
    name, key = site.statements_key()
    Ed25519PublicKey.from_public_bytes(key).verify(signature, base.encode())
    assert {"@method", "@target-uri", "content-digest", "content-type"} <= set(covered)
    digest = b64decode(asked.headers["content-digest"].removeprefix("sha-256=:").removesuffix(":"))
    assert digest == sha256(asked.body).digest()
    said = dict(re.findall(r';(\w+)=(?:"([^"]*)"|\d+)', params))
    assert said["keyid"] == f"{DOMAIN}/.well-known/did.json#statements"
    assert name.endswith("#statements")
    assert f";created={int(NOW.timestamp())}" in params
    assert said["nonce"] == json.loads(asked.body)["guest_binding"]["nonce"]


def test_the_callback_tells_nothing_of_the_review(site: Site, guest: Person) -> None:
    """7.3.2 a signed callback: of the booking what the host knows, of the guest a salted hash, of the review nothing."""
    host = add_host(site, "discreet.example")
    host.book(guest)
    site.submit(asking(guest, host.speaker, review_text="Damp walls.", private_feedback="The tap drips."))
    body = json.loads(question_of(host).body)
    assert body.keys() == {
        *("type", "openstr_version", "request_id", "index", "booking_reference", "listing_id", "host_did"),
        *("check_in", "check_out", "guest_binding"),
    }
    told = question_of(host).body.decode() + str(question_of(host).headers)
    for secret in ("Damp", "tap", "4.5", "ratings", guest.did, guest.multikey, sha256(guest.did.encode()).hexdigest()):
        assert secret not in told


def test_a_confirmed_booking(site: Site, guest: Person) -> None:
    """7.3.2 the host's answer: what it confirms, signed, is a verified review."""
    host = add_host(site, "confirming.example")
    host.book(guest)
    answer = site.submit(asking(guest, host.speaker))
    assert answer.status_code == 201
    assert answer.json()["verification_level"] == "guest_verified"
    assert entry_of(answer.json())["evidence"]["booking"] == "callback"
    record = site.reputation(host.speaker)
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 1)


DENIED: dict[str, dict[str, Any] | None] = {
    "no such booking": None,
    "another guest": {"guest": Person("somebody else")},
    "declined": {"status": "declined"},
    "expired": {"status": "expired"},
    "cancelled in time": {"status": "cancelled", "cancelled_at": "2026-05-01T00:00:00Z"},
}


@pytest.mark.parametrize("which", DENIED)
def test_a_denied_booking(own: Site, guest: Person, which: str) -> None:
    """7.3.2 the host's answer: what it denies, signed, is refused, signed as well; and the record says that it did."""
    host, said = add_host(own, "denying.example"), DENIED[which]
    if said is not None:
        host.book(**{"guest": guest, **said})
    sent = asking(guest, host.speaker)
    refused = problem(own.submit(sent), "booking_denied")
    check_signed(own, refused["refusal"], "booking_denied", sent)
    record = own.reputation(host.speaker)
    assert (record["total_reviews"], record["statistics"]["checks"]["denied"]) == (0, 1)


@pytest.mark.parametrize("changes", [{"check_in": "2026-05-21"}, {"check_out": "2026-05-23"}])
def test_a_booking_of_other_dates(site: Site, guest: Person, changes: dict[str, Any]) -> None:
    """7.3.2 the host's answer: other dates than were booked are refused, and are no denial."""
    host = add_host(site, f"{'-'.join(changes).replace('_', '-')}.example")
    host.book(guest, **changes)
    problem(site.submit(asking(guest, host.speaker)), "booking_dates_mismatch")
    record = site.reputation(host.speaker)
    assert (record["total_reviews"], record["statistics"]) == (0, site.reputation(Person("nobody"))["statistics"])


@pytest.mark.parametrize("which", ["pending", "cancelled late", "500", "404", "redirected", "unsigned"])
def test_what_is_no_answer(own: Site, guest: Person, which: str) -> None:
    """7.3.2 silence: whatever is not the host's signed yes or no is neither. The review waits, and is published as
    unconfirmed: listed and counted, and no part of the mean."""
    host = add_host(own, "odd.example")
    host.book(guest)
    if which == "pending":
        host.book(guest, status="pending")
    elif which == "cancelled late":
        host.book(guest, status="cancelled", cancelled_at="2026-05-20T12:00:00Z")
    elif which == "unsigned":
        own.outside.put(f"{host.endpoint}/B-1/verify", {"known": False, "status": "declined"})
    else:
        host.down = {"500": 500, "404": 404, "redirected": 302}[which]
    answer = own.submit(asking(guest, host.speaker))
    assert answer.status_code == 202
    assert own.reputation(host.speaker)["total_reviews"] == 0
    wait_out(own)
    receipt = state(own, answer.json()["submission_id"])["receipt"]
    assert receipt["verification_level"] == "unconfirmed"
    record = own.reputation(host.speaker)
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 0)
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES)
    assert record["statistics"]["checks"]["unanswered"] == 1
    proved = own.get(f"/v1/hosts/{host.speaker.did}/reputation?proof=full").content
    verify_answer(proved, own.ledger.verifier, host.speaker.did)


def test_a_host_that_answers_later(own: Site, guest: Person) -> None:
    """7.3.2 silence: within the three days it can still answer, and is asked again."""
    host = add_host(own, "late.example")
    host.down = 503
    host.book(guest)
    waiting = own.submit(asking(guest, host.speaker)).json()
    own.running.clock.forward(hours=30)
    settle(own)
    assert state(own, waiting["submission_id"])["status"] == "pending"
    host.down = None
    own.running.clock.forward(hours=12)
    settle(own)
    assert state(own, waiting["submission_id"])["receipt"]["verification_level"] == "guest_verified"


def test_nothing_that_a_host_says_later_raises_a_level(own: Site, guest: Person) -> None:
    """7.3.2 silence: once it can read the review, only the guest's receipt counts."""
    host = add_host(own, "choosy.example")
    host.down = 503
    waiting = own.submit(asking(guest, host.speaker)).json()
    wait_out(own)
    host.down = None
    host.book(guest)
    now = own.running.clock()
    assert own.post("/v1/bookings", notice(host.speaker, guest, now=now)).status_code == 201
    own.running.clock.forward(days=1)
    settle(own)
    assert own.reputation(host.speaker)["verified_reviews"] == 0
    review_id = state(own, waiting["submission_id"])["receipt"]["review_id"]
    sent = evidence(review_id, stay_receipt(guest, host.speaker), guest, now=own.running.clock())
    assert own.post(f"/v1/reviews/{review_id}/evidence", sent).status_code == 201
    assert own.reputation(host.speaker)["verified_reviews"] == 1


@pytest.mark.parametrize("how", ["receipt", "claim", "notice"])
def test_evidence_from_before_check_in(own: Site, guest: Person, how: str) -> None:
    """7.3.2 evidence from before: what the host said at booking time counts without asking, though it now denies."""
    host, clock = add_host(own, "fickle.example"), own.running.clock
    clock.now = NOW - timedelta(days=50)
    given = stay_receipt(guest, host.speaker, now=NOW)
    if how == "claim":
        body = claim(host.speaker, guest, booking_evidence=given)
        assert own.post("/v1/bookings", body).status_code == 201
    elif how == "notice":
        assert own.post("/v1/bookings", notice(host.speaker, guest)).status_code == 201
    clock.now = NOW
    shown = given if how == "receipt" else None
    answer = own.submit(review(guest, host.speaker, booking_evidence=shown))
    assert answer.status_code == 201
    kind = {"receipt": "stay_receipt", "claim": "booking_claim", "notice": "booking_notice"}[how]
    assert entry_of(answer.json())["evidence"]["booking"] == kind
    assert host.asked == []


def test_nobody_is_asked_for_just_anybody(site: Site, guest: Person) -> None:
    """7.3.2 a signed callback: only to endpoints that the index knows, and for guests whose identity was verified."""
    host, unknown = add_host(site, "asked.example"), add_host(site, "never-asked.example", known=False)
    host.book(guest)
    mailed = credential(guest, level="email_verified")
    problem(site.submit(asking(guest, host.speaker, guest_credential=mailed)), "booking_unverifiable")
    problem(site.submit(asking(guest, unknown.speaker)), "booking_unverifiable")
    problem(site.post("/v1/bookings", claim(HOST, guest, now=NOW, **NEXT)), "booking_unverifiable")
    assert (host.asked, unknown.asked) == ([], [])
