"""The witnesses of a log (protocol.md 7): each is asked about every newest checkpoint, in a thread of its own, and its
cosignatures are stored and served with it. No review ever waits for one: a missing quorum is shown, and that is all.

The exception is a witness that has seen another history, or more, than this database has: the next signature would
fork the log (protocol.md 3). At the start its word is enough. Later its word is enough when it says that the history is
another one, unless its own cosignature over ours is stored; that it has seen more it must then prove, by what this
log's own key signed.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from threading import Event, Thread
from time import monotonic
from typing import Literal

from ledger import metrics
from ledger.canon.times import format_time
from ledger.clock import Clock
from ledger.errors import Halted, Malformed, NotFetched, NotProved, OutOfTime, StaylogError
from ledger.log.checkpoint import Checkpoint
from ledger.log.clock_guard import ClockGuard
from ledger.log.cosignature import Cosignature, cosignatures
from ledger.log.mark import WHAT_TO_DO
from ledger.log.note import Note, Verifier
from ledger.log.reader import Reader
from ledger.log.witness_client import SECONDS, TRIES, Contradicted, WitnessClient
from ledger.log.witness_policy import ServicePolicy
from ledger.net.plain import check_address
from ledger.store import tables
from ledger.store.engine import Store
from ledger.store.rows import Published, insert_rows, published_at, run

Condition = Literal["cosigned", "waiting", "unreachable", "refused", "unchecked", "ahead", "lying", "contradicts"]
# Between two tries, at most; and how long a thread sleeps without news.
LONGEST_PAUSE, IDLE_SECONDS = 60.0, 60.0
# What a receipt may wait for cosignatures, once the review is in the log.
GRACE_SECONDS, LOOK_SECONDS = 0.5, 0.005

# Checkpoints of which it is remembered when they came.
RECENT = 16

_KEEP = " ON CONFLICT DO NOTHING"
_LINE = "SELECT line FROM cosignature WHERE witness = ? AND size = ?"
_LAST = "SELECT max(size) FROM cosignature WHERE witness = ?"
_WHAT_IF_IT_LIES = " If you know that the witness is wrong, take it out of the file tlog-policy and start again."
_STATES: dict[str, Condition] = {
    "cosignature_refused": "refused",
    "cosignature_unchecked": "unchecked",
    "cosignature_invalid": "lying",
    "cosignature_time": "lying",
    "log_time_ahead": "waiting",
    "log_forked": "lying",
    "log_behind": "ahead",
}

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WitnessState:
    """`state` is what came of asking it last, `detail` what is wrong; `size` and `at` are of its last cosignature."""

    name: str
    verifier: Verifier
    url: str | None
    state: Condition = "waiting"
    size: int | None = None
    at: str | None = None
    detail: str | None = None


class Witnesses:
    """Without a policy no witness is asked. `clock` is the log's; what witnesses say of the time confirms it to
    `guard`."""

    def __init__(
        self,
        store: Store,
        reader: Reader,
        log: Verifier,
        policy: ServicePolicy | None,
        clock: Clock,
        agent: str,
        guard: ClockGuard,
    ) -> None:
        self._store = store
        self._reader = reader
        self._clock = clock
        self._guard = guard
        self.policy = policy
        known = {} if policy is None else policy.meaning.witnesses
        # Where none is asked for, no checkpoint is told from the others by having some.
        self._quorum = None if policy is None or policy.meaning.quorum is None else policy.meaning.fingerprint()
        reader.quorum = self._quorum
        self._states = {name: WitnessState(name, each.verifier, each.url) for name, each in known.items()}
        self._clients = [
            WitnessClient(name, each.verifier, check_address(each.url), log, reader.tree, agent)
            for name, each in known.items()
            if each.url is not None
        ]
        # The newest checkpoint with a quorum, as far as this process knows; when the last ones came, and whether a
        # receipt is worth waiting with.
        self._witnessed = 0
        self._came: dict[int, float] = {}
        self._in_time = True
        self._stop = Event()
        self._threads: list[Thread] = []

    def states(self) -> list[WitnessState]:
        return [*self._states.values()]

    def require_agreement(self) -> bool:
        """Ask all witnesses at once, at the start and when the database has changed, before anything is signed; whether
        one of them cosigned the newest checkpoint. Raises Halted when a witness has seen more of this log than we have,
        or something else: its word is enough. A witness that does not answer in time does not keep the log from going
        on; one that has said so, and takes long to show it, does."""
        found: dict[str, Contradicted] = {}
        agreed: set[str] = set()
        deadline = monotonic() + SECONDS
        asked = [self._begin(self._agree, client, found, agreed) for client in self._clients]
        for thread in asked:
            thread.join(max(0.0, deadline - monotonic()))
        for error in [*found.values()]:
            if error.shown is None or not self._is_ours(error.shown):
                self._stop.set()
                raise _halted(error)
        return bool(agreed)

    def start(self, halt: Callable[[Halted], None]) -> None:
        """Ask for as long as the service runs; `halt` is told of what must not be signed over."""
        for client in self._clients:
            self._begin(self._run, client, halt)

    def _begin(self, work: Callable[..., None], *arguments: object) -> Thread:
        thread = Thread(target=work, args=arguments, name="witness", daemon=True)
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()
        return thread

    def stop(self) -> None:
        """Nobody is asked any more; who is being asked ends within seconds."""
        self._stop.set()
        self._reader.wake()

    def close(self) -> None:
        """Whoever is still being asked after some seconds is left alone: what comes of it is not kept."""
        self.stop()
        deadline = monotonic() + SECONDS
        for thread in self._threads:
            thread.join(max(0.0, deadline - monotonic()))

    async def settled(self, size: int) -> None:
        """Once so many entries have their quorum, or after a moment; at once while the witnesses are not prompt."""
        if self._quorum is None:
            return
        deadline = monotonic() + GRACE_SECONDS
        while self._in_time and self._witnessed < size:
            self._in_time = monotonic() < deadline
            await asyncio.sleep(LOOK_SECONDS)

    def _agree(self, client: WitnessClient, found: dict[str, Contradicted], agreed: set[str]) -> None:
        try:
            for _ in range(TRIES):
                published = self._reader.refresh()
                try:
                    self._ask(client, published)
                    agreed.add(client.name)
                    return
                except Contradicted as word:
                    if self._reader.refresh().size == published.size:
                        # Its word is enough, and known before anything is asked that may take long.
                        found[client.name] = word
                        found[client.name] = client.proved(word, published.size)
                        return
                    # Another process writes: it has published since, and the witness has seen that.
        except StaylogError as error:
            self._failed(client, error)
        except Exception:
            _logger.exception("the witness %s was not asked", client.name)

    def _run(self, client: WitnessClient, halt: Callable[[Halted], None]) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                published = self._reader.published
                contradiction = self._look(client, published)
                if contradiction is not None:
                    halt(_halted(contradiction))
                    return
                failures = 0
                self._reader.wait_beyond(published.size, IDLE_SECONDS, self._stop.is_set)
                continue
            except StaylogError as error:
                self._failed(client, error)
            except Exception:
                # A fault of ours must not be the end of all asking.
                _logger.exception("the witness %s was not asked", client.name)
            failures += 1
            self._stop.wait(min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE))

    def _look(self, client: WitnessClient, published: Published) -> Contradicted | None:
        """Ask, unless it is known already what would be answered; what must not be signed over, if that came."""
        self._came.setdefault(published.size, monotonic())
        for size in sorted(self._came)[:-RECENT]:
            self._came.pop(size, None)
        try:
            # A witness signs the same checkpoint again, with the time of now.
            if not self._has_cosigned(client, published) or not self._guard.is_confirmed(published.at):
                self._ask(client, published)
        except Contradicted as word:
            if self._reader.refresh().size > published.size:
                # Another process is ahead of what this one knew; the next look is at that.
                return None
            error = client.proved(word, published.size)
            if self._is_ours(error.shown) if error.shown is not None else not self._counts(client, word):
                raise error from None
            self._failed(client, error, "contradicts")
            return error
        return None

    def _counts(self, client: WitnessClient, word: Contradicted) -> bool:
        """Whether the mere word of a witness halts a running log: it says that its history is another one from an entry
        on of which we do not have its own cosignature over ours. Raises NotStored when the tree cannot be read."""
        if word.code != "log_forked" or word.size == 0:
            return False
        with self._store.read() as connection:
            found = run(connection, _LINE, (str(client.verifier), word.size))
            ours = published_at(connection, word.size)
        if not found or ours is None or ours.root != self._reader.tree.root(word.size):
            return True
        try:
            return not _cosignatures(client, ours, found[0][0])
        except (NotProved, Malformed):
            return True

    def _has_cosigned(self, client: WitnessClient, published: Published) -> bool:
        """Whether that is known already: another process may have asked."""
        mine = cosignatures(Note.parse(published.note), [client.verifier])
        if mine:
            self._count(published)
            self._cosigned(client, published, mine[0].timestamp)
        return bool(mine)

    def _ask(self, client: WitnessClient, published: Published) -> None:
        with self._store.read() as connection:
            [(last,)] = run(connection, _LAST, (str(client.verifier),))
        if last is not None and last > published.size:
            # Another process is ahead of what this one knows.
            published = self._reader.refresh()
        try:
            line = client.cosign(published, min(last or 0, published.size), int(self._clock().timestamp()))
        except OutOfTime as signed:
            # It is not kept, and says what time it is all the same.
            self._guard.witnessed(signed.timestamp)
            raise
        if self._stop.is_set():
            return
        for fresh in _cosignatures(client, published, line):
            self._guard.witnessed(fresh.timestamp)
        with self._store.write() as connection:
            row = (published.size, str(client.verifier), line)
            insert_rows(connection, tables.cosignature, [row], on_conflict=_KEEP)
        metrics.WITNESS_REQUESTS.labels(client.name, "cosigned").inc()
        # After the transaction: of two that end at the same time, the later one sees both.
        with self._store.read() as connection:
            published = published_at(connection, published.size) or published
        self._reader.tell(published)
        self._has_cosigned(client, published)

    def _count(self, published: Published) -> None:
        """Note down that a checkpoint has its quorum."""
        if self.policy is None or self._quorum is None or published.size <= self._witnessed:
            return
        if self.policy.meaning.agreement(Note.parse(published.note)).quorum:
            with self._store.write() as connection:
                insert_rows(connection, tables.witnessed, [(self._quorum, published.size)], on_conflict=_KEEP)
            # A quorum that comes late is one more that nobody should have waited for.
            came = self._came.get(published.size)
            if came is not None:
                self._in_time = monotonic() - came <= GRACE_SECONDS
            self._witnessed = max(self._witnessed, published.size)
            metrics.WITNESSED.set(self._witnessed)

    def _cosigned(self, client: WitnessClient, published: Published, timestamp: int) -> None:
        at = format_time(datetime.fromtimestamp(timestamp, UTC))
        before = self._states[client.name]
        if before.state not in ("cosigned", "waiting"):
            _logger.warning("the witness %s cosigns again", client.name)
        self._states[client.name] = replace(before, state="cosigned", size=published.size, at=at, detail=None)

    def _failed(self, client: WitnessClient, error: StaylogError, becomes: Condition | None = None) -> None:
        metrics.WITNESS_REQUESTS.labels(client.name, error.code).inc()
        known: Condition | None = "unreachable" if isinstance(error, NotFetched) else _STATES.get(error.code)
        state, before = becomes or known, self._states[client.name]
        if state is None:
            # It is not the witness that fails: the database is away, most likely.
            _logger.warning("the witness %s was not asked: %s", client.name, error.code)
            return
        if before.state != state:
            _logger.warning("the witness %s does not cosign (%s): %s", client.name, error.code, error)
        self._states[client.name] = replace(before, state=state, detail=error.message)

    def _is_ours(self, shown: Checkpoint) -> bool:
        """Whether the checkpoint that a witness shows is of this log after all: another process has just signed it."""
        newest = self._reader.refresh()
        return newest.size >= shown.size and self._reader.tree.root(shown.size) == shown.root


def _cosignatures(client: WitnessClient, published: Published, line: str) -> list[Cosignature]:
    """What the witness's line says under the checkpoint."""
    return cosignatures(Note.parse(f"{Note.parse(published.note).text}\n{line}"), [client.verifier])


def _halted(error: Contradicted) -> Halted:
    return Halted(error.code, f"{error.message}. {WHAT_TO_DO}{'' if error.shown else _WHAT_IF_IT_LIES}")
