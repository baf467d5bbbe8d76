"""A batch: at most 255 drafts become entries, host records, a new map and new tiles (protocol.md 3).

What it rests on is checked against what was signed before: host records against the map, and where an entry names a
review, all entries of its host against the host's record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from sqlalchemy import Connection

from ledger.canon import base64, jcs
from ledger.errors import BrokenRule, Done, Halted, NotStored, Outdated, StaylogError
from ledger.log.cache import Cache
from ledger.log.drafts import Author, Draft, make_draft
from ledger.log.entries import Entry, parse_entry
from ledger.log.hostmap import map_key, map_value
from ledger.log.pages import PagedMap
from ledger.log.proofs import verify_inclusion
from ledger.log.record import HostFold, Reviews, ReviewState, sublog_leaf
from ledger.log.tiles import Appender, TileTree
from ledger.log.tree import leaf_hash, root_of
from ledger.store import tables
from ledger.store.erasure import erasing
from ledger.store.rows import (
    Head,
    Published,
    RecordVersion,
    Rows,
    insert_rows,
    newest_issuer,
    newest_records,
    read_entries,
    read_host_entries,
    run,
    select_in,
)

_REPLACE = " ON CONFLICT (id) DO UPDATE SET data = excluded.data"
_MOVE = (
    "UPDATE log_head SET size = ?, root = ?, map_top = ?, map_root = ?, pages = ?, at = ? WHERE size = ? RETURNING size"
)
_NO_TEXT = (None, None)
_ERASE = "UPDATE entry SET text = NULL, salt = NULL WHERE "
# A stored record is what a fold wrote, and its hash is in the map: the strict reader would tell nothing new.
_plain = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a draft stands in the log; `repeated` when it stood there before."""

    index: int
    entry: Entry
    repeated: bool = False


@dataclass(slots=True)
class Written:
    """What the last transaction wrote: the head, map pages by number, and records with their edges by index."""

    # The state that it goes on from.
    signed: Published | None = None
    head: Head | None = None
    pages: dict[int, bytes] = field(default_factory=dict)
    records: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)


# What became of a draft.
Outcome = Placed | StaylogError


@dataclass(slots=True)
class Batch:
    """At most 255 entries and their map head."""

    connection: Connection
    head: Head
    rows: Rows
    map: PagedMap
    records: Cache[bytes, RecordVersion]
    appender: Appender
    at: str
    entries: list[Entry] = field(default_factory=list)
    folds: dict[str, HostFold] = field(default_factory=dict)
    _drafts: list[Draft] = field(default_factory=list)
    _keys: dict[bytes, int] = field(default_factory=dict)
    _review_ids: set[str] = field(default_factory=set)
    # The newest issuer entry.
    _trust: int = -1
    # The hosts that the drafts name, and what the map has of them.
    _host_keys: dict[str, bytes] = field(default_factory=dict)
    _values: dict[bytes, bytes] = field(default_factory=dict)

    def take(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Each draft's place, or the rule it breaks."""
        self._keys = self._known_keys(drafts)
        self._review_ids = self._known_review_ids(drafts)
        if any(draft.author is not None for draft in drafts):
            self._trust = newest_issuer(self.connection)
        self.folds = self._resume(drafts)
        return [self._take(draft) for draft in drafts]

    def close(self, written: Written) -> Head:
        """Write everything: entries with their texts, records, map pages, tiles, and the head by compare-and-set."""
        size = self.head.size + len(self.entries)
        # The last entry of each host.
        last = {entry.host: index for index, entry in enumerate(self.entries, self.head.size) if entry.host is not None}
        records = {host: self.folds[host].record() for host in last}
        values = {self._host_keys[host]: map_value(data) for host, data in records.items()}
        map_top, map_root = self.map.update(self.head.map_top, values, self.head.map_root)
        members = {"type": "map_head", "v": 1, "size": size, "root": base64.encode(map_root), "at": self.at}
        map_head = parse_entry(jcs.dumps_plain(members))
        self.appender.extend([entry.leaf_hash for entry in (*self.entries, map_head)])
        head = Head(size + 1, self.appender.root(), map_top, map_root, self.rows.next_page, self.at)
        self._insert_entries([*self.entries, map_head])
        versions = [(last[host], data, b"".join(self.folds[host].edge.nodes)) for host, data in records.items()]
        self._keep_records(values, versions)
        insert_rows(self.connection, tables.record, versions)
        insert_rows(self.connection, tables.page, list(self.rows.new.items()))
        written.pages |= self.rows.new
        written.records |= {index: (data, edge) for index, data, edge in versions}
        self.rows.new.clear()
        insert_rows(self.connection, tables.tile, list(self.appender.take_rows().items()), on_conflict=_REPLACE)
        self._move_head(head)
        written.head = head
        return head

    def _keep_records(self, values: Mapping[bytes, bytes], versions: Sequence[tuple[int, bytes, bytes]]) -> None:
        """Whoever comes next goes on from these, and not from those before them."""
        for (key, value), (_, data, edge) in zip(values.items(), versions, strict=True):
            self.records.drop(self._values.get(key, b""))
            self.records.put(value, RecordVersion(data, edge))

    def _take(self, draft: Draft) -> Outcome:
        if draft.key is not None and draft.key in self._keys:
            return self._repetition(self._keys[draft.key])
        author = draft.author
        entry = draft.at(self.at, repeat=author is not None and any(key in self._keys for key in author.guests))
        try:
            if author is not None:
                self._admit(author)
            if entry.type == "review" and entry.members["review_id"] in self._review_ids:
                raise BrokenRule("review_id_reused", f"{entry.members['review_id']} is the id of an earlier review")
            placed = self._add(draft, entry)
        except (BrokenRule, Done, Outdated) as refusal:
            return refusal
        if entry.type == "review":
            self._review_ids.add(entry.members["review_id"])
        if entry.type == "issuer":
            self._trust = placed.index
        if draft.key is not None:
            self._keys[draft.key] = placed.index
        if author is not None:
            if author.stay is not None and author.stay in self._keys:
                self._tell(entry, author, "conflict")
            if any(key in self._keys for key in author.denials):
                self._tell(entry, author, "contradicted")
            for key in author.keys:
                self._keys.setdefault(key, placed.index)
        return placed

    def _add(self, draft: Draft, entry: Entry) -> Placed:
        index = self.head.size + len(self.entries)
        if entry.host is not None:
            self.folds[entry.host].add(index, entry)
        self.entries.append(entry)
        self._drafts.append(draft)
        return Placed(index, entry)

    def _admit(self, author: Author) -> None:
        """What was found before the draft was queued may have changed; here nothing changes any more."""
        if author.trusted_at not in (None, self._trust):
            raise Outdated("busy", "who is trusted to issue credentials has changed meanwhile; try again")
        if any(key in self._keys for key in author.bookings):
            raise Done("already_reviewed", "this guest has reviewed this booking already")

    def _tell(self, about: Entry, author: Author, outcome: str) -> None:
        members = {"host_did": about.host, "outcome": outcome, "booking": author.booking}
        draft = make_draft("booking_check", members)
        self._add(draft, draft.at(self.at))

    def _repetition(self, index: int) -> Placed:
        if index >= self.head.size:
            return Placed(index, self.entries[index - self.head.size], repeated=True)
        entry = parse_entry(read_entries(self.connection, index, index + 1)[0][0])
        path = TileTree(self.rows).inclusion(index, self.head.size)
        verify_inclusion(entry.leaf_hash, index, self.head.size, path, self.head.root)
        return Placed(index, entry, repeated=True)

    def _known_keys(self, drafts: Sequence[Draft]) -> dict[bytes, int]:
        keys = [draft.key for draft in drafts if draft.key is not None]
        authors = [draft.author for draft in drafts if draft.author is not None]
        keys += [key for author in authors for key in (*author.keys, *author.denials)]
        rows = select_in(self.connection, "SELECT key, idx FROM known WHERE key IN ({})", keys)
        return dict(rows)

    def _known_review_ids(self, drafts: Sequence[Draft]) -> set[str]:
        ids = [draft.members["review_id"] for draft in drafts if draft.type == "review"]
        rows = select_in(self.connection, "SELECT review_id FROM entry WHERE review_id IN ({})", ids)
        return {review_id for (review_id,) in rows}

    def _resume(self, drafts: Sequence[Draft]) -> dict[str, HostFold]:
        """The folds of all hosts that the drafts name, as the map has them."""
        named: dict[str, set[int]] = {}
        for draft in drafts:
            if "host_did" in draft.members:
                reviews = named.setdefault(draft.members["host_did"], set())
                if "review" in draft.members:
                    reviews.add(draft.members["review"])
        self._host_keys = keys = {host: map_key(host) for host in named}
        self._values = self.map.get_all(self.head.map_top, keys.values(), self.head.map_root)
        self._read_records()
        folds = {}
        for host, reviews in named.items():
            value = self._values.get(keys[host])
            version = self.records.get(value) if value is not None else None
            if version is not None:
                record = _plain(version.data)
                states = self._states(host, reviews, record["root"]) if reviews else {}
                folds[host] = HostFold.resume(host, record, version.edge, Reviews(states))
            elif value is None:
                folds[host] = HostFold(host)
            else:
                raise NotStored(f"the stored record of {host} is not the one in the map")
        return folds

    def _read_records(self) -> None:
        """Into the cache, where records are found by what the map has of them."""
        missing = [key for key, value in self._values.items() if self.records.get(value) is None]
        for version in newest_records(self.connection, missing, self.head.size).values():
            self.records.put(map_value(version.data), version)

    def _states(self, host: str, reviews: set[int], sublog_root: str) -> dict[int, ReviewState]:
        """What happened to some reviews of a host, from all its entries: the record tells that they are all."""
        rows = read_host_entries(self.connection, self._host_keys[host], self.head.size)
        root = root_of(sublog_leaf(index, leaf_hash(data)) for index, data in rows)
        if base64.encode(root) != sublog_root:
            raise NotStored(f"the stored entries of {host} are not those that its record counts")
        states: dict[int, ReviewState] = {}
        for review in reviews:
            # As canonical JSON has it; no other member looks like this.
            mark = b'"review":%d,"review_id":' % review
            history = [(index, parse_entry(data)) for index, data in rows if index == review or mark in data]
            if history and history[0][1].type == "review":
                known = Reviews()
                fold = HostFold(host, reviews=known)
                for index, entry in history:
                    fold.add(index, entry)
                states |= dict(known.items())
        return states

    def _insert_entries(self, entries: Sequence[Entry]) -> None:
        rows, start = [], self.head.size
        # The last entry is the map head, which has no draft.
        openings = [*(draft.opening or _NO_TEXT for draft in self._drafts), _NO_TEXT]
        for index, (entry, opening) in enumerate(zip(entries, openings, strict=True), start):
            host_key = self._host_keys[entry.host] if entry.host is not None else None
            review_id = entry.members["review_id"] if entry.type == "review" else None
            rows.append((index, entry.data, host_key, review_id, entry.members.get("review"), *opening))
        insert_rows(self.connection, tables.entry, rows)
        keys = [(draft.key, index) for index, draft in enumerate(self._drafts, start) if draft.key is not None]
        for index, draft in enumerate(self._drafts, start):
            keys += [(key, index) for key in draft.author.keys] if draft.author is not None else []
        insert_rows(self.connection, tables.known, keys, on_conflict=" ON CONFLICT DO NOTHING")
        numbered = list(enumerate(self._drafts, start))
        salts = [(index, draft.salt, draft.beside) for index, draft in numbered if draft.salt is not None]
        insert_rows(self.connection, tables.receipt_salt, salts)
        pinned = [(index, draft.pinned) for index, draft in numbered if draft.pinned is not None]
        insert_rows(self.connection, tables.issuer_keys, pinned)
        policies = [(index, draft.members["policy"]) for index, draft in numbered if "policy" in draft.members]
        insert_rows(self.connection, tables.adopted_policy, policies)
        self._keep_feedback(numbered)
        for draft in self._drafts:
            if draft.type == "redaction":
                self._erase(draft)

    def _keep_feedback(self, numbered: Sequence[tuple[int, Draft]]) -> None:
        kept = [
            (index, self._host_keys[draft.members["host_did"]], each.sealed, each.method, each.forget_on)
            for index, draft in numbered
            if (each := draft.feedback) is not None
        ]
        insert_rows(self.connection, tables.feedback, kept)

    def _erase(self, redaction: Draft) -> None:
        """The text goes in the transaction that says so; a commitment without its salt says nothing."""
        # The one entry about a review that has a text is its response.
        which = "idx = ?" if redaction.members["part"] == "text" else "about = ?"
        with erasing(self.connection):
            run(self.connection, _ERASE + which, (redaction.members["review"],))

    def _move_head(self, head: Head) -> None:
        moved = run(self.connection, _MOVE, (*head.row, self.head.size))
        if len(moved) != 1:
            raise Halted("log_forked", f"another writer moved the head on from {self.head.size} inside our transaction")
