"""How much came in on each day: reviews that rest on an issuer's credentials, entries that name a host.

So an issuer sees reviews of guests for whom it never vouched, and a host what is said to be about it. Of issuers the
census has the counts. Of a host a day's are the difference between two versions of its record: one is read for each day
on which there was something, however many events the host has.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from itertools import accumulate
from typing import Any

import msgspec

from ledger.canon import base64, did
from ledger.errors import NotFound, NotStored, Unavailable
from ledger.log.census import Census, Counted
from ledger.log.reader import Reader
from ledger.store.rows import Published

# In one answer.
DAYS = 366
# Counts are of a published checkpoint; so often they are taken while the next one is being counted.
TRIES = 3


def issuer_activity(reader: Reader, census: Census, issuer: str, before: date | None) -> bytes:
    """Reviews by the level at which they came in, and upgrades, each on the day of its own entry. Raises Unavailable
    while the log is being counted."""
    for _ in range(TRIES):
        counted, days = census.of_issuer(issuer)
        published = _published(reader, counted)
        if published is not None:
            first, last = _span(published, before)
            inside = {day: counts for day, counts in days.items() if str(first) <= day <= str(last)}
            return _answer(published, first, last, inside)
    raise _busy(counted, reader)


def host_events(reader: Reader, census: Census, host: str, before: date | None) -> bytes:
    """Entries that name the host, by type, on the day of each. Raises Unavailable while the log is being counted."""
    did.check(host)
    for _ in range(TRIES):
        counted = census.now()
        published = _published(reader, counted)
        if published is not None:
            first, last = _span(published, before)
            with reader.session():
                days = _differences(reader, host, _starts(counted), published, first, last)
            return _answer(published, first, last, days)
    raise _busy(counted, reader)


def _differences(
    reader: Reader, host: str, starts: Mapping[str, int], published: Published, first: date, last: date
) -> dict[str, dict[str, int]]:
    after = [start for day, start in starts.items() if day > str(last)]
    later, found = reader.counts_below(host, min([*after, published.size])), dict[str, dict[str, int]]()
    while later is not None and later.last_event[:10] >= str(first):
        day = later.last_event[:10]
        if day not in starts:
            raise NotStored(f"a record of {host} has its last event on {day}, where the log has no entry")
        earlier = reader.counts_below(host, starts[day])
        found[day] = {
            name: number - (earlier.by_type[name] if earlier else 0) for name, number in later.by_type.items()
        }
        later = earlier
    return dict(reversed(found.items()))


def _starts(counted: Counted) -> dict[str, int]:
    """By date the index of its first entry: times never fall."""
    entries = [day["entries"] for day in counted.days.values()]
    return dict(zip(counted.days, accumulate(entries, initial=0), strict=False))


def _published(reader: Reader, counted: Counted) -> Published | None:
    """The checkpoint of exactly these entries, if there is one."""
    try:
        return reader.published_at(counted.size)
    except NotFound:
        return None


def _span(published: Published, before: date | None) -> tuple[date, date]:
    """The first and last day of the answer: up to that of the checkpoint, or to the one before `before`."""
    newest = date.fromisoformat(published.at[:10])
    last = newest if before is None else min(newest, max(before, date.min + timedelta(1)) - timedelta(1))
    return date.fromordinal(max(last.toordinal() - DAYS + 1, 1)), last


def _answer(published: Published, first: date, last: date, days: Mapping[str, Any]) -> bytes:
    as_of = {"size": published.size, "root": base64.encode(published.root), "at": published.at}
    said: dict[str, Any] = {"from": str(first), "to": str(last), "as_of": as_of}
    return msgspec.json.encode({**said, "days": [{"date": day, **counts} for day, counts in days.items()]})


def _busy(counted: Counted, reader: Reader) -> Unavailable:
    return Unavailable("busy", f"the log is being counted: {counted.size} of {reader.published.size} entries so far")
