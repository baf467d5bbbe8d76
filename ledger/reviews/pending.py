"""Submissions that wait for a decision, and what became of them: rows that survive restarts, shared by processes.

A row is found by its id, which only who submitted it has: the database has a keyed hash of it. While it waits, the row
holds the submission, sealed; when it is decided, the outcome, sealed so that only the id opens it. Whoever works on a
row has a lease of it; what a process that died was working on is taken up by the next.
"""

import logging
from base64 import b32encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection

from ledger import metrics
from ledger.canon.times import format_time, parse_time
from ledger.errors import NotFound, NotStored, TooMany, Unavailable
from ledger.identity import statements
from ledger.reviews.desk import Desk
from ledger.reviews.guests import Guest
from ledger.settings import service_did
from ledger.store.erasure import erasing
from ledger.store.rows import run

# How long an answer is waited for, and when it is asked for, from the moment that the submission came.
PATIENCE = timedelta(hours=72)
_MINUTES = (1, 5, 30, 2 * 60, 6 * 60, 18 * 60, 30 * 60, 42 * 60, 54 * 60, 66 * 60, 72 * 60)
SCHEDULE = tuple(timedelta(minutes=minutes) for minutes in _MINUTES)
# No two of these are further apart.
LONGEST = timedelta(hours=12)
# However late it is, a host is asked so often, a minute apart: a clock that jumps must not be its judge.
LEAST_TRIES = 5
HURRIED = timedelta(minutes=1)
# Where we could not ask: too often already, or too busy.
UNASKED = timedelta(minutes=10)
# Longer than everything takes that is done with a lease.
LEASE = timedelta(minutes=2)
# By how much the clocks of those who share the work may differ. What lies further ahead was set by one that jumped.
SKEW = timedelta(hours=1)
MOST_PENDING = 100_000
KEPT_DECIDED = timedelta(days=90)

_logger = logging.getLogger(__name__)
_PENDING = "SELECT key, sealed, tries FROM submission WHERE replay = ?"
_COUNT = "SELECT count(*) FROM submission WHERE due_at IS NOT NULL"
_ADD = (
    "INSERT INTO submission (key, sealed, replay, slot, due_at, tries) VALUES (?, ?, ?, ?, ?, 0) "
    "ON CONFLICT DO NOTHING RETURNING key"
)
_SLOT = "SELECT due_at FROM submission WHERE slot = ?"
_ANOTHER = "SELECT due_at FROM submission WHERE slot = ? AND replay <> ?"
# What is due, or was to be due later than anything ever is: then a clock was ahead. The same of leases.
_DUE = (
    "SELECT key FROM submission WHERE due_at IS NOT NULL AND (due_at <= ? OR due_at > ?) "
    "AND (leased_until IS NULL OR leased_until <= ? OR leased_until > ?) ORDER BY due_at LIMIT ?"
)
_LEASE = "UPDATE submission SET leased_until = ?, lease = ? WHERE key = ? RETURNING key, sealed, tries"
_AGAIN = (
    "UPDATE submission SET due_at = ?, tries = ?, leased_until = NULL, lease = NULL WHERE key = ? AND lease = ? "
    "RETURNING key"
)
_DECIDE = (
    "UPDATE submission SET sealed = ?, replay = NULL, slot = NULL, due_at = NULL, leased_until = NULL, lease = NULL, "
    "forget_at = ? WHERE key = ? AND lease = ? RETURNING key"
)
_BY_ID = "SELECT sealed, due_at FROM submission WHERE key = ?"
_FORGET = "DELETE FROM submission WHERE forget_at <= ? RETURNING key"


@dataclass(frozen=True, slots=True)
class Waiting:
    """What was taken in and is not decided. `repeated` when the same came before."""

    id: str
    kind: str
    body: Mapping[str, Any]
    guest: Guest
    received_at: str
    decide_by: str
    intake: Mapping[str, Any]
    tries: int = 0
    repeated: bool = False

    def due_after(self, now: datetime) -> datetime:
        """When the host is asked again after it was asked now: in good time, or soon if it is late already."""
        end, made = parse_time(self.decide_by), self.tries + 1
        if now >= end or made >= len(SCHEDULE):
            return now + HURRIED
        return min(now + SCHEDULE[made] - SCHEDULE[made - 1], end)

    def is_last(self, now: datetime) -> bool:
        """Whether what comes of asking now is the end of it. It was asked once before it began to wait."""
        made = self.tries + 1
        return made >= len(SCHEDULE) or made + 1 >= LEAST_TRIES and now >= parse_time(self.decide_by)


@dataclass(frozen=True, slots=True)
class Leased:
    """A row that nobody else works on for a while."""

    key: bytes
    lease: bytes
    waiting: Waiting


def find(desk: Desk, replay_key: bytes) -> Waiting | None:
    """What waits since the same was submitted before."""
    with desk.store.read() as connection:
        rows = run(connection, _PENDING, (replay_key,))
    return replace(_open(desk, *rows[0]), repeated=True) if rows else None


def wait(
    desk: Desk, kind: str, body: Mapping[str, Any], digest: str, guest: Guest, replay_key: bytes, decide_by: datetime
) -> Waiting:
    """Put a submission to those that wait, unless the same is there already; one of a person and host at a time."""
    now, id_ = desk.clock(), "sub-" + b32encode(desk.random(16)).decode().rstrip("=").lower()
    slot = _slot_key(desk, kind, body, guest)
    times = format_time(now), format_time(decide_by)
    waiting = Waiting(id_, kind, body, guest, *times, _intake(desk, digest, *times))
    key = _row_key(desk, id_)
    with desk.store.write() as connection, erasing(connection):
        if run(connection, _COUNT)[0][0] >= MOST_PENDING:
            raise Unavailable("busy", "too many submissions wait for a decision already; try again later")
        row = (key, _seal(desk, key, waiting), replay_key, slot, format_time(now + SCHEDULE[0]))
        if run(connection, _ADD, row):
            return waiting
        same = run(connection, _PENDING, (replay_key,))
        if not same:
            _refuse_second(connection, slot, now)
    return replace(_open(desk, *same[0]), repeated=True)


def require_free(desk: Desk, kind: str, body: Mapping[str, Any], guest: Guest, replay_key: bytes) -> None:
    """Nothing else of this person and host waits: whoever has to wait for that need not have the host asked."""
    with desk.store.read() as connection:
        slot = _slot_key(desk, kind, body, guest)
        if run(connection, _ANOTHER, (slot, replay_key)):
            _refuse_second(connection, slot, desk.clock())


def lease(desk: Desk, most: int) -> list[Leased]:
    """Some that are due and that nobody works on."""
    now = desk.clock()
    at, ends = format_time(now), format_time(now + LEASE)
    due = (at, format_time(now + LONGEST + SKEW), at, format_time(now + LEASE + SKEW))
    with desk.store.read() as connection:
        # Nearly always there is nothing to do, and nobody's turn to write is taken for it.
        if not run(connection, _DUE, (*due, 1)):
            return []
    with desk.store.write() as connection, erasing(connection):
        keys = [bytes(key) for (key,) in run(connection, _DUE, (*due, most))]
        leases = [(key, desk.random(16)) for key in keys]
        rows = [run(connection, _LEASE, (ends, lease, key))[0] for key, lease in leases]
        metrics.PENDING.set(run(connection, _COUNT)[0][0])
    return [found for lease, row in zip(leases, rows, strict=True) if (found := _leased(desk, *lease, row)) is not None]


def again(desk: Desk, leased: Leased, *, asked: bool = True) -> None:
    """Ask once more, later. What was not asked for reasons of our own does not count against the host."""
    now, waiting = desk.clock(), leased.waiting
    due = waiting.due_after(now) if asked else now + UNASKED
    with desk.store.write() as connection, erasing(connection):
        run(connection, _AGAIN, (format_time(due), waiting.tries + asked, leased.key, leased.lease))


def decide(desk: Desk, leased: Leased, outcome: Mapping[str, Any]) -> bool:
    """What became of it; False when somebody else has decided meanwhile. What was submitted is gone with this."""
    now, waiting = desk.clock(), leased.waiting
    value = {**outcome, "kind": waiting.kind, "decide_by": waiting.decide_by}
    sealed = desk.vault.seal("outcome", value, waiting.id.encode())
    with desk.store.erase("submission") as connection:
        row = (sealed, format_time(now + KEPT_DECIDED), leased.key, leased.lease)
        return bool(run(connection, _DECIDE, row))


def look_up(desk: Desk, id_: str) -> Waiting | Mapping[str, Any]:
    """What waits under an id, or what became of it."""
    key = _row_key(desk, id_)
    with desk.store.read() as connection:
        rows = run(connection, _BY_ID, (key,))
    if not rows:
        raise NotFound("submission_not_found", "there is no submission of this id, or it was decided 90 days ago")
    sealed, due_at = rows[0]
    if due_at is None:
        outcome: Mapping[str, Any] = desk.vault.open("outcome", sealed, id_.encode())
        return outcome
    return _open(desk, key, sealed, 0)


def forget(desk: Desk, now: datetime) -> int:
    """Erase what was decided long ago; how many."""
    with desk.store.erase("submission") as connection:
        return len(run(connection, _FORGET, (format_time(now),)))


def _leased(desk: Desk, key: bytes, lease: bytes, row: Sequence[Any]) -> Leased | None:
    """None if the row does not open: that is no reason to leave the others, and somebody may mend it."""
    try:
        return Leased(key, lease, _open(desk, *row))
    except NotStored as damage:
        _logger.error("a submission waits that cannot be read: %s", damage.message)
        return None


def _refuse_second(connection: Connection, slot: bytes, now: datetime) -> None:
    due: Sequence[Any] = run(connection, _SLOT, (slot,))
    wait = parse_time(due[0][0]) - now if due else timedelta()
    raise TooMany(
        "quota_exceeded",
        "another submission of this person about this host waits for a decision; one may wait at a time",
        retry_after=max(60, int(wait.total_seconds())),
    )


def _intake(desk: Desk, digest: str, received_at: str, decide_by: str) -> dict[str, Any]:
    """The ledger's signed word that it has a submission and will decide on it."""
    said = {"type": "IntakeReceipt", "submission_sha256": digest, "received_at": received_at, "decide_by": decide_by}
    method = f"{service_did(desk.domain)}#statements"
    return statements.sign(said, desk.keys.statements, method, now=desk.clock())


def _slot_key(desk: Desk, kind: str, body: Mapping[str, Any], guest: Guest) -> bytes:
    return desk.key("slot", kind, body["host_did"], desk.person(body["host_did"], guest.person))


def _row_key(desk: Desk, id_: str) -> bytes:
    return desk.key("submission-id", id_)


def _seal(desk: Desk, key: bytes, waiting: Waiting) -> bytes:
    value = {
        "id": waiting.id,
        "kind": waiting.kind,
        "body": waiting.body,
        "guest": waiting.guest.as_json(),
        "received_at": waiting.received_at,
        "decide_by": waiting.decide_by,
        "intake": waiting.intake,
    }
    return desk.vault.seal("submission", value, key)


def _open(desk: Desk, key: bytes, sealed: bytes, tries: int) -> Waiting:
    value = desk.vault.open("submission", sealed, bytes(key))
    return Waiting(**{**value, "guest": Guest.parse(value["guest"])}, tries=tries)
