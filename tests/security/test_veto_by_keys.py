"""The veto by keys: a host that changes its keys, borrows the guest's, or lets its name lead nowhere (design: reviews 3,
host keys). What was seen of a host is remembered; what it signed before anybody looked cannot be told from a forgery."""

import pytest

from ledger.reviews.claims import Claimed
from ledger.reviews.notices import Noticed
from tests.hosting import BOOKED, Hosted, claim, evidence, notice
from tests.identities import Speaker, did_document
from tests.reviewing import GUEST, GUESTS, stay_receipt
from tests.security.standing import BAD, GOOD, Standing, decided, refused, standing

NAME = "did:web:cottage.example"
OLD, NEW = Speaker(61, NAME), Speaker(62, NAME)
# Other keys by the same name.
OLD_ONE, NEW_ONE = Speaker(61, NAME, "#key-1"), Speaker(62, NAME, "#key-1")
RECEIPT = Standing(1.0, verified=1, shown=("guest_verified, stay_receipt",))
SILENT = Standing(unconfirmed=1, unconfirmed_mean=1.0, unanswered=1, shown=("unconfirmed, none",))


def document(hosted: Hosted, *speakers: Speaker) -> None:
    url = f"https://{hosted.site.name}/.well-known/did.json"
    hosted.outside.put(url, did_document(*speakers), cache_control="no-store")


# (d) It rotates its key


def test_before_anybody_looked_its_receipts_are_nobodys_word(hosted: Hosted) -> None:
    """What is left: such a receipt is neither evidence nor forged. The host is asked in its place; silent, it keeps the
    review out of the mean and not out of the log. A new receipt, by whatever key it has then, counts."""
    hosted.site.publish(NEW)
    hosted.site.down = 503
    waiting = hosted.wait(hosted.review(ratings=BAD, booking_evidence=stay_receipt(GUEST, OLD)))
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == SILENT
    [shown] = hosted.record()["review_history"]
    hosted.supplement(evidence(shown["review_id"], stay_receipt(GUEST, NEW), now=hosted.clock()))
    assert standing(hosted) == Standing(1.0, verified=1, unanswered=1, shown=("guest_verified, stay_receipt",))


def test_another_key_by_the_same_name_makes_them_look_forged(hosted: Hosted) -> None:
    """What is left: 403 with such a receipt. Without it the guest is heard as anybody who has none."""
    hosted.site.publish(NEW_ONE)
    hosted.site.down = 503
    forged = hosted.review(ratings=BAD, booking_evidence=stay_receipt(GUEST, OLD_ONE))
    assert refused(hosted, forged) == "booking_evidence_invalid"
    assert standing(hosted) == Standing()
    hosted.wait(hosted.review(ratings=BAD))
    hosted.time_out()
    assert standing(hosted) == SILENT


@pytest.mark.parametrize(("old", "new"), [(OLD, NEW), (OLD_ONE, NEW_ONE)], ids=["another name", "the same name"])
def test_after_we_looked_it_changes_nothing(hosted: Hosted, old: Speaker, new: Speaker) -> None:
    """Its document was seen before and after the receipt was made, because of other bookings."""
    hosted.site.publish(old)
    hosted.clock.now = BOOKED
    for days in (0, 2):
        hosted.clock.forward(days=days)
        seen = notice(old, GUESTS[5], f"N-{days}", now=hosted.clock())
        assert isinstance(hosted.book(seen), Noticed)
    hosted.clock.now = BOOKED
    hosted.clock.forward(days=50)
    hosted.site.publish(new)
    hosted.site.down = 503
    receipt = stay_receipt(GUEST, old, now=hosted.clock().replace(day=2))
    hosted.take(hosted.review(ratings=BAD, booking_evidence=receipt))
    assert standing(hosted) == RECEIPT


def test_between_claim_and_review_it_changes_nothing(hosted: Hosted) -> None:
    """The claim was verified when the key was there."""
    hosted.site.publish(OLD)
    hosted.clock.now = BOOKED
    assert isinstance(hosted.book(claim(OLD, booking_evidence=stay_receipt(GUEST, OLD))), Claimed)
    hosted.site.publish(NEW)
    hosted.site.down = 503
    hosted.clock.forward(days=50)
    hosted.take(hosted.review(ratings=BAD))
    assert standing(hosted) == Standing(1.0, verified=1, shown=("guest_verified, booking_claim",))


def test_while_the_guest_waits_it_does_not_help_either(hosted: Hosted) -> None:
    """It is away when the receipt comes, and comes back with another key: the guest waits on, and stands in the end."""
    hosted.outside.take_down(hosted.site.name)
    waiting = hosted.wait(hosted.review(ratings=BAD, booking_evidence=stay_receipt(GUEST, OLD)))
    hosted.outside.bring_back(hosted.site.name)
    hosted.site.publish(NEW)
    hosted.site.down = 503
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == SILENT


# It borrows the guest's


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_guests_key_in_the_hosts_document_keeps_nobody_out(hosted: Hosted, when: str) -> None:
    """A host knows the DIDs of its guests, and so their keys. Whoever writes them into its document has not shown that
    it holds them; "host and guest have the same key" would be a veto that costs nothing."""
    borrowed = Speaker(20, NAME, "#guest")
    assert borrowed.public == GUEST.public
    if when == "before":
        document(hosted, hosted.site.speaker, borrowed)
    hosted.take(hosted.review(GUESTS[1], "B-2", ratings=GOOD, booking_evidence=hosted.receipt(GUESTS[1], "B-2")))
    document(hosted, hosted.site.speaker, borrowed)
    hosted.clock.forward(minutes=6)
    hosted.take(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    assert standing(hosted) == Standing(3.0, verified=2, shown=("guest_verified, stay_receipt",) * 2)


def test_nor_does_a_document_that_has_no_other_key(hosted: Hosted) -> None:
    """Nobody can answer for the host then: that is silence."""
    document(hosted, Speaker(20, NAME, "#guest"))
    hosted.site.book()
    waiting = hosted.wait(hosted.review(ratings=BAD))
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == SILENT


def test_a_host_that_signs_by_the_guests_key_reviews_itself(hosted: Hosted) -> None:
    borrowed = Speaker(20, NAME, "#guest")
    document(hosted, hosted.site.speaker, borrowed)
    own = stay_receipt(GUEST, borrowed)
    assert refused(hosted, hosted.review(ratings=GOOD, booking_evidence=own)) == "self_review"
    assert standing(hosted) == Standing()


# Its name leads nowhere


def test_a_name_that_leads_where_nobody_may_ask_is_silence(hosted: Hosted) -> None:
    """The host is away when the review with its receipt comes; then its name leads to a private address."""
    hosted.outside.take_down(hosted.site.name)
    waiting = hosted.wait(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    lead(hosted, "10.0.0.5")
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == SILENT


def test_also_when_it_did_so_from_the_start(hosted: Hosted) -> None:
    lead(hosted, "10.0.0.5")
    waiting = hosted.wait(hosted.review(ratings=BAD, booking_evidence=hosted.receipt()))
    hosted.time_out()
    assert decided(hosted, waiting) == "accepted"
    assert standing(hosted) == SILENT


def lead(hosted: Hosted, address: str) -> None:
    """What the world's names say of the host from now on."""

    async def look_up(_name: str) -> list[str]:
        return [address]

    del hosted.outside._hosts[hosted.site.name]
    hosted.reviewing.ledger.fetcher._lookup = look_up
