"""What is kept of bookings: sealed, each in its own place, and gone 90 days after check-out."""

from datetime import date

import pytest

from ledger.errors import Refused
from ledger.keys import rotate_pepper
from ledger.reviews import bookings
from ledger.reviews.worker import Worker
from ledger.store.rows import run
from tests.hosting import BOOKED, Hosted, claim, notice
from tests.identities import NOW
from tests.ledger.reviews.shown import before_check_in, outcome, rows
from tests.reviewing import GUEST, GUESTS, credential, encoded


def booked(hosted: Hosted) -> None:
    """A notice of each kind and a claim, of three bookings of two guests."""
    host = hosted.site.speaker
    shown = claim(host, booking_evidence=hosted.receipt())
    before_check_in(
        hosted, notice(host), shown, claim(host, GUESTS[1], "B-2", booking_evidence=hosted.receipt(GUESTS[1], "B-2"))
    )
    hosted.book(notice(host, GUESTS[1], "B-3", now=NOW))


def test_nothing_of_it_can_be_read_in_the_rows(hosted: Hosted) -> None:
    booked(hosted)
    hosted.site.down = 503
    hosted.wait(hosted.review(reference="B-4"))
    found = repr([*rows(hosted, "booking"), *rows(hosted, "submission")])
    stored = b"".join(bytes(value) for row in rows(hosted, "booking") for value in row if isinstance(value, bytes))
    for secret in (
        *("B-1", "B-2", "B-4", "rose-cottage", "2026-05-2", "confirmed", "cottage.example", "person-of", "passport"),
        *(
            GUEST.did,
            GUEST.multikey,
            GUESTS[1].multikey,
            hosted.site.speaker.did,
            "nonce-of-a-notice-1",
            "Quiet",
            "4.5",
        ),
        *("BookingNotice", "BookingClaim", "did:", "proof", "received_at"),
    ):
        assert secret not in found
        assert secret.encode() not in stored
    assert encoded(GUEST.did) not in stored


def test_rows_do_not_tell_what_belongs_together(hosted: Hosted) -> None:
    """But for the booking that they are about: neither who said it nor of which kind it is, nor how long it was."""
    booked(hosted)
    found = rows(hosted, "booking")
    assert len({bytes(stay) for stay, *_ in found}) == 3
    assert len({bytes(speaker) for _, speaker, *_ in found}) == len(found) == 4
    lengths = sorted(len(bytes(row[2])) - 40 for row in found)
    assert all(length in (256, 1024, 4096, 8192) for length in lengths)


def test_a_row_that_is_moved_does_not_open(hosted: Hosted) -> None:
    """Neither to another booking nor to another speaker of the same."""
    host = hosted.site.speaker
    before_check_in(hosted, notice(host), notice(host, GUESTS[1], "B-2"))
    with hosted.desk.store.write() as connection:
        run(
            connection,
            "UPDATE booking SET sealed = (SELECT b.sealed FROM booking b WHERE b.sealed <> booking.sealed) "
            "WHERE EXISTS (SELECT 1 FROM booking b WHERE b.sealed <> booking.sealed)",
        )
    with pytest.raises(Refused, match="a sealed booking does not open"):
        hosted.take(hosted.review())


def test_a_late_notice_cannot_be_made_an_early_one_by_who_holds_the_database(hosted: Hosted) -> None:
    host = hosted.site.speaker
    before_check_in(hosted, notice(host))
    [(_, early, *_)] = rows(hosted, "booking")
    with hosted.desk.store.write() as connection:
        run(connection, "DELETE FROM booking")
    hosted.book(notice(host, now=NOW))
    with hosted.desk.store.write() as connection:
        run(connection, "UPDATE booking SET speaker = ?", (early,))
    with pytest.raises(Refused, match="a sealed booking does not open"):
        hosted.take(hosted.review())


def test_all_of_it_is_gone_ninety_days_after_check_out(hosted: Hosted) -> None:
    booked(hosted)
    longer = notice(hosted.site.speaker, reference="B-9", now=NOW, check_out="2026-05-25")
    hosted.book(longer)
    assert bookings.forget(hosted.desk, date(2026, 8, 21)) == 0
    assert bookings.forget(hosted.desk, date(2026, 8, 22)) == 4
    assert len(rows(hosted, "booking")) == 1
    # The worker does it, when the day has come everywhere.
    hosted.clock.now = NOW.replace(month=8, day=23, hour=11)
    worker = Worker(hosted.reviewing.ledger.desk())
    assert worker.tidy() == 0
    hosted.clock.forward(hours=1)
    assert worker.tidy() == 1
    assert rows(hosted, "booking") == []


def test_what_is_forgotten_is_no_evidence_any_more(hosted: Hosted) -> None:
    before_check_in(hosted, notice(hosted.site.speaker))
    bookings.forget(hosted.desk, date(2026, 8, 22))
    assert outcome(hosted, hosted.review()) == "booking_denied"


def test_a_new_pepper_changes_nothing(hosted: Hosted) -> None:
    """A claim and a notice are found by keys that do not change with it."""
    host = hosted.site.speaker
    shown = hosted.receipt(GUESTS[1], "B-2")
    before_check_in(hosted, notice(host), claim(host, GUESTS[1], "B-2", booking_evidence=shown))
    rotate_pepper(hosted.reviewing.settings.service_keys)
    hosted.reviewing.reopen()
    assert outcome(hosted, hosted.review()) == "booking_notice"
    assert outcome(hosted, hosted.review(GUESTS[1], "B-2")) == "booking_claim"


def test_a_claim_is_of_the_did_that_made_it(hosted: Hosted) -> None:
    """Another DID of the same person has another receipt; what was verified named the first."""
    host, person = hosted.site.speaker, f"person-of-{GUEST.did[-8:]}"
    before_check_in(hosted, claim(host, booking_evidence=hosted.receipt()))
    assert hosted.clock() > BOOKED
    other = hosted.review(GUESTS[1], guest_credential=credential(GUESTS[1], person))
    assert outcome(hosted, other) == "booking_denied"
    assert outcome(hosted, hosted.review()) == "booking_claim"
