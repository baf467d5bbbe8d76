"""How much the published log holds, day by day and level by level.

Nothing of it is stored: each process counts for itself, once from the beginning and from then on what is new. What is
kept grows with days, not with entries.
"""

import logging
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from threading import Event, Lock, Thread
from time import perf_counter
from typing import TypedDict

import msgspec

from ledger.errors import NotStored, StaylogError
from ledger.log.entries import VRP_ARTIFACT
from ledger.log.members import BASES, LEVELS, OUTCOMES
from ledger.log.reader import Reader

# Read at once: less than a millisecond of the interpreter, which others wait for.
CHUNK = 256
# Counted by one call, in chunks; the rest is left to the thread.
MOST_CHUNKS = 32
# How often the thread looks for what is new, and for a database that did not answer.
WAKE_SECONDS = 1.0

_ARTIFACT = b'{"type":"%s"}' % VRP_ARTIFACT.encode()
_TIME = re.compile(r"[0-9]{4}(-[0-9]{2}){2}T[0-9]{2}(:[0-9]{2}){2}Z")
_logger = logging.getLogger(__name__)


class _Evidence(msgspec.Struct, gc=False):
    issuer: str | None = None


class _Seen(msgspec.Struct, gc=False):
    """All of an entry that is counted: the rest is read over, in half the time that reading it would take."""

    type: str
    at: str = ""
    level: str = ""
    basis: str = ""
    outcome: str = ""
    host_did: str = ""
    evidence: _Evidence | None = None

    @property
    def issuer(self) -> str | None:
        return None if self.evidence is None else self.evidence.issuer


# What an entry with evidence counts as; a review by its level.
_VOUCHED = {"review": "", "upgrade": "upgrades"}
# By the type of an entry and what is told apart within it.
Tally = Counter[tuple[str, str]]

_decode = msgspec.json.Decoder(list[_Seen]).decode


class IssuerDay(TypedDict):
    """Reviews that rest on the issuer's credentials, by the level at which they came in. An upgrade is no review: it is
    counted beside them, on its own day."""

    guest_verified: int
    host_attested: int
    unconfirmed: int
    upgrades: int


class Counts(TypedDict):
    """Reviews by the level at which they came in, redactions by basis, booking checks by outcome: as an audit has them,
    the latter two without what there was none of."""

    entries: int
    reviews: dict[str, int]
    responses: int
    upgrades: int
    redactions: dict[str, int]
    checks: dict[str, int]


@dataclass(frozen=True, slots=True)
class Counted:
    """The first `size` entries; `at` is the time of the last of them. `days` are those on which there was an entry."""

    size: int
    at: str
    total: Counts
    days: Mapping[str, Counts]

    @property
    def levels(self) -> dict[str, int]:
        """Reviews as they count now: an upgrade has made an unconfirmed one guest_verified."""
        came_in, upgrades = self.total["reviews"], self.total["upgrades"]
        return {
            **came_in,
            "guest_verified": came_in["guest_verified"] + upgrades,
            "unconfirmed": came_in["unconfirmed"] - upgrades,
        }


class Census:
    """Threads may share it. `start` counts in the background for as long as the service runs."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._turn = Lock()
        self._size = 0
        self._at = ""
        self._total: Tally = Counter()
        self._days: dict[str, Tally] = {}
        # By issuer and date. Issuers are those of the log: the operator's own entries name them.
        self._issuers: dict[str, dict[str, IssuerDay]] = {}
        self._counted = Counted(0, "", _counts(self._total), {})
        self._stop = Event()
        self._thread: Thread | None = None

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="census", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def now(self) -> Counted:
        """Of everything that is published; of less while there is much that was not counted before."""
        for _ in range(MOST_CHUNKS):
            if not self._count():
                break
        return self.so_far()

    def so_far(self) -> Counted:
        """What was counted by now, though the rest may not be there to be counted."""
        with self._turn:
            return self._so_far()

    def of_issuer(self, issuer: str) -> tuple[Counted, dict[str, IssuerDay]]:
        """What `now` gives and, of the same entries, those days on which something rested on the issuer."""
        self.now()
        with self._turn:
            return self._so_far(), {date: day.copy() for date, day in self._issuers.get(issuer, {}).items()}

    def _so_far(self) -> Counted:
        if self._counted.size != self._size:
            # Times never fall: of the days that were there, only the last one may have changed.
            last = self._counted.at[:10]
            newer = {date: _counts(tally) for date, tally in self._days.items() if date >= last}
            days = {**self._counted.days, **newer}
            self._counted = Counted(self._size, self._at, _counts(self._total), days)
        return self._counted

    def _run(self) -> None:
        """With a pause after each chunk as long as it took: half of the interpreter stays with those who answer."""
        told = ""
        while not self._stop.is_set():
            began, more, trouble = perf_counter(), False, ""
            try:
                more = self._count()
            except StaylogError as error:
                trouble = str(error)
            if trouble and trouble != told:
                _logger.warning("the log cannot be counted: %s", trouble)
            told = trouble
            self._stop.wait(perf_counter() - began if more else WAKE_SECONDS)

    def _count(self) -> bool:
        """Count the next chunk, unless there is none."""
        with self._turn:
            entries = self._reader.entries(self._size, self._size + CHUNK)
            if not entries:
                return False
            tallies: dict[str, Tally] = {}
            vouched: list[tuple[str, str, str]] = []
            events: list[tuple[str, str | None]] = []
            at, last = self._at, self._reader.published.at
            for seen in _read(entries, self._size):
                if seen.at and (not at <= seen.at <= last or not _TIME.fullmatch(seen.at)):
                    raise NotStored(f"one of the entries from {self._size} on is damaged: its time is none")
                # What has no time came in with what stands before it.
                at = seen.at or at
                tally = tallies.setdefault(at[:10], Counter())
                tally[seen.type, seen.level or seen.basis or seen.outcome] += 1
                if seen.host_did:
                    events.append((seen.host_did, seen.issuer if seen.type == "review" else None))
                if seen.issuer is not None and seen.type in _VOUCHED:
                    vouched.append((seen.issuer, at[:10], _VOUCHED[seen.type] or seen.level))
            _require_days(tallies, self._size)
            self._reader.issuer_counts.note(self._size + len(entries), events)
            for issuer, date, kind in vouched:
                day = self._issuers.setdefault(issuer, {}).setdefault(date, _no_reviews())
                day[kind] += 1  # type: ignore[literal-required]
            self._at = at
            for date, tally in tallies.items():
                self._days.setdefault(date, Counter()).update(tally)
                self._total.update(tally)
            self._size += len(entries)
            return True


def _read(entries: Iterable[bytes], start: int) -> list[_Seen]:
    """As the reader does: what was read strictly when it came in is decoded all at once."""
    try:
        return _decode(b"[%s]" % b",".join(data if data.startswith(b"{") else _ARTIFACT for data in entries))
    except msgspec.DecodeError as error:
        raise NotStored(f"one of the entries from {start} on is damaged") from error


def _require_days(dates: Iterable[str], start: int) -> None:
    try:
        for day in dates:
            date.fromisoformat(day)
    except ValueError as error:
        raise NotStored(f"one of the entries from {start} on is damaged: {error}") from error


def _no_reviews() -> IssuerDay:
    return {"guest_verified": 0, "host_attested": 0, "unconfirmed": 0, "upgrades": 0}


def _counts(tally: Tally) -> Counts:
    def present(type_: str, kinds: Sequence[str]) -> dict[str, int]:
        return {kind: tally[type_, kind] for kind in kinds if (type_, kind) in tally}

    return {
        "entries": tally.total(),
        "reviews": {level: tally.get(("review", level), 0) for level in LEVELS},
        "responses": tally.get(("response", ""), 0),
        "upgrades": tally.get(("upgrade", "guest_verified"), 0),
        "redactions": present("redaction", BASES),
        "checks": present("booking_check", OUTCOMES),
    }
