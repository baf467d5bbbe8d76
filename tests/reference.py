"""The definitions of RFC 9162 and protocol.md, written as they are defined: slow, recursive, independent of ledger."""

from collections.abc import Sequence
from functools import cache
from hashlib import sha256


def sha(*parts: bytes) -> bytes:
    return sha256(b"".join(parts)).digest()


class Tree:
    """MTH, PATH, PROOF and the multiproof over leaf hashes. Subtree hashes are remembered, nothing else is clever."""

    def __init__(self, leaves: Sequence[bytes]) -> None:
        self.leaves = leaves
        self.mth = cache(self._mth)

    def _mth(self, lo: int, hi: int) -> bytes:
        if hi == lo:
            return sha(b"")
        if hi - lo == 1:
            return self.leaves[lo]
        k = largest_power_below(hi - lo)
        return sha(b"\x01", self.mth(lo, lo + k), self.mth(lo + k, hi))

    def root(self, size: int) -> bytes:
        return bytes(self.mth(0, size))

    def path(self, m: int, lo: int, hi: int) -> list[bytes]:
        n = hi - lo
        if n == 1:
            return []
        k = largest_power_below(n)
        if m < k:
            return [*self.path(m, lo, lo + k), self.mth(lo + k, hi)]
        return [*self.path(m - k, lo + k, hi), self.mth(lo, lo + k)]

    def proof(self, m: int, lo: int, hi: int, whole: bool = True) -> list[bytes]:
        n = hi - lo
        if m == n:
            return [] if whole else [self.mth(lo, hi)]
        k = largest_power_below(n)
        if m <= k:
            return [*self.proof(m, lo, lo + k, whole), self.mth(lo + k, hi)]
        return [*self.proof(m - k, lo + k, hi, False), self.mth(lo, lo + k)]

    def multiproof(self, indices: Sequence[int], lo: int, hi: int) -> list[bytes]:
        if not indices:
            return [self.mth(lo, hi)]
        if hi - lo == 1:
            return []
        k = lo + largest_power_below(hi - lo)
        left, right = [i for i in indices if i < k], [i for i in indices if i >= k]
        return [*self.multiproof(left, lo, k), *self.multiproof(right, k, hi)]


def largest_power_below(n: int) -> int:
    k = 1
    while k * 2 < n:
        k *= 2
    return k


def map_root(leaves: dict[bytes, bytes]) -> bytes:
    zero, one = _halves(leaves, 0)
    return sha(b"\x03", _map_subtree(zero, 1), _map_subtree(one, 1))


def _map_subtree(leaves: dict[bytes, bytes], depth: int) -> bytes:
    if not leaves:
        return bytes(32)
    if len(leaves) == 1:
        ((key, value),) = leaves.items()
        return sha(b"\x02", key, value)
    zero, one = _halves(leaves, depth)
    return sha(b"\x03", _map_subtree(zero, depth + 1), _map_subtree(one, depth + 1))


def _halves(leaves: dict[bytes, bytes], depth: int) -> tuple[dict[bytes, bytes], dict[bytes, bytes]]:
    def bit(key: bytes) -> int:
        return (key[depth // 8] >> (7 - depth % 8)) & 1

    return ({k: v for k, v in leaves.items() if not bit(k)}, {k: v for k, v in leaves.items() if bit(k)})
