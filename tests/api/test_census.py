"""The numbers of the log are those of its entries, as anybody who reads them all would count."""

import json
from collections import Counter
from typing import Any

from tests.api.conftest import Service


def entries_of(service: Service) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < service.ledger.reader.published.size:
        answer = service.get(f"/v1/log/entries?start={len(found)}&count=1000").json()
        found += [json.loads(entry) for entry in answer["entries"]]
    return found


def statistics_of(service: Service) -> dict[str, Any]:
    response = service.get("/v1/log/statistics")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "public, max-age=1"
    found: dict[str, Any] = response.json()
    return found


def assert_true(service: Service) -> None:
    found, entries = statistics_of(service), entries_of(service)
    checkpoint = service.get("/v1/log/checkpoint").json()
    assert (found["size"], found["at"]) == (checkpoint["size"], checkpoint["at"])
    assert found["entries"] == found["size"] == len(entries)
    levels = {index: entry["level"] for index, entry in enumerate(entries) if entry["type"] == "review"}
    levels |= {entry["review"]: entry["level"] for entry in entries if entry["type"] == "upgrade"}
    assert Counter(found["reviews"]) == Counter(levels.values())
    types = Counter(entry["type"] for entry in entries)
    assert (found["responses"], found["upgrades"]) == (types["response"], types["upgrade"])
    assert Counter(found["redactions"]) == Counter(entry["basis"] for entry in entries if "basis" in entry)
    assert Counter(found["checks"]) == Counter(entry["outcome"] for entry in entries if "outcome" in entry)
    dates = Counter(entry["at"][:10] for entry in entries)
    assert {day["date"]: day["entries"] for day in found["days"]} == dates
    for day in found["days"]:
        came_in = Counter(
            entry["level"] for entry in entries if entry["type"] == "review" and entry["at"].startswith(day["date"])
        )
        assert Counter(day["reviews"]) == came_in


def test_they_are_those_of_the_entries(service: Service) -> None:
    assert_true(service)
    found = statistics_of(service)
    assert all(found["reviews"].values())
    assert found["upgrades"]
    # What there was none of is left out.
    assert all(found["redactions"].values())
    assert found["checks"]["denied"] > 1000


def test_they_grow_with_the_log(fresh: Service) -> None:
    for _ in range(3):
        assert_true(fresh)
        fresh.grow(fresh.world.step, fresh.world.review)
    assert_true(fresh)
