"""What an honest ledger takes in, of every kind: its receipt holds in both verifiers, and nothing of it convicts.

The entries of an operator that lies are in tests/audits/test_bound_receipts.py.
"""

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from audits import entry_differs, standalone_receipts
from audits.receipts import verify_receipt
from ledger.errors import NotProved
from tests import attesting
from tests.hosting import BOOKED, Hosted, claim, evidence, notice
from tests.identities import RATINGS, Speaker, did_document
from tests.network import Neighbourhood
from tests.outcomes import become, silent
from tests.reviewing import GUEST, GUESTS, HOST, Reviewing, credential, encoded, response, review

WEB_GUEST = Speaker(77, "did:web:ada.example", "#mine")
WEB_HOST = Speaker(78, "did:web:inn.example", "#key-1")
LETTERS = 'aZ 5\t\r\n\u00e9\u0301\u200d\u202e\u00a0\u2028\U0001f44d\U000e0041\ufeff\\"/'


def bound(reviewing: Reviewing, receipt: Mapping[str, Any], signed: Mapping[str, Any]) -> list[str]:
    """What is not checked, once the receipt holds and does not convict; so does one without the newer members."""
    log = reviewing.ledger.verifier
    for given in (receipt, {name: value for name, value in receipt.items() if name != "keys_seen"}):
        data, body = encoded(given), encoded(signed)
        report = verify_receipt(data, log, submission=body)
        assert any("follows from it" in line for line in report.proved)
        assert standalone_receipts.verify(data.decode(), str(log), body.decode())
        with pytest.raises(NotProved, match="follows from the statement"):
            entry_differs.prove(data, body, None, log)
    assert signed["proof"]["verificationMethod"] in receipt["keys_seen"]
    return [line for line in report.not_proved if "not checked" in line]


def moved(hosted: Hosted, body: Mapping[str, Any]) -> None:
    """What was said at booking time."""
    hosted.clock.now, now = BOOKED, hosted.clock.now
    hosted.book(body)
    hosted.clock.now = now


def test_reviews_of_any_text_and_rating(reviewing: Reviewing) -> None:
    random = Random(24)
    for number in range(12):
        text = "".join(random.choices(LETTERS, k=random.choice((0, 1, 2, 40)))) or None
        ratings = {name: random.randrange(2, 11) / 2 for name in RATINGS}
        body = review(GUESTS[number % 8], reference=f"B-{number}", review_text=text, ratings=ratings)
        assert bound(reviewing, reviewing.submit(body).receipt, body) == []


def test_a_review_on_a_notice_a_claim_an_answer_and_a_late_notice(hosted: Hosted) -> None:
    host = hosted.site.speaker
    moved(hosted, notice(host))
    moved(hosted, claim(host, GUESTS[1], "B-2", booking_evidence=hosted.receipt(GUESTS[1], "B-2")))
    hosted.site.book(GUESTS[2], "B-3")
    hosted.book(notice(host, GUESTS[3], "B-4", now=hosted.clock.now))
    kinds = []
    for guest, reference in zip((GUEST, *GUESTS[1:]), ("B-1", "B-2", "B-3", "B-4"), strict=False):
        body = hosted.review(guest, reference, private_feedback="The tap drips.")
        taken: Any = hosted.take(body)
        kinds.append((json.loads(taken.receipt["entry"])["evidence"]["booking"], taken.receipt["booking"]["type"]))
        bound(hosted.reviewing, taken.receipt, body)
        assert (host.method in taken.receipt["keys_seen"]) == (kinds[-1][1] != "BookingClaim")
    assert kinds == [
        ("booking_notice", "BookingNotice"),
        ("booking_claim", "BookingClaim"),
        ("callback", "BookingVerification"),
        ("callback", "BookingNotice"),
    ]


def test_a_review_that_waited_its_response_and_its_upgrade(hosted: Hosted) -> None:
    waiting = silent(hosted, review_text="Damp.")
    for minutes in (1, 4, 25, 90, 240, *[720] * 6):
        hosted.go_on(minutes=minutes)
    receipt = become(hosted, waiting)["receipt"]
    assert receipt["verification_level"] == "unconfirmed"
    bound(hosted.reviewing, receipt, waiting.body)
    answer = response(receipt["review_id"], hosted.site.speaker, now=hosted.clock.now)
    first = hosted.reviewing.respond(answer)
    assert [line for line in bound(hosted.reviewing, first.receipt, answer) if "document on the web" in line]
    assert hosted.reviewing.respond(answer).receipt == first.receipt
    body = evidence(receipt["review_id"], hosted.receipt(), now=hosted.clock.now)
    raised = hosted.supplement(body)
    bound(hosted.reviewing, raised.receipt, body)
    assert set(raised.receipt["keys_seen"]) == {GUEST.method, hosted.site.speaker.method}
    assert hosted.supplement(body).receipt == raised.receipt


def test_a_guest_and_a_host_with_domains(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    """What the ledger saw is in the receipt, also after the keys have changed; offline it is not checked."""
    for speaker in (WEB_GUEST, WEB_HOST):
        domain = speaker.did.removeprefix("did:web:")
        neighbourhood.put(f"https://{domain}/.well-known/did.json", did_document(speaker), cache_control="no-store")
    body = review(WEB_GUEST, WEB_HOST, guest_credential=credential(WEB_GUEST))
    receipt = connected.submit(body).receipt
    assert receipt["keys_seen"] == {each.method: each.multikey for each in (WEB_GUEST, WEB_HOST)}
    assert len(bound(connected, receipt, body)) == 2
    other = Speaker(79, WEB_GUEST.did, "#mine")
    neighbourhood.put("https://ada.example/.well-known/did.json", did_document(other), cache_control="no-store")
    assert connected.submit(body).receipt == receipt


def test_a_claim_by_a_key_that_the_domain_has_no_more(hosted: Hosted) -> None:
    """The receipt names the key of the review. That the older claim is signed by another of this name is no lie."""
    newer = Speaker(79, WEB_GUEST.did, "#mine")
    address = "https://ada.example/.well-known/did.json"
    hosted.outside.put(address, did_document(WEB_GUEST), cache_control="no-store")
    hosted.site.book(WEB_GUEST)
    moved(hosted, claim(hosted.site.speaker, WEB_GUEST))
    hosted.outside.put(address, did_document(newer), cache_control="no-store")
    body = hosted.review(newer)
    taken: Any = hosted.take(body)
    assert taken.receipt["keys_seen"][newer.method] == newer.multikey
    assert taken.receipt["booking"]["type"] == "BookingClaim"
    assert len(bound(hosted.reviewing, taken.receipt, body)) == 2


@pytest.mark.parametrize("agreed", [False, True])
def test_an_import(connected: Reviewing, neighbourhood: Neighbourhood, agreed: bool) -> None:
    reviewing = attesting.attesting_ledger(connected, neighbourhood)
    body = attesting.attestation(guest_statement=attesting.consent() if agreed else None)
    receipt = attesting.attest(reviewing, body).receipt
    assert receipt["verification_level"] == ("guest_verified" if agreed else "host_attested")
    assert set(receipt["keys_seen"]) == ({HOST.method, GUEST.method} if agreed else {HOST.method})
    assert bound(reviewing, receipt, body) == []
