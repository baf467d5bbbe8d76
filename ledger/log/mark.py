"""The mark: the newest state that this service was about to sign or has seen signed, in a file outside the database.

A database that was restored from a backup does not contain what was signed after the backup. The mark does, so the log
can refuse to sign a second history (protocol.md 3). Beside it the file keeps which PostgreSQL that state was read from.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from hashlib import sha256

from ledger.canon import base64
from ledger.errors import Halted, Malformed

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


def newest_kept(data: bytes) -> Kept | None:
    """The newest of the two slots of a file; None when both are damaged."""
    whole = [kept for kept in slots(data) if kept is not None]
    if not whole:
        return None
    newest = max(whole, key=age)
    # A service of an earlier version may have written last; it drops what it does not know.
    database = newest.database or next((kept.database for kept in whole if kept.database), None)
    return replace(newest, database=database)


def slots(data: bytes) -> list[Kept | None]:
    return [Kept.parse(data[:SLOT]), Kept.parse(data[SLOT : 2 * SLOT])]


def age(kept: Kept | None) -> tuple[int, int]:
    """By which the newer of two slots is told."""
    return (kept.mark.size, kept.serial) if kept is not None else (-1, -1)
