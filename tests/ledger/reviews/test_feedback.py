"""Private words of guests: only the host gets them, only the host reads them, and they are gone when it says so."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.identity.sealing import unseal
from ledger.log.drafts import Feedback
from ledger.reviews import feedback
from ledger.reviews.feedback import Item
from ledger.reviews.worker import Worker
from ledger.store.rows import run
from tests.hosting import Hosted, HostSite
from tests.identities import NOW, Speaker
from tests.outcomes import silent
from tests.reviewing import DOMAIN, GUEST, GUESTS, encoded
from tests.running import Writer

WORDS = "The tap drips."


def request(hosted: Hosted, host: Speaker | None = None, acknowledge: Sequence[str] = ()) -> dict[str, Any]:
    speaker = host or hosted.site.speaker
    body = {"type": "FeedbackRequest", "host_did": speaker.did}
    given = {**body, "acknowledge": list(acknowledge)} if acknowledge else body
    return speaker.sign(given, domain=DOMAIN, now=hosted.clock.now)


def send(hosted: Hosted, body: Any) -> list[Item]:
    return asyncio.run(feedback.collect(hosted.reviewing.ledger.desk(), encoded(body)))


def collect(hosted: Hosted, host: Speaker | None = None, acknowledge: Sequence[str] = ()) -> list[Item]:
    return send(hosted, request(hosted, host, acknowledge))


def leave(hosted: Hosted, guest: Speaker = GUEST, site: HostSite | None = None) -> str:
    """The id of a verified review with a private message."""
    body = hosted.review(
        guest, site=site, booking_evidence=hosted.receipt(guest, site=site), private_feedback=f"{WORDS} {guest.did}"
    )
    taken: Any = hosted.take(body)
    assert taken.receipt["private_feedback"] == "sealed"
    return str(taken.receipt["review_id"])


def refusal(hosted: Hosted, body: Any) -> str:
    with pytest.raises(StaylogError) as refused:
        send(hosted, body)
    return refused.value.code


def rows(hosted: Hosted) -> list[Any]:
    with hosted.desk.store.read() as connection:
        return run(connection, "SELECT idx, sealed, forget_on FROM feedback ORDER BY idx")


def test_the_host_reads_what_guests_left(hosted: Hosted) -> None:
    ids = [leave(hosted, guest) for guest in GUESTS[:2]]
    host, items = hosted.site.speaker, collect(hosted)
    assert [item.review_id for item in items] == ids
    assert {item.key for item in items} == {host.method}
    words = [unseal(base64.decode(item.sealed), host.key) for item in items]
    assert words == [f"{WORDS} {guest.did}" for guest in GUESTS[:2]]


def test_nobody_reads_it_in_the_database(hosted: Hosted) -> None:
    leave(hosted)
    assert WORDS.encode() not in bytes(rows(hosted)[0][1])
    for key in (hosted.desk.keys.statements, GUEST.key):
        with pytest.raises(StaylogError):
            unseal(bytes(rows(hosted)[0][1]), key)


def test_of_what_nothing_shows_none_is_kept(hosted: Hosted) -> None:
    silent(hosted, private_feedback=WORDS)
    hosted.time_out()
    assert (hosted.record()["total_reviews"], rows(hosted)) == (1, [])


def test_it_stays_until_it_is_acknowledged(hosted: Hosted) -> None:
    ids = [leave(hosted, guest) for guest in GUESTS[:3]]
    assert [item.review_id for item in collect(hosted)] == ids
    assert [item.review_id for item in collect(hosted)] == ids
    assert [item.review_id for item in collect(hosted, acknowledge=[ids[0], ids[2]])] == [ids[1]]
    assert len(rows(hosted)) == 1
    # What is gone can be acknowledged again, and what never was.
    assert [item.review_id for item in collect(hosted, acknowledge=[ids[0], "rev-" + "a" * 26])] == [ids[1]]


def test_nobody_acknowledges_for_another_host(hosted: Hosted) -> None:
    other = hosted.add_host("harbour.example")
    mine, theirs = leave(hosted), leave(hosted, GUESTS[1], other)
    assert collect(hosted, other.speaker, acknowledge=[mine])[0].review_id == theirs
    assert [item.review_id for item in collect(hosted)] == [mine]


def test_its_bytes_are_gone_too(hosted: Hosted) -> None:
    if not hosted.desk.store.is_sqlite:
        pytest.skip("what PostgreSQL leaves is the business of tests/ledger/store")
    ids = [leave(hosted, guest) for guest in GUESTS[:3]]
    sealed = bytes(rows(hosted)[1][1])
    collect(hosted, acknowledge=[ids[1]])
    Worker(hosted.reviewing.ledger.desk()).scrub(thoroughly=True)
    file = str(hosted.desk.store.url.database)
    data = Path(file).read_bytes() + Path(f"{file}-wal").read_bytes()
    assert (sealed[:64] in data, sealed[-64:] in data) == (False, False)


def test_at_most_a_hundred_at_once(hosted: Hosted) -> None:
    writer, host = Writer(), hosted.site.speaker
    drafts = [
        replace(writer.review(host.did), feedback=Feedback(b"%3d" % number, host.method, "2027-06-01"))
        for number in range(102)
    ]
    placed = hosted.reviewing.add(*drafts)
    ids = [each.entry.members["review_id"] for each in placed]
    first = [item.review_id for item in collect(hosted)]
    assert first == ids[:100]
    assert [item.review_id for item in collect(hosted, acknowledge=first)] == ids[100:]
    assert refusal(hosted, request(hosted, acknowledge=ids[:101])) == "schema_invalid"


def test_for_a_year(hosted: Hosted) -> None:
    leave(hosted)
    worker = Worker(hosted.reviewing.ledger.desk())
    assert rows(hosted)[0][2] == "2027-06-01"
    hosted.clock.now = NOW + timedelta(days=364)
    assert worker.tidy() == 0
    hosted.clock.forward(days=1)
    assert worker.tidy() == 1
    assert (rows(hosted), collect(hosted)) == ([], [])


def test_only_by_a_key_that_the_host_has_now(hosted: Hosted) -> None:
    leave(hosted)
    old = hosted.site.speaker
    stranger = Speaker(91, old.did, "#stranger")
    thief = Speaker(91, old.did, old.method.removeprefix(old.did))
    assert refusal(hosted, request(hosted, stranger)) == "bad_verification_method"
    assert refusal(hosted, request(hosted, thief)) == "proof_invalid"
    hosted.site.publish(Speaker(92, old.did, "#new"))
    assert refusal(hosted, request(hosted, old)) == "bad_verification_method"
    [item] = collect(hosted)
    # It was sealed to the key of then, and says to which.
    assert item.key == old.method
    assert unseal(base64.decode(item.sealed), old.key).startswith(WORDS)


def test_not_by_who_asks_in_the_hosts_name(hosted: Hosted) -> None:
    leave(hosted)
    body = {"type": "FeedbackRequest", "host_did": hosted.site.speaker.did}
    assert refusal(hosted, GUEST.sign(body, domain=DOMAIN, now=hosted.clock.now)) == "not_the_host"


def test_a_host_that_cannot_be_looked_up(hosted: Hosted) -> None:
    leave(hosted)
    hosted.outside.remove("https://cottage.example/.well-known/did.json")
    assert refusal(hosted, request(hosted)) == "host_did_unavailable"


def test_twelve_times_in_an_hour(hosted: Hosted) -> None:
    """Refused ones are not counted: a stranger cannot use them up."""
    thief = Speaker(91, hosted.site.speaker.did, "#stranger")
    for _ in range(12):
        refusal(hosted, request(hosted, thief))
    for _ in range(12):
        assert collect(hosted) == []
    assert refusal(hosted, request(hosted)) == "quota_exceeded"
    hosted.clock.forward(minutes=5)
    assert collect(hosted) == []


def test_the_same_request_again_does_no_harm(hosted: Hosted) -> None:
    """Within five minutes: it erases nothing that it did not name."""
    first = leave(hosted)
    body = request(hosted, acknowledge=[first])
    assert send(hosted, body) == []
    second = leave(hosted, GUESTS[1])
    hosted.clock.forward(minutes=4)
    assert [item.review_id for item in send(hosted, body)] == [second]
    hosted.clock.forward(minutes=2)
    assert refusal(hosted, body) == "stale_proof"
    assert len(rows(hosted)) == 1
