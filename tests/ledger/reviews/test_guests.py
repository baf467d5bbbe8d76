"""Guests: who they are to the ledger, and that a host cannot make them somebody else."""

import json
from typing import Any

import pytest

from ledger.errors import NotAccepted, Refused
from ledger.identity.issuers import distrust
from ledger.reviews import guests
from ledger.reviews.guests import Guest
from tests.hosting import Hosted, claim, notice
from tests.identities import IDV, ISSUER, Speaker
from tests.ledger.reviews.shown import before_check_in, outcome
from tests.reviewing import GUEST, GUESTS, Reviewing, review


def guest(level: str = "identity_verified") -> Guest:
    return Guest(GUEST.did, {GUEST.method: GUEST.public}, IDV, "person", level, ISSUER.public, 2)


def test_a_guest_that_waits_is_read_again_as_it_was() -> None:
    assert Guest.parse(json.loads(json.dumps(guest().as_json()))) == guest()


@pytest.mark.parametrize(
    ("level", "identified"), [("email_verified", False), ("identity_verified", True), ("payment_verified", True)]
)
def test_whom_a_host_is_asked_for(level: str, identified: bool) -> None:
    assert guest(level).is_identified == identified


def test_trust_that_ends_is_seen(reviewing: Reviewing) -> None:
    assert guests.require_trusted(reviewing.desk, guest()) == reviewing.ledger.registries.newest().newest
    draft = distrust(reviewing.ledger.issuers(), "guest", IDV, None)
    assert draft is not None
    reviewing.add(draft)
    with pytest.raises(NotAccepted) as refused:
        guests.require_trusted(reviewing.desk, guest())
    assert refused.value.code == "issuer_not_trusted"


def test_nobody_is_their_own_guest() -> None:
    for host in (GUEST, Speaker(20)):
        body = review(host=host)
        with pytest.raises(NotAccepted) as refused:
            guests.check(body, "ReviewSubmission", host.did)
        assert refused.value.code == "self_review"


# A host that writes its guests' keys into its document


def accused(hosted: Hosted, **changes: Any) -> str:
    """The host has the guest's key in its document, beside its own."""
    site = hosted.site
    site.publish(site.speaker, Speaker(20, site.speaker.did, "#guest"))
    return outcome(hosted, hosted.review(**changes))


def test_a_host_cannot_silence_a_guest_by_publishing_their_key(hosted: Hosted) -> None:
    assert accused(hosted, booking_evidence=hosted.receipt()) == "stay_receipt"


@pytest.mark.parametrize("kind", ["booking_claim", "booking_notice", "callback"])
def test_nor_whatever_shows_the_stay(hosted: Hosted, kind: str) -> None:
    host = hosted.site.speaker
    hosted.site.book()
    if kind == "booking_claim":
        before_check_in(hosted, claim(host, booking_evidence=hosted.receipt()))
    elif kind == "booking_notice":
        before_check_in(hosted, notice(host))
    hosted.clock.forward(minutes=6)
    assert accused(hosted) == kind


def test_whoever_signs_as_the_host_by_their_own_key_is_the_host(hosted: Hosted) -> None:
    """A receipt is not believed, nor an answer."""
    site = hosted.site
    as_host = Speaker(20, site.speaker.did, "#guest")
    site.publish(as_host, site.speaker)
    receipt = hosted.receipt()
    with pytest.raises(Refused) as refused:
        hosted.take(hosted.review(booking_evidence=receipt))
    assert refused.value.code == "self_review"
    site.book()
    assert outcome(hosted, hosted.review()) == "waiting"


@pytest.mark.parametrize("late", [False, True])
def test_nor_is_a_notice(hosted: Hosted, late: bool) -> None:
    site = hosted.site
    as_host = Speaker(20, site.speaker.did, "#guest")
    site.publish(site.speaker, as_host)
    if late:
        hosted.book(notice(as_host))
    else:
        before_check_in(hosted, notice(as_host))
    assert outcome(hosted, hosted.review()) == "self_review"
    # Another guest's is as good as any.
    hosted.book(notice(as_host, GUESTS[1], "B-2"))
    assert outcome(hosted, hosted.review(GUESTS[1], "B-2")) == "callback"
