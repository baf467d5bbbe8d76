"""What an audit asks besides the fixed questions: drawn by the root of the audited checkpoint.

A draw is SHA-256(root ‖ UTF-8 of what it is for ‖ 0x00 ‖ its number as 8 bytes, big-endian), as an integer modulo the
number of choices. So all auditors of one checkpoint ask the same, the choice can be checked afterwards, and it is not
known before the checkpoint is signed.
"""

from collections.abc import Sequence
from hashlib import sha256
from typing import TypeVar

Item = TypeVar("Item")


class Draw:
    """Numbers one after the other, for one purpose."""

    def __init__(self, root: bytes, purpose: str) -> None:
        self._seed = root + purpose.encode() + b"\x00"
        self._count = 0

    def below(self, choices: int) -> int:
        self._count += 1
        digest = sha256(self._seed + (self._count - 1).to_bytes(8)).digest()
        return int.from_bytes(digest) % choices

    def one_of(self, items: Sequence[Item]) -> Item:
        return items[self.below(len(items))]
