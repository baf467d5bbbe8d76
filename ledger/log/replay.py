"""The rules for a whole log (protocol.md 2 to 4), entry by entry: what an auditor replays and a sequencer must obey."""

from ledger.canon import base64
from ledger.errors import BrokenRule
from ledger.log.entries import Entry, parse_entry
from ledger.log.hostmap import HostMap, map_key, map_value
from ledger.log.record import HostFold
from ledger.log.tree import Edge

MAX_BATCH = 255


class Replay:
    """Everything that follows from the entries: tree, host records, map. State grows with hosts and reviews only."""

    def __init__(self) -> None:
        self.tree = Edge()
        self.hosts: dict[str, HostFold] = {}
        self.map = HostMap()
        self.origin: str | None = None
        self._touched: set[str] = set()
        self._review_ids: set[str] = set()
        self.last_at = ""
        self._batch = 0

    def add(self, data: bytes) -> Entry:
        """Integrate the next entry, or refuse it with the rule it breaks. After a refusal discard this Replay."""
        entry, index = parse_entry(data), self.tree.size
        if index == 0 and entry.type != "genesis":
            raise BrokenRule("genesis_missing", "the first entry must be the genesis")
        if entry.at is not None:
            if entry.at < self.last_at:
                raise BrokenRule("time_falls", f"entry {index} is older than the one before it")
            self.last_at = entry.at
        if entry.type == "map_head":
            self._close_batch(index, entry)
        else:
            self._extend_batch(index, entry)
        self.tree.append(entry.leaf_hash)
        return entry

    def require_head(self) -> None:
        """A checkpoint may be signed here: its last leaf is a map head, and it is not the empty log's."""
        if self._batch or not self.tree.size:
            raise BrokenRule("map_head_not_last", "the last leaf of a checkpoint must be a map head")

    def map_root(self) -> bytes:
        """The root over all entries so far, as the next map head must state it."""
        for host in self._touched:
            self.map.set(map_key(host), map_value(self.hosts[host].record()))
        self._touched.clear()
        return self.map.root()

    def _extend_batch(self, index: int, entry: Entry) -> None:
        if entry.type == "genesis":
            if index:
                raise BrokenRule("genesis_repeated", "the genesis must stand at index 0 only")
            self.origin = entry.members["origin"]
        elif index == 1:
            raise BrokenRule("genesis_batch", "the first batch must be the genesis and its map head")
        self._batch += 1
        if self._batch > MAX_BATCH:
            raise BrokenRule("batch_too_long", f"more than {MAX_BATCH} entries before a map head")
        if entry.type == "review":
            if entry.members["review_id"] in self._review_ids:
                raise BrokenRule("review_id_reused", f"{entry.members['review_id']} is the id of an earlier review")
            self._review_ids.add(entry.members["review_id"])
        if entry.host is not None:
            if entry.host not in self.hosts:
                self.hosts[entry.host] = HostFold(entry.host)
            self.hosts[entry.host].add(index, entry)
            self._touched.add(entry.host)

    def _close_batch(self, index: int, entry: Entry) -> None:
        if entry.members["size"] != index:
            raise BrokenRule("map_head_size", f"the map head at {index} says it stands at {entry.members['size']}")
        if entry.members["root"] != base64.encode(self.map_root()):
            raise BrokenRule("map_root_mismatch", f"the map root at {index} does not follow from the entries")
        self._batch = 0
