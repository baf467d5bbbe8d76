"""Notices of hosts: who may send them, which of several stays, and what each is worth."""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest

from ledger.errors import NotAccepted, Refused, StaylogError, TooMany, Unavailable
from ledger.reviews.listings import add_listing
from ledger.reviews.notices import NOTICES_PER_HOST, Noticed
from tests.hosting import BOOKED, Hosted, notice
from tests.identities import NOW, Speaker
from tests.ledger.reviews.shown import before_check_in, outcome, rows
from tests.reviewing import GUEST, GUESTS, HOST, OTHER_HOST, resigned

SECOND = timedelta(seconds=1)
# 00:00 of the day of check-in in London.
MIDNIGHT = datetime.fromisoformat("2026-05-19T23:00:00+00:00")


def noticed(hosted: Hosted, body: Any) -> Noticed:
    taken = hosted.book(body)
    assert isinstance(taken, Noticed)
    return taken


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(StaylogError) as refused:
        call()
    return refused.value.code


# Which one stays


def test_the_same_again_is_known_and_a_newer_one_replaces_it(hosted: Hosted) -> None:
    hosted.clock.now = BOOKED
    first = notice(hosted.site.speaker)
    assert not noticed(hosted, first).repeated
    hosted.clock.forward(hours=1)
    again = noticed(hosted, dict(reversed(first.items())))
    assert (again.repeated, again.before_check_in, again.notice.received) == (True, True, BOOKED)
    newer = notice(hosted.site.speaker, status="cancelled", now=hosted.clock())
    assert not noticed(hosted, newer).repeated
    # Made earlier, or at the same time: refused, in whatever order they come.
    for old in (first, notice(hosted.site.speaker, now=hosted.clock())):
        assert code_of(partial(hosted.book, old)) == "notice_outdated"
    assert len(rows(hosted, "booking")) == 1
    hosted.clock.now = NOW
    assert outcome(hosted, hosted.review(booking_evidence=hosted.receipt())) == "booking_cancelled"
    # Nor does it count as one from later.
    assert code_of(lambda: hosted.book(first)) == "notice_outdated"


@pytest.mark.parametrize(
    ("zone", "midnight"),
    [("Europe/London", "2026-05-19T23:00:00+00:00"), (None, "2026-05-19T10:00:00+00:00")],
)
def test_a_notice_comes_before_check_in_or_later(hosted: Hosted, zone: str | None, midnight: str) -> None:
    """At the listing's midnight; where nobody knows its zone, when the day begins anywhere."""
    with hosted.desk.store.write() as connection:
        add_listing(connection, hosted.site.speaker.did, "rose-cottage", zone, "operator", hosted.site.endpoint)
    for late, guest in ((False, GUESTS[0]), (True, GUESTS[1])):
        hosted.clock.now = datetime.fromisoformat(midnight) - (timedelta(0) if late else SECOND)
        taken = noticed(hosted, notice(hosted.site.speaker, guest, f"B-{guest.did}"[:20], now=BOOKED))
        assert taken.before_check_in == (not late)
        hosted.clock.now = NOW
        found = outcome(hosted, hosted.review(guest, f"B-{guest.did}"[:20]))
        assert found == ("callback" if late else "booking_notice")
    assert hosted.site.asked == []


MOVED = {"check_in": "2026-07-20", "check_out": "2026-07-24"}


@pytest.mark.parametrize(
    ("guest", "changes"),
    [
        (GUEST, {"status": "cancelled"}),
        (GUEST, MOVED),
        (GUEST, {"status": "cancelled", **MOVED}),
        (GUEST, {"listing_id": "loft"}),
        (GUESTS[1], {}),
    ],
    ids=["cancelled", "moved", "cancelled and moved", "elsewhere", "another's"],
)
def test_after_check_in_nothing_replaces_what_was_said_before(
    hosted: Hosted, guest: Speaker, changes: dict[str, Any]
) -> None:
    before_check_in(hosted, notice(hosted.site.speaker))
    hosted.clock.now = MIDNIGHT
    taken = noticed(hosted, notice(hosted.site.speaker, guest, now=MIDNIGHT, **changes))
    # Whatever days it names, the host is told that it came too late.
    assert not taken.before_check_in
    assert len(rows(hosted, "booking")) == 2
    hosted.clock.now = NOW
    assert outcome(hosted, hosted.review()) == "booking_notice"


def test_a_listing_where_it_is_still_the_day_before_helps_nobody(hosted: Hosted) -> None:
    with hosted.desk.store.write() as connection:
        add_listing(connection, hosted.site.speaker.did, "beach-house", "Pacific/Honolulu", "operator")
    before_check_in(hosted, notice(hosted.site.speaker))
    hosted.clock.now = MIDNIGHT
    hosted.book(notice(hosted.site.speaker, status="cancelled", listing_id="beach-house", now=MIDNIGHT))
    hosted.clock.now = NOW
    assert outcome(hosted, hosted.review()) == "booking_notice"


def test_one_of_another_guest_is_neither_evidence_nor_denial(hosted: Hosted) -> None:
    before_check_in(hosted, notice(hosted.site.speaker, GUESTS[1]))
    hosted.site.book()
    assert outcome(hosted, hosted.review()) == "callback"
    assert hosted.site.asked == ["B-1"]


def test_one_of_other_days_or_another_listing_is_no_evidence(hosted: Hosted) -> None:
    others: dict[str, dict[str, Any]] = {"B-1": {"check_in": "2026-05-21"}, "B-2": {"listing_id": "loft"}}
    for reference, changes in others.items():
        before_check_in(hosted, notice(hosted.site.speaker, reference=reference, **changes))
        assert outcome(hosted, hosted.review(reference=reference)) == "booking_denied"
        hosted.clock.forward(days=1)


def test_what_a_host_says_of_another_hosts_booking_is_nothing(hosted: Hosted) -> None:
    other = hosted.add_host("harbour.example")
    before_check_in(hosted, notice(other.speaker))
    assert outcome(hosted, hosted.review()) == "booking_denied"


# Who may send one


def test_who_keeps_the_calendar_has_a_key_in_the_document(hosted: Hosted) -> None:
    manager = Speaker(98, hosted.site.speaker.did, "#channel-manager")
    hosted.site.publish(hosted.site.speaker, manager)
    before_check_in(hosted, notice(manager))
    assert outcome(hosted, hosted.review()) == "booking_notice"


def test_a_key_that_was_seen_when_the_notice_was_made_counts(hosted: Hosted) -> None:
    """Also while the host is down; one that nobody saw then does not."""
    old, new = hosted.site.speaker, Speaker(98, hosted.site.speaker.did, "#new")
    hosted.clock.now = BOOKED
    hosted.book(notice(old, reference="B-0"))
    hosted.site.publish(new)
    hosted.clock.forward(minutes=6)
    assert not noticed(hosted, notice(old, GUESTS[1])).repeated
    late = notice(old, reference="B-2", now=hosted.clock())
    assert code_of(lambda: hosted.book(late)) == "bad_verification_method"
    hosted.outside.take_down(hosted.site.name)
    hosted.clock.forward(minutes=6)
    assert not noticed(hosted, notice(old, GUESTS[2], "B-3")).repeated
    with pytest.raises(Unavailable) as refused:
        hosted.book(notice(new, reference="B-4", now=hosted.clock()))
    assert refused.value.code == "host_did_unavailable"


def test_nobody_else_may(hosted: Hosted) -> None:
    site = hosted.site
    hosted.clock.now = BOOKED
    good = notice(site.speaker)
    thief = Speaker(99, site.speaker.did, "#" + site.speaker.multikey)
    for body, code in (
        (resigned(good, Speaker(99), now=BOOKED), "not_the_host"),
        (resigned(good, Speaker(99, site.speaker.did), now=BOOKED), "bad_verification_method"),
        (resigned(good, thief, now=BOOKED), "proof_invalid"),
        ({**good, "status": "cancelled"}, "proof_invalid"),
        (resigned(good, site.speaker, now=BOOKED, domain="https://other.example"), "wrong_domain"),
        (resigned(good, site.speaker, now=BOOKED + timedelta(minutes=6)), "stale_proof"),
        (notice(Speaker(99, "did:web:nobody.example")), "host_did_unavailable"),
    ):
        assert code_of(partial(hosted.book, body)) == code
    assert rows(hosted, "booking") == []


# Which days


@pytest.mark.parametrize(
    ("check_in", "check_out", "code"),
    [
        ("2028-05-30", "2028-06-01", None),
        ("2026-07-01", "2028-06-02", "date_invalid"),
        ("9999-12-30", "9999-12-31", "date_invalid"),
        ("2026-03-01", "2026-03-05", None),
        ("2026-03-01", "2026-03-04", "too_late"),
        ("0001-01-01", "0001-01-02", "too_late"),
        ("2026-05-20", "2026-05-20", "date_invalid"),
    ],
)
def test_days_too_far_off_are_refused(hosted: Hosted, check_in: str, check_out: str, code: str | None) -> None:
    """What is kept is kept until 90 days after check-out. At noon in London it is the next day already elsewhere."""
    body = notice(hosted.site.speaker, now=NOW, check_in=check_in, check_out=check_out)
    if code is None:
        assert noticed(hosted, body).before_check_in == (check_in > "2026-06-01")
    else:
        assert code_of(lambda: hosted.book(body)) == code


# How many


def test_a_host_sends_so_many_in_an_hour_and_nobody_else_spends_them(hosted: Hosted) -> None:
    host = hosted.site.speaker
    hosted.clock.now = BOOKED
    for _ in range(598):
        hosted.desk.limiter.spend(NOTICES_PER_HOST, host.did)
    # What others sign, and what is refused, is not the host's.
    thief = Speaker(99, host.did, "#" + host.multikey)
    good = notice(host)
    for _ in range(3):
        with pytest.raises(NotAccepted):
            hosted.book(resigned(good, thief, now=BOOKED))
    noticed(hosted, good)
    for _ in range(3):
        assert code_of(lambda: hosted.book(notice(host, now=BOOKED - SECOND))) == "notice_outdated"
    noticed(hosted, notice(host, reference="B-2"))
    with pytest.raises(Refused) as refused:
        hosted.book(notice(host, reference="B-3"))
    assert (refused.value.code, type(refused.value.reason)) == ("quota_exceeded", TooMany)
    # Another host has its own.
    noticed(hosted, notice(HOST, reference="B-3"))
    noticed(hosted, notice(OTHER_HOST, reference="B-3"))
    hosted.clock.forward(hours=1)
    noticed(hosted, notice(host, reference="B-3"))
