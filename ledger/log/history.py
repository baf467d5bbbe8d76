"""What this log has signed or seen signed: nothing is signed that does not go on from it (protocol.md 3).

Four sources are compared with the database: the mark beside it, the mark that all services share (if there is one), the
witnesses, and which PostgreSQL answers. A restored backup, a new folder or a failover to a standby that lags would
otherwise fork the log.
"""

import errno
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from time import monotonic

from sqlalchemy import Connection

from ledger import metrics
from ledger.canon.times import format_time, parse_time
from ledger.clock import Clock, elapsed_seconds
from ledger.errors import Halted, Malformed, Misconfigured, NotStored, StaylogError, Unavailable
from ledger.health import Health
from ledger.log.databases import is_synchronous, which_database
from ledger.log.mark import HOW_TO_ACCEPT, Database, Mark, another_history, check_mark
from ledger.log.mark_file import MarkFile
from ledger.log.shared_mark import SharedMark
from ledger.log.tiles import TileTree
from ledger.store.rows import Head, Published, Rows, newest_published, read_head

# The smallest checkpoint, genesis and its map head, is the same each time that it is signed.
GENESIS_SIZE = 2
# How old the sight of a synchronous standby may be when the database changes, how often it is looked for, and how often
# witnesses are asked about a change.
SYNCHRONOUS_SECONDS, LOOK_SECONDS, ASK_SECONDS = 60, 10, 5

_logger = logging.getLogger(__name__)


class History:
    """Held by the publisher and the reader of one ledger; threads may share it. `agreement` asks the witnesses and says
    whether one agrees; it raises Halted when one contradicts. `accepted` is the checkpoint of which the operator says
    that nothing newer was ever signed."""

    def __init__(
        self,
        file: MarkFile,
        clock: Clock,
        health: Health,
        shared: SharedMark | None = None,
        accepted: Mark | None = None,
        elapsed: Callable[[], float] = elapsed_seconds,
    ) -> None:
        self._file = file
        self._shared = shared
        self._clock = clock
        self._health = health
        self._accepted = accepted
        self._elapsed = elapsed
        # The newest mark that this process has compared with its database. The file may forget it: another process that
        # shares it may have signed from a restored database.
        self._compared: Mark | None = None
        # When this process last saw a synchronous standby, as the mark has it and as `elapsed` counts.
        self._sight: tuple[str | None, float] = (None, 0.0)
        self.agreement: Callable[[], bool] = lambda: False
        self._looked_at = self._asked_at = float("-inf")
        self._may_look = True

    def open(self, connection: Connection) -> None:
        """At the start: the marks are there, and the database goes on from them. Raises Halted (`mark_missing`,
        `mark_unreadable`, `log_behind`, `log_forked`) when not, Misconfigured (`checkpoint_not_accepted`) when the
        accepted checkpoint is not of this log, Unavailable when a mark cannot be read."""
        with self._reporting():
            try:
                file = self._file.read()
                self._file.require_writable()
                unreadable = None
            except Halted as error:
                if not self._file.may_be_replaced():
                    raise
                if self._accepted is None:
                    newest = newest_published(connection)
                    raise Halted(error.code, f"{error.message}. {_how_to_accept(newest)}") from None
                file, unreadable = None, error
            shared = self._shared.read() if self._shared is not None else None
            newest, head = _state(connection)
            for mark in (file, shared):
                _require(connection, mark, newest, head)
            if self._accepted is not None:
                self._accept(connection, self._accepted, newest, replaced=unreadable is not None)
            elif head.size > GENESIS_SIZE and (file is shared is None or self._shared is not None and shared is None):
                where = "the folder has no last-signed" if self._shared is None else "etcd has no mark of this log"
                what = f"{where}, so it is not known what was signed last"
                raise Halted("mark_missing", f"{what}. {_how_to_accept(newest)}")

    def require(self, connection: Connection) -> tuple[Published | None, Head]:
        """The newest checkpoint and the committed head, which go on from everything that was signed; the checkpoint is
        marked. Raises Halted (`log_behind`, `log_forked`, `mark_unreadable`, `mark_missing`) when they do not; raises
        Unavailable when a mark cannot be reached, or (`database_changed`) while nothing vouches for the database."""
        with self._reporting():
            # In this order: while other services write, each is at most as new as the next.
            marks = self._compared, self._file.read(), self._shared.read() if self._shared is not None else None
            newest, head = _state(connection)
            for mark in marks:
                _require(connection, mark, newest, head)
            if not self.is_same_database(connection):
                self._settle(connection, newest)
            if newest is not None:
                self.see(connection, newest)
            with _writing():
                self._file.bring_back()
            return newest, head

    def is_signed_last(self, signed: Published) -> bool:
        """Whether every mark that this process knows is `signed`."""
        mark = Mark(signed.size, signed.root)
        own = self._compared == mark == self._file.read()
        return own and (self._shared is None or self._shared.known == mark)

    def is_same_database(self, connection: Connection) -> bool:
        """Whether the connection leads to the PostgreSQL of the mark; that is kept where none is. SQLite is always the
        same: its file has the mark beside it."""
        found = which_database(connection)
        if found is None:
            return True
        kept = self._file.database()
        if kept is not None and not kept.is_same(found):
            return False
        if kept is None or monotonic() - self._looked_at >= LOOK_SECONDS:
            self._keep(connection, found)
        return True

    def see(self, connection: Connection, seen: Published) -> None:
        """`seen`, a checkpoint that was read from the database, is marked when this returns. Raises Halted
        (`log_forked`) when it does not go on from the mark, Unavailable when the mark cannot be written."""
        mark, compared = Mark(seen.size, seen.root), self._compared
        if compared is not None and (compared == mark or compared.size > mark.size):
            return
        _require_root(connection, compared)
        known = self._file.read()
        if known is None or known.size <= mark.size:
            _require_root(connection, known)
            self._write(mark)

    def advance(self, mark: Mark) -> bool:
        """Whether `mark` stands everywhere: then it may be signed. When another service was faster, what is stored has
        to be read again. Raises as `require`."""
        with self._reporting():
            # A mark in the file alone, of what was never signed, would refuse the right history later.
            if self._shared is not None and self._shared.write(mark) != mark:
                return False
            return self._write(mark) == mark

    def _accept(self, connection: Connection, accepted: Mark, newest: Published | None, *, replaced: bool) -> None:
        if newest is None or accepted.size > newest.size or _root(connection, accepted.size) != accepted.root:
            ends = Mark(newest.size, newest.root) if newest is not None else "no checkpoint"
            raise Misconfigured(
                "checkpoint_not_accepted", f"the database does not have the checkpoint {accepted}; it ends with {ends}"
            )
        mark = Mark(newest.size, newest.root)
        _logger.warning("the operator accepts the checkpoint %s; the log goes on from %s", accepted, mark)
        if self._shared is not None and self._shared.known is None:
            self._shared.write(mark)
        if replaced:
            self._file.replace(mark)
        self._write(mark)
        found = which_database(connection)
        if found is not None:
            self._keep(connection, found)

    def _settle(self, connection: Connection, newest: Published | None) -> None:
        """Go on with another database, or raise: Unavailable (`database_changed`) when nothing vouches for it."""
        found, kept = which_database(connection), self._file.database()
        if found is None or kept is None:
            return
        what = _difference(kept, found)
        if self._shared is not None:
            why = "the shared mark agrees"
        elif self._was_synchronous(kept, found):
            why = f"a standby had every commit at {kept.synchronous_at}"
        elif self._asked():
            why = "a witness agrees"
        else:
            raise Unavailable(
                "database_changed",
                f"{what}, and nothing shows that the database has all that was signed: no witness agrees, and no "
                "standby was seen to be synchronous within a minute before (to see one needs the right pg_monitor). "
                f"{_how_to_accept(newest)}",
                retry_after=ASK_SECONDS,
            )
        _logger.warning("%s; the log goes on, because %s", what, why)
        self._keep(connection, found)

    def _asked(self) -> bool:
        if monotonic() - self._asked_at < ASK_SECONDS:
            return False
        self._asked_at = monotonic()
        return self.agreement()

    def _was_synchronous(self, kept: Database, found: Database) -> bool:
        """A standby that is promoted has the same cluster and tables, and a later timeline."""
        if kept.synchronous_at is None or (kept.system, kept.table) != (found.system, found.table):
            return False
        age = (self._clock() - parse_time(kept.synchronous_at)).total_seconds()
        seen_at, elapsed = self._sight
        # A clock that was set back does not make it later.
        passed = self._elapsed() - elapsed if seen_at == kept.synchronous_at else age
        return found.timeline > kept.timeline and 0 <= age <= SYNCHRONOUS_SECONDS and passed <= SYNCHRONOUS_SECONDS

    def _keep(self, connection: Connection, found: Database) -> None:
        """Keep which database it is, and whether its standbys are synchronous now."""
        self._looked_at = monotonic()
        # Before it is asked: this process may stand still before the answer is read.
        at, elapsed = format_time(self._clock()), self._elapsed()
        synchronous = is_synchronous(connection)
        if synchronous is None and self._may_look:
            _logger.warning("whether a standby is synchronous cannot be read: grant pg_monitor to the database user")
        self._may_look = synchronous is not None
        self._sight = (at if synchronous else None, elapsed)
        now = replace(found, synchronous_at=self._sight[0])
        if now != self._file.database():
            with _writing():
                self._file.write_database(now)

    def _write(self, mark: Mark) -> Mark:
        """As `MarkFile.write`, of a mark that was compared with the database."""
        with _writing():
            written = self._file.write(mark)
        if written == mark and (self._compared is None or self._compared.size < mark.size):
            self._compared = mark
        return written

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        """What keeps the log from signing is counted, and reported for as long as it may pass."""
        try:
            yield
        except StaylogError as error:
            metrics.SIGNING_REFUSED.labels(error.code).inc()
            if isinstance(error, Unavailable):
                self._health.report("history", error)
            raise
        self._health.clear("history")


def _state(connection: Connection) -> tuple[Published | None, Head]:
    newest, head = newest_published(connection), read_head(connection)
    if head is None:
        raise NotStored("there is no log in this database")
    return newest, head


def _require(connection: Connection, mark: Mark | None, newest: Published | None, head: Head) -> None:
    """Raises Halted when the database does not go on from `mark`, which as a rule is the newest checkpoint."""
    check_mark(mark, head.size, head.root)
    if newest is None or mark != Mark(newest.size, newest.root):
        _require_root(connection, mark)


def _require_root(connection: Connection, mark: Mark | None) -> None:
    if mark is not None and _root(connection, mark.size) != mark.root:
        raise another_history(mark)


def _root(connection: Connection, size: int) -> bytes:
    try:
        return TileTree(Rows(lambda: nullcontext(connection))).root(size)
    except (NotStored, Malformed) as error:
        message = f"the tree of the first {size} entries cannot be read: {error}; run `staylog fsck`"
        raise Halted("log_damaged", message) from error


def _difference(kept: Database, found: Database) -> str:
    if kept.system != found.system:
        return "this is another PostgreSQL cluster than the one that was signed from"
    if kept.table != found.table:
        return "the database or its tables were made anew since they were signed from, as by a restored dump"
    went = f"PostgreSQL went from timeline {kept.timeline} to {found.timeline}"
    return f"{went}: a standby was promoted, or a backup restored"


def _how_to_accept(newest: Published | None) -> str:
    ends = "no checkpoint" if newest is None else Mark(newest.size, newest.root)
    return f"{HOW_TO_ACCEPT}: `staylog serve --accept-checkpoint {ends}`"


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        code = "storage_full" if full else "storage_unavailable"
        raise Unavailable(code, "the mark beside the database cannot be written: nothing was acknowledged") from error
