"""Publication: the committed head is derived again from stored bytes, then signed, then stored (protocol.md 3).

Order: commit, verify, mark, sign, store. Being stored is being published. Two processes may do it at once: signatures
are deterministic, so they store the same bytes.
"""

from collections.abc import Callable
from contextlib import nullcontext

from nacl.signing import SigningKey
from sqlalchemy import Connection

from ledger.canon import base64
from ledger.errors import Halted, Malformed, Misconfigured, NotProved, NotStored
from ledger.log.batch import Written
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.history import History
from ledger.log.hostmap import map_value
from ledger.log.mark import Mark, another_history, check_mark
from ledger.log.note import ED25519, Verifier
from ledger.log.pages import PagedMap
from ledger.log.tiles import Appender, TileTree
from ledger.log.tree import leaf_hash
from ledger.store import tables
from ledger.store.engine import Store
from ledger.store.rows import (
    Head,
    Published,
    Rows,
    insert_rows,
    newest_published,
    newest_records,
    published_at,
    read_entries,
    read_head,
    run,
)

# An imported file is one transaction; its entries are read again in parts.
CHUNK = 4096
_KEEP = " ON CONFLICT (size) DO NOTHING"


class Publisher:
    def __init__(
        self,
        store: Store,
        origin: str,
        key: SigningKey,
        history: History,
        on_step: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._origin = origin
        self._key = key
        self._history = history
        # Told after each step of a publication; crash tests stop the process there.
        self._on_step = on_step
        self._log = Verifier(origin, ED25519, bytes(key.verify_key))
        # The tree that was verified last.
        self._tree: Appender | None = None

    def publish(self, written: Written | None = None) -> Published:
        """The newest checkpoint, after signing the committed head if that is not signed yet; `written` is what was just
        committed, where this process did it. Raises as `History.require`, and Halted (`log_damaged`) when the head does
        not follow from what is stored, (`log_behind`, `log_forked`) when another database came in between."""
        while True:
            with self._store.read() as connection:
                own = self._just_written(connection, written)
                newest, head = own or self._history.require(connection)
                if newest is not None and newest.size == head.size:
                    return newest
                if own is None:
                    self._store.confirm()
                try:
                    self._verify(connection, newest, head, written)
                except (NotStored, NotProved, Malformed) as error:
                    raise Halted(
                        "log_damaged", f"entries from {newest.size if newest else 0} on were not signed: {error}"
                    ) from error
            if self._history.advance(Mark(head.size, head.root)):
                break
            # Another service has signed more meanwhile: look again.
            written = None
        self._on_step("marked")
        note = sign_checkpoint(Checkpoint(self._origin, head.size, head.root), self._key)
        self._on_step("signed")
        published = Published(*head.row, note)
        with self._store.write() as connection:
            _require_stored(connection, head)
            insert_rows(connection, tables.checkpoint, [(*published.row, note)], on_conflict=_KEEP)
        self._on_step("stored")
        return published

    def check_history(self) -> None:
        """At the start: the newest checkpoint is ours, the tiles give its root, and nothing newer was ever signed as
        far as the marks know. Raises as `History.open`, Misconfigured (`key_mismatch`), Halted (`log_damaged`)."""
        with self._store.read() as connection:
            newest = newest_published(connection)
            own = None if newest is None else self._own(newest)
            self._history.open(connection)
            rows = Rows(lambda: nullcontext(connection))
            if own is not None and TileTree(rows).root(own.size) != own.root:
                raise another_history(own)

    def _verify(self, connection: Connection, signed: Published | None, head: Head, written: Written | None) -> None:
        """Derive `head` again from what was signed last and the stored bytes after it, or raise."""
        rows = Rows(lambda: nullcontext(connection))
        tree, self._tree = self._tree, None
        if tree is None or signed is None or (tree.size, tree.root()) != (signed.size, signed.root):
            tree = _signed_tree(rows, self._log, signed)
        new_entries = range(tree.size, head.size)
        hosts = _verify_tree(connection, rows, tree, head)
        new_pages = range(signed.pages if signed else 0, head.pages)
        if written is not None and written.pages.keys() == set(new_pages):
            _verify_written(connection, written, new_pages, new_entries)
        else:
            _verify_map(connection, rows, head, new_pages.start, hosts)
        self._tree = tree

    def _own(self, newest: Published) -> Mark:
        try:
            checkpoint = open_checkpoint(newest.note, self._log)
        except (NotProved, Malformed) as error:
            if error.code == "signer_unknown":
                raise Misconfigured("key_mismatch", f"the key is not the one that signed this log: {error}") from None
            raise Halted("log_damaged", f"the newest checkpoint is damaged: {error}; run `staylog fsck`") from error
        return Mark(checkpoint.size, checkpoint.root)

    def _just_written(self, connection: Connection, written: Written | None) -> tuple[Published, Head] | None:
        """What this process committed, and what it committed that onto, if nothing was signed since."""
        if written is None or written.signed is None or written.head is None:
            return None
        if not self._history.is_signed_last(written.signed) or not self._history.is_same_database(connection):
            return None
        return written.signed, written.head


def _require_stored(connection: Connection, signed: Head) -> None:
    """The database still goes on from what was just signed, which leaves this process only then. Raises Halted."""
    head = read_head(connection)
    check_mark(Mark(signed.size, signed.root), head.size if head else 0, head.root if head else b"")
    if head is not None and head.size > signed.size:
        # Only after another service has signed the same.
        stored = published_at(connection, signed.size)
        if stored is None or stored.root != signed.root:
            raise another_history(Mark(signed.size, signed.root))


def _signed_tree(rows: Rows, log: Verifier, signed: Published | None) -> Appender:
    """The tree that was signed last, from stored tiles."""
    if signed is None:
        return Appender(rows, 0)
    checkpoint = open_checkpoint(signed.note, log)
    if (checkpoint.size, checkpoint.root) != (signed.size, signed.root):
        raise NotStored(f"the stored checkpoint of size {signed.size} is not the one that was signed")
    tree = Appender(rows, signed.size)
    if tree.root() != signed.root:
        raise NotStored(f"the tiles of the first {signed.size} entries do not give the root that was signed")
    return tree


def _verify_tree(connection: Connection, rows: Rows, tree: Appender, head: Head) -> set[bytes]:
    """Extend `tree` by the stored entries: they give the root and the stored tiles. The map keys of their hosts."""
    last, hosts = b"", set()
    for at in range(tree.size, head.size, CHUNK):
        entries = read_entries(connection, at, min(at + CHUNK, head.size))
        tree.extend([leaf_hash(data) for data, _ in entries])
        hosts |= {host for _, host in entries if host is not None}
        last = entries[-1][0]
    if tree.size != head.size or tree.root() != head.root:
        raise NotStored("the stored entries do not give the root of the committed head")
    made = tree.take_rows()
    stored = rows.read_tiles(list(made))
    for tile, data in made.items():
        if not stored.get(tile, b"").startswith(data):
            raise NotStored(f"tile {tile >> 48}/{tile & (1 << 48) - 1} does not hold the hashes of its entries")
    map_head = parse_entry(last)
    if map_head.type != "map_head" or map_head.members["size"] != head.size - 1:
        raise NotStored("the last entry is not the map head of its batch")
    if map_head.at != head.at:
        raise NotStored("the map head has another time than the committed head")
    if map_head.members["root"] != base64.encode(head.map_root):
        raise NotStored("the map head has another root than the committed head")
    return hosts


def _verify_written(connection: Connection, written: Written, pages: range, entries: range) -> None:
    """What this process just wrote is what is stored: byte for byte, without hashing it all again."""
    stored = run(connection, "SELECT id, data FROM page WHERE id >= ? AND id < ?", (pages.start, pages.stop))
    if dict(stored) != written.pages:
        raise NotStored("a map page is not stored as it was written")
    query = "SELECT idx, data, edge FROM record WHERE idx >= ? AND idx < ?"
    stored = run(connection, query, (entries.start, entries.stop))
    if {index: (data, edge) for index, data, edge in stored} != written.records:
        raise NotStored("a host record is not stored as it was written")


def _verify_map(connection: Connection, rows: Rows, head: Head, since: int, hosts: set[bytes]) -> None:
    """After a crash, or when another process wrote: pages have the hashes above them, records the values in the map."""
    values = PagedMap(rows).check(head.map_top, head.map_root, since)
    for host, version in newest_records(connection, hosts, head.size).items():
        if values.get(host) != map_value(version.data):
            raise NotStored(f"the stored record of host key {host.hex()} is not the one in the map")
