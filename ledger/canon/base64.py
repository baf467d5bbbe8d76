"""Strict base64 (RFC 4648 section 4): padded, standard alphabet, one spelling per value (protocol.md 1)."""

from binascii import a2b_base64, b2a_base64

from ledger.errors import BadBase64

HASH_SIZE = 32


def encode(data: bytes) -> str:
    return b2a_base64(data, newline=False).decode("ascii")


def decode(text: str) -> bytes:
    """The bytes `text` spells; a second spelling of the same bytes is refused."""
    try:
        data = a2b_base64(text, strict_mode=True)
    except ValueError:
        raise BadBase64("base64_invalid", f"not standard base64: {text[:60]!r}") from None
    if encode(data) != text:
        raise BadBase64("base64_invalid", f"base64 with unused bits set or odd padding: {text[:60]!r}")
    return data


def decode_hash(text: str) -> bytes:
    """A value of exactly 32 bytes: a shifted boundary between two hashed values would forge a proof."""
    data = decode(text)
    if len(data) != HASH_SIZE:
        raise BadBase64("hash_length", f"expected {HASH_SIZE} bytes, got {len(data)}: {text[:60]!r}")
    return data
