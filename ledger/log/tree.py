"""The Merkle tree of RFC 9162 section 2.1: hashing, the growing edge, and the subtrees that a proof shows.

A subtree is a half-open range (lo, hi) of leaf indices. Every proof is a list of subtrees; `tiles` turns subtrees
into hashes, so that inclusion, consistency and multiproofs share one way of reading the tree. `proofs` verifies them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from itertools import pairwise

from ledger.errors import NotProved

HASH_SIZE = 32
EMPTY_ROOT = sha256(b"").digest()

Subtree = tuple[int, int]


def leaf_hash(data: bytes) -> bytes:
    return sha256(b"\x00" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    return sha256(b"\x01" + left + right).digest()


class Edge:
    """The right edge of a tree: its perfect subtrees' roots, largest first. Enough to append and to know the root.

    `on_nodes(level, hashes)` is told the perfect subtrees that each `extend` completes, level by level and
    concatenated; tiles are made from that.
    """

    __slots__ = ("nodes", "on_nodes", "size")

    def __init__(
        self,
        size: int = 0,
        nodes: Sequence[bytes] = (),
        on_nodes: Callable[[int, bytes], None] | None = None,
    ) -> None:
        if len(nodes) != size.bit_count():
            raise ValueError(f"a tree of {size} leaves has {size.bit_count()} edge nodes, not {len(nodes)}")
        self.size = size
        self.nodes = list(nodes)
        self.on_nodes = on_nodes

    def append(self, leaf: bytes) -> None:
        if len(leaf) != HASH_SIZE:
            raise ValueError(f"a leaf hash has {HASH_SIZE} bytes")
        node, level, size = leaf, 0, self.size
        self.size += 1
        while True:
            if self.on_nodes:
                self.on_nodes(level, node)
            if not size & 1:
                break
            node = node_hash(self.nodes.pop(), node)
            level, size = level + 1, size >> 1
        self.nodes.append(node)

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append many leaf hashes, one level of the tree at a time: a pair is then 64 bytes in a row."""
        nodes, level, size, left_over = b"".join(leaves), 0, self.size, []
        if len(nodes) % HASH_SIZE:
            raise ValueError(f"a leaf hash has {HASH_SIZE} bytes")
        self.size += len(nodes) // HASH_SIZE
        while nodes:
            if self.on_nodes:
                self.on_nodes(level, nodes)
            if size & 1:
                nodes = self.nodes.pop() + nodes
            if len(nodes) % (2 * HASH_SIZE):
                left_over.append(nodes[-HASH_SIZE:])
            nodes = parents(nodes)
            level, size = level + 1, size >> 1
        self.nodes += reversed(left_over)

    def root(self) -> bytes:
        return fold_edge(self.nodes) if self.nodes else EMPTY_ROOT


def parents(nodes: bytes) -> bytes:
    """The nodes above complete pairs of neighbours."""
    pairs = range(0, len(nodes) - HASH_SIZE, 2 * HASH_SIZE)
    return b"".join([sha256(b"\x01" + nodes[at : at + 2 * HASH_SIZE]).digest() for at in pairs])


def fold_edge(nodes: Sequence[bytes]) -> bytes:
    """The root over perfect subtrees, largest first."""
    root = nodes[-1]
    for node in reversed(nodes[:-1]):
        root = node_hash(node, root)
    return root


def root_of(leaves: Iterable[bytes]) -> bytes:
    """The root over leaf hashes."""
    edge = Edge()
    edge.extend(leaves)
    return edge.root()


def split(lo: int, hi: int) -> int:
    """Where RFC 9162 divides (lo, hi): after the largest power of two smaller than its length."""
    return lo + (1 << ((hi - lo - 1).bit_length() - 1))


def perfect_subtrees(lo: int, hi: int) -> list[Subtree]:
    """The perfect subtrees that make up a subtree of the tree, largest first."""
    parts = []
    while lo < hi:
        width = 1 << ((hi - lo).bit_length() - 1)
        parts.append((lo, lo + width))
        lo += width
    return parts


def inclusion_subtrees(index: int, size: int) -> list[Subtree]:
    """PATH(index, D[size]): the siblings from the leaf to the root."""
    if not 0 <= index < size:
        raise ValueError(f"no leaf {index} in a tree of {size}")
    path: list[Subtree] = []
    lo, hi = 0, size
    while hi - lo > 1:
        k = split(lo, hi)
        if index < k:
            path.append((k, hi))
            hi = k
        else:
            path.append((lo, k))
            lo = k
    path.reverse()
    return path


def consistency_subtrees(first: int, second: int) -> list[Subtree]:
    """PROOF(first, D[second]): what shows that the tree of `second` leaves extends that of `first`."""
    if not 0 < first <= second:
        raise ValueError(f"no consistency proof from size {first} to {second}")
    proof: list[Subtree] = []
    lo, hi, target = 0, second, first
    while target != hi:
        k = split(lo, hi)
        if target <= k:
            proof.append((k, hi))
            hi = k
        else:
            proof.append((lo, k))
            lo = k
    # The last subtree is known to a verifier who has the first root, unless it is only a part of that tree.
    if lo > 0:
        proof.append((lo, hi))
    proof.reverse()
    return proof


def prefix_subtrees(first: int, second: int) -> list[Subtree]:
    """The subtrees of the tree of `second` leaves that its first `first` leaves are made of, and then the others."""
    if not 0 < first <= second:
        raise ValueError(f"no tree of {first} leaves in one of {second}")
    parts, lo, hi = [], 0, second
    later: list[Subtree] = []
    while lo < first < hi:
        k = split(lo, hi)
        if k <= first:
            parts.append((lo, k))
            lo = k
        else:
            later.append((k, hi))
            hi = k
    parts += perfect_subtrees(lo, first) if hi == first else []
    later += [(first, hi)] if lo == first < hi else []
    return parts + later[::-1]


def multiproof_subtrees(indices: Sequence[int], size: int, grain: int = 1) -> list[Subtree]:
    """The subtrees without any of the (ascending) indices, left to right: protocol.md 5.

    The empty (index, index) stands for all siblings of an index that is alone among `grain` leaves (a power of two).
    """
    check_indices(indices, size)
    proof: list[Subtree] = []

    def visit(lo: int, hi: int, start: int, stop: int) -> None:
        """Around indices[start:stop], at least one, which are in (lo, hi)."""
        later: list[Subtree] = []
        first, last = indices[start], indices[stop - 1]
        while hi - lo > 1:
            if hi - lo == grain and first == last:
                proof.append((first, first))
                break
            k = lo + (1 << (hi - lo - 1).bit_length() - 1)
            if k <= first:
                proof.append((lo, k))
                lo = k
            elif last < k:
                later.append((k, hi))
                hi = k
            else:
                middle = bisect_left(indices, k, start, stop)
                visit(lo, k, start, middle)
                lo, start, first = k, middle, indices[middle]
        proof.extend(reversed(later))

    visit(0, size, 0, len(indices))
    return proof


def check_indices(indices: Sequence[int], size: int) -> None:
    if not indices or not all(0 <= index < size for index in indices):
        raise NotProved("index_out_of_range", f"indices are not inside a tree of {size} leaves")
    if any(a >= b for a, b in pairwise(indices)):
        raise NotProved("index_order", "indices are not ascending")
