"""Damage, bit by bit."""


def flip(data: bytes, bit: int = 0) -> bytes:
    """`data` with one bit changed, counted from the low end of its first byte."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)
