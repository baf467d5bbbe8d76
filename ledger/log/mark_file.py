"""The mark in a file outside the database: `last-signed` in the ledger's folder."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from ledger.errors import Halted, Unavailable
from ledger.log.mark import SLOT, Database, Kept, Mark, age, another_history, newest_kept, slots

_sync = getattr(os, "fdatasync", os.fsync)


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
        first, second = slots(os.pread(file, 2 * SLOT, 0))
        os.pwrite(file, kept.slot(), 0 if age(first) <= age(second) else SLOT)
        _sync(file)
        self._remember(kept)

    def _newest(self, data: bytes) -> Kept:
        newest = newest_kept(data)
        if newest is None:
            raise _unreadable(self._path, None)
        return newest

    def _remember(self, found: Kept) -> Kept:
        """The newer of what was found and what this process knows."""
        if self._known is None or age(found) >= age(self._known):
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
