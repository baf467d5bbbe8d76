"""The host map (protocol.md 1): a compressed sparse Merkle tree from host DIDs to host records, as KEYTRANS has it.

One root in a `map_head` entry commits to every host's record, so that one path shows a host's record or its absence.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any

from ledger.canon import base64
from ledger.errors import Malformed, NotProved

ABSENT = bytes(32)
KEY_BITS = 256
NODE_PREFIX = b"\x03"


@lru_cache(maxsize=4096)
def map_key(did: str) -> bytes:
    return sha256(did.encode()).digest()


def map_value(record: bytes) -> bytes:
    return sha256(b"\x04" + record).digest()


def map_leaf(key: bytes, value: bytes) -> bytes:
    return sha256(b"\x02" + key + value).digest()


def map_node(left: bytes, right: bytes) -> bytes:
    return sha256(NODE_PREFIX + left + right).digest()


def key_bit(key: bytes, depth: int) -> int:
    return key[depth >> 3] >> 7 - (depth & 7) & 1


@dataclass(frozen=True, slots=True)
class MapLeaf:
    key: bytes
    value: bytes

    @property
    def hash(self) -> bytes:
        return map_leaf(self.key, self.value)

    def as_json(self) -> dict[str, str]:
        return {"key": base64.encode(self.key), "value": base64.encode(self.value)}

    @classmethod
    def parse(cls, value: Any) -> "MapLeaf":
        """Both halves have exactly 32 bytes: a border moved by one byte would forge an absence."""
        if not isinstance(value, dict) or value.keys() != {"key", "value"}:
            raise Malformed("map_other_malformed", "map_other is an object of exactly key and value")
        if not all(isinstance(part, str) for part in value.values()):
            raise Malformed("map_other_malformed", "key and value are base64 text")
        return cls(base64.decode_hash(value["key"]), base64.decode_hash(value["value"]))


@dataclass(frozen=True, slots=True)
class MapProof:
    """Siblings from the leaf to the root, and the leaf the path ends in: the host's own, another one, or none."""

    siblings: tuple[bytes, ...]
    leaf: MapLeaf | None

    def as_json(self) -> list[str]:
        return ["" if sibling == ABSENT else base64.encode(sibling) for sibling in self.siblings]

    def root(self, key: bytes) -> bytes:
        """The root this path gives for `key`."""
        node = self.leaf.hash if self.leaf else ABSENT
        for depth in range(len(self.siblings) - 1, -1, -1):
            sibling = self.siblings[len(self.siblings) - 1 - depth]
            node = map_node(sibling, node) if key_bit(key, depth) else map_node(node, sibling)
        return node


def updated_root(path: MapProof, key: bytes, value: bytes) -> bytes:
    """The root of a map once it has `value` under `key`, from the path of `key` before that."""
    siblings, other = path.siblings, path.leaf
    if other is not None and other.key != key:
        # Both go down from here until they part.
        depth = len(siblings)
        while key_bit(key, depth) == key_bit(other.key, depth):
            depth += 1
        siblings = (other.hash, *[ABSENT] * (depth - len(siblings)), *siblings)
    return MapProof(siblings, MapLeaf(key, value)).root(key)


def parse_siblings(texts: Sequence[str]) -> tuple[bytes, ...]:
    """Zeros are the empty string and nothing else, so that an answer has one form."""
    if not 0 < len(texts) <= KEY_BITS:
        raise NotProved("map_path_length", f"a map path of {len(texts)} steps; 1 to {KEY_BITS} are possible")
    siblings = tuple(base64.decode_hash(text) if text else ABSENT for text in texts)
    if any(text and sibling == ABSENT for text, sibling in zip(texts, siblings, strict=True)):
        raise Malformed("map_zeros_spelled_out", "zeros in a map path must be spelled as the empty string")
    return siblings


def verify_map(did: str, record: bytes | None, other: MapLeaf | None, siblings: Sequence[bytes], root: bytes) -> None:
    """Raise unless the path shows `record` as the record of `did`, or, when it is None, that the map has none."""
    key = map_key(did)
    if record is not None:
        if other is not None:
            raise NotProved("map_other_unexpected", "a record and map_other exclude each other")
        leaf: MapLeaf | None = MapLeaf(key, map_value(record))
    else:
        if other is not None and not _shares_path(other.key, key, len(siblings)):
            raise NotProved("map_other_elsewhere", "map_other is not another leaf on the path of this host")
        leaf = other
    if MapProof(tuple(siblings), leaf).root(key) != root:
        what = "the record" if record is not None else "the absence"
        raise NotProved("map_root_mismatch", f"the map path of {what} does not lead to the map root")


def _shares_path(other: bytes, key: bytes, bits: int) -> bool:
    return other != key and int.from_bytes(other) >> KEY_BITS - bits == int.from_bytes(key) >> KEY_BITS - bits


class _Leaf:
    """A leaf of the map in memory."""

    __slots__ = ("hash", "key", "value")

    def __init__(self, key: bytes, value: bytes) -> None:
        self.key = key
        self.value = value
        self.hash: bytes | None = map_leaf(key, value)


class _Node:
    """A node of the map in memory; its hash is worked out when it is asked for."""

    __slots__ = ("children", "hash")

    def __init__(self) -> None:
        self.children: list[_Node | _Leaf | None] = [None, None]
        self.hash: bytes | None = None


class HostMap:
    """The map in memory: for auditors, who need the newest version only. `pages` keeps every version."""

    def __init__(self, leaves: Iterable[tuple[bytes, bytes]] = ()) -> None:
        self._root = _Node()
        for key, value in leaves:
            self.set(key, value)

    def set(self, key: bytes, value: bytes) -> None:
        _set(self._root, int.from_bytes(key), KEY_BITS, _Leaf(key, value))

    def update(self, leaves: Iterable[tuple[bytes, bytes]]) -> None:
        """Set many at once: near the root they share their way."""
        placed = {int.from_bytes(key): _Leaf(key, value) for key, value in leaves}
        if placed:
            _set_all(self._root, sorted(placed), 0, len(placed), KEY_BITS, placed)

    def root(self) -> bytes:
        return _hash(self._root)

    def prove(self, key: bytes) -> MapProof:
        siblings: list[bytes] = []
        node: _Node | _Leaf | None = self._root
        while isinstance(node, _Node):
            side = key_bit(key, len(siblings))
            sibling = node.children[1 - side]
            siblings.append(_hash(sibling) if sibling is not None else ABSENT)
            node = node.children[side]
        return MapProof(tuple(reversed(siblings)), MapLeaf(node.key, node.value) if node is not None else None)


def _set_all(node: _Node, keys: list[int], start: int, stop: int, depth: int, leaves: Mapping[int, _Leaf]) -> None:
    """Put the leaves of keys[start:stop], which share the bits that led to this node; `depth` bits are left."""
    if stop - start == 1:
        _set(node, keys[start], depth, leaves[keys[start]])
        return
    node.hash = None
    depth -= 1
    middle = bisect_left(keys, (keys[start] >> depth | 1) << depth, start, stop)
    for side, first, last in ((0, start, middle), (1, middle, stop)):
        child = node.children[side]
        if last - first == 1:
            _set(node, keys[first], depth + 1, leaves[keys[first]])
        elif last > first:
            below = child if type(child) is _Node else _divide(node, side, child, depth)
            _set_all(below, keys, first, last, depth, leaves)


def _divide(node: _Node, side: int, child: _Node | _Leaf | None, depth: int) -> _Node:
    """A new node in the place of a leaf or of nothing; the leaf goes below it."""
    below = node.children[side] = _Node()
    if type(child) is _Leaf:
        below.children[key_bit(child.key, KEY_BITS - depth)] = child
    return below


def _set(node: _Node, bits: int, depth: int, leaf: _Leaf) -> None:
    while True:
        node.hash = None
        depth -= 1
        side = bits >> depth & 1
        child = node.children[side]
        if type(child) is _Node:
            node = child
        elif type(child) is not _Leaf or child.key == leaf.key:
            node.children[side] = leaf
            return
        else:
            # Two keys in one place: push the one that was here down until they part.
            node = _divide(node, side, child, depth)


def _hash(node: _Node | _Leaf) -> bytes:
    known = node.hash
    if known is None:
        # Only a node can be without.
        left, right = node.children  # type: ignore[union-attr]
        left_hash = ABSENT if left is None else left.hash or _hash(left)
        right_hash = ABSENT if right is None else right.hash or _hash(right)
        node.hash = known = sha256(NODE_PREFIX + left_hash + right_hash).digest()
    return known
