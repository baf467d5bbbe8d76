"""Counts by day are those of the entries, at any size, and cost what the days do that they tell of."""

import json
from collections import Counter
from datetime import date
from typing import Any

import pytest

from ledger.errors import Unavailable
from ledger.log import census as census_module
from ledger.log import reader as reader_module
from ledger.reputation.activity import host_events, issuer_activity
from ledger.store.rows import run
from tests.ledger.log.test_census import grow
from tests.running import HOST, OTHER, Running, Writer

IDV = "https://idv.example/issuers/1"
SECOND = "did:web:id.example"
TYPES = ("review", "response", "upgrade", "booking_check", "redaction")


def about(running: Running, host: str, before: str | None = None) -> dict[str, Any]:
    day = None if before is None else date.fromisoformat(before)
    return dict(json.loads(host_events(running.ledger.reader, running.ledger.census, host, day)))


def by(running: Running, issuer: str, before: str | None = None) -> dict[str, Any]:
    day = None if before is None else date.fromisoformat(before)
    return dict(json.loads(issuer_activity(running.ledger.reader, running.ledger.census, issuer, day)))


def entries(running: Running) -> list[dict[str, Any]]:
    found = running.ledger.reader.entries(0, running.ledger.reader.published.size)
    return [json.loads(data) for data in found if data.startswith(b"{")]


def expected_of_host(running: Running, host: str) -> list[dict[str, Any]]:
    days: dict[str, Counter[str]] = {}
    for entry in entries(running):
        if entry.get("host_did") == host:
            days.setdefault(entry["at"][:10], Counter())[entry["type"]] += 1
    return [{"date": day, **{name: counts[name] for name in TYPES}} for day, counts in days.items()]


def expected_of_issuer(running: Running, issuer: str) -> list[dict[str, Any]]:
    days: dict[str, Counter[str]] = {}
    for entry in entries(running):
        if entry.get("evidence", {}).get("issuer") == issuer:
            kind = entry["level"] if entry["type"] == "review" else "upgrades"
            days.setdefault(entry["at"][:10], Counter())[kind] += 1
    names = ("guest_verified", "host_attested", "unconfirmed", "upgrades")
    return [{"date": day, **{name: counts[name] for name in names}} for day, counts in days.items()]


def test_the_counts_are_those_of_the_entries(running: Running, writer: Writer) -> None:
    for _ in range(4):
        grow(running, writer, days=3)
        evidence = {**writer.evidence("stay_receipt"), "issuer": SECOND}
        running.add(writer.review(OTHER, evidence=evidence))
        running.clock.forward(days=40)
        newest = running.ledger.reader.published
        for said in (about(running, HOST), about(running, OTHER), by(running, IDV), by(running, SECOND)):
            assert (said["as_of"]["size"], said["as_of"]["at"]) == (newest.size, newest.at)
            assert (said["to"], len(said["days"]) > 0) == (newest.at[:10], True)
        for host in (HOST, OTHER):
            assert about(running, host)["days"] == expected_of_host(running, host)
        for issuer in (IDV, SECOND):
            assert by(running, issuer)["days"] == expected_of_issuer(running, issuer)
    assert any(day["upgrades"] for day in by(running, IDV)["days"])


def test_before_goes_back_year_by_year(running: Running, writer: Writer) -> None:
    for _ in range(6):
        running.add(writer.review(), writer.check(OTHER))
        running.clock.forward(days=150)
    for said, everything in ((about, expected_of_host(running, HOST)), (by, expected_of_issuer(running, IDV))):
        name, days, before = HOST if said is about else IDV, list[dict[str, Any]](), None
        for _ in range(4):
            answer = said(running, name, before)
            assert (date.fromisoformat(answer["to"]) - date.fromisoformat(answer["from"])).days == 365
            assert all(answer["from"] <= day["date"] <= answer["to"] for day in answer["days"])
            days, before = answer["days"] + days, answer["from"]
        assert days == everything


@pytest.mark.parametrize("before", ["0001-01-01", "0001-01-02", "0300-06-01", "9999-12-31"])
def test_any_date_is_answered(running: Running, writer: Writer, before: str) -> None:
    running.add(writer.review())
    for said in (about(running, HOST, before), by(running, IDV, before)):
        assert len(said["days"]) == (before == "9999-12-31")
        assert said["from"] <= said["to"]


def test_an_unknown_issuer_or_host_has_no_days(running: Running, writer: Writer) -> None:
    running.add(writer.review())
    assert about(running, "did:web:unknown.example")["days"] == []
    assert by(running, "https://unknown.example")["days"] == []


def test_a_host_costs_two_rows_for_each_day(running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        for _ in range(4):
            running.add(*(writer.check() for _ in range(100)))
        running.clock.forward(days=1)
    running.ledger.census.now()
    rows = 0

    def counted(*asked: Any) -> list[Any]:
        nonlocal rows
        found = run(*asked)
        rows += len(found)
        return found

    monkeypatch.setattr(reader_module, "run", counted)
    assert [day["booking_check"] for day in about(running, HOST)["days"]] == [400, 400, 400]
    assert rows <= 6


def test_refuses_while_the_log_is_being_counted(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    running.add(*(writer.check() for _ in range(300)))
    running.reopen()
    monkeypatch.setattr(census_module, "MOST_CHUNKS", 0)
    for ask, name in ((about, HOST), (by, IDV)):
        with pytest.raises(Unavailable) as busy:
            ask(running, name)
        assert (busy.value.code, busy.value.retry_after > 0) == ("busy", True)
