"""What trusted issuers publish of their keys is watched: a change is told, and changes nothing."""

import asyncio
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import metrics
from ledger.canon.times import format_time, seconds
from ledger.identity import watch
from ledger.identity.archive import KeyArchive
from ledger.identity.issuers import distrust, trust
from tests.identities import IDV, ISSUER, Speaker
from tests.network import Neighbourhood
from tests.reviewing import HOST, Reviewing
from tests.running import HOST as COTTAGE
from tests.waiting import until

NEW = Speaker(31, IDV, "/keys/2")


def published(*speakers: Speaker, name: str = IDV) -> dict[str, Any]:
    """The document at an issuer's address."""
    methods = [
        {"id": each.method, "type": "Multikey", "controller": name, "publicKeyMultibase": each.multikey}
        for each in speakers
    ]
    return {"id": name, "verificationMethod": methods, "assertionMethod": [each.method for each in speakers]}


@pytest.fixture
def ledger(tmp_path: Path, database_url: str, neighbourhood: Neighbourhood) -> Iterator[Reviewing]:
    made = Reviewing(tmp_path / "data", database_url, neighbourhood.development)
    yield made
    made.ledger.close()


def look(ledger: Reviewing, **options: Any) -> dict[str, str]:
    return {each.issuer: each.state for each in asyncio.run(ledger.ledger.watch.look(**options))}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == watch.__name__]


def differs(issuer: str = IDV) -> float:
    return float(metrics.ISSUERS_CHANGED.labels(issuer)._value.get())


def test_an_issuer_that_publishes_what_is_pinned(
    ledger: Reviewing, neighbourhood: Neighbourhood, caplog: pytest.LogCaptureFixture
) -> None:
    neighbourhood.put(f"{IDV}/", published(ISSUER))
    assert look(ledger) == {IDV: "as_pinned"}
    assert warnings(caplog) == []
    assert differs() == 0


def test_a_new_key_is_told_once_and_not_trusted(
    ledger: Reviewing, neighbourhood: Neighbourhood, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    neighbourhood.put(f"{IDV}/", published(ISSUER, NEW))
    before = list(ledger.ledger.issuers())
    for _ in range(2):
        ledger.clock.forward(hours=1)
        assert look(ledger) == {IDV: "differs"}
    [said] = warnings(caplog)
    assert NEW.multikey in said
    assert "gone none" in said
    assert differs() == 1
    assert list(ledger.ledger.issuers()) == before
    [seen] = ledger.ledger.watch.sightings().values()
    assert seen.keys == tuple(sorted((ISSUER.multikey, NEW.multikey)))
    assert seconds(seen.since) + 3600 == seconds(seen.checked_at)


def test_a_key_that_is_gone_still_counts_and_is_told(
    ledger: Reviewing, neighbourhood: Neighbourhood, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    neighbourhood.put(f"{IDV}/", published(NEW))
    assert look(ledger) == {IDV: "differs"}
    assert f"gone {ISSUER.multikey}" in warnings(caplog)[0]
    assert ledger.ledger.issuers().keys("guest", IDV) == [ISSUER.public]
    # The operator has asked the issuer, and pins it. The next look finds all well.
    draft = trust(ledger.ledger.issuers(), "guest", IDV, [NEW.multikey], None)
    assert draft is not None
    ledger.add(draft)
    neighbourhood.put(f"{IDV}/", published(ISSUER, NEW))
    assert look(ledger) == {IDV: "as_pinned"}
    assert differs() == 0


def test_an_old_key_that_is_published_no_more_is_told_and_is_no_alarm(
    ledger: Reviewing, neighbourhood: Neighbourhood, caplog: pytest.LogCaptureFixture
) -> None:
    """After a rotation it stays pinned, for what it has signed."""
    caplog.set_level(logging.WARNING)
    draft = trust(ledger.ledger.issuers(), "guest", IDV, [NEW.multikey], None)
    assert draft is not None
    ledger.add(draft)
    neighbourhood.put(f"{IDV}/", published(NEW))
    assert look(ledger) == {IDV: "fewer"}
    assert f"new none, gone {ISSUER.multikey}" in warnings(caplog)[0]
    assert differs() == 0
    neighbourhood.put(f"{IDV}/", {"id": IDV})
    assert look(ledger) == {IDV: "differs"}


def test_a_key_that_is_pinned_meanwhile_differs_no_more(ledger: Reviewing, neighbourhood: Neighbourhood) -> None:
    """Though nobody has looked again; and it is not the news of a later look that nothing has changed."""
    neighbourhood.put(f"{IDV}/", published(ISSUER, NEW))
    assert look(ledger) == {IDV: "differs"}
    since = ledger.ledger.watch.sightings()[IDV].since
    draft = trust(ledger.ledger.issuers(), "guest", IDV, [NEW.multikey], None)
    assert draft is not None
    ledger.add(draft)
    assert ledger.ledger.watch.sightings()[IDV].state == "as_pinned"
    ledger.clock.forward(hours=1)
    assert look(ledger) == {IDV: "as_pinned"}
    assert ledger.ledger.watch.sightings()[IDV].since == since


def test_another_process_shows_it_too(ledger: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(f"{IDV}/", published(NEW))
    assert look(ledger) == {IDV: "differs"}
    metrics.ISSUERS_CHANGED.clear()
    ledger.reopen()
    assert look(ledger, all_=False) == {}
    assert differs() == 1


@pytest.mark.parametrize(
    ("document", "state"),
    [
        (b"<html>", "unreadable"),
        ({"id": "https://other.example"}, "unreadable"),
        ({"id": IDV, "assertionMethod": 5}, "unreadable"),
        ({"id": IDV}, "differs"),
    ],
)
def test_what_is_not_a_list_of_keys(ledger: Reviewing, neighbourhood: Neighbourhood, document: Any, state: str) -> None:
    neighbourhood.put(f"{IDV}/", document)
    assert look(ledger) == {IDV: state}


def test_why_there_is_nothing_to_compare(ledger: Reviewing, neighbourhood: Neighbourhood) -> None:
    port = Speaker(34, "https://issuer.example:8443", "/keys/1")
    draft = trust(ledger.ledger.issuers(), "guest", port.did, [port.multikey], None)
    assert draft is not None
    ledger.add(draft)
    neighbourhood.put(f"{IDV}/", {}, status=410)
    assert look(ledger) == {IDV: "unreachable", port.did: "unreachable"}
    reasons = {each.issuer: each.reason for each in ledger.ledger.watch.sightings().values()}
    assert reasons == {IDV: "fetch_status", port.did: "address_not_allowed"}


def test_an_issuer_that_is_down_is_not_compromised(ledger: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.host("idv.example")
    neighbourhood.take_down("idv.example")
    assert look(ledger) == {IDV: "unreachable"}
    assert ledger.ledger.issuers().keys("guest", IDV) == [ISSUER.public]


def test_only_those_who_are_trusted_and_have_an_address_are_asked(
    ledger: Reviewing, neighbourhood: Neighbourhood
) -> None:
    web = Speaker(32, "did:web:issuer.example:guests", "#key-1")
    for issuer in (Speaker(33), web):
        draft = trust(ledger.ledger.issuers(), "guest", issuer.did, [issuer.multikey], None)
        assert draft is not None
        ledger.add(draft)
    neighbourhood.put("https://issuer.example/guests/did.json", published(web, name=web.did))
    neighbourhood.put(f"{IDV}/", published(ISSUER))
    assert look(ledger) == {IDV: "as_pinned", web.did: "as_pinned"}
    ledger.add(distrust(ledger.ledger.issuers(), "guest", IDV, None))
    assert look(ledger) == {web.did: "as_pinned"}


def test_an_issuer_of_both_roles_is_asked_once(ledger: Reviewing, neighbourhood: Neighbourhood) -> None:
    draft = trust(ledger.ledger.issuers(), "host", IDV, [NEW.multikey], None)
    assert draft is not None
    ledger.add(draft)
    neighbourhood.put(f"{IDV}/", published(ISSUER, NEW))
    assert look(ledger) == {IDV: "as_pinned"}
    assert neighbourhood.requests[f"{IDV}/"] == 1


def test_it_is_looked_once_an_hour_by_whichever_process(ledger: Reviewing, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(f"{IDV}/", published(ISSUER))
    assert look(ledger, all_=False) == {IDV: "as_pinned"}
    ledger.clock.forward(minutes=59)
    assert look(ledger, all_=False) == {}
    ledger.reopen()
    assert look(ledger, all_=False) == {}
    ledger.clock.forward(minutes=1)
    assert look(ledger, all_=False) == {IDV: "as_pinned"}
    # A clock that was set back puts nothing off.
    ledger.clock.forward(days=-1)
    assert look(ledger, all_=False) == {IDV: "as_pinned"}
    assert neighbourhood.requests[f"{IDV}/"] == 3


def test_the_thread_looks_and_learns_what_others_have_seen(
    ledger: Reviewing, neighbourhood: Neighbourhood, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "WAKE_SECONDS", 0.01)
    neighbourhood.put(f"{IDV}/", published(ISSUER))
    other = KeyArchive(ledger.ledger.store, ledger.clock)
    ledger.ledger.watch.start()
    other.remember(COTTAGE, {"#a": HOST.public}, ledger.clock())
    other.remember(COTTAGE, {}, ledger.clock())
    until(lambda: ledger.ledger.archive.changed_at(COTTAGE) == format_time(ledger.clock()))
    until(lambda: IDV in ledger.ledger.watch.sightings())
    ledger.ledger.watch.close()
    assert ledger.ledger.watch.sightings()[IDV].state == "as_pinned"
