"""What a log says about itself over time, day by day: for the report, and for whoever looks for what is unusual."""

from collections.abc import Mapping
from typing import Any

from ledger.log.entries import Entry, half_stars
from ledger.log.members import LEVELS

Days = dict[str, dict[str, Any]]


def _day() -> dict[str, Any]:
    return {
        "entries": 0,
        "reviews": dict.fromkeys(LEVELS, 0),
        "overall": {level: [0, 0] for level in LEVELS},
        "responses": 0,
        "upgrades": 0,
        "redactions": {},
        "checks": {},
        "hosts": 0,
    }


class Daily:
    """Grows with days, not with entries."""

    def __init__(self, days: Days | None = None) -> None:
        self.days: Days = days if days is not None else {}

    def add(self, entry: Entry, *, new_host: bool) -> None:
        at = entry.at
        if at is None:
            return
        date = at[:10]
        day = self.days.get(date)
        if day is None:
            day = self.days[date] = _day()
        day["entries"] += 1
        day["hosts"] += new_host
        if (count := _COUNTS.get(entry.type)) is not None:
            count(day, entry.members)


def _review(day: dict[str, Any], members: Mapping[str, Any]) -> None:
    day["reviews"][members["level"]] += 1
    overall = day["overall"][members["level"]]
    overall[0] += 1
    overall[1] += half_stars(members["ratings"]["overall"])


def _response(day: dict[str, Any], _members: Mapping[str, Any]) -> None:
    day["responses"] += 1


def _upgrade(day: dict[str, Any], _members: Mapping[str, Any]) -> None:
    day["upgrades"] += 1


def _redaction(day: dict[str, Any], members: Mapping[str, Any]) -> None:
    day["redactions"][members["basis"]] = day["redactions"].get(members["basis"], 0) + 1


def _check(day: dict[str, Any], members: Mapping[str, Any]) -> None:
    day["checks"][members["outcome"]] = day["checks"].get(members["outcome"], 0) + 1


_COUNTS = {
    "review": _review,
    "response": _response,
    "upgrade": _upgrade,
    "redaction": _redaction,
    "booking_check": _check,
}
