"""What a review leaves with its guest and host: what showed the stay, and the private words."""

from datetime import timedelta
from typing import Any

import pytest
from nacl.public import PrivateKey

from audits.receipts import verify_receipt
from ledger.canon import base58
from ledger.errors import NotProved
from ledger.identity.sealing import unseal
from ledger.reviews.receipts import Accepted
from tests.hosting import Hosted, claim, notice
from tests.identities import NOW, Speaker, did_document
from tests.ledger.reviews.shown import before_check_in, rows
from tests.outcomes import become
from tests.reviewing import GUESTS, encoded

WORDS = "The tap drips."


def accepted(hosted: Hosted, body: Any) -> dict[str, Any]:
    taken = hosted.take(body)
    assert isinstance(taken, Accepted)
    return taken.receipt


@pytest.mark.parametrize("kind", ["booking_claim", "booking_notice", "late notice", "callback"])
def test_the_statement_that_showed_the_stay_opens_the_commitment(hosted: Hosted, kind: str) -> None:
    """With the submission, and no other does; the same receipt when it comes again, also after a restart."""
    site = hosted.site
    said = notice(site.speaker)
    if kind == "booking_claim":
        said = claim(site.speaker, booking_evidence=hosted.receipt())
    if kind in ("booking_claim", "booking_notice"):
        before_check_in(hosted, said)
    if kind == "late notice":
        hosted.book(said)
    site.book()
    body = hosted.review()
    receipt = accepted(hosted, body)
    if kind == "callback":
        assert receipt["booking"]["type"] == "BookingVerification"
    else:
        assert receipt["booking"] == said
    verifier = hosted.reviewing.ledger.verifier
    report = verify_receipt(encoded(receipt), verifier, submission=encoded(body))
    assert "the review rests on exactly this signed submission" in report.proved
    for other in ({**receipt["booking"], "check_in": "2026-05-19"}, None):
        with pytest.raises(NotProved) as refused:
            verify_receipt(encoded({**receipt, "booking": other}), verifier, submission=encoded(body))
        assert refused.value.code == "opening_mismatch"
    hosted.reviewing.reopen()
    assert accepted(hosted, body) == receipt


def test_private_words_are_for_the_host_alone(hosted: Hosted) -> None:
    body = hosted.review(booking_evidence=hosted.receipt(), private_feedback=WORDS)
    receipt = accepted(hosted, body)
    assert (receipt["private_feedback"], "booking" in receipt) == ("sealed", False)
    assert accepted(hosted, body) == receipt
    [(_, _, sealed, method, until)] = rows(hosted, "feedback")
    assert (method, until) == (hosted.site.speaker.method, "2027-06-01")
    assert unseal(bytes(sealed), hosted.site.speaker.key) == WORDS
    with pytest.raises(NotProved):
        unseal(bytes(sealed), Speaker(99).key)
    assert WORDS.encode() not in bytes(sealed)


def test_private_words_go_to_the_key_that_is_there_for_such(hosted: Hosted) -> None:
    site, secret = hosted.site, PrivateKey(bytes([97] * 32))
    agreement = {
        "id": f"{site.speaker.did}#mail",
        "type": "X25519KeyAgreementKey2020",
        "controller": site.speaker.did,
        "publicKeyMultibase": "z" + base58.encode(b"\xec\x01" + bytes(secret.public_key)),
    }
    document = did_document(site.speaker, keyAgreement=[agreement])
    hosted.outside.put(f"https://{site.name}/.well-known/did.json", document)
    receipt = accepted(hosted, hosted.review(booking_evidence=hosted.receipt(), private_feedback=WORDS))
    assert receipt["private_feedback"] == "sealed"
    [(_, _, sealed, method, _)] = rows(hosted, "feedback")
    assert method == agreement["id"]
    assert unseal(bytes(sealed), secret) == WORDS


def test_private_words_of_a_stay_that_nobody_confirmed_are_not_delivered(hosted: Hosted) -> None:
    hosted.site.down = 503
    waiting = hosted.wait(hosted.review(private_feedback=WORDS))
    hosted.time_out()
    receipt = become(hosted, waiting)["receipt"]
    assert (receipt["verification_level"], receipt["private_feedback"]) == ("unconfirmed", "undeliverable")
    assert rows(hosted, "feedback") == []
    assert accepted(hosted, waiting.body) == receipt


def test_private_words_for_a_host_whose_keys_nobody_knows_now_are_not_delivered(hosted: Hosted) -> None:
    """Its key of then shows the stay. Whether it still has it nobody can say."""
    accepted(hosted, hosted.review(booking_evidence=hosted.receipt()))
    hosted.outside.take_down(hosted.site.name)
    hosted.clock.forward(minutes=6)
    # Signed six minutes ago, when the key was seen; `stay_receipt` signs fifty days before its `now`.
    receipt = hosted.receipt(GUESTS[1], now=NOW + timedelta(days=50))
    taken = accepted(hosted, hosted.review(GUESTS[1], booking_evidence=receipt, private_feedback=WORDS))
    assert taken["private_feedback"] == "undeliverable"
    assert rows(hosted, "feedback") == []
