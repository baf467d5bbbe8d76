"""The mark: the newest state this log was about to sign, in a small file outside the database.

A database that was restored from a backup knows nothing of what was signed after it. This file does, so the log can
refuse to sign a second history (protocol.md 3).
"""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from ledger.canon import base64
from ledger.errors import Halted, Malformed

# Two slots, written in turn: a torn write spoils one and leaves the other.
SLOT = 512

WHAT_TO_DO = (
    "Signing now would give the log a second history, which anyone who kept a checkpoint or a receipt can prove. "
    "Stop, and bring back the newest database; `staylog fsck` tells whether it is the one. If it is lost, this log has "
    "ended: keep its folder, and start a new one with `staylog init --previous ORIGIN`."
)

_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    size: int
    root: bytes

    def line(self) -> bytes:
        text = f"{self.size} {base64.encode(self.root)}"
        return f"{text} {sha256(text.encode()).hexdigest()}\n".encode()

    @classmethod
    # A slot is read several times before it is written again.
    @lru_cache(maxsize=16)
    def parse(cls, slot: bytes) -> "Mark | None":
        with suppress(ValueError, UnicodeDecodeError, Malformed):
            size, root, _ = slot.split(b"\n")[0].decode().split(" ")
            mark = cls(int(size), base64.decode_hash(root))
            if slot.startswith(mark.line()):
                return mark
        return None


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
    """Processes that share the file take turns; a mark is never replaced by an older one."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> Mark | None:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return None
        return max((mark for mark in _slots(data) if mark), default=None)

    def write(self, mark: Mark) -> None:
        """Durable once it returns. Raises OSError when it cannot be."""
        file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            data = os.pread(file, 2 * SLOT, 0)
            slots = _slots(data)
            for known in slots:
                if known is not None and known.size >= mark.size:
                    # Another process was faster, and must have marked the same.
                    if known.size == mark.size and known.root != mark.root:
                        raise another_history(known)
                    return
            first, second = (known.size if known else -1 for known in slots)
            os.pwrite(file, mark.line().ljust(SLOT, b"\0"), 0 if first <= second else SLOT)
            _sync(file)
        finally:
            os.close(file)
        if not data:
            sync_folder(self._path.parent)


def sync_folder(folder: Path) -> None:
    """A new file is durable when its name is."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _slots(data: bytes) -> list[Mark | None]:
    return [Mark.parse(data[:SLOT]), Mark.parse(data[SLOT : 2 * SLOT])]
