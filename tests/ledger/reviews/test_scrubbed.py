"""What was erased is in no file of the database within a minute: acknowledged private words, replaced notices, and what
was submitted and is decided. The worker's minute is one call of `scrub`; PostgreSQL's own write-ahead log is left out."""

import asyncio
from typing import Any

from ledger.reviews import feedback
from ledger.reviews.worker import Worker
from ledger.store.engine import Store
from ledger.store.rows import run
from tests.database_bytes import Files
from tests.hosting import Hosted, notice
from tests.identities import NOW
from tests.outcomes import silent
from tests.reviewing import DOMAIN, GUESTS, encoded


def sealed(hosted: Hosted, table: str) -> list[bytes]:
    with hosted.desk.store.read() as connection:
        return [bytes(each) for (each,) in run(connection, f"SELECT sealed FROM {table} ORDER BY sealed")]


def files(hosted: Hosted) -> Files:
    return Files(hosted.desk.store.url.render_as_string(hide_password=False))


def ends(*values: bytes) -> list[bytes]:
    """A long row has its end in pages of its own, and PostgreSQL a header before its beginning."""
    return [each for value in values for each in (value[:32], value[-32:])]


def worker(hosted: Hosted) -> Worker:
    """After its first minute."""
    made = Worker(hosted.reviewing.ledger.desk())
    made.scrub()
    return made


def test_acknowledged_private_words_are_in_no_file(hosted: Hosted) -> None:
    ids = []
    for guest in GUESTS[:6]:
        shown = hosted.receipt(guest)
        taken: Any = hosted.take(hosted.review(guest, booking_evidence=shown, private_feedback=f"Drips. {guest.did}"))
        ids.append(taken.receipt["review_id"])
    working, before = worker(hosted), sealed(hosted, "feedback")
    assert files(hosted).count(*ends(*before)) > 0
    host = hosted.site.speaker
    body = {"type": "FeedbackRequest", "host_did": host.did, "acknowledge": ids[1:5]}
    asyncio.run(feedback.collect(hosted.reviewing.ledger.desk(), encoded(host.sign(body, domain=DOMAIN, now=NOW))))
    gone = [each for each in before if each not in sealed(hosted, "feedback")]
    assert len(gone) == 4
    working.scrub()
    assert files(hosted).count(*ends(*gone)) == 0
    assert hosted.desk.store.traces == set()


def test_a_replaced_notice_is_in_no_file(hosted: Hosted) -> None:
    host = hosted.site.speaker
    for number in range(4):
        hosted.book(notice(host, reference=f"B-{number}", now=NOW))
    working, before = worker(hosted), sealed(hosted, "booking")
    hosted.clock.forward(minutes=5)
    for number in range(3):
        hosted.book(notice(host, reference=f"B-{number}", now=hosted.clock.now, status="cancelled"))
    gone = [each for each in before if each not in sealed(hosted, "booking")]
    assert len(gone) == 3
    working.scrub()
    assert files(hosted).count(*ends(*gone)) == 0


def test_a_decided_submission_is_in_no_file(hosted: Hosted) -> None:
    for number, guest in enumerate(GUESTS[:4]):
        silent(hosted, guest=guest, reference=f"B-{number}")
    working, before = worker(hosted), sealed(hosted, "submission")
    hosted.site.down = None
    hosted.clock.forward(hours=2)
    assert asyncio.run(working.work()) == 4
    working.scrub()
    assert files(hosted).count(*ends(*before)) == 0


def test_an_older_view_keeps_it_until_the_next_minute(hosted: Hosted) -> None:
    store = hosted.desk.store
    others = Store(store.url.render_as_string(hide_password=False))
    with others.snapshot() as reading:
        run(reading, "SELECT count(*) FROM feedback")
        with store.erase("feedback"):
            pass
        worker(hosted)
        assert "feedback" in store.traces
    others.close()
    worker(hosted)
    assert store.traces == set()
