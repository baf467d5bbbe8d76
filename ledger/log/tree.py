"""The Merkle tree of RFC 9162 section 2.1: hashing, the growing edge, the subtrees a proof shows, verification.

A subtree is a half-open range (lo, hi) of leaf indices. Every proof is a list of subtrees; `tiles` turns subtrees
into hashes, so that inclusion, consistency and multiproofs share one way of reading the tree.
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
        self.extend((leaf,))

    def extend(self, leaves: Iterable[bytes]) -> None:
        """Append many leaf hashes, one level of the tree at a time: a pair is then 64 bytes in a row."""
        nodes, level, size, left_over = b"".join(leaves), 0, self.size, []
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


def multiproof_subtrees(indices: Sequence[int], size: int) -> list[Subtree]:
    """The subtrees without any of the (ascending) indices, left to right: protocol.md 5."""
    _check_indices(indices, size)
    proof: list[Subtree] = []

    def visit(lo: int, hi: int, start: int, stop: int) -> None:
        if start == stop:
            proof.append((lo, hi))
        elif hi - lo > 1:
            k = split(lo, hi)
            middle = bisect_left(indices, k, start, stop)
            visit(lo, k, start, middle)
            visit(k, hi, middle, stop)

    visit(0, size, 0, len(indices))
    return proof


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Raise unless `proof` shows `leaf` at `index` of the tree of `size` leaves. The size comes from a checkpoint:
    an inclusion proof does not bind it."""
    _check_hashes(leaf, root, *proof)
    if not 0 <= index < size:
        raise NotProved("index_out_of_range", f"index {index} is not in a tree of {size} leaves")
    inner = (index ^ (size - 1)).bit_length()
    border = (index >> inner).bit_count()
    if len(proof) != inner + border:
        raise NotProved("proof_length", f"{len(proof)} hashes where {inner + border} are due")
    node = leaf
    for level in range(inner):
        sibling = proof[level]
        pair = sibling + node if index >> level & 1 else node + sibling
        node = sha256(b"\x01" + pair).digest()
    for sibling in proof[inner:]:
        node = sha256(b"\x01" + sibling + node).digest()
    if node != root:
        raise NotProved("root_mismatch", "the inclusion proof does not lead to the root")


def verify_consistency(first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]) -> None:
    """Raise unless `proof` shows that the second tree extends the first (RFC 9162 section 2.1.4.2).

    Size 0 is the caller's case: every tree extends the empty one, and there is nothing to prove.
    """
    _check_hashes(first_root, second_root, *proof)
    if not 0 < first <= second:
        raise NotProved("index_out_of_range", f"no consistency from size {first} to {second}")
    if first == second:
        if proof:
            raise NotProved("proof_length", "equal sizes take an empty proof")
        if first_root != second_root:
            raise NotProved("root_mismatch", "two roots for one size: the log has forked")
        return
    # When the first tree is perfect its root starts the path; otherwise the proof brings the start along.
    path = list(proof) if first & (first - 1) else [first_root, *proof]
    if not path:
        raise NotProved("proof_length", "an empty proof for different sizes")
    node, last = first - 1, second - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old = new = path[0]
    for sibling in path[1:]:
        if last == 0:
            raise NotProved("proof_length", "the consistency proof has hashes left over")
        if node & 1 or node == last:
            old = node_hash(sibling, old)
            new = node_hash(sibling, new)
            while node and not node & 1:
                node, last = node >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        node, last = node >> 1, last >> 1
    if last:
        raise NotProved("proof_length", "the consistency proof is too short")
    if old != first_root or new != second_root:
        raise NotProved("root_mismatch", "the consistency proof does not lead to both roots")


def multiproof_root(leaves: Sequence[tuple[int, bytes]], size: int, proof: Sequence[bytes]) -> bytes:
    """The root that `leaves` (index and hash, ascending) and `proof` give; the caller compares it."""
    indices = [index for index, _ in leaves]
    _check_hashes(*proof, *(leaf for _, leaf in leaves))
    _check_indices(indices, size)
    rest = iter(proof)

    def visit(lo: int, hi: int, start: int, stop: int) -> bytes:
        if start == stop:
            return next(rest)
        if hi - lo == 1:
            return leaves[start][1]
        k = split(lo, hi)
        middle = bisect_left(indices, k, start, stop)
        left = visit(lo, k, start, middle)
        return sha256(b"\x01" + left + visit(k, hi, middle, stop)).digest()

    try:
        root = visit(0, size, 0, len(leaves))
    except StopIteration:
        raise NotProved("proof_length", "the multiproof is too short") from None
    if next(rest, None) is not None:
        raise NotProved("proof_length", "the multiproof has hashes left over")
    return root


def _check_hashes(*hashes: bytes) -> None:
    for value in hashes:
        if len(value) != HASH_SIZE:
            raise NotProved("hash_length", f"a hash of {len(value)} bytes")


def _check_indices(indices: Sequence[int], size: int) -> None:
    if not indices or not all(0 <= index < size for index in indices):
        raise NotProved("index_out_of_range", f"indices are not inside a tree of {size} leaves")
    if any(a >= b for a, b in pairwise(indices)):
        raise NotProved("index_order", "indices are not ascending")
