"""The mark: the newest state that this service was about to sign or has seen signed, in a file outside the database.

A database that was restored from a backup does not contain what was signed after the backup. The mark does, so the log
can refuse to sign a second history (protocol.md 3). Beside it the file keeps which PostgreSQL that state was read from.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ledger.canon import base64
from ledger.errors import Halted, Malformed, Unavailable

# Two slots, written in turn: a torn write spoils one and leaves the other.
SLOT = 512

WHAT_TO_DO = (
    "Signing now would give the log a second history, which anyone who kept a checkpoint or a receipt can prove. "
    "Stop, and bring back the newest database; `staylog fsck` tells whether it is the one. If it is lost, this log has "
    "ended: keep its folder, and start a new one with `staylog init --previous ORIGIN`."
)
HOW_TO_ACCEPT = (
    "First compare the end of the database with a witness, with the other services of this log (`staylog log marks`) "
    "and with the newest receipts and answers that guests and auditors hold (`staylog fsck --checkpoint FILE`). Only "
    "if nothing newer was ever signed, say so"
)

_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    size: int
    root: bytes

    def __str__(self) -> str:
        """As `--accept-checkpoint` takes it."""
        return f"{self.size}:{base64.encode(self.root)}"

    @classmethod
    def of(cls, text: str) -> "Mark":
        """From `str`. Raises ValueError."""
        size, _, root = text.partition(":")
        try:
            mark = cls(int(size), base64.decode_hash(root))
        except Malformed as error:
            raise ValueError(error.message) from None
        if str(mark) != text or mark.size < 1:
            raise ValueError(f"{text[:80]!r} is not SIZE:ROOT")
        return mark

    def line(self) -> bytes:
        return _summed(f"{self.size} {base64.encode(self.root)}")

    @classmethod
    def parse(cls, slot: bytes) -> "Mark | None":
        """The mark in the first line; None when there is no undamaged one."""
        with suppress(ValueError, Malformed):
            size, root, _ = slot.split(b"\n")[0].decode().split(" ")
            mark = cls(int(size), base64.decode_hash(root))
            if slot.startswith(mark.line()):
                return mark
        return None


@dataclass(frozen=True, slots=True)
class Database:
    """Which PostgreSQL the mark was read from: `system` identifies the cluster, `timeline` grows at each failover,
    `table` has the numbers of the database and of log_head, which a restored dump makes anew. `synchronous_at` is when
    a standby was last seen to confirm every commit; None when it was seen not to, or could not be seen."""

    system: int
    timeline: int
    table: int
    synchronous_at: str | None = None

    def is_same(self, other: "Database") -> bool:
        return replace(self, synchronous_at=None) == replace(other, synchronous_at=None)


@dataclass(frozen=True, slots=True)
class Kept:
    """What one slot of the file holds. `serial` grows with each write, because the database may change while the mark
    stays; files of earlier versions have neither."""

    mark: Mark
    serial: int = 0
    database: Database | None = None

    def slot(self) -> bytes:
        known = self.database
        named = f" {known.system} {known.timeline} {known.table} {known.synchronous_at or '-'}" if known else ""
        return (self.mark.line() + _summed(f"{self.serial}{named}")).ljust(SLOT, b"\0")

    @classmethod
    # A slot is read several times before it is written again.
    @lru_cache(maxsize=16)
    def parse(cls, slot: bytes) -> "Kept | None":
        """None when the mark is damaged; a damaged second line counts as none."""
        mark = Mark.parse(slot)
        if mark is None:
            return None
        with suppress(ValueError, UnicodeDecodeError):
            line = slot.split(b"\n")[1].decode()
            text, _, _ = line.rpartition(" ")
            if _summed(text).decode() == line + "\n":
                serial, *named = text.split(" ")
                if not named:
                    return cls(mark, int(serial))
                system, timeline, table, at = named
                database = Database(int(system), int(timeline), int(table), None if at == "-" else at)
                return cls(mark, int(serial), database)
        return cls(mark)


def _summed(text: str) -> bytes:
    return f"{text} {sha256(text.encode()).hexdigest()}\n".encode()


def check_mark(mark: Mark | None, size: int, root: bytes) -> None:
    """Raise when a tree of `size` entries and `root` is older than what was signed, or another one."""
    if mark is None or mark.size < size or mark == Mark(size, root):
        return
    if mark.size > size:
        raise Halted(
            "log_behind",
            f"the database ends at {size} entries, but this log has already signed {mark.size} (root "
            f"{base64.encode(mark.root)}): it was restored from an older copy, or it is another one. {WHAT_TO_DO}",
        )
    raise another_history(mark)


def another_history(mark: Mark) -> Halted:
    return Halted(
        "log_forked",
        f"the database gives another root for the first {mark.size} entries than the one that was signed "
        f"({base64.encode(mark.root)}). {WHAT_TO_DO}",
    )


class MarkFile:
    """Two slots, written in turn. Processes that share the file take turns, and a mark is never replaced by an older
    one. One object remembers what it has read or written, so that a file which is deleted or replaced under a running
    service does not make it forget. Threads may share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: Kept | None = None

    @property
    def known(self) -> Mark | None:
        """The newest mark that this process has read or written, without looking at the file."""
        return self._known.mark if self._known is not None else None

    def read(self) -> Mark | None:
        """The newest mark; None when there is no file and never was. Raises Halted (`mark_unreadable`) when the file
        holds no undamaged mark or must not be read, Unavailable when it cannot be read just now."""
        kept = self._read()
        return kept.mark if kept is not None else None

    def database(self) -> Database | None:
        """The database that the newest mark was read from. Raises as `read`."""
        kept = self._read()
        return kept.database if kept is not None else None

    def require_writable(self) -> None:
        """Raises Halted (`mark_unreadable`) when the file is there and this user may not write it."""
        if self._path.exists() and not os.access(self._path, os.W_OK):
            raise _unreadable(self._path, PermissionError(errno.EACCES, "it may not be written"))

    def may_be_replaced(self) -> bool:
        """Whether a file that cannot be used is damaged: what another user's file holds is not known."""
        return os.access(self._path, os.R_OK | os.W_OK) and self._path.is_file()

    def write(self, mark: Mark) -> Mark:
        """`mark` is durable when this returns it; a newer mark that another process wrote is returned instead. Raises
        Halted (`log_forked`) when another root is marked at the size, and as `read`; OSError when it cannot be written.
        """
        with self._locked(mark) as file:
            kept = self._kept(file)
            if kept.mark.size == mark.size and kept.mark.root != mark.root:
                raise another_history(kept.mark)
            if kept.mark.size < mark.size:
                self._put(file, Kept(mark, kept.serial + 1, kept.database))
            return mark if kept.mark.size <= mark.size else kept.mark

    def write_database(self, database: Database) -> None:
        """Keep the mark, and that it was read from `database`. There must be a mark. Raises as `write`."""
        known = self._read()
        if known is not None:
            with self._locked(known.mark) as file:
                kept = self._kept(file)
                self._put(file, replace(kept, serial=kept.serial + 1, database=database))

    def bring_back(self) -> None:
        """A file that was deleted under this process is there again when this returns. Raises as `write`."""
        if self._known is not None and not self._path.exists():
            self.write(self._known.mark)

    def replace(self, mark: Mark) -> None:
        """A new file with this mark, whatever was there: the operator says that nothing newer was signed."""
        self._path.unlink(missing_ok=True)
        self._known = None
        self.write(mark)

    def _read(self) -> Kept | None:
        try:
            found = self._path.read_bytes()
        except FileNotFoundError:
            return self._known
        except OSError as error:
            raise _unreadable(self._path, error) from None
        return self._remember(self._newest(found))

    @contextmanager
    def _locked(self, first: Mark) -> Iterator[int]:
        """The open file, with `first` in it if it is new."""
        if not self._path.exists():
            self._make(first)
        file = os.open(self._path, os.O_RDWR)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)

    def _make(self, first: Mark) -> None:
        """The file is there whole or not at all: one that is empty was damaged."""
        new = self._path.with_name(f"{self._path.name}.{os.urandom(8).hex()}.new")
        known = self._known or Kept(first)
        kept = known if known.mark.size >= first.size else replace(known, mark=first)
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, kept.slot().ljust(2 * SLOT, b"\0"))
            _sync(file)
            with suppress(FileExistsError):
                os.link(new, self._path)
        finally:
            os.close(file)
            new.unlink(missing_ok=True)
        sync_folder(self._path.parent)

    def _kept(self, file: int) -> Kept:
        return self._remember(self._newest(os.pread(file, 2 * SLOT, 0)))

    def _put(self, file: int, kept: Kept) -> None:
        first, second = _slots(os.pread(file, 2 * SLOT, 0))
        os.pwrite(file, kept.slot(), 0 if _age(first) <= _age(second) else SLOT)
        _sync(file)
        self._remember(kept)

    def _newest(self, data: bytes) -> Kept:
        slots = [kept for kept in _slots(data) if kept is not None]
        if not slots:
            raise _unreadable(self._path, None)
        newest = max(slots, key=_age)
        # A service of an earlier version may have written last; it drops what it does not know.
        database = newest.database or next((kept.database for kept in slots if kept.database), None)
        return replace(newest, database=database)

    def _remember(self, found: Kept) -> Kept:
        """The newer of what was found and what this process knows."""
        if self._known is None or _age(found) >= _age(self._known):
            self._known = found
        return self._known


def _unreadable(path: Path, error: OSError | None) -> Halted | Unavailable:
    if error is not None and not isinstance(error, PermissionError | IsADirectoryError):
        return Unavailable("storage_unavailable", f"{path.name} cannot be read: {error.strerror}")
    why = f"{error.strerror}: give it back to the user of the service" if error is not None else "it is damaged"
    return Halted("mark_unreadable", f"{path.name} cannot be used ({why}), so it does not tell what was signed last")


def sync_folder(folder: Path) -> None:
    """A new file is durable when its name is."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _slots(data: bytes) -> list[Kept | None]:
    return [Kept.parse(data[:SLOT]), Kept.parse(data[SLOT : 2 * SLOT])]


def _age(kept: Kept | None) -> tuple[int, int]:
    return (kept.mark.size, kept.serial) if kept is not None else (-1, -1)
