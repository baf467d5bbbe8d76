"""The worker: when hosts are asked again, and what it decides by what they say, or by what came meanwhile."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from ledger.canon.times import format_time
from ledger.identity.issuers import distrust
from ledger.reviews.claims import Claimed
from ledger.reviews.listings import add_listing
from ledger.reviews.receipts import Accepted
from ledger.reviews.worker import Worker
from ledger.store.rows import run
from tests.hosting import BOOKED, LISTING, Hosted, claim, notice
from tests.identities import IDV, NOW
from tests.outcomes import become, checks, silent, waits
from tests.reviewing import GUESTS

# When the design promises to ask, in minutes from the beginning.
SCHEDULE = (1, 5, 30, 120, 360, 1080, 1800, 2520, 3240, 3960, 4320)


def to(hosted: Hosted, tries: int, start: Any = NOW) -> None:
    """So many times is the host asked again."""
    for minutes in SCHEDULE[:tries]:
        hosted.clock.now = start + timedelta(minutes=minutes)
        assert hosted.work() == 1


def test_a_silent_host_is_asked_as_often_as_is_promised(hosted: Hosted) -> None:
    waiting = silent(hosted)
    asked = ["B-1"]
    assert waiting.decide_by == format_time(NOW + timedelta(hours=72))
    for minutes in SCHEDULE:
        hosted.clock.now = NOW + timedelta(minutes=minutes, seconds=-1)
        assert (hosted.work(), hosted.site.asked, waits(hosted, waiting)) == (0, asked, True)
        asked = [*asked, "B-1"]
        assert (hosted.go_on(seconds=1), hosted.site.asked) == (1, asked)
    assert not waits(hosted, waiting)
    assert (hosted.go_on(days=9), hosted.site.asked) == (0, asked)


def test_silence_ends_in_an_unconfirmed_review_and_one_entry_about_it(hosted: Hosted) -> None:
    waiting = silent(hosted)
    to(hosted, 11)
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["receipt"]["verification_level"]) == ("accepted", "unconfirmed")
    record = hosted.record()
    assert (record["total_reviews"], record["verified_reviews"]) == (1, 0)
    assert set(record["average_ratings"].values()) == {None}
    assert (record["review_history"][0]["evidence"]["booking"], checks(hosted)) == ("none", {"unanswered": 1})


def test_silence_is_told_once_of_a_person_and_a_host(hosted: Hosted) -> None:
    silent(hosted)
    to(hosted, 11)
    start = hosted.clock.now
    silent(hosted, reference="B-2")
    silent(hosted, guest=GUESTS[1], reference="B-3")
    for minutes in SCHEDULE:
        hosted.clock.now = start + timedelta(minutes=minutes)
        assert hosted.work() == 2
    assert (hosted.record()["total_reviews"], checks(hosted)) == (3, {"unanswered": 2})


def test_a_ledger_may_reject_what_nobody_answered(hosted: Hosted) -> None:
    waiting = silent(hosted)
    to(hosted, 10)
    hosted.clock.forward(hours=6)
    desk = hosted.reviewing.ledger.desk(publishes_unanswered=False)
    assert asyncio.run(Worker(desk).work()) == 1
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["code"]) == ("rejected", "booking_unverifiable")
    assert outcome["refusal"]["code"] == "booking_unverifiable"
    assert (hosted.record()["total_reviews"], checks(hosted)) == (0, {"unanswered": 1})


@pytest.mark.parametrize("tries", [0, 4, 10])
def test_confirmed_at_any_time(hosted: Hosted, tries: int) -> None:
    waiting = silent(hosted)
    to(hosted, tries)
    hosted.site.down = None
    hosted.site.book()
    hosted.clock.now = NOW + timedelta(minutes=SCHEDULE[tries])
    assert hosted.work() == 1
    receipt = become(hosted, waiting)["receipt"]
    assert (receipt["verification_level"], receipt["booking"]["type"]) == ("guest_verified", "BookingVerification")
    assert (hosted.record()["verified_reviews"], checks(hosted)) == (1, {})


@pytest.mark.parametrize("tries", [0, 4, 10])
def test_denied_at_any_time(hosted: Hosted, tries: int) -> None:
    waiting = silent(hosted)
    to(hosted, tries)
    hosted.site.down = None
    hosted.clock.now = NOW + timedelta(minutes=SCHEDULE[tries])
    assert hosted.work() == 1
    outcome = become(hosted, waiting)
    assert (outcome["code"], outcome["refusal"]["code"]) == ("booking_denied", "booking_denied")
    assert (hosted.record()["total_reviews"], checks(hosted)) == (0, {"denied": 1})


def test_other_dates_are_no_denial(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book(check_in="2026-05-21")
    hosted.go_on(minutes=1)
    assert become(hosted, waiting)["code"] == "booking_dates_mismatch"
    assert (hosted.record()["total_reviews"], checks(hosted)) == (0, {})


def test_a_notice_that_comes_while_it_waits_is_as_good_as_an_answer(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.book(notice(hosted.site.speaker, now=hosted.clock.now))
    asked = len(hosted.site.asked)
    hosted.go_on(minutes=1)
    receipt = become(hosted, waiting)["receipt"]
    assert (receipt["verification_level"], receipt["booking"]["type"]) == ("guest_verified", "BookingNotice")
    assert (hosted.record()["review_history"][0]["evidence"]["booking"], len(hosted.site.asked)) == ("callback", asked)


def test_a_late_notice_of_a_cancellation_denies_nothing(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.book(notice(hosted.site.speaker, status="cancelled", now=hosted.clock.now))
    to(hosted, 11)
    assert become(hosted, waiting)["receipt"]["verification_level"] == "unconfirmed"


def test_a_receipt_that_the_guest_finds_meanwhile(hosted: Hosted) -> None:
    """In a second submission, which does not have to wait; the first is then one too many."""
    waiting = silent(hosted)
    found = hosted.take(hosted.review(booking_evidence=hosted.receipt()))
    assert isinstance(found, Accepted)
    hosted.go_on(minutes=1)
    assert become(hosted, waiting)["code"] == "already_reviewed"
    assert (hosted.record()["total_reviews"], checks(hosted)) == (1, {})


def test_an_issuer_that_is_not_trusted_any_more(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.reviewing.add(distrust(hosted.reviewing.ledger.issuers(), "guest", IDV, None))
    asked = len(hosted.site.asked)
    hosted.go_on(minutes=1)
    assert (become(hosted, waiting)["code"], len(hosted.site.asked)) == ("issuer_not_trusted", asked)
    assert hosted.record()["total_reviews"] == 0


def test_a_listing_whose_endpoint_is_withdrawn_is_as_good_as_silent(hosted: Hosted) -> None:
    waiting = silent(hosted)
    with hosted.desk.store.write() as connection:
        add_listing(connection, hosted.site.speaker.did, LISTING, "Europe/London", "operator")
    asked = len(hosted.site.asked)
    to(hosted, 11)
    assert len(hosted.site.asked) == asked
    assert become(hosted, waiting)["receipt"]["verification_level"] == "unconfirmed"
    assert checks(hosted) == {"unanswered": 1}


def test_a_host_whose_keys_nobody_can_see_is_as_good_as_silent(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book()
    hosted.outside.remove("https://cottage.example/.well-known/did.json")
    to(hosted, 11)
    assert become(hosted, waiting)["receipt"]["verification_level"] == "unconfirmed"


# Claims


def claimed(hosted: Hosted) -> Any:
    hosted.clock.now = BOOKED
    hosted.site.down = 503
    return hosted.book(claim(hosted.site.speaker))


def test_a_claim_that_is_confirmed_later_is_on_file(hosted: Hosted) -> None:
    waiting = claimed(hosted)
    hosted.site.down = None
    hosted.site.book()
    assert hosted.go_on(minutes=1) == 1
    assert become(hosted, waiting)["status"] == "accepted"
    assert hosted.record()["total_reviews"] == 0
    again = hosted.book(waiting.body)
    assert isinstance(again, Claimed)
    assert again.repeated


def test_a_claim_that_nobody_confirms_in_time(hosted: Hosted) -> None:
    waiting = claimed(hosted)
    to(hosted, 11, BOOKED)
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["code"], checks(hosted)) == ("rejected", "booking_unverifiable", {})


def test_a_claim_is_not_confirmed_after_check_in(hosted: Hosted) -> None:
    """When the host may know how the stay is."""
    hosted.site.down = 503
    # Check-in in London is at 23:00 of the day before in UTC.
    hosted.clock.now = BOOKED.replace(month=5, day=19, hour=22, minute=58)
    waiting: Any = hosted.book(claim(hosted.site.speaker))
    assert waiting.decide_by == "2026-05-19T23:00:00Z"
    hosted.go_on(minutes=1)
    hosted.site.down = None
    hosted.site.book()
    asked = len(hosted.site.asked)
    for _ in range(5):
        hosted.go_on(minutes=1)
    assert (become(hosted, waiting)["code"], len(hosted.site.asked)) == ("booking_unverifiable", asked)


# What goes wrong


def rows(hosted: Hosted) -> list[tuple[bytes, bytes]]:
    with hosted.desk.store.read() as connection:
        return [(bytes(key), bytes(sealed)) for key, sealed in run(connection, "SELECT key, sealed FROM submission")]


def put(hosted: Hosted, key: bytes, sealed: bytes) -> None:
    with hosted.desk.store.write() as connection:
        run(connection, "UPDATE submission SET sealed = ? WHERE key = ?", (sealed, key))


def test_one_that_cannot_be_decided_does_not_stop_the_others(hosted: Hosted) -> None:
    """It waits on, and is decided when the fault is mended."""
    first = silent(hosted)
    [(key, sealed)] = rows(hosted)
    nonsense = {**hosted.desk.vault.open("submission", sealed, key), "body": {"host_did": 7}}
    put(hosted, key, hosted.desk.vault.seal("submission", nonsense, key))
    second = silent(hosted, guest=GUESTS[1], reference="B-2")
    hosted.site.down = None
    for guest, reference in ((GUESTS[0], "B-1"), (GUESTS[1], "B-2")):
        hosted.site.book(guest, reference)
    assert hosted.go_on(minutes=1) == 2
    assert become(hosted, second)["status"] == "accepted"
    assert waits(hosted, first)
    put(hosted, key, sealed)
    assert hosted.go_on(minutes=10) == 1
    assert become(hosted, first)["status"] == "accepted"


def test_one_that_cannot_be_read_does_not_stop_the_others(hosted: Hosted) -> None:
    silent(hosted)
    put(hosted, rows(hosted)[0][0], b"?" * 60)
    second = silent(hosted, guest=GUESTS[1], reference="B-2")
    hosted.site.down = None
    hosted.site.book(GUESTS[1], "B-2")
    assert hosted.go_on(minutes=1) == 1
    assert become(hosted, second)["status"] == "accepted"


def test_what_is_wrong_with_the_ledger_is_no_decision(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.site.book()
    with hosted.desk.store.write() as connection:
        kept = run(connection, "DELETE FROM checkpoint RETURNING *")
    assert hosted.go_on(minutes=1) == 1
    assert waits(hosted, waiting)
    with hosted.desk.store.write() as connection:
        for row in kept:
            run(connection, f"INSERT INTO checkpoint VALUES ({', '.join('?' * len(row))})", tuple(row))
    assert hosted.go_on(minutes=10) == 1
    assert become(hosted, waiting)["status"] == "accepted"


def test_days_end_everywhere_before_anything_goes(hosted: Hosted) -> None:
    hosted.clock.now = BOOKED
    hosted.book(notice(hosted.site.speaker))
    worker = Worker(hosted.reviewing.ledger.desk())
    # 90 days after the 24th of May, which begins last at UTC-12.
    hosted.clock.now = NOW.replace(month=8, day=22, hour=11, minute=59)
    assert worker.tidy() == 0
    hosted.clock.forward(minutes=1)
    assert worker.tidy() == 1
