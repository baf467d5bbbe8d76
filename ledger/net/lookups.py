"""What was looked up lately, and what could not be: kept for a while, and looked up once though many ask at once."""

from asyncio import Task, create_task, shield
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from ledger.clock import Clock
from ledger.errors import NotAccepted, NotFetched

# Whoever cannot be reached is not asked again before that.
FAILURE_SECONDS, MOST_FAILURE_SECONDS = 30, 300
# What its server would not have kept at all is kept for that long.
LEAST_SECONDS = 60

SWEEP = timedelta(minutes=1)

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Found(Generic[T]):
    """What was found, and for how many seconds it is good."""

    value: T
    seconds: float


@dataclass(frozen=True, slots=True)
class _Kept(Generic[T]):
    """A value, or why there is none."""

    outcome: T | NotFetched | NotAccepted
    since: datetime
    until: datetime

    def is_fresh(self, now: datetime) -> bool:
        """A clock that was set back makes nothing last longer."""
        return self.since <= now < self.until


class Lookups(Generic[K, T]):
    """`look` finds out, or raises NotFetched or NotAccepted. The `most` used last are kept."""

    def __init__(self, look: Callable[[K], Awaitable[Found[T]]], clock: Clock, *, most: int) -> None:
        self._look = look
        self._clock = clock
        self._most = most
        self._kept: OrderedDict[K, _Kept[T]] = OrderedDict()
        self._under_way: dict[K, Task[_Kept[T]]] = {}
        self._swept = clock()

    async def get(self, key: K) -> T:
        """What is known of `key`, or is found out now. NotFetched says when to ask again."""
        now = self._clock()
        self._sweep(now)
        kept = self._kept.get(key)
        if kept is None or not kept.is_fresh(now):
            # On its own: whoever asked first may go away.
            kept = await shield(self._under_way.get(key) or self._begin(key))
        else:
            self._kept.move_to_end(key)
        outcome = kept.outcome
        # A new one each time: whoever raises an exception writes into it.
        if isinstance(outcome, NotFetched):
            wait = round((kept.until - self._clock()).total_seconds())
            raise NotFetched(outcome.code, outcome.message, status=outcome.status, retry_after=max(1, wait))
        if isinstance(outcome, NotAccepted):
            raise NotAccepted(outcome.code, outcome.message)
        return outcome

    def forget(self, key: K) -> None:
        """It is looked up again when somebody asks."""
        self._kept.pop(key, None)

    def _sweep(self, now: datetime) -> None:
        """Once a minute, what is good no more: some of it should not be remembered for longer than it has to be."""
        if not self._swept <= now < self._swept + SWEEP:
            self._swept = now
            for key in [key for key, kept in self._kept.items() if not kept.is_fresh(now)]:
                del self._kept[key]

    def _begin(self, key: K) -> "Task[_Kept[T]]":
        task = self._under_way[key] = create_task(self._find_out(key))
        task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return task

    async def _find_out(self, key: K) -> _Kept[T]:
        outcome: T | NotFetched | NotAccepted
        try:
            found = await self._look(key)
            outcome, seconds = found.value, found.seconds
        except NotFetched as error:
            # As its server wishes, but not so long that nobody notices when it is back.
            outcome, seconds = error, min(max(error.retry_after or 0, FAILURE_SECONDS), MOST_FAILURE_SECONDS)
        except NotAccepted as error:
            outcome, seconds = error, FAILURE_SECONDS
        now = self._clock()
        kept = self._kept[key] = _Kept(outcome, now, now + timedelta(seconds=seconds))
        self._kept.move_to_end(key)
        if len(self._kept) > self._most:
            self._kept.popitem(last=False)
        return kept


def lifetime(max_age: int | None, longest: int) -> int:
    """How long an answer is kept: as long as we would, or shorter if its server says so, but not for no time at all."""
    return longest if max_age is None else max(LEAST_SECONDS, min(max_age, longest))
