"""Integration: drafts become entries, host records, a new map and new tiles, in one transaction (protocol.md 3).

What a batch rests on is read from the database and checked against what was signed before: the tree's edge against
the committed root, host records against the map, reviews that later entries name by inclusion. A flipped bit stops the
log here instead of being signed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import astuple, dataclass, field

from sqlalchemy import Connection

from ledger.canon import base64
from ledger.canon.times import format_time
from ledger.clock import Clock
from ledger.errors import BrokenRule, Halted, Misconfigured, NotProved, NotStored, StaylogError
from ledger.log.drafts import Draft
from ledger.log.entries import Entry, make_entry, parse_entry
from ledger.log.hostmap import map_key, map_value
from ledger.log.pages import MemoryPages, PagedMap
from ledger.log.proofs import verify_inclusion
from ledger.log.record import HostFold, ReviewState
from ledger.log.replay import MAX_BATCH
from ledger.log.tiles import Appender, MemoryTiles, TileTree
from ledger.log.tree import EMPTY_ROOT
from ledger.store import tables
from ledger.store.engine import Store
from ledger.store.rows import Head, Rows, insert_rows, newest_published, newest_records, read_head, run, select_in

_REPLACE = " ON CONFLICT (id) DO UPDATE SET data = excluded.data"
_MOVE = (
    "UPDATE log_head SET size = ?, root = ?, map_top = ?, map_root = ?, pages = ?, at = ? WHERE size = ? RETURNING size"
)
_ERASE_TEXT = "DELETE FROM opening WHERE idx = ?"
_ERASE_RESPONSE = "DELETE FROM opening WHERE idx IN (SELECT idx FROM entry WHERE about = ?)"
# Recent map pages that the writer keeps: those of 150,000 hosts, in some 60 MiB.
CACHED_PAGES = 1 << 16


class Unsigned(Exception):
    """The committed head is not signed yet: whoever finds it so signs it before adding to it."""


class SomeRefused(Exception):
    """Drafts that were to be added together and were not, by their place, with the reason."""

    def __init__(self, refusals: dict[int, StaylogError]) -> None:
        super().__init__(f"{len(refusals)} drafts are refused")
        self.refusals = refusals


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a draft stands in the log; `repeated` when it stood there before."""

    index: int
    entry: Entry
    repeated: bool = False


@dataclass(slots=True)
class Written:
    """What the last transaction wrote: map pages by number, and each host's newest record with the edge behind it."""

    size: int = 0
    pages: dict[int, bytes] = field(default_factory=dict)
    records: dict[bytes, bytes] = field(default_factory=dict)


# What became of a draft.
Outcome = Placed | StaylogError


class Integrator:
    """Adds batches to the database. Keeps the tree's edge and recent map pages in memory, and forgets them whenever a
    transaction fails or another process wrote."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._connection: Connection
        self._rows: Rows
        self._map: PagedMap
        self._appender: Appender
        self.written = Written()
        self._forget()

    def integrate(
        self, drafts: Sequence[Draft], *, together: bool = False, progress: Callable[[int], None] = lambda _: None
    ) -> list[Outcome]:
        """One durable transaction; no drafts at all make a lone map head. A draft that breaks a rule is refused by
        itself, or, when all are to be added `together`, with all others."""
        written = Written()
        try:
            with self._store.write() as connection:
                head = self._begin(connection)
                outcomes: list[Outcome] = []
                for start in range(0, len(drafts) or 1, MAX_BATCH):
                    batch = Batch(connection, head, self._rows, self._map, self._appender, self._now(head))
                    outcomes += batch.take(drafts[start : start + MAX_BATCH])
                    if batch.entries or not drafts:
                        head = batch.close(written)
                    progress(len(outcomes))
                refusals = {place: item for place, item in enumerate(outcomes) if isinstance(item, StaylogError)}
                if together and refusals:
                    raise SomeRefused(refusals)
        except BaseException as error:
            self._forget()
            if isinstance(error, NotStored | NotProved):
                raise Halted("log_damaged", f"what the log rests on is damaged: {error}; run `staylog fsck`") from error
            raise
        self.written = written
        return outcomes

    def _begin(self, connection: Connection) -> Head:
        self._connection = connection
        head, newest = read_head(connection), newest_published(connection)
        if head is None:
            raise NotStored("there is no log in this database")
        if newest is None or newest.size != head.size:
            raise Unsigned
        if self._appender.size != head.size:
            self._appender = Appender(self._rows, head.size)
        if self._appender.root() != head.root:
            raise NotStored("the stored tiles do not give the root of the tree")
        self._rows.next_page = head.pages
        self._rows.new.clear()
        return head

    def _now(self, head: Head) -> str:
        """The clock, or the time of the last entry if that is later: times never fall."""
        return max(format_time(self._clock()), head.at)

    def _forget(self) -> None:
        self._rows = Rows(lambda: nullcontext(self._connection))
        self._map = PagedMap(self._rows, CACHED_PAGES)
        self._appender = Appender(MemoryTiles())


def begin_log(store: Store, genesis: Draft, at: str) -> None:
    """The first batch: the genesis and its map head."""
    with store.write() as connection:
        if read_head(connection) is not None:
            raise Misconfigured("already_initialised", "the database has a log already")
        head = Head(0, EMPTY_ROOT, None, PagedMap(MemoryPages()).root(None), 0, at)
        insert_rows(connection, tables.log_head, [(1, *astuple(head))])
        rows = Rows(lambda: nullcontext(connection))
        batch = Batch(connection, head, rows, PagedMap(rows), Appender(rows, 0), at)
        batch.take([genesis])
        batch.close(Written())


@dataclass(slots=True)
class Batch:
    """At most 255 entries and their map head."""

    connection: Connection
    head: Head
    rows: Rows
    map: PagedMap
    appender: Appender
    at: str
    entries: list[Entry] = field(default_factory=list)
    folds: dict[str, HostFold] = field(default_factory=dict)
    _drafts: list[Draft] = field(default_factory=list)
    _keys: dict[bytes, int] = field(default_factory=dict)
    _review_ids: set[str] = field(default_factory=set)

    def take(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Each draft's place, or the rule it breaks."""
        self._keys = self._known_keys(drafts)
        self._review_ids = self._known_review_ids(drafts)
        self.folds = self._resume(drafts)
        return [self._take(draft) for draft in drafts]

    def close(self, written: Written) -> Head:
        """Write everything: entries, openings, records, map pages, tiles, and the head by compare-and-set."""
        size = self.head.size + len(self.entries)
        hosts = {entry.host for entry in self.entries if entry.host is not None}
        records = {host: self.folds[host].record() for host in hosts}
        values = {map_key(host): map_value(data) for host, data in records.items()}
        map_top, map_root = self.map.update(self.head.map_top, values, self.head.map_root)
        map_head = make_entry("map_head", size=size, root=base64.encode(map_root), at=self.at)
        self.appender.extend([entry.leaf_hash for entry in (*self.entries, map_head)])
        head = Head(size + 1, self.appender.root(), map_top, map_root, self.rows.next_page, self.at)
        self._insert_entries([*self.entries, map_head])
        versions = [
            (map_key(host), head.size, data, b"".join(self.folds[host].edge.nodes)) for host, data in records.items()
        ]
        insert_rows(self.connection, tables.record, versions)
        insert_rows(self.connection, tables.page, list(self.rows.new.items()))
        written.size = head.size
        written.pages |= self.rows.new
        written.records |= {host: data + edge for host, _, data, edge in versions}
        self.rows.new.clear()
        insert_rows(self.connection, tables.tile, list(self.appender.take_rows().items()), on_conflict=_REPLACE)
        self._move_head(head)
        return head

    def _take(self, draft: Draft) -> Outcome:
        if draft.key is not None and draft.key in self._keys:
            return self._repetition(self._keys[draft.key])
        index, entry = self.head.size + len(self.entries), draft.at(self.at)
        try:
            if entry.type == "review" and entry.members["review_id"] in self._review_ids:
                raise BrokenRule("review_id_reused", f"{entry.members['review_id']} is the id of an earlier review")
            if entry.host is not None:
                self.folds[entry.host].add(index, entry)
        except BrokenRule as refusal:
            return refusal
        if entry.type == "review":
            self._review_ids.add(entry.members["review_id"])
        if draft.key is not None:
            self._keys[draft.key] = index
        self.entries.append(entry)
        self._drafts.append(draft)
        return Placed(index, entry)

    def _repetition(self, index: int) -> Placed:
        if index >= self.head.size:
            return Placed(index, self.entries[index - self.head.size], repeated=True)
        return Placed(index, self._proved_entries([index])[index], repeated=True)

    def _known_keys(self, drafts: Sequence[Draft]) -> dict[bytes, int]:
        keys = [draft.key for draft in drafts if draft.key is not None]
        rows = select_in(self.connection, "SELECT key, idx FROM submission WHERE key IN {}", keys)
        return dict(rows)

    def _known_review_ids(self, drafts: Sequence[Draft]) -> set[str]:
        ids = [draft.members["review_id"] for draft in drafts if draft.type == "review"]
        rows = select_in(self.connection, "SELECT review_id FROM entry WHERE review_id IN {}", ids)
        return {review_id for (review_id,) in rows}

    def _resume(self, drafts: Sequence[Draft]) -> dict[str, HostFold]:
        """The folds of all hosts that the drafts name, as the map has them."""
        named: dict[str, dict[int, ReviewState]] = {
            draft.members["host_did"]: {} for draft in drafts if "host_did" in draft.members
        }
        for host, review, state in self._named_reviews(drafts):
            if host in named:
                named[host][review] = state
        keys = {host: map_key(host) for host in named}
        versions = newest_records(self.connection, keys.values(), self.head.size)
        values = self.map.get_all(self.head.map_top, keys.values(), self.head.map_root)
        folds = {}
        for host, reviews in named.items():
            version = versions.get(keys[host])
            if values.get(keys[host]) != (map_value(version.data) if version else None):
                raise NotStored(f"the stored record of {host} is not the one in the map")
            if version is None:
                folds[host] = HostFold(host)
            else:
                folds[host] = HostFold.resume(host, version.data, version.edge, reviews)
        return folds

    def _named_reviews(self, drafts: Sequence[Draft]) -> Iterator[tuple[str, int, ReviewState]]:
        """The reviews that drafts name, with all that happened to them, from entries proved to be in the tree."""
        named = {draft.members["review"] for draft in drafts if "review" in draft.members}
        about = select_in(self.connection, "SELECT idx FROM entry WHERE about IN {}", list(named))
        indices = [*(index for index in named if index < self.head.size), *(index for (index,) in about)]
        histories: dict[int, list[tuple[int, Entry]]] = {}
        for index, entry in sorted(self._proved_entries(indices).items()):
            histories.setdefault(entry.members.get("review", index), []).append((index, entry))
        for review, history in histories.items():
            host = history[0][1].host
            if history[0][1].type == "review" and host is not None:
                fold = HostFold(host)
                for index, entry in history:
                    fold.add(index, entry)
                yield host, review, fold.reviews[review]

    def _proved_entries(self, indices: Sequence[int]) -> dict[int, Entry]:
        tree, found = TileTree(self.rows), {}
        for index, data in select_in(self.connection, "SELECT idx, data FROM entry WHERE idx IN {}", indices):
            found[index] = parse_entry(data)
            path = tree.inclusion(index, self.head.size)
            verify_inclusion(found[index].leaf_hash, index, self.head.size, path, self.head.root)
        return found

    def _insert_entries(self, entries: Sequence[Entry]) -> None:
        rows, start = [], self.head.size
        for index, entry in enumerate(entries, start):
            host_key = map_key(entry.host) if entry.host is not None else None
            review_id = entry.members["review_id"] if entry.type == "review" else None
            rows.append((index, entry.data, host_key, review_id, entry.members.get("review")))
        insert_rows(self.connection, tables.entry, rows)
        placed = list(enumerate(self._drafts, start))
        openings = [(index, d.opening.text, d.opening.salt) for index, d in placed if d.opening is not None]
        insert_rows(self.connection, tables.opening, openings)
        insert_rows(self.connection, tables.submission, [(d.key, index) for index, d in placed if d.key is not None])
        for draft in self._drafts:
            if draft.type == "redaction":
                self._erase(draft)

    def _erase(self, redaction: Draft) -> None:
        """The text goes in the transaction that says so; a commitment without its salt says nothing."""
        # The one entry about a review that has a text is its response.
        delete = _ERASE_TEXT if redaction.members["part"] == "text" else _ERASE_RESPONSE
        run(self.connection, delete, (redaction.members["review"],))

    def _move_head(self, head: Head) -> None:
        moved = run(self.connection, _MOVE, (*astuple(head), self.head.size))
        if len(moved) != 1:
            raise Halted("log_forked", f"another writer moved the head on from {self.head.size} inside our transaction")
