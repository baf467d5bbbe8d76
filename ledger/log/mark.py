"""The mark: the newest state this log was about to sign, in a small file outside the database.

A database that was restored from a backup knows nothing of what was signed after it. This file does, so the log can
refuse to sign a second history (protocol.md 3).
"""

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from ledger.canon import base64
from ledger.errors import Malformed

# Two slots, written in turn: a torn write spoils one and leaves the other.
SLOT = 512

_sync = getattr(os, "fdatasync", os.fsync)


@dataclass(frozen=True, slots=True, order=True)
class Mark:
    size: int
    root: bytes

    def line(self) -> bytes:
        text = f"{self.size} {base64.encode(self.root)}"
        return f"{text} {sha256(text.encode()).hexdigest()}\n".encode()

    @classmethod
    def parse(cls, slot: bytes) -> "Mark | None":
        with suppress(ValueError, UnicodeDecodeError, Malformed):
            size, root, _ = slot.split(b"\n")[0].decode().split(" ")
            mark = cls(int(size), base64.decode_hash(root))
            if slot.startswith(mark.line()):
                return mark
        return None


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
            slots = _slots(os.pread(file, 2 * SLOT, 0))
            if any(known and known.size >= mark.size for known in slots):
                return
            first, second = (known.size if known else -1 for known in slots)
            os.pwrite(file, mark.line().ljust(SLOT, b"\0"), 0 if first <= second else SLOT)
            _sync(file)
        finally:
            os.close(file)


def _slots(data: bytes) -> list[Mark | None]:
    return [Mark.parse(data[:SLOT]), Mark.parse(data[SLOT : 2 * SLOT])]
