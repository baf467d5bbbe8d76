"""The witnesses of a log (protocol.md 7): each is asked about every newest checkpoint, in a thread of its own, and its
cosignatures are stored and served with it. No review ever waits for one: a missing quorum is shown, and that is all.

The exception is a witness that shows what this log's own key signed, and this database does not have: then whoever
signs next would fork the log (protocol.md 3). At the start its mere word is enough; later it must prove it, because
this process knows what it signed itself.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Literal

from ledger import metrics
from ledger.canon.times import format_time
from ledger.clock import Clock
from ledger.errors import BadNote, Halted, Misconfigured, NotFetched, StaylogError
from ledger.log.cosignature import cosignatures
from ledger.log.mark import WHAT_TO_DO
from ledger.log.note import Note, Verifier
from ledger.log.policy import Policy
from ledger.log.reader import Reader
from ledger.log.witness_client import SECONDS, Contradicted, WitnessClient
from ledger.net.plain import check_address
from ledger.store import tables
from ledger.store.engine import Store
from ledger.store.rows import MAX_WITNESSES, Published, insert_rows, published_at, run

Condition = Literal["cosigned", "waiting", "unreachable", "refused", "ahead", "lying"]
# Between two tries, at most; and how long a thread sleeps without news.
LONGEST_PAUSE, IDLE_SECONDS = 60.0, 60.0
# What a receipt may wait for cosignatures, once the review is in the log.
GRACE_SECONDS, LOOK_SECONDS = 0.5, 0.005

_KEEP = " ON CONFLICT DO NOTHING"
_LAST = "SELECT max(size) FROM cosignature WHERE witness = ?"
_WHAT_IF_IT_LIES = " If you know that the witness is wrong, take it out of the file tlog-policy and start again."
_STATES: dict[str, Condition] = {
    "cosignature_refused": "refused",
    "cosignature_invalid": "lying",
    "cosignature_time": "lying",
    "log_forked": "lying",
    "log_behind": "ahead",
}

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WitnessState:
    """`state` is cosigned, waiting, unreachable, refused, ahead or lying; `size` and `at` are of its last cosignature,
    `detail` says what is wrong."""

    name: str
    verifier: Verifier
    url: str | None
    state: Condition = "waiting"
    size: int | None = None
    at: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class ServicePolicy:
    """A tlog-policy as the operator wrote it down, and what it means."""

    text: str
    meaning: Policy


def read_policy(path: Path, log: Verifier) -> ServicePolicy | None:
    """The tlog-policy in the ledger's folder, if there is one and it is of use for this log."""
    try:
        text = path.read_text("utf-8")
        policy = Policy.parse(text)
        for witness in policy.witnesses.values():
            if witness.url is not None:
                check_address(witness.url)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError, BadNote, Misconfigured) as error:
        raise Misconfigured("settings_invalid", f"the file {path.name}: {error}") from None
    asked = {witness.verifier for witness in policy.witnesses.values() if witness.url is not None}
    if log not in policy.logs:
        raise Misconfigured("settings_invalid", f"the file {path.name} is not about this log; add the line: log {log}")
    if len(policy.witnesses) > MAX_WITNESSES:
        raise Misconfigured("settings_invalid", f"the file {path.name} names more than {MAX_WITNESSES} witnesses")
    if not policy.satisfied_by(asked):
        raise Misconfigured(
            "settings_invalid", f"the quorum in {path.name} can never be there: too few witnesses have an address"
        )
    return ServicePolicy(text, policy)


class Witnesses:
    """Without a policy nobody is asked. `clock` is the log's."""

    def __init__(
        self, store: Store, reader: Reader, log: Verifier, policy: ServicePolicy | None, clock: Clock, agent: str
    ) -> None:
        self._store = store
        self._reader = reader
        self._clock = clock
        self.policy = policy
        known = {} if policy is None else policy.meaning.witnesses
        self._states = {name: WitnessState(name, each.verifier, each.url) for name, each in known.items()}
        self._clients = [
            WitnessClient(name, each.verifier, check_address(each.url), log, reader.tree, agent)
            for name, each in known.items()
            if each.url is not None
        ]
        # The newest checkpoint with a quorum, as far as this process knows; and whether the last one came in time.
        self._witnessed = 0
        self._in_time = True
        self._stop = Event()
        self._threads: list[Thread] = []

    def states(self) -> list[WitnessState]:
        return [*self._states.values()]

    def require_agreement(self) -> None:
        """At the start, before anything is signed: Halted if a witness has seen more of this log than we have, or
        something else. Whoever does not answer in time does not keep the log from going on."""
        found: list[Contradicted] = []
        threads = [Thread(target=self._agree, args=(each, found), daemon=True) for each in self._clients]
        deadline = monotonic() + SECONDS
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, deadline - monotonic()))
        for error in found:
            if error.shown is None or not self._is_ours(error):
                raise _halted(error)

    def start(self, halt: Callable[[Halted], None]) -> None:
        """Ask for as long as the service runs; `halt` is told of what must not be signed over."""
        for client in self._clients:
            self._threads.append(Thread(target=self._run, args=(client, halt), name="witness", daemon=True))
            self._threads[-1].start()

    def close(self) -> None:
        self._stop.set()
        self._reader.wake()
        for thread in self._threads:
            thread.join()

    async def settled(self, size: int) -> None:
        """Once so many entries have their quorum, or after a moment; at once while the witnesses are not prompt."""
        if self.policy is None or self.policy.meaning.quorum is None:
            return
        deadline = monotonic() + GRACE_SECONDS
        while self._in_time and self._witnessed < size:
            self._in_time = monotonic() < deadline
            await asyncio.sleep(LOOK_SECONDS)

    def _agree(self, client: WitnessClient, found: list[Contradicted]) -> None:
        try:
            self._ask(client, self._reader.refresh())
        except Contradicted as error:
            found.append(error)
        except StaylogError as error:
            self._failed(client, error)
        except Exception:
            _logger.exception("the witness %s was not asked", client.name)

    def _run(self, client: WitnessClient, halt: Callable[[Halted], None]) -> None:
        failures = 0
        while not self._stop.is_set():
            try:
                published = self._reader.published
                if not self._has_cosigned(client, published):
                    self._ask(client, published)
                failures = 0
                self._reader.wait_beyond(published.size, IDLE_SECONDS)
                continue
            except Contradicted as error:
                self._failed(client, error)
                if error.shown is not None and not self._is_ours(error):
                    halt(_halted(error))
                    return
            except StaylogError as error:
                self._failed(client, error)
            except Exception:
                # A fault of ours must not be the end of all asking.
                _logger.exception("the witness %s was not asked", client.name)
            failures += 1
            self._stop.wait(min(2.0 ** min(failures - 1, 10), LONGEST_PAUSE))

    def _has_cosigned(self, client: WitnessClient, published: Published) -> bool:
        """Whether that is known already: another process may have asked."""
        note = Note.parse(published.note)
        mine = cosignatures(note, [client.verifier])
        if mine:
            self._cosigned(client, published, mine[0].timestamp)
            self._count(published)
        return bool(mine)

    def _ask(self, client: WitnessClient, published: Published) -> None:
        with self._store.read() as connection:
            [(last,)] = run(connection, _LAST, (str(client.verifier),))
        if last is not None and last > published.size:
            # Another process is ahead of what this one knows.
            published = self._reader.refresh()
        line = client.cosign(published, min(last or 0, published.size), int(self._clock().timestamp()))
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
        if self.policy is None or published.size <= self._witnessed:
            return
        if self.policy.meaning.agreement(Note.parse(published.note)).quorum:
            with self._store.write() as connection:
                insert_rows(connection, tables.witnessed, [(published.size,)], on_conflict=_KEEP)
            self._witnessed, self._in_time = max(self._witnessed, published.size), True
            metrics.WITNESSED.set(self._witnessed)

    def _cosigned(self, client: WitnessClient, published: Published, timestamp: int) -> None:
        at = format_time(datetime.fromtimestamp(timestamp, UTC))
        before = self._states[client.name]
        if before.state not in ("cosigned", "waiting"):
            _logger.warning("the witness %s cosigns again", client.name)
        self._states[client.name] = replace(before, state="cosigned", size=published.size, at=at, detail=None)

    def _failed(self, client: WitnessClient, error: StaylogError) -> None:
        metrics.WITNESS_REQUESTS.labels(client.name, error.code).inc()
        state: Condition | None = "unreachable" if isinstance(error, NotFetched) else _STATES.get(error.code)
        before = self._states[client.name]
        if state is None:
            # It is not the witness that fails: the database is away, most likely.
            _logger.warning("the witness %s was not asked: %s", client.name, error.code)
            return
        if before.state != state:
            _logger.warning("the witness %s does not cosign (%s): %s", client.name, error.code, error)
        self._states[client.name] = replace(before, state=state, detail=error.message)

    def _is_ours(self, error: Contradicted) -> bool:
        """Whether the checkpoint that a witness shows is of this log after all: another process has just signed it."""
        newest, shown = self._reader.refresh(), error.shown
        return shown is not None and newest.size >= shown.size and self._reader.tree.root(shown.size) == shown.root


def _halted(error: Contradicted) -> Halted:
    return Halted(error.code, f"{error.message}. {WHAT_TO_DO}{'' if error.shown else _WHAT_IF_IT_LIES}")
