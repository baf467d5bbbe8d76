"""fsck: everything that is stored beside the entries is derived from them again and compared (protocol.md 3, 8).

Reads one snapshot, so it can run beside a service. Each finding is one plain sentence.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from sqlalchemy import Connection, Row, Select, func, select

from ledger.canon import base64
from ledger.errors import Malformed, NotProved, NotStored, StaylogError
from ledger.log.checkpoint import open_checkpoint
from ledger.log.cosignature import cosignatures
from ledger.log.entries import Entry
from ledger.log.hostmap import map_key
from ledger.log.mark import Mark
from ledger.log.note import Note, Verifier
from ledger.log.openings import Opening
from ledger.log.pages import BITS, decode_page, links_of
from ledger.log.record import Reviews
from ledger.log.replay import Replay
from ledger.log.tiles import WIDTH, Appender, MemoryTiles
from ledger.log.tree import HASH_SIZE
from ledger.store import tables
from ledger.store.rows import Head, read_head

CHUNK = 1024
# One damaged page makes many more look wrong; nobody reads a thousand lines.
MOST_FINDINGS = 50

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class Report:
    """What was looked at, and what is wrong."""

    findings: list[str] = field(default_factory=list)
    entries: int = 0
    hosts: int = 0
    checkpoints: int = 0
    pages: int = 0

    def find(self, what: str) -> None:
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(what)


def fsck(
    connection: Connection,
    log: Verifier,
    mark: Mark | None,
    progress: Progress,
    known: Mapping[str, Mark] = MappingProxyType({}),
) -> Report:
    """Check a snapshot of the database of `log`; `mark` is the newest state that this service was about to sign or has
    seen, `known` are others that the log is said to have signed, by where they come from."""
    report = Report()
    head = read_head(connection)
    if head is None:
        report.find("the database has no log head: there is no log in it")
        return report
    marks = {**known, "the log": mark} if mark is not None else known
    check = _Check(connection, log, head, report, marks)
    try:
        check.everything(progress)
    finally:
        check.close()
    return report


class _Check:
    def __init__(
        self, connection: Connection, log: Verifier, head: Head, report: Report, marks: Mapping[str, Mark]
    ) -> None:
        self._connection = connection
        self._log = log
        self._head = head
        self._report = report
        self._marks = marks
        self._reviews = Reviews()
        self.replay = Replay(self._reviews)
        self._appender = Appender(MemoryTiles(), 0)
        self._tiles: dict[int, bytes] = {}
        self._tile_count = 0
        self._map_root = b""
        self._unsigned_roots: set[bytes] = set()
        self._opened: set[int] = set()
        self._open: list[Any] = []
        self._responses: dict[int, int] = {}
        self._records = _Sorted(self._stream(select(tables.record).order_by(tables.record.c.idx)), "idx")
        self._checkpoints = _Sorted(self._stream(select(tables.checkpoint).order_by(tables.checkpoint.c.size)), "size")
        self._policies = _Sorted(
            self._stream(select(tables.adopted_policy).order_by(tables.adopted_policy.c.idx)), "idx"
        )
        self._pinned = _Sorted(self._stream(select(tables.issuer_keys).order_by(tables.issuer_keys.c.idx)), "idx")

    def everything(self, progress: Progress) -> None:
        try:
            self.entries(progress)
            self.head()
        except (StaylogError, KeyError, ValueError) as error:
            self._report.find(f"entry {self.replay.size}: {error}; what comes after it was not derived")
            self._check_tiles_so_far()
        self.cosignatures()
        self.pages(progress)
        for where, mark in self._marks.items():
            if mark.size > self._head.size:
                ends = f"the database ends at {self._head.size}: it is an older copy"
                self._report.find(f"{where} has signed {mark.size} entries, {ends}")

    def entries(self, progress: Progress) -> None:
        """Replay every entry; compare its columns and text, and at every map head what was stored with the batch."""
        touched: dict[str, int] = {}
        for row in self._stream(select(tables.entry).order_by(tables.entry.c.idx)):
            index = self.replay.size
            if row.idx != index:
                raise NotStored(f"it is not stored; the next one is {row.idx}")
            entry = self.replay.add(bytes(row.data))
            self._appender.append(entry.leaf_hash)
            for where, mark in self._marks.items():
                if mark.size == index + 1 and mark.root != self._appender.root():
                    self._report.find(f"{where} has already signed another tree of {mark.size} entries")
            self._check_columns(row, entry)
            if row.text is not None:
                self._check_opening(index, entry, Opening(row.text, bytes(row.salt)))
            if entry.type == "issuer":
                self._check_keys(index, entry)
            if "policy" in entry.members:
                self._check_policy(index, entry)
            if entry.host is not None:
                touched[entry.host] = index
            if entry.type == "response":
                self._responses[entry.members["review"]] = index
            if entry.type == "map_head":
                self._map_root = base64.decode_hash(entry.members["root"])
                self._check_records(index + 1, touched)
                if not self._check_checkpoint(index + 1, entry):
                    # Inside a file that was added as a whole.
                    self._unsigned_roots.add(self._map_root)
                touched.clear()
            if index % CHUNK == CHUNK - 1:
                self._check_tiles(final=False)
                progress("entries", index, self._head.size)
        self._check_tiles(final=True)
        self._check_redactions()
        self._report.entries = self.replay.size
        self._report.hosts = len(self.replay.hosts)
        progress("entries", self.replay.size, self._head.size)

    def cosignatures(self) -> None:
        """Every line of a witness holds, by its own key, under the checkpoint that it is served with."""
        beside, signed = tables.cosignature, tables.checkpoint
        lines = select(beside, signed.c.note).outerjoin(signed, beside.c.size == signed.c.size)
        for row in self._stream(lines.order_by(beside.c.size)):
            try:
                if not cosignatures(Note.parse(f"{row.note or ''}{row.line}"), [Verifier.parse(row.witness)]):
                    raise NotProved("cosignature_invalid", "it is not by the key that it is filed under")
            except StaylogError as error:
                self._report.find(f"a cosignature of the checkpoint of size {row.size} is damaged: {error}")
        agreed = tables.witnessed
        lost = select(agreed).outerjoin(signed, agreed.c.size == signed.c.size).where(signed.c.size.is_(None))
        for row in self._stream(lost.order_by(agreed.c.size)):
            self._report.find(f"a checkpoint of size {row.size} is said to have its witnesses, and is not stored")

    def head(self) -> None:
        """The head is the end of the entries, and nothing stands behind it."""
        replay, head, find = self.replay, self._head, self._report.find
        replay.require_head()
        if replay.origin != self._log.name:
            find(f"the genesis names the log {replay.origin}, the key signs for {self._log.name}")
        if (head.size, head.root) != (replay.size, replay.tree.root()):
            find(f"the head says {head.size} entries, the {replay.size} stored ones have another root or number")
        if (head.map_root, head.at) != (self._map_root, replay.last_at):
            find("the head has another map root or time than its map head entry")
        for row in self._checkpoints.rest():
            find(f"a checkpoint of size {row.size} is stored, where no batch ends")
        for row in self._records.rest():
            find(f"a record is stored for entry {row.idx}, which does not exist")
        for row in self._pinned.rest():
            find(f"keys are stored for entry {row.idx}, which is not one of an issuer")
        for row in self._policies.rest():
            find(f"a policy is stored for entry {row.idx}, which adopts none")
        for table, what in (
            (tables.known, "a submission, guest or booking"),
            (tables.receipt_salt, "a salt"),
            (tables.feedback, "a private message"),
        ):
            beyond = select(func.count()).where(table.c.idx >= head.size)
            if self._connection.execute(beyond).scalar_one():
                find(f"{what} is said to belong to an entry that does not exist")

    def pages(self, progress: Progress) -> None:
        """Every page is what the pages above it say, and every version's top page gives its map root.

        A page is written after the pages below it, so going down the numbers meets those above first.
        """
        tops = {self._head.map_top: self._head.map_root}
        for top, root in self._connection.execute(select(tables.checkpoint.c.map_top, tables.checkpoint.c.map_root)):
            tops[top] = bytes(root)
        # What is known of a page before it is read: its depth and its hash.
        known = {number: (0, root) for number, root in tops.items() if number is not None}
        number = self._head.pages
        for row in self._stream(select(tables.page).order_by(tables.page.c.id.desc())):
            number -= 1
            if row.id != number:
                missing = f"map page {number} is not stored"
                self._report.find(missing if row.id < number else f"map page {row.id} is stored beyond the head")
                return
            self._check_page(number, bytes(row.data), known)
            self._report.pages += 1
            if number % CHUNK == 0:
                progress("map pages", self._report.pages, self._head.pages)
        if number:
            self._report.find(f"map page {number - 1} is not stored")

    def _check_page(self, number: int, data: bytes, known: dict[int, tuple[int, bytes]]) -> None:
        depth, hash_ = known.pop(number, (0, b""))
        page = decode_page(data, depth)
        if page is None or (page[1] != hash_ if hash_ else page[1] not in self._unsigned_roots):
            self._report.find(f"map page {number} is not what the page above it, or the map head, says")
            return
        for below, link in links_of(page):
            if below >= number or known.setdefault(below, (depth + BITS, link)) != (depth + BITS, link):
                self._report.find(f"map page {number} names a page {below} below it that others describe otherwise")

    def _check_columns(self, row: "Row[Any]", entry: Entry) -> None:
        review_id = entry.members["review_id"] if entry.type == "review" else None
        host = map_key(entry.host) if entry.host is not None else None
        if (row.host_key, row.review_id, row.about) != (host, review_id, entry.members.get("review")):
            self._report.find(f"entry {row.idx} is filed under another host or review than its bytes name")

    def _check_opening(self, index: int, entry: Entry, opening: Opening) -> None:
        self._opened.add(index)
        committed = entry.members.get("text") if entry.type in ("review", "response") else None
        try:
            if committed is None:
                raise NotProved("opening_unexpected", "it commits to none")
            opening.require(committed)
        except (NotProved, Malformed) as error:
            self._report.find(f"the stored text of entry {index} is not the one it commits to: {error}")

    def _check_keys(self, index: int, entry: Entry) -> None:
        """The pinned keys are those that the entry has the hash of."""
        rows = list(self._pinned.take(index))
        for row in rows:
            if row.idx != index:
                self._report.find(f"keys are stored for entry {row.idx}, which is not one of an issuer")
        found = [base64.encode(sha256(bytes(row.keys)).digest()) for row in rows if row.idx == index]
        if found != [entry.members["keys"]]:
            self._report.find(f"the keys that entry {index} pins are not stored, or are others")

    def _check_policy(self, index: int, entry: Entry) -> None:
        """What is known of the policy that an entry adopts is what the entry says."""
        found = [(row.idx, row.policy) for row in self._policies.take(index)]
        if found != [(index, entry.members["policy"])]:
            self._report.find(f"the policy that entry {index} adopts is not stored, or another one is")

    def _check_records(self, size: int, touched: dict[str, int]) -> None:
        """`touched` has the last entry of each host of the batch that ends at `size`."""
        stored = {row.idx: (bytes(row.data), bytes(row.edge)) for row in self._records.take(size - 1)}
        for host, index in touched.items():
            fold = self.replay.hosts[host]
            expected = fold.record(), b"".join(fold.edge.nodes)
            if stored.pop(index, None) != expected:
                self._report.find(f"the record of {host} at size {size} does not follow from its entries")
        for index in stored:
            self._report.find(f"a record is stored for entry {index}, which is not the last of a host in its batch")

    def _check_checkpoint(self, size: int, map_head: Entry) -> bool:
        """Whether there is one."""
        rows = list(self._checkpoints.take(size))
        for row in rows:
            self._report.checkpoints += 1
            root = self.replay.tree.root()
            try:
                signed = open_checkpoint(row.note, self._log)
            except StaylogError as error:
                self._report.find(f"the checkpoint of size {size} is damaged: {error}")
                continue
            if (signed.size, signed.root) != (size, root):
                self._report.find(f"the checkpoint signed for size {size} has another root than its entries")
            if (bytes(row.root), bytes(row.map_root), row.at) != (root, self._map_root, map_head.at):
                self._report.find(f"the checkpoint of size {size} is filed under another root or time")
        return bool(rows)

    def _check_tiles(self, *, final: bool) -> None:
        self._tiles |= self._appender.take_rows()
        due = {tile: data for tile, data in self._tiles.items() if final or len(data) == WIDTH * HASH_SIZE}
        self._compare_tiles(due)
        self._tile_count += len(due)
        for tile in due:
            del self._tiles[tile]
        if final:
            count = self._connection.execute(select(func.count()).select_from(tables.tile)).scalar_one()
            if count > self._tile_count:
                self._report.find(f"{count - self._tile_count} tiles are stored that belong to no entry")

    def _compare_tiles(self, derived: Mapping[int, bytes], *, cut: bool = False) -> None:
        query = select(tables.tile).where(tables.tile.c.id.in_(derived))
        stored = {row.id: bytes(row.data) for row in self._connection.execute(query)}
        for tile, data in derived.items():
            found = stored.get(tile, b"")[: len(data) if cut else None]
            if found != data:
                level, index = tile >> 48, tile & (1 << 48) - 1
                self._report.find(f"tile {level}/{index} {_difference(found, data, level, index)}")

    def _check_tiles_so_far(self) -> None:
        """Where the entries end that could be derived, the tiles tell which of them is another one now."""
        self._tiles |= self._appender.take_rows()
        self._compare_tiles(self._tiles, cut=True)

    def _check_redactions(self) -> None:
        for index, review in self._reviews.items():
            places = {"text": index, "response": self._responses.get(index)}
            for part in sorted(review.redacted):
                if places[part] in self._opened:
                    self._report.find(f"the {part} of {review.review_id} is redacted, but still stored")

    def _stream(self, query: Select[Any]) -> Iterator["Row[Any]"]:
        result = self._connection.execution_options(yield_per=CHUNK).execute(query)
        self._open.append(result)
        yield from result

    def close(self) -> None:
        """A read that was not finished would hold back the connection's view."""
        for result in self._open:
            result.close()


class _Sorted:
    """Rows in ascending order of a column, taken value by value."""

    def __init__(self, rows: Iterator["Row[Any]"], column: str) -> None:
        self._rows = rows
        self._column = column
        self._next = next(rows, None)

    def take(self, value: int) -> Iterator["Row[Any]"]:
        """The rows up to and with `value`."""
        while self._next is not None and getattr(self._next, self._column) <= value:
            row, self._next = self._next, next(self._rows, None)
            yield row

    def rest(self) -> Iterator["Row[Any]"]:
        if self._next is not None:
            yield self._next
        yield from self._rows


def _difference(stored: bytes, expected: bytes, level: int, index: int) -> str:
    if len(stored) != len(expected):
        return f"has {len(stored) // HASH_SIZE} hashes, its entries give {len(expected) // HASH_SIZE}"
    place = next(at for at in range(0, len(stored), HASH_SIZE) if stored[at:][:HASH_SIZE] != expected[at:][:HASH_SIZE])
    where = index * WIDTH + place // HASH_SIZE
    if level == 0:
        return f"has another hash than entry {where} gives"
    return f"has a wrong hash at place {where} of its level"
