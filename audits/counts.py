"""Counts by day as they follow from entries, and what is wrong with those that are served."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Protocol

from ledger.errors import Malformed, NotProved
from ledger.log.entries import Entry
from ledger.log.face import Event

CODE = "activity_mismatch"
DAYS = 366

Days = Mapping[str, Mapping[str, int]]


class At(Protocol):
    """The tree by which counts are judged: size, root, and the time of the map head that ends it."""

    @property
    def size(self) -> int: ...

    @property
    def root(self) -> str: ...

    @property
    def at(self) -> str: ...


def count_for_issuer(days: dict[str, dict[str, int]], entry: Entry) -> None:
    """By date: reviews by the level at which they came in, and upgrades. All are of one issuer."""
    day = days.setdefault(str(entry.at)[:10], {})
    kind = entry.members["level"] if entry.type == "review" else "upgrades"
    day[kind] = day.get(kind, 0) + 1


def of_host(events: Iterable[Event]) -> Days:
    """By date: entries by their type."""
    days: dict[str, Counter[str]] = {}
    for event in events:
        days.setdefault(str(event.entry.at)[:10], Counter())[event.entry.type] += 1
    return days


def require(face: Mapping[str, Any], right: Days, known: At, before: str | None) -> None:
    """The counts are right as far as the known tree shows: of days that are over in it or, where both are of one size,
    of all. Raises NotProved, or Malformed where they cannot be read or are of less than is known."""
    try:
        as_of, first, last = face["as_of"], date.fromisoformat(face["from"]), date.fromisoformat(face["to"])
        size, at, root = int(as_of["size"]), str(as_of["at"]), str(as_of["root"])
        newest = date.fromisoformat(at[:10])
        days = {str(day["date"]): {name: day[name] for name in day if name != "date"} for day in face["days"]}
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed("answer_malformed", f"counts by day that cannot be read: {error!r}") from None
    if size < known.size:
        raise Malformed("wrong_size", f"the counts are of {size} entries; {known.size} were published before")
    if at < known.at or (size == known.size and (at, root) != (known.at, known.root)):
        right_one, said_one = f"{known.size}, {known.root}, {known.at}", f"{size}, {root[:60]}, {at[:60]}"
        raise NotProved(CODE, f"size, root and time are said to be {said_one}; known are {right_one}")
    end = newest if before is None else min(newest, date.fromisoformat(before) - timedelta(1))
    if (first, last) != (end - timedelta(DAYS - 1), end):
        asked = f"{end - timedelta(DAYS - 1)} to {end}"
        raise NotProved(CODE, f"the days from {asked} were asked for, and those from {first} to {last} came")
    for day in sorted(day for day in {*right, *days} if str(first) <= day <= str(last)):
        if day >= known.at[:10] and size != known.size:
            # It was not over.
            break
        said = {name: number for name, number in days.get(day, {}).items() if number != 0}
        if said != {name: number for name, number in right.get(day, {}).items() if number}:
            raise NotProved(CODE, f"{day} has {dict(right.get(day, {}))!r}, and is said to have {repr(said)[:300]}")
