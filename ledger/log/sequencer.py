"""The sequencer: whatever queued up while a commit ran is the next batch (protocol.md 3).

Nothing is acknowledged before it is durable, integrated and covered by a signed checkpoint. Any number of processes may
run one each on the same database.
"""

import logging
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Condition, Thread
from time import perf_counter

from ledger import metrics
from ledger.errors import Halted, StaylogError, Unavailable
from ledger.health import Health
from ledger.log.batch import Outcome, Placed, Written
from ledger.log.clock_watch import ClockWatch
from ledger.log.drafts import Draft
from ledger.log.entries import Entry
from ledger.log.integrate import Integrator, Unsigned, is_old
from ledger.log.publish import Publisher
from ledger.log.replay import MAX_BATCH
from ledger.store.engine import Store
from ledger.store.rows import Published, published_at

MAX_QUEUE = 10_000
# How long the writer sleeps at most, and anybody waits for others who are about to come.
IDLE_SECONDS = 1.0
# How many entries may wait in SQLite's write-ahead log, at some 20 kB each: a page that changes often is moved once.
TIDY_AFTER = 8_000
# So many share what a commit costs that one more would make little difference.
ENOUGH = 8

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Integrated:
    """An acknowledged entry and the first checkpoint that covers it; when it was submitted before, `repeated`, and some
    checkpoint that covers it."""

    index: int
    entry: Entry
    published: Published
    repeated: bool


class Sequencer:
    """Takes drafts from any thread; one thread of its own writes."""

    def __init__(
        self,
        store: Store,
        publisher: Publisher,
        clock_watch: ClockWatch,
        *,
        max_batch: int = MAX_BATCH,
        max_queue: int = MAX_QUEUE,
        on_step: Callable[[str], None] = lambda _: None,
        on_published: Callable[[Published], None] = lambda _: None,
        health: Health | None = None,
    ) -> None:
        self._store = store
        self._integrator = Integrator(store, clock_watch.guard)
        self._publisher = publisher
        self._clock_watch = clock_watch
        self._max_batch = max_batch
        self._max_queue = max_queue
        self._on_step = on_step
        self._on_published = on_published
        self._queue: deque[tuple[Draft, Future[Integrated]]] = deque()
        self._coming = 0
        self._wake = Condition()
        self._closing = False
        self._since_tidy = 0
        self._thread: Thread | None = None
        # The time of the newest checkpoint.
        self._at = ""
        self.halted: Halted | None = None
        self._health = health or Health()

    def open(self) -> Published:
        """Sign what a crash left unsigned. Raises as `Publisher.publish`."""
        newest = self._publish()
        # From here on the clock is held against the time that passes, also while nothing is added.
        self._clock_watch.guard.is_confirmed(newest.at)
        return newest

    def start(self) -> None:
        metrics.QUEUED.set_function(lambda: len(self._queue))
        self._clock_watch.look(self._at)
        self._thread = Thread(target=self._run, name="sequencer", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Finish the queue, then stop."""
        with self._wake:
            self._closing = True
            self._wake_writer()
        if self._thread is not None:
            self._thread.join()

    @contextmanager
    def coming(self) -> Iterator[None]:
        """Around the work, of milliseconds, that ends in `submit`. While more are coming than are here the writer
        waits for them: one commit is as dear as the next. Who is alone waits for nobody."""
        with self._wake:
            self._coming += 1
        try:
            yield
        finally:
            with self._wake:
                self._coming -= 1
                self._wake_writer()

    def submit(self, draft: Draft) -> "Future[Integrated]":
        """The draft's place in the log, once it is acknowledged; StaylogError when it is refused. A caller that stops
        waiting does not stop the draft."""
        future: Future[Integrated] = Future()
        future.set_running_or_notify_cancel()
        with self._wake:
            self._require_going()
            if self._closing:
                raise Unavailable("busy", "the service is shutting down; try again in a moment")
            if len(self._queue) >= self._max_queue:
                raise Unavailable("busy", f"{len(self._queue)} entries are waiting already; try again in a moment")
            self._queue.append((draft, future))
            self._wake_writer()
        return future

    def append(self, drafts: Sequence[Draft], progress: Callable[[int], None] = lambda _: None) -> list[Integrated]:
        """All drafts or none, at once, in the caller's thread. Raises SomeRefused with every reason."""
        if not drafts:
            return []
        outcomes = self._integrate(drafts, together=True, progress=progress)
        published = self._publish_written()
        self._tidy(len(drafts))
        return [_integrated(outcome, published) for outcome in outcomes if not isinstance(outcome, StaylogError)]

    def _run(self) -> None:
        while (batch := self._take()) is not None:
            try:
                self._write(batch)
                self._clock_watch.look(self._at)
            except Exception:
                # `_write` answers everybody who waits; the log goes on with the next batch.
                _logger.exception("the sequencer could not write")

    def _take(self) -> list[tuple[Draft, "Future[Integrated]"]] | None:
        """What has queued up; an empty list after a while without anything; None at the end."""
        with self._wake:
            self._wake.wait_for(self._is_ready, IDLE_SECONDS)
            if not self._queue and self._closing:
                return None
            return [self._queue.popleft() for _ in range(min(len(self._queue), self._max_batch))]

    def _is_ready(self) -> bool:
        """Whether there is something to write, and not more about to come."""
        return self._closing or bool(self._queue) and len(self._queue) >= min(self._coming, ENOUGH)

    def _wake_writer(self) -> None:
        if self._is_ready():
            self._wake.notify()

    def _write(self, batch: list[tuple[Draft, "Future[Integrated]"]]) -> None:
        drafts, futures = [draft for draft, _ in batch], [future for _, future in batch]
        started = perf_counter()
        try:
            if not batch and not self._is_due():
                return
            try:
                outcomes = self._integrate(drafts)
            except StaylogError:
                raise
            except Exception:
                if len(batch) == 1:
                    raise
                # One of them breaks what none should be able to break: the others must not suffer for it.
                _logger.exception("a batch could not be written; its drafts are tried one by one")
                for each in batch:
                    self._write_alone(each)
                return
            published = self._publish_written()
            results = [
                outcome if isinstance(outcome, StaylogError) else _integrated(outcome, published)
                for outcome in outcomes
            ]
        except BaseException as error:
            self._fail(futures, error)
            if isinstance(error, StaylogError):
                return
            raise
        metrics.BATCH_SECONDS.observe(perf_counter() - started)
        for future, result in zip(futures, results, strict=True):
            if isinstance(result, StaylogError):
                future.set_exception(result)
            else:
                future.set_result(result)
        self._tidy(len(batch))

    def _write_alone(self, one: tuple[Draft, "Future[Integrated]"]) -> None:
        try:
            self._write([one])
        except Exception:
            _logger.exception("a draft could not be written")

    def _is_due(self) -> bool:
        """Whether there is something to do though nobody asked: a head to sign, or an old one to follow."""
        if self.halted is not None:
            return False
        at = self._publish().at
        return self._clock_watch.guard.is_confirmed(at) and is_old(at, self._clock_watch.clock())

    def _integrate(
        self, drafts: Sequence[Draft], *, together: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> list[Outcome]:
        self._require_going()
        while True:
            try:
                outcomes = self._integrator.integrate(drafts, together=together, progress=progress)
            except Unsigned:
                self._publish()
                continue
            metrics.BATCH_ENTRIES.observe(len(drafts))
            self._on_step("committed")
            return outcomes

    def _require_going(self) -> None:
        if self.halted is not None:
            # A new one each time: an error that is raised again and again keeps all its traces.
            raise Halted(self.halted.code, self.halted.message)

    def _publish(self, written: Written | None = None) -> Published:
        self._require_going()
        newest = self._publisher.publish(written)
        self._at = newest.at
        self._on_published(newest)
        return newest

    def _publish_written(self) -> Published:
        """The checkpoint of what was just committed: others may have added to it since, after it was signed. Raises
        Unavailable when the log went on without it, in a database that lacks it."""
        newest, head = self._publish(self._integrator.written), self._integrator.written.head
        if head is None or (head.size, head.root) == (newest.size, newest.root):
            return newest
        with self._store.read() as connection:
            found = published_at(connection, head.size)
        if found is None or found.root != head.root:
            lost = "the database has lost what was committed; nothing was acknowledged"
            raise Unavailable("storage_unavailable", lost)
        return found

    def halt(self, error: Halted) -> None:
        """Sign nothing more until an operator has looked."""
        self.halted = error
        self._health.report("log", error)
        metrics.HALTED.set(1)
        _logger.critical("the log does not sign any more: %s", error)

    def _fail(self, futures: Sequence["Future[Integrated]"], error: BaseException) -> None:
        if isinstance(error, Halted):
            self.halt(error)
        elif not isinstance(error, StaylogError):
            error = StaylogError("internal_error", "the entry could not be written; the operator's log says why")
        for future in futures:
            future.set_exception(error)

    def _tidy(self, entries: int) -> None:
        self._since_tidy += entries + 20
        if self._since_tidy > TIDY_AFTER:
            self._since_tidy = 0
            # It is as good after the next batch.
            with suppress(Unavailable):
                self._store.tidy()


def _integrated(outcome: Placed, published: Published) -> Integrated:
    """The promise itself: nothing is acknowledged that the checkpoint does not cover."""
    if outcome.index >= published.size:
        raise StaylogError("internal_error", f"entry {outcome.index} is not covered by the checkpoint")
    return Integrated(outcome.index, outcome.entry, published, outcome.repeated)
