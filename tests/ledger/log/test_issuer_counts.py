"""Reviews by issuer are those of the entries, at any size and however far the census has come."""

import json
from collections import Counter

import pytest

from ledger.log import issuer_counts
from ledger.log.census import Census
from ledger.log.reader import Reader
from tests.running import HOST, OTHER, Running, Writer

ISSUERS = ("https://idv.example/issuers/1", "did:web:id.example", None)


def naive(running: Running, host: str, size: int) -> Counter[str]:
    entries = [json.loads(data) for data in running.ledger.reader.entries(0, size)]
    issuers = [each["evidence"]["issuer"] for each in entries if each["type"] == "review" and each["host_did"] == host]
    return Counter(issuer for issuer in issuers if issuer is not None)


@pytest.mark.parametrize("many", [1, 4, 1000])
def test_the_counts_are_those_of_the_entries(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch, many: int
) -> None:
    monkeypatch.setattr(issuer_counts, "MANY", many)
    reader = Reader(running.ledger.store)
    census = Census(reader)
    sizes = [reader.published.size]
    for place in range(12):
        for issuer in ISSUERS[: 1 + place % 3]:
            evidence = {**writer.evidence("attestation"), "issuer": issuer}
            running.add(writer.review(HOST, level="host_attested", evidence=evidence), writer.check(OTHER))
        [doubtful] = running.add(writer.review(OTHER, level="unconfirmed"))
        running.add(writer.upgrade(doubtful))
        sizes.append(reader.refresh().size)
        if place % 4 == 1:
            census.now()
        for size in sizes:
            for host in (HOST, OTHER, "did:web:unknown.example"):
                assert reader.issuer_counts.of(host, size) == naive(running, host, size)


def test_memory_grows_only_with_hosts_that_have_many_entries(
    running: Running, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuer_counts, "MANY", 10)
    running.add(*(writer.review(f"did:web:host{number}.example") for number in range(60)))
    running.add(*(writer.review(HOST) for _ in range(10)))
    reader = Reader(running.ledger.store)
    Census(reader).now()
    assert set(reader.issuer_counts._many) == {HOST}
