"""Issuers' published keys, held against those that are pinned, once an hour, in a thread of its own.

A change is an event for the operator: a line in the log, a metric, a word in `staylog issuer list`. It never changes
whom the ledger trusts. The last look is in the database, so that several services do not all ask.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Event, Thread

from ledger import metrics
from ledger.canon import multikey
from ledger.canon.times import format_time, parse_time
from ledger.clock import Clock
from ledger.errors import NotAccepted, NotFetched, StaylogError
from ledger.identity.archive import KeyArchive
from ledger.identity.did import is_offline
from ledger.identity.issuers import Registries
from ledger.identity.published import issuer_document
from ledger.net.fetch import Fetcher
from ledger.store.engine import Store
from ledger.store.rows import run

EVERY = timedelta(hours=1)
# How often it is looked whether it is time, and what other processes have seen.
WAKE_SECONDS = 60

# What may come of asking, besides the code that says why not.
PUBLISHED = "published"
# Some that are pinned are not published any more, as after a rotation; some that are published are not pinned.
AS_PINNED, FEWER, DIFFERS, UNREACHABLE, UNREADABLE = "as_pinned", "fewer", "differs", "unreachable", "unreadable"
_NO_KEYS = ("fetch_not_json", "did_document_invalid")

_logger = logging.getLogger(__name__)
_ALL = "SELECT issuer, outcome, keys, since, checked_at FROM issuer_watch"
_PUT = (
    "INSERT INTO issuer_watch (issuer, outcome, keys, since, checked_at) VALUES (?, ?, ?, ?, ?) "
    "ON CONFLICT (issuer) DO UPDATE SET outcome = excluded.outcome, keys = excluded.keys, since = excluded.since, "
    "checked_at = excluded.checked_at"
)


@dataclass(frozen=True, slots=True)
class Sighting:
    """What an issuer publishes: `keys` as multikeys, sorted; `since` when that was first found."""

    issuer: str
    state: str
    # Why there is nothing to compare, if there is not.
    reason: str | None
    keys: tuple[str, ...]
    since: str
    checked_at: str


class Watch:
    """`start` looks for as long as the service runs; `look` looks now."""

    def __init__(
        self, store: Store, registries: Registries, archive: KeyArchive, fetcher: Fetcher, clock: Clock
    ) -> None:
        self._store = store
        self._registries = registries
        self._archive = archive
        self._fetcher = fetcher
        self._clock = clock
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def sightings(self) -> dict[str, Sighting]:
        """The last look at each issuer, held against what is pinned now."""
        with self._store.read() as connection:
            rows = run(connection, _ALL)
        pinned = self.pinned()
        return {row[0]: _sighting(row, pinned.get(row[0], set())) for row in rows}

    async def look(self, *, all_: bool = True) -> list[Sighting]:
        """Look at the issuers that are trusted and have somewhere to publish; unless all, at those whose time it is."""
        known, now, found = self.sightings(), self._clock(), []
        for issuer, pinned in sorted(self.pinned().items()):
            before = known.get(issuer)
            if self._stop.is_set() or before is not None and not all_ and not _is_due(before, now):
                continue
            outcome, keys = await self._published(issuer)
            same = before is not None and (before.reason or PUBLISHED, before.keys) == (outcome, keys)
            since = before.since if before is not None and same else format_time(now)
            row = (issuer, outcome, " ".join(keys), since, format_time(now))
            with self._store.write() as connection:
                run(connection, _PUT, row)
            found.append(_sighting(row, pinned))
            if not same and found[-1].state in (DIFFERS, FEWER):
                _tell(found[-1], pinned)
        self._show()
        return found

    def pinned(self) -> dict[str, set[str]]:
        """The issuers that are looked at, with their keys in all roles."""
        pinned: dict[str, set[str]] = {}
        for each in self._registries.newest():
            if each.status == "trusted" and not is_offline(each.issuer):
                pinned.setdefault(each.issuer, set()).update(each.keys)
        return pinned

    async def _published(self, issuer: str) -> tuple[str, tuple[str, ...]]:
        """What came of asking, and the keys."""
        try:
            document = await issuer_document(self._fetcher, issuer)
        except (NotFetched, NotAccepted) as failure:
            return failure.code, ()
        return PUBLISHED, tuple(sorted({multikey.encode(key) for key in document.keys(self._clock()).values()}))

    def _show(self) -> None:
        """In the metrics, whichever process has looked."""
        seen = self.sightings()
        metrics.ISSUERS_CHANGED.clear()
        for issuer in self.pinned():
            metrics.ISSUERS_CHANGED.labels(issuer).set(issuer in seen and seen[issuer].state == DIFFERS)

    def _run(self) -> None:
        while not self._stop.wait(WAKE_SECONDS):
            try:
                self._archive.refresh()
                asyncio.run(self.look(all_=False))
            except StaylogError as error:
                # The database is away, most likely; others say so more loudly.
                _logger.warning("issuers were not looked at: %s", error.code)
            except Exception:
                # A fault of ours must not be the end of all looking.
                _logger.exception("issuers were not looked at")


def _sighting(row: Sequence[str], pinned: set[str]) -> Sighting:
    """A row, by what is pinned now: that may have changed since."""
    issuer, outcome, keys, since, checked_at = row
    found = tuple(keys.split())
    if outcome != PUBLISHED:
        state = UNREADABLE if outcome in _NO_KEYS else UNREACHABLE
        return Sighting(issuer, state, outcome, found, since, checked_at)
    state = AS_PINNED if {*found} == pinned else FEWER if found and {*found} < pinned else DIFFERS
    return Sighting(issuer, state, None, found, since, checked_at)


def _tell(sighting: Sighting, pinned: set[str]) -> None:
    new, gone = sorted({*sighting.keys} - pinned), sorted(pinned - {*sighting.keys})
    _logger.warning(
        "%s publishes other keys than are pinned: new %s, gone %s. Nothing was changed; if the issuer confirms it by "
        "another way, run `staylog issuer add`",
        sighting.issuer,
        ", ".join(new) or "none",
        ", ".join(gone) or "none",
    )


def _is_due(sighting: Sighting, now: datetime) -> bool:
    checked = parse_time(sighting.checked_at)
    return not checked <= now < checked + EVERY
