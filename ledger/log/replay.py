"""The rules for a whole log (protocol.md 2 to 4), entry by entry: what an auditor replays and a sequencer must obey."""

from collections.abc import Callable, Iterable
from typing import Protocol

from ledger.canon import base64
from ledger.errors import BrokenRule
from ledger.log.entries import Entry, parse_entry
from ledger.log.hostmap import HostMap, map_value
from ledger.log.record import HostFold, KnownReviews, Reviews
from ledger.log.tree import Edge

MAX_BATCH = 255


def _refuse(_index: int, rule: BrokenRule) -> None:
    raise rule


class Tree(Protocol):
    """What becomes of the leaves: an `Edge`, or an `Appender`, which makes tiles of them."""

    @property
    def size(self) -> int: ...

    def extend(self, leaves: Iterable[bytes]) -> None: ...

    def root(self) -> bytes: ...


class Replay:
    """Everything that follows from the entries: tree, host records, map. State grows with hosts and, unless `reviews`
    keeps them elsewhere, with reviews.

    After three of the rules one can go on, a time or the number of an index head that falls, and a map head that does
    not follow: `on_break` is told of these. `on_record` is told of each host's new record at the end of a batch.
    """

    def __init__(
        self,
        reviews: KnownReviews | None = None,
        tree: Tree | None = None,
        *,
        on_break: Callable[[int, BrokenRule], None] = _refuse,
        on_record: Callable[[HostFold, bytes], None] = lambda _fold, _record: None,
    ) -> None:
        self.size = 0
        self._tree = tree or Edge()
        self._leaves: list[bytes] = []
        self.reviews = reviews or Reviews()
        self.hosts: dict[str, HostFold] = {}
        self.map = HostMap()
        self.origin: str | None = None
        self.last_at = ""
        # Of the newest index_head.
        self.index_seq = 0
        self.batch = 0
        self._touched: set[str] = set()
        self._on_break = on_break
        self._on_record = on_record

    def add(self, data: bytes) -> Entry:
        """Integrate the next entry, or refuse it with the rule it breaks. After a refusal discard this Replay."""
        entry, index = parse_entry(data), self.size
        if index == 0 and entry.type != "genesis":
            raise BrokenRule("genesis_missing", "the first entry must be the genesis")
        at = entry.at
        if at is not None:
            if at < self.last_at:
                self._on_break(index, BrokenRule("time_falls", f"entry {index} is older than the one before it"))
            else:
                self.last_at = at
        if entry.type == "map_head":
            self._close_batch(index, entry)
        else:
            self._extend_batch(index, entry)
        self._leaves.append(entry.leaf_hash)
        self.size += 1
        return entry

    @property
    def tree(self) -> Tree:
        """Over all entries so far. Worked out when it is asked for: a row of leaves at once takes less than each by
        itself."""
        self._tree.extend(self._leaves)
        self._leaves.clear()
        return self._tree

    def go_on(self, tree: Tree, size: int) -> None:
        """From where an earlier replay, of so many entries, had come to."""
        self._tree, self.size = tree, size

    def require_head(self) -> None:
        """A checkpoint may be signed here: its last leaf is a map head, and it is not the empty log's."""
        if self.batch or not self.size:
            raise BrokenRule("map_head_not_last", "the last leaf of a checkpoint must be a map head")

    def map_root(self) -> bytes:
        """The root over all entries so far, as the next map head must state it."""
        leaves = []
        for host in self._touched:
            fold = self.hosts[host]
            record = fold.record()
            leaves.append((fold.key, map_value(record)))
            self._on_record(fold, record)
        self.map.update(leaves)
        self._touched.clear()
        return self.map.root()

    def _extend_batch(self, index: int, entry: Entry) -> None:
        if entry.type == "genesis":
            if index:
                raise BrokenRule("genesis_repeated", "the genesis must stand at index 0 only")
            self.origin = entry.members["origin"]
        elif index == 1:
            raise BrokenRule("genesis_batch", "the first batch must be the genesis and its map head")
        if entry.type == "index_head":
            self._follow_index(index, entry.members["seq"])
        self.batch += 1
        if self.batch > MAX_BATCH:
            raise BrokenRule("batch_too_long", f"more than {MAX_BATCH} entries before a map head")
        host = entry.host
        if host is not None:
            if host not in self.hosts:
                self.hosts[host] = HostFold(host, reviews=self.reviews)
            self.hosts[host].add(index, entry)
            self._touched.add(host)

    def _follow_index(self, index: int, seq: int) -> None:
        if seq < self.index_seq:
            what = f"the index head at {index} has seq {seq}, and one before it has {self.index_seq}"
            self._on_break(index, BrokenRule("index_seq_falls", what))
        else:
            self.index_seq = seq

    def _close_batch(self, index: int, entry: Entry) -> None:
        if entry.members["size"] != index:
            raise BrokenRule("map_head_size", f"the map head at {index} says it stands at {entry.members['size']}")
        if entry.members["root"] != base64.encode(self.map_root()):
            rule = BrokenRule("map_root_mismatch", f"the map root at {index} does not follow from the entries")
            self._on_break(index, rule)
        self.batch = 0
