"""Counts by day as they follow from entries, and what is wrong with those that are served."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, Protocol

from audits.face import same_json
from ledger.canon.times import parse_time
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
    size, root, at = read_as_of(face)
    try:
        days = [(str(day["date"]), {name: day[name] for name in day if name != "date"}) for day in face["days"]]
        span = (face["from"], face["to"])
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed("answer_malformed", f"counts by day that cannot be read: {error!r}") from None
    if size < known.size:
        raise Malformed("wrong_size", f"the counts are of {size} entries; {known.size} were published before")
    if at < known.at or (size == known.size and (at, root) != (known.at, known.root)):
        right_one, said_one = f"{known.size}, {known.root}, {known.at}", f"{size}, {root[:60]}, {at[:60]}"
        raise NotProved(CODE, f"size, root and time are said to be {said_one}; known are {right_one}")
    newest = date.fromisoformat(at[:10])
    end = newest if before is None else min(newest, date.fromisoformat(before) - timedelta(1))
    first, last = str(end - timedelta(DAYS - 1)), str(end)
    if span != (first, last):
        raise NotProved(CODE, f"the days from {first} to {last} were asked for, and {repr(span)[:100]} came")
    dates = [day for day, _ in days]
    if dates != sorted(set(dates)) or any(not first <= day <= last for day in dates):
        raise NotProved(CODE, f"the days are not in order, or not from {first} to {last}: {repr(dates)[:300]}")
    said = dict(days)
    for day in sorted(day for day in {*right, *said} if first <= day <= last):
        if day >= known.at[:10] and size != known.size:
            # It was not over.
            break
        told, counts = said.get(day, {}), right.get(day, {})
        names = [name for name in {*told, *counts} if not same_json(told.get(name, 0), counts.get(name, 0))]
        if names:
            raise NotProved(CODE, f"{day} has {dict(counts)!r}, and is said to have {repr(told)[:300]}")


def read_as_of(face: Mapping[str, Any]) -> tuple[int, str, str]:
    """Size, root and time of the tree by which counts are said to be. Raises Malformed."""
    try:
        size, root, at = face["as_of"]["size"], str(face["as_of"]["root"]), str(face["as_of"]["at"])
        parse_time(at)
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed("answer_malformed", f"counts by day that cannot be read: {error!r}") from None
    if type(size) is not int:
        raise Malformed("answer_malformed", f"counts by day of a size that is no whole number: {repr(size)[:60]}")
    return size, root, at
