"""Verification of RFC 9162 proofs and of multiproofs (protocol.md 5): silent, or NotProved."""

from bisect import bisect_left
from collections.abc import Sequence
from hashlib import sha256

from ledger.errors import NotProved
from ledger.log.tree import HASH_SIZE, check_indices, node_hash, prefix_subtrees, split


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> None:
    """Raise unless `proof` shows `leaf` at `index` of the tree of `size` leaves. The size comes from a checkpoint:
    an inclusion proof does not bind it."""
    _check_hashes(leaf, root, *proof)
    if not 0 <= index < size:
        raise NotProved("index_out_of_range", f"index {index} is not in a tree of {size} leaves")
    inner = (index ^ (size - 1)).bit_length()
    border = (index >> inner).bit_count()
    if len(proof) != inner + border:
        raise NotProved("proof_length", f"expected {inner + border} hashes, got {len(proof)}")
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


def prefix_roots(first: int, second: int, hashes: Sequence[bytes]) -> tuple[bytes, bytes]:
    """The roots of the tree of `second` leaves and of its first `first` leaves, from the hashes of `prefix_subtrees`.

    A consistency proof shows that two roots agree; this shows what the smaller one would have to be, so that two signed
    roots can be shown to disagree.
    """
    _check_hashes(*hashes)
    subtrees = prefix_subtrees(first, second)
    if len(hashes) != len(subtrees):
        raise NotProved("proof_length", f"expected {len(subtrees)} hashes, got {len(hashes)}")
    known = dict(zip(subtrees, hashes, strict=True))

    def root(lo: int, hi: int) -> bytes:
        if (lo, hi) in known:
            return known[lo, hi]
        k = split(lo, hi)
        return node_hash(root(lo, k), root(k, hi))

    return root(0, second), root(0, first)


def multiproof_root(leaves: Sequence[tuple[int, bytes]], size: int, proof: Sequence[bytes]) -> bytes:
    """The root that `leaves` (index and hash, ascending) and `proof` give; the caller compares it."""
    indices = [index for index, _ in leaves]
    _check_hashes(*proof, *(leaf for _, leaf in leaves))
    check_indices(indices, size)
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
