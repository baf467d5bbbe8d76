"""What is wrong with the database, as a refusal that says whether to try again; mistakes of ours pass as they are."""

from typing import Any

from psycopg import errors
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from ledger.errors import Unavailable, Unconfirmed, Unreplicated
from ledger.store.postgresql import Stalled

# SQLite's primary code is the low byte: a mistake in a statement, busy, locked, read-only, full.
_MISTAKE, _BUSY, _READ_ONLY, _FULL = 1, (5, 6), 8, 13
# PostgreSQL's SQLSTATEs.
READ_ONLY, _NO_RIGHT, _NO_LOCK, _DISK_FULL = "25006", "42501", "55P03", "53100"


def refusal_of(error: PoolTimeout | DBAPIError) -> Unavailable | None:
    """None for a mistake of ours."""
    if isinstance(error, PoolTimeout):
        return Unavailable("busy", "all connections to the database are in use; try again in a moment")
    state = state_of(error)
    code = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF
    if state == _DISK_FULL or code == _FULL:
        return Unavailable(
            "storage_full",
            "the disk of the ledger is full: nothing was acknowledged; it goes on when there is space again",
        )
    if state == _NO_LOCK or code in _BUSY:
        return locked()
    if state == READ_ONLY or code == _READ_ONLY:
        return _unavailable("can only be read")
    if state == _NO_RIGHT:
        return without_right()
    if error.connection_invalidated or isinstance(error, OperationalError) and code != _MISTAKE:
        return _unavailable("does not answer")
    return None


def state_of(error: PoolTimeout | DBAPIError) -> str:
    """The SQLSTATE, where PostgreSQL has told one."""
    return getattr(getattr(error, "orig", None), "sqlstate", None) or ""


def locked() -> Unavailable:
    return Unavailable("busy", "the ledger's database is being written by another for too long; try again in a moment")


def without_right() -> Unavailable:
    return _unavailable("denies the service a right that it needs")


def unconfirmed() -> Unconfirmed:
    return Unconfirmed(
        "storage_unavailable",
        "the ledger's database did not say whether it was written: nothing was acknowledged; send the same again",
    )


def replaced(refusal: type[Unavailable]) -> Unavailable:
    return refusal(
        "storage_unavailable",
        "the files of the ledger's database were replaced while it runs: nothing was acknowledged; an operator must "
        "start the service again",
    )


def unreplicated() -> Unreplicated:
    return Unreplicated(
        "commit_not_replicated",
        "the database committed without its synchronous standby: nothing is acknowledged or signed until an operator "
        "has seen that the standby has it, and started the service again",
    )


def is_stalled(error: Any) -> bool:
    """Whether the server is there and does not answer: each further call would wait as long."""
    original = getattr(error, "orig", None)
    return isinstance(original, Stalled | errors.ConnectionTimeout)


def _unavailable(what: str) -> Unavailable:
    return Unavailable("storage_unavailable", f"the ledger's database {what}: nothing was acknowledged")
