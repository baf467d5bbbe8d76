"""Connections to PostgreSQL that end by themselves: each wait has a deadline, after which the socket is closed.

Nothing is ever cancelled, neither at a deadline nor at Ctrl-C: a COMMIT that waits for a synchronous standby would end
with success when it is cancelled, and with a warning that the standby does not have it.
"""

import json
import socket
from collections.abc import Callable
from contextlib import suppress
from time import monotonic
from typing import Any, TypeVar

import psycopg
from psycopg import errors, waiting
from psycopg.abc import PQGen
from sqlalchemy import URL

from ledger.errors import Misconfigured
from ledger.store.database_url import connection_parameters
from ledger.store.deadlines import Deadlines

# What the sessions need is older; tests run on 16 and 18.
OLDEST = 140_000
_INTERVAL = 0.1
# A refusal to connect comes in milliseconds.
LONG_SECONDS = 1.0
# Where the warnings of a COMMIT that was cancelled come from, in any language.
_WAIT_FOR_STANDBY = "SyncRepWaitForLSN"
DURABLE = {"synchronous_commit": "on", "fsync": "on", "full_page_writes": "on"}
_SET = "SELECT set_config(name, value, false) FROM json_each_text(%s::json) AS wanted(name, value)"
_READ = "SELECT name, current_setting(name) FROM unnest(%s::text[]) AS wanted(name)"

T = TypeVar("T")


class Stalled(psycopg.OperationalError):
    """The server did not answer before the deadline, and the connection is closed. What a COMMIT did is not known. Or a
    new connection was refused after so long that not everyone should try."""


class Connection(psycopg.Connection[Any]):
    """Used by one thread at a time. `deadline` is that of each wait from now on, in seconds."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.deadline: float | None = None
        # Warnings that what was committed is not on the standby.
        self.unreplicated: list[str] = []
        self.add_notice_handler(_noting(self.unreplicated))

    def wait(self, gen: PQGen[T], interval: float = _INTERVAL, timeout: float | None = None) -> T:
        timeout = self.deadline if timeout is None else timeout
        try:
            return waiting.wait(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except errors._WaitTimeout:
            self._cut()
            raise Stalled(f"no answer within {timeout:g} s; the connection is closed") from None
        except (KeyboardInterrupt, SystemExit):
            self._cut()
            raise

    def shut(self) -> None:
        """Whatever waits for the server ends with an error. From any thread."""
        with suppress(OSError, psycopg.OperationalError), socket.socket(fileno=self.pgconn.socket) as ours:
            try:
                ours.shutdown(socket.SHUT_RDWR)
            finally:
                # libpq closes it.
                ours.detach()

    def _cut(self) -> None:
        self.shut()
        self.pgconn.finish()


def connector(url: URL, deadlines: Deadlines, lock: float) -> Callable[[], Connection]:
    """What opens connections that wait for a lock for `lock` seconds; the URL's own parameters come before ours."""
    milliseconds = int(deadlines.statement * 1000)
    ours: dict[str, Any] = {
        "connect_timeout": deadlines.connect,
        "tcp_user_timeout": milliseconds,
        "keepalives": 1,
        "keepalives_idle": 2,
        "keepalives_interval": 1,
        "keepalives_count": 3,
        "fallback_application_name": "staylog",
        "client_encoding": "UTF8",
    }
    parameters = ours | connection_parameters(url)

    def connect() -> Connection:
        began = monotonic()
        try:
            made = Connection.connect(**parameters)
        except psycopg.OperationalError as error:
            # Of several hosts one did not answer, and another refused.
            if monotonic() - began >= LONG_SECONDS:
                raise Stalled(str(error)) from error
            raise
        made.deadline = deadlines.statement
        try:
            _set_up(made, deadlines, lock)
        except BaseException:
            made.close()
            raise
        return made

    return connect


def _set_up(connection: Connection, deadlines: Deadlines, lock: float) -> None:
    """Durable, or Misconfigured; and with deadlines in the server, for what a frozen service leaves behind there."""
    version = connection.info.server_version
    if version < OLDEST:
        raise Misconfigured("database_unsuitable", f"the server is PostgreSQL {version // 10_000}; 14 is the oldest")
    settings = {
        "synchronous_commit": "on",
        "lock_timeout": str(int(lock * 1000)),
        "idle_in_transaction_session_timeout": str(int(deadlines.idle * 1000)),
        # A frozen service takes nothing in, and what the server is sending to it would hold up its transaction. Of TCP.
        "tcp_user_timeout": str(int(deadlines.idle * 1000)),
        # A role or a database may have one, by which the server would cancel a COMMIT.
        "statement_timeout": "0",
    }
    if version >= 170_000:
        settings["transaction_timeout"] = "0"
    before, connection.autocommit = connection.autocommit, True
    connection.execute(_SET, [json.dumps(settings)])
    found = connection.execute(_READ, [list(DURABLE)])
    require_durable(DURABLE, dict(found.fetchall()))
    connection.autocommit = before


def require_durable(wanted: dict[str, Any], found: dict[str, Any]) -> None:
    """Raises Misconfigured when the database has other settings than it was given."""
    for name, value in wanted.items():
        if found[name] != value:
            raise Misconfigured(
                "database_not_durable",
                f"the database has {name} = {found[name]}, and a commit could be lost; it must be {value}",
            )


def _noting(unreplicated: list[str]) -> Callable[[errors.Diagnostic], None]:
    def note(notice: errors.Diagnostic) -> None:
        message = notice.message_primary or ""
        if notice.source_function == _WAIT_FOR_STANDBY or "synchronous replication" in message:
            unreplicated.append(message)

    return note
