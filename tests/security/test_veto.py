"""The veto: what a host does to keep a review out, and how it ends (design: reviews 3).

Whoever has something to show from the time of the booking is heard, whatever the host does later. Whoever has nothing
but their word is heard beside the mean, and the host's silence is counted. Of every attempt the proved answer tells.
What is left to a host is in docs/threat-model.md.
"""

from typing import Any

import pytest

from ledger.reviews.claims import Claimed
from ledger.reviews.listings import add_listing
from ledger.reviews.receipts import Accepted
from tests.hosting import BOOKED, LISTING, Hosted, claim, evidence
from tests.reviewing import GUEST, GUESTS
from tests.security.standing import BAD, GOOD, Standing, confirm_only, decided, refused, say, standing

SYBIL = GUESTS[9]


# (a) It confirms only whom it likes


def test_a_host_that_confirms_only_whom_it_likes(hosted: Hosted) -> None:
    """Three are confirmed, of two it does not speak. The mean is what it wants; beside it stand two reviews of 1.0, and
    that it did not answer twice."""
    for number, guest in enumerate(GUESTS[:5]):
        hosted.site.book(guest, f"B-{number}")
    confirm_only(hosted, {"B-0", "B-1", "B-2"})
    for number, guest in enumerate(GUESTS[:3]):
        assert isinstance(hosted.take(hosted.review(guest, f"B-{number}", ratings=GOOD)), Accepted)
    unwelcome = [hosted.wait(hosted.review(GUESTS[number], f"B-{number}", ratings=BAD)) for number in (3, 4)]
    liked = Standing(5.0, verified=3, shown=("guest_verified, callback",) * 3)
    assert standing(hosted) == liked
    hosted.time_out()
    assert [decided(hosted, each) for each in unwelcome] == ["accepted"] * 2
    assert standing(hosted) == Standing(
        5.0,
        verified=3,
        unconfirmed=2,
        unconfirmed_mean=1.0,
        unanswered=2,
        shown=(*("guest_verified, callback",) * 3, *("unconfirmed, none",) * 2),
    )


def test_it_cannot_choose_among_those_who_have_a_receipt(hosted: Hosted) -> None:
    """Nor among those with a claim: it is not asked at all."""
    confirm_only(hosted, set())
    hosted.clock.now = BOOKED
    assert isinstance(hosted.book(claim(hosted.site.speaker, booking_evidence=hosted.receipt())), Claimed)
    hosted.clock.forward(days=50)
    hosted.take(hosted.review(ratings=BAD))
    receipt = hosted.receipt(GUESTS[1], "B-2")
    hosted.take(hosted.review(GUESTS[1], "B-2", ratings=BAD, booking_evidence=receipt))
    assert hosted.site.asked == []
    shown = ("guest_verified, booking_claim", "guest_verified, stay_receipt")
    assert standing(hosted) == Standing(1.0, verified=2, shown=shown)


def test_one_that_gives_no_receipts_and_has_no_endpoint_is_not_reviewed(hosted: Hosted) -> None:
    """What is left to a host that keeps away altogether: 422, which says to ask for a receipt, and nothing is kept. Its
    record has no good reviews either."""
    with hosted.reviewing.ledger.store.write() as connection:
        add_listing(connection, hosted.site.speaker.did, LISTING, "Europe/London", "operator")
    assert refused(hosted, hosted.review(ratings=BAD)) == "booking_unverifiable"
    assert standing(hosted) == Standing()


# (b) It is down for the whole window


@pytest.mark.parametrize("what", ["endpoint", "domain"])
def test_a_host_that_is_down_until_the_end(hosted: Hosted, what: str) -> None:
    """Asked twelve times in 72 hours; then the review stands without it, and a receipt brings it into the mean."""
    if what == "domain":
        hosted.outside.take_down(hosted.site.name)
    hosted.site.down = 503
    waiting = hosted.wait(hosted.review(ratings=BAD))
    assert standing(hosted) == Standing()
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert len(hosted.site.asked) == (12 if what == "endpoint" else 0)
    silent = Standing(unconfirmed=1, unconfirmed_mean=1.0, unanswered=1, shown=("unconfirmed, none",))
    assert standing(hosted) == silent
    hosted.outside.bring_back(hosted.site.name)
    hosted.site.down = None
    hosted.site.book()
    hosted.go_on(days=1)
    assert standing(hosted) == silent, "what it says after publication raises nothing"
    [shown] = hosted.record()["review_history"]
    hosted.supplement(evidence(shown["review_id"], hosted.receipt(), now=hosted.clock()))
    assert standing(hosted) == Standing(1.0, verified=1, unanswered=1, shown=("guest_verified, stay_receipt",))


def test_silence_is_counted_once_for_a_person_and_each_review_stands(hosted: Hosted) -> None:
    hosted.site.down = 503
    for number in range(3):
        hosted.wait(hosted.review(reference=f"B-{number}", ratings=BAD))
        hosted.time_out()
    assert standing(hosted) == Standing(
        unconfirmed=3, unconfirmed_mean=1.0, unanswered=1, shown=("unconfirmed, none",) * 3
    )


# (c) It denies after it gave a receipt


def test_a_denial_after_a_receipt_is_contradicted(hosted: Hosted) -> None:
    say(hosted, known=False)
    assert refused(hosted, hosted.review(ratings=BAD)) == "booking_denied"
    assert standing(hosted) == Standing(denied=1)
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == Standing(
        1.0, verified=1, denied=1, contradicted=1, shown=("guest_verified, stay_receipt",)
    )


@pytest.mark.parametrize(
    "lie", [{"known": False}, {"guest_matches": False}, {"status": "declined"}, {"status": "expired"}], ids=str
)
def test_a_denial_of_somebody_who_waited_is_contradicted_later(hosted: Hosted, lie: dict[str, Any]) -> None:
    """First silent, then a signed lie; later silent again, and the guest finds the receipt after publication."""
    hosted.site.down = 503
    waiting = hosted.wait(hosted.review(ratings=BAD))
    say(hosted, **lie)
    hosted.go_on(minutes=2)
    assert decided(hosted, waiting) == "booking_denied"
    assert standing(hosted) == Standing(denied=1)
    hosted.outside.house(hosted.site.name, hosted.site._answer)
    hosted.wait(hosted.review(ratings=BAD))
    hosted.time_out()
    unconfirmed = Standing(unconfirmed=1, unconfirmed_mean=1.0, denied=1, unanswered=1, shown=("unconfirmed, none",))
    assert standing(hosted) == unconfirmed
    [shown] = hosted.record()["review_history"]
    hosted.supplement(evidence(shown["review_id"], hosted.receipt(), now=hosted.clock()))
    assert standing(hosted) == Standing(
        1.0, verified=1, denied=1, unanswered=1, contradicted=1, shown=("guest_verified, stay_receipt",)
    )


def test_a_denial_costs_one_entry_for_each_person(hosted: Hosted) -> None:
    """What is left: a signed lie keeps out who has nothing to show. Whom it denies is counted, not how often."""
    say(hosted, known=False)
    for guest in GUESTS[:3]:
        for reference in ("B-1", "B-2"):
            assert refused(hosted, hosted.review(guest, reference, ratings=BAD)) == "booking_denied"
    assert standing(hosted) == Standing(denied=3)


# (e) It sends a sybil first


def test_a_sybil_with_a_receipt_for_the_guests_booking(hosted: Hosted) -> None:
    """Nobody occupies another's booking: both stand, and the record says that there is a conflict."""
    hosted.take(hosted.review(SYBIL, ratings=GOOD, booking_evidence=hosted.receipt(SYBIL)))
    hosted.take(hosted.review(GUEST, ratings=BAD, booking_evidence=hosted.receipt(GUEST)))
    shown = ("guest_verified, stay_receipt",) * 2
    assert standing(hosted) == Standing(3.0, verified=2, conflict=1, shown=shown)


def test_a_sybil_whom_the_host_confirms_in_place_of_the_guest(hosted: Hosted) -> None:
    """The guest is denied, by a host that knows better; who claimed the booking before check-in stands all the same."""
    hosted.clock.now = BOOKED
    hosted.site.book(GUEST)
    assert isinstance(hosted.book(claim(hosted.site.speaker)), Claimed)
    hosted.clock.forward(days=50)
    hosted.site.book(SYBIL)
    hosted.take(hosted.review(SYBIL, ratings=GOOD))
    assert standing(hosted) == Standing(5.0, verified=1, shown=("guest_verified, callback",))
    hosted.take(hosted.review(GUEST, ratings=BAD))
    shown = ("guest_verified, callback", "guest_verified, booking_claim")
    assert standing(hosted) == Standing(3.0, verified=2, conflict=1, shown=shown)


def test_a_sybil_whose_word_nobody_confirms_is_in_nobodys_way(hosted: Hosted) -> None:
    """It waits first, and stands first as unconfirmed: that is no conflict with who has a receipt."""
    hosted.site.down = 503
    hosted.wait(hosted.review(SYBIL, ratings=GOOD))
    hosted.take(hosted.review(GUEST, ratings=BAD, booking_evidence=hosted.receipt()))
    hosted.time_out()
    assert standing(hosted) == Standing(
        1.0,
        verified=1,
        unconfirmed=1,
        unconfirmed_mean=5.0,
        unanswered=1,
        shown=("guest_verified, stay_receipt", "unconfirmed, none"),
    )
