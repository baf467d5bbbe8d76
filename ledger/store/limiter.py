"""How often somebody may do something: GCRA, the generic cell rate algorithm (ITU-T I.371), kept in the database.

What was done so far is paid for up to some time; one more moves that time on by a step, and it may be only so far
ahead.
Limits are exact whichever processes share them: a statement that counts is one that no other can come between.

Nothing here tells who did what. Whoever is counted is known by a name that changes with every period of the limit, and
times are moved by an offset that goes with the name. `take` changes one row again and again, and databases keep old
versions of rows; so what could link the reviews of one guest is counted by `spend`, in rows that are never changed and
that have nothing in common.
"""

import hmac
import logging
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from hashlib import shake_256
from typing import Any, NoReturn, TypeVar

from sqlalchemy.exc import DBAPIError

from ledger import metrics
from ledger.clock import Clock
from ledger.errors import TooMany, Unavailable
from ledger.store.counts import Counts, counts_of
from ledger.store.engine import Store

DAY, HOUR = 86_400, 3600
# Every period is some of these, so rows are needed up to a full minute.
MINUTE = 60

_logger = logging.getLogger(__name__)
_SECOND = 1_000_000
# Who was counted in this period already: paid up to now at least, and a step further, unless that is too far ahead.
_AGAIN = "UPDATE {rate} SET paid = {max}(paid, ?) + ? WHERE key = ? AND {max}(paid, ?) <= ? RETURNING paid"
# Whoever else: the same, from where the last period ended. Another process may have been here just now.
_FIRST = (
    "INSERT INTO {rate} (key, until, paid) SELECT ?, ?, since.paid + ? FROM (SELECT {max}(?, "
    "coalesce((SELECT paid FROM {rate} WHERE key = ?) + ?, 0)) AS paid) AS since WHERE since.paid <= ? "
    "ON CONFLICT (key) DO UPDATE SET paid = {max}({rate}.paid, ?) + ? WHERE {max}({rate}.paid, ?) <= ? "
    "RETURNING paid"
)
_PAID = "SELECT paid FROM {rate} WHERE key = ? UNION ALL SELECT paid + ? FROM {rate} WHERE key = ?"
# How many rows of a subject are asked for at once, and how many bytes name a row and hide its time.
_BLOCK, _NAME, _OFFSET = 8, 16, 7
_SPENT = "SELECT key, paid FROM {rate} WHERE key IN ({marks})"
_SPEND = "INSERT INTO {rate} (key, until, paid) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING RETURNING key"
_GIVE_BACK = "DELETE FROM {rate} WHERE key = ?"
# Whoever adds a row takes some away that nobody needs any more: nobody has to wait until thousands are gone.
_FEW = 3
_TIDY = "DELETE FROM {rate} WHERE key IN (SELECT key FROM {rate} WHERE until <= ? LIMIT ?) RETURNING key"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Limit:
    """`count` times in `seconds`, full minutes, which are its period; of them `burst` may come at once, at most all."""

    name: str
    count: int
    seconds: int
    burst: int
    code: str
    what: str

    @property
    def step(self) -> int:
        """What one costs, in microseconds."""
        return self.seconds * _SECOND // self.count

    def period(self, now: int) -> int:
        return now // (self.seconds * _SECOND)

    def refuse(self, wait: int) -> NoReturn:
        seconds = -(-wait // _SECOND)
        raise TooMany(self.code, f"{self.what}; try again in {seconds} s", retry_after=seconds)


class Limiter:
    """Shared by all threads of a process, and exact across processes on one database. One that cannot count lets
    everybody through: what it guards has its own ways to refuse, and reading must go on when nothing can be written."""

    def __init__(
        self, store: Store, secret: bytes, clock: Clock, *, may_erase: Callable[[], bool] = lambda: True
    ) -> None:
        # Whether counting is too quick to be worth a thread.
        self.is_local = store.is_sqlite
        # Those of a day and more outlive a crash.
        self._counts, self._day_counts = counts_of(store, lasting=False), counts_of(store, lasting=True)
        self._greater = "max" if store.is_sqlite else "greatest"
        self._secret = secret
        self._clock = clock
        # A clock that is ahead for a while must not erase what still counts.
        self._may_erase = may_erase
        self._failing = False
        # The minute in which nothing is left to be taken away, of each.
        self._tidied: dict[str, int] = {}

    def take(self, limit: Limit, subject: str) -> None:
        """Count one more of `subject`, or TooMany: quick, for what nobody could be recognised by."""
        wait = self._trying(self._take, 0, limit, subject.encode())
        if wait > 0:
            limit.refuse(wait)

    def spend(self, limit: Limit, subject: str | bytes) -> bytes | None:
        """The same by a row of its own, whose key is returned."""
        name = subject.encode() if isinstance(subject, str) else subject
        nothing: tuple[bytes | None, int] = (None, 0)
        key, wait = self._trying(self._spend, nothing, limit, name)
        if wait > 0:
            limit.refuse(wait)
        return key

    @contextmanager
    def spending(self, limit: Limit, subject: str | bytes) -> Iterator[None]:
        """Spent if what is done inside comes about, and given back otherwise."""
        key = self.spend(limit, subject)
        try:
            yield
        except BaseException:
            self.give_back(key)
            raise

    def give_back(self, key: bytes | None) -> None:
        """What `spend` returned, if it counted."""
        if key is not None:
            # It is in one of them.
            for counts in (self._day_counts, self._counts):
                self._trying(self._run, [], counts, _GIVE_BACK, (key,))

    def close(self) -> None:
        self._counts.close()
        self._day_counts.close()

    def _of(self, limit: Limit) -> Counts:
        return self._day_counts if limit.seconds >= DAY else self._counts

    def _run(self, counts: Counts, statement: str, values: Sequence[Any], marks: str = "") -> list[Any]:
        return counts.run(_spelled(statement, counts.table, self._greater, marks), values)

    def _take(self, limit: Limit, subject: bytes) -> int:
        """Microseconds to wait; 0 when it was counted."""
        now, counts = self._now(), self._of(limit)
        period = limit.period(now)
        [(key, offset)] = self._hidden(limit, period, subject)
        here, step = now + offset, limit.step
        latest = here + (limit.burst - 1) * step
        if self._run(counts, _AGAIN, (here, step, key, here, latest)):
            return 0
        [(before, before_offset)] = self._hidden(limit, period - 1, subject)
        shift, until = offset - before_offset, (period + 2) * limit.seconds
        self._tidy(counts, now // _SECOND)
        first = (key, until, step, here, before, shift, latest, here, step, here, latest)
        if self._run(counts, _FIRST, first):
            return 0
        # None, if it was all lost at this moment: then nothing is owed.
        paid = max((each for (each,) in self._run(counts, _PAID, (key, shift, before))), default=0)
        return int(paid) - latest

    def _spend(self, limit: Limit, subject: bytes) -> tuple[bytes | None, int]:
        """The key of the row and 0, or microseconds to wait."""
        now, counts = self._now(), self._of(limit)
        period = limit.period(now)
        self._tidy(counts, now // _SECOND)
        while True:
            moments, (key, offset) = self._spent(limit, period, subject)
            wait = _paid(moments, limit.step) - now - (limit.burst - 1) * limit.step
            if wait > 0:
                return None, wait
            # Another one may have been quicker: then that is one more, and everything is looked at again.
            if self._run(counts, _SPEND, (key, (period + 2) * limit.seconds, now + offset)):
                return key, 0

    def _spent(self, limit: Limit, period: int, subject: bytes) -> tuple[list[int], tuple[bytes, int]]:
        """When a subject spent something in a period and the one before, and the first row of the period that is free,
        with its offset. Rows are in blocks; after several that are missing there are no more."""
        moments: list[int] = []
        free: list[tuple[bytes, int]] = []
        periods, block = [period, period - 1], 0
        while periods:
            rows = {each: self._hidden(limit, each, subject, block, _BLOCK) for each in periods}
            offsets = dict(row for named in rows.values() for row in named)
            marks = ", ".join("?" * len(offsets))
            found = {bytes(key): moved for key, moved in self._run(self._of(limit), _SPENT, tuple(offsets), marks)}
            moments += [moved - offsets[key] for key, moved in found.items()]
            free += [row for row in rows.get(period, ()) if row[0] not in found]
            # Those that were given back leave gaps; none is as wide as half a block.
            periods = [each for each in periods if any(key in found for key, _ in rows[each][_BLOCK // 2 :])]
            block += 1
        return moments, free[0]

    def _tidy(self, counts: Counts, seconds: int) -> None:
        minute = seconds // MINUTE
        if self._tidied.get(counts.table) == minute or not self._may_erase():
            return
        if len(self._run(counts, _TIDY, (seconds, _FEW))) < _FEW:
            self._tidied[counts.table] = minute

    def _now(self) -> int:
        return int(self._clock().timestamp() * _SECOND)

    def _hidden(
        self, limit: Limit, period: int, subject: bytes, block: int = 0, count: int = 1
    ) -> list[tuple[bytes, int]]:
        """What a subject is called in a period, row by row, and by how much the time in the row is moved."""
        # A sponge with the key in front is a function that only who has the key can tell from chance.
        named = b"%s%d %s" % (_key(self._secret, limit.name, period), block, subject)
        stream, size = shake_256(named).digest(count * (_NAME + _OFFSET)), _NAME + _OFFSET
        # 2^56 microseconds are two thousand years, and fit into the column with any time of this millennium.
        return [
            (stream[at : at + _NAME], int.from_bytes(stream[at + _NAME : at + size]))
            for at in range(0, len(stream), size)
        ]

    def _trying(self, count: Callable[..., T], otherwise: T, *arguments: Any) -> T:
        try:
            counted = count(*arguments)
        except (sqlite3.Error, DBAPIError, Unavailable, OSError) as error:
            metrics.UNCOUNTED.inc()
            if not self._failing:
                _logger.warning("limits are not counted: %s", type(error).__name__)
            self._failing = True
            return otherwise
        self._failing = False
        return counted


@lru_cache(maxsize=256)
def _spelled(statement: str, table: str, greater: str, marks: str) -> str:
    return statement.format(rate=table, max=greater, marks=marks)


def _paid(moments: list[int], step: int) -> int:
    """Up to when these, which were each allowed, are paid for."""
    paid = 0
    for moment in sorted(moments):
        paid = max(paid, moment) + step
    return paid


@lru_cache(maxsize=64)
def _key(secret: bytes, limit: str, period: int) -> bytes:
    return hmac.digest(secret, b"staylog/limits/v1 %s %d" % (limit.encode(), period), "sha256")
