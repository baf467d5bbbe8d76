"""Hosts and guests whose DID is a domain: keys that change, documents that are gone, domains that change hands
(design: booking evidence, host keys)."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon.times import format_time
from ledger.errors import NotAccepted, Refused, StaylogError, Unavailable
from ledger.identity.issuers import trust
from ledger.reputation.answers import Query, reputation
from ledger.reviews.pending import Waiting
from ledger.reviews.worker import Worker
from ledger.store.rows import run
from tests.identities import Speaker, did_document
from tests.network import Neighbourhood
from tests.reviewing import (
    GUESTS,
    HOST,
    Reviewing,
    credential,
    encoded,
    resigned,
    response,
    review,
    stay_receipt,
    take,
)

NAME = "did:web:cottage.example"
URL = "https://cottage.example/.well-known/did.json"
OLD, NEW, BUYER = Speaker(3, NAME, "#key-1"), Speaker(13, NAME, "#key-2"), Speaker(14, NAME, "#mine")


class Cottage:
    """A ledger, and a host with a did:web that guests review one after the other."""

    def __init__(self, reviewing: Reviewing, outside: Neighbourhood) -> None:
        self.reviewing = reviewing
        self.outside = outside
        self.clock = reviewing.clock
        self._guests = iter(GUESTS)

    def publish(self, *speakers: Speaker) -> None:
        self.outside.put(URL, did_document(*speakers))

    def go_down(self) -> None:
        self.outside.host("cottage.example")
        self.outside.take_down("cottage.example")

    def visit(self, signer: Speaker, *, booked: timedelta = timedelta(days=50), **changes: Any) -> dict[str, Any]:
        """A review of a stay at the cottage by a new guest, whose receipt this key signed so long ago."""
        guest, now = next(self._guests), self.clock()
        receipt = stay_receipt(guest, signer, now=now - booked + timedelta(days=50))
        return review(guest, OLD, now=now, booking_evidence=receipt, **changes)

    def outcome(self, body: dict[str, Any]) -> str:
        """The level it is taken in with, that it waits, or the code; who has shown who they are gets it signed."""
        try:
            taken = take(self.reviewing.desk, encoded(body))
        except Refused as refused:
            return refused.code
        return "waiting" if isinstance(taken, Waiting) else str(taken.receipt["verification_level"])

    def changed_at(self) -> str | None:
        ledger = self.reviewing.ledger
        changed_at = ledger.archive.changed_at(NAME)
        answer = reputation(ledger.reader, ledger.registries, NAME, Query(), None, changed_at)
        assert json.loads(answer)["host_key_changed_at"] == changed_at
        return changed_at


@pytest.fixture
def cottage(connected: Reviewing, neighbourhood: Neighbourhood) -> Cottage:
    return Cottage(connected, neighbourhood)


def test_a_host_with_a_did_web_is_reviewed_and_responds(cottage: Cottage) -> None:
    cottage.publish(OLD)
    taken = cottage.reviewing.submit(cottage.visit(OLD)).receipt
    assert taken["verification_level"] == "guest_verified"
    answered = cottage.reviewing.respond(response(taken["review_id"], OLD)).receipt
    assert answered["status"] == "accepted"
    assert cottage.changed_at() is None
    # Once in five minutes, however many come.
    assert cottage.outside.requests[URL] == 1
    cottage.reviewing.answer(NAME)


def test_a_host_is_asked_only_when_a_guest_has_shown_who_they_are(cottage: Cottage) -> None:
    cottage.publish(OLD)
    stranger = Speaker(9, "https://other.example", "/keys/1")
    guest = GUESTS[9]
    untrusted = review(guest, OLD, guest_credential=credential(guest, issuer=stranger))
    without = review(guest, OLD, booking_evidence=None)
    for_another = review(guest, OLD, booking_evidence=stay_receipt(guest, OLD, "B-9"))
    for body, code in (
        (untrusted, "issuer_not_trusted"),
        ({**review(guest, OLD), "review_text": "changed"}, "proof_invalid"),
        (for_another, "booking_evidence_invalid"),
    ):
        with pytest.raises(StaylogError) as refused:
            cottage.reviewing.submit(body)
        assert refused.value.code == code
    assert cottage.outside.connections == 0
    assert cottage.outcome(without) == "booking_unverifiable"
    assert cottage.outside.requests == {URL: 1}


# Key rotation between booking and review


def test_a_key_that_was_seen_when_the_receipt_was_made_counts_after_a_rotation(cottage: Cottage) -> None:
    cottage.publish(OLD)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.clock.forward(days=20)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.publish(NEW)
    cottage.clock.forward(days=20)
    # Booked 30 days ago, while the old key was seen: twice, 40 and 20 days ago.
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=30))) == "guest_verified"
    assert cottage.changed_at() == format_time(cottage.clock())


def test_a_key_that_nobody_saw_then_is_no_evidence_and_no_forgery(cottage: Cottage) -> None:
    """422: the guest asks the host for a new receipt, which any current key signs, at any time."""
    cottage.publish(NEW)
    assert cottage.outcome(cottage.visit(OLD)) == "booking_unverifiable"
    assert cottage.outcome(cottage.visit(NEW)) == "guest_verified"
    assert cottage.outcome(cottage.visit(NEW, booked=timedelta(0))) == "guest_verified"


def test_a_remembered_key_counts_only_for_the_time_in_which_it_was_seen(cottage: Cottage) -> None:
    """The old key is perhaps in other hands by now: what it signs after it was gone does not count."""
    cottage.publish(OLD)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.publish(NEW)
    cottage.clock.forward(days=10)
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=5))) == "booking_unverifiable"
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=11))) == "booking_unverifiable"
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=10))) == "guest_verified"


def test_a_forged_receipt_is_one_whatever_keys_there_were(cottage: Cottage) -> None:
    cottage.publish(OLD)
    for forger in (Speaker(77, NAME, "#key-1"), Speaker(77, HOST.did, f"#{HOST.multikey}")):
        assert cottage.outcome(cottage.visit(forger)) == "booking_evidence_invalid"
    changed = cottage.visit(OLD)["booking_evidence"] | {"nonce": "changed"}
    guest = GUESTS[3]
    body = review(guest, OLD, booking_evidence={**changed, "guest_did": guest.did})
    assert cottage.outcome(body) == "booking_evidence_invalid"


def test_a_statement_that_is_made_now_needs_a_key_of_now(cottage: Cottage) -> None:
    cottage.publish(OLD)
    review_id = cottage.reviewing.submit(cottage.visit(OLD)).receipt["review_id"]
    cottage.publish(NEW)
    cottage.clock.forward(minutes=6)
    with pytest.raises(NotAccepted) as refused:
        cottage.reviewing.respond(response(review_id, OLD, now=cottage.clock()))
    assert refused.value.code == "bad_verification_method"
    answered = cottage.reviewing.respond(response(review_id, NEW, now=cottage.clock()))
    assert answered.receipt["status"] == "accepted"


# DID document offline


def test_a_host_that_is_down_is_judged_by_what_is_remembered(cottage: Cottage) -> None:
    cottage.publish(OLD)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.clock.forward(days=2)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.go_down()
    cottage.clock.forward(days=2)
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=3))) == "guest_verified"
    # Signed before the key was first seen: the document of now would say, and is waited for.
    assert cottage.outcome(cottage.visit(OLD)) == "waiting"


def test_a_host_that_nobody_knows_and_that_is_down_is_waited_for_and_not_denied(cottage: Cottage) -> None:
    cottage.go_down()
    body = cottage.visit(OLD)
    assert cottage.outcome(body) == "waiting"
    # It is the same that waits, however often it comes.
    assert cottage.outcome(body) == "waiting"
    cottage.publish(OLD)
    cottage.clock.forward(minutes=1)
    assert asyncio.run(Worker(cottage.reviewing.ledger.desk()).work()) == 1
    assert cottage.outcome(body) == "guest_verified"


def test_nobody_waits_for_a_host_whose_identity_nobody_has_verified(cottage: Cottage) -> None:
    """They come again themselves."""
    cottage.go_down()
    body = cottage.visit(OLD, guest_credential=credential(GUESTS[0], level="email_verified"))
    with pytest.raises(Refused) as refused:
        cottage.reviewing.submit(body)
    assert isinstance(refused.value.reason, Unavailable)
    assert (refused.value.code, refused.value.reason.retry_after) == ("host_did_unavailable", 30)
    # It occupies nothing, and counts once the host is back.
    cottage.publish(OLD)
    cottage.clock.forward(seconds=30)
    assert cottage.outcome(body) == "guest_verified"


@pytest.mark.parametrize(
    "document",
    [{}, {"id": "did:web:other.example"}, did_document(OLD, verificationMethod="none"), b"<html>", b"{"],
    ids=["empty", "of another", "broken", "a page", "no JSON"],
)
def test_a_host_cannot_silence_guests_by_a_document_that_cannot_be_read(cottage: Cottage, document: Any) -> None:
    cottage.publish(OLD)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.clock.forward(minutes=6)
    cottage.outside.put(URL, document)
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(minutes=6))) == "guest_verified"
    assert cottage.outcome(cottage.visit(OLD)) == "waiting"


def test_a_host_that_is_down_cannot_respond_by_an_old_key(cottage: Cottage) -> None:
    cottage.publish(OLD)
    review_id = cottage.reviewing.submit(cottage.visit(OLD)).receipt["review_id"]
    cottage.go_down()
    cottage.clock.forward(minutes=6)
    with pytest.raises(Unavailable) as refused:
        cottage.reviewing.respond(response(review_id, OLD, now=cottage.clock()))
    assert refused.value.code == "host_did_unavailable"
    cottage.publish(OLD)
    cottage.clock.forward(minutes=1)
    answered = cottage.reviewing.respond(response(review_id, OLD, now=cottage.clock()))
    assert answered.receipt["status"] == "accepted"


def test_what_is_remembered_survives_a_restart(cottage: Cottage) -> None:
    cottage.publish(OLD)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    cottage.go_down()
    cottage.reviewing.reopen()
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(0))) == "guest_verified"


# The domain changed hands


def test_whoever_holds_the_domain_holds_the_did_and_it_shows(cottage: Cottage) -> None:
    cottage.publish(OLD)
    review_id = cottage.reviewing.submit(cottage.visit(OLD)).receipt["review_id"]
    cottage.clock.forward(days=5)
    assert cottage.outcome(cottage.visit(OLD)) == "guest_verified"
    assert cottage.changed_at() is None
    cottage.publish(BUYER)
    cottage.clock.forward(days=5)
    # What the seller signed while it held the domain stays good; what it signs now is nothing.
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=7))) == "guest_verified"
    assert cottage.outcome(cottage.visit(OLD, booked=timedelta(days=1))) == "booking_unverifiable"
    with pytest.raises(NotAccepted) as refused:
        cottage.reviewing.respond(response(review_id, OLD, now=cottage.clock()))
    assert refused.value.code == "bad_verification_method"
    # The buyer speaks for the DID. Everybody is told since when.
    assert cottage.outcome(cottage.visit(BUYER)) == "guest_verified"
    answered = cottage.reviewing.respond(response(review_id, BUYER, now=cottage.clock()))
    assert answered.receipt["status"] == "accepted"
    assert cottage.changed_at() == format_time(cottage.clock())


# Guests


def guest_body(guest: Speaker, **changes: Any) -> dict[str, Any]:
    return review(guest, HOST, guest_credential=credential(guest), **changes)


GUEST_URL = "https://guest.example/.well-known/did.json"
BY_WEB = Speaker(50, "did:web:guest.example", "#key-1")


def test_a_guest_with_a_did_web(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(GUEST_URL, did_document(BY_WEB))
    assert connected.submit(guest_body(BY_WEB)).receipt["verification_level"] == "guest_verified"
    # Nothing is remembered of a guest.
    with connected.ledger.store.read() as connection:
        assert run(connection, "SELECT * FROM did_key") == []
        assert run(connection, "SELECT * FROM did_document") == []


def test_a_guest_is_asked_for_only_when_an_issuer_has_vouched(
    connected: Reviewing, neighbourhood: Neighbourhood
) -> None:
    """Otherwise anybody could send us anywhere."""
    neighbourhood.put(GUEST_URL, did_document(BY_WEB))
    stranger = Speaker(9, "https://other.example", "/keys/1")
    with pytest.raises(NotAccepted) as refused:
        connected.submit(guest_body(BY_WEB) | {"guest_credential": credential(BY_WEB, issuer=stranger)})
    assert refused.value.code == "issuer_not_trusted"
    assert neighbourhood.connections == 0


@pytest.mark.parametrize(
    ("document", "code"),
    [
        (did_document(BY_WEB, assertionMethod=[]), "bad_verification_method"),
        (did_document(Speaker(51, BY_WEB.did, "#key-1")), "proof_invalid"),
        (did_document(BY_WEB, id="did:web:other.example"), "did_document_invalid"),
        (b"{", "guest_did_unavailable"),
    ],
)
def test_a_guest_whose_document_does_not_bear_it_out(
    connected: Reviewing, neighbourhood: Neighbourhood, document: Any, code: str
) -> None:
    neighbourhood.put(GUEST_URL, document)
    with pytest.raises(StaylogError) as refused:
        connected.submit(guest_body(BY_WEB))
    assert refused.value.code == code
    assert not isinstance(refused.value, Refused)


def test_a_stolen_credential_of_a_guest_with_a_did_web(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(GUEST_URL, did_document(BY_WEB))
    thief = Speaker(4, BY_WEB.did, "#key-1")
    with pytest.raises(NotAccepted) as refused:
        connected.submit(resigned(guest_body(BY_WEB), thief))
    assert refused.value.code == "proof_invalid"


def test_nobody_reviews_themselves_under_another_name(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    """The guest's key signed the receipt, whatever it is called in documents or in names."""
    key = Speaker(60)
    as_host, as_guest = Speaker(60, NAME, "#key-1"), Speaker(60, BY_WEB.did, "#me")
    neighbourhood.put(URL, did_document(as_host))
    neighbourhood.put(GUEST_URL, did_document(as_guest))
    for guest in (key, as_guest):
        with pytest.raises(Refused) as refused:
            connected.submit(review(guest, as_host, guest_credential=credential(guest)))
        assert refused.value.code == "self_review"
    # It has another key by now, by which it gave a receipt. That it had the guest's once shows nothing: it may have
    # written it down to be rid of the guest.
    guest = GUESTS[0]
    connected.submit(review(guest, as_host, guest_credential=credential(guest)))
    neighbourhood.put(URL, did_document(NEW))
    connected.clock.forward(minutes=6)
    body = review(
        key, as_host, now=connected.clock(), booking_evidence=stay_receipt(key, NEW), guest_credential=credential(key)
    )
    assert connected.submit(body).receipt["verification_level"] == "guest_verified"


def test_an_issuer_with_a_did_web_needs_no_asking(connected: Reviewing, neighbourhood: Neighbourhood) -> None:
    """Its keys are pinned, as those of any other."""
    issuer = Speaker(70, "did:web:idv.example", "#key-1")
    draft = trust(connected.ledger.issuers(), "guest", issuer.did, [issuer.multikey], None)
    assert draft is not None
    connected.add(draft)
    body = review(GUESTS[0], HOST, guest_credential=credential(GUESTS[0], issuer=issuer))
    assert connected.submit(body).receipt["verification_level"] == "guest_verified"
    assert neighbourhood.connections == 0
