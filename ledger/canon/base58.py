"""base58btc as multibase `z` carries it: did:key, multikeys and proof values."""

from operator import mul

from ledger.errors import Malformed

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
# Decoding is quadratic; nothing this project reads is longer than a DID.
MAX_CHARACTERS = 256
_NONE = 255
_VALUES = bytes(_ALPHABET.find(chr(code)) % 256 for code in range(256))
_POWERS = [58**place for place in range(MAX_CHARACTERS)]


def encode(data: bytes) -> str:
    number, text = int.from_bytes(data), ""
    while number:
        number, digit = divmod(number, 58)
        text = _ALPHABET[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def decode(text: str) -> bytes:
    """The bytes that `text` spells. No other text spells them: each `1` in front is a zero byte."""
    if not 0 < len(text) <= MAX_CHARACTERS:
        raise Malformed("base58_invalid", f"base58btc of 1 to {MAX_CHARACTERS} characters expected")
    values = text.encode("ascii", "replace").translate(_VALUES)
    if _NONE in values:
        raise Malformed("base58_invalid", f"{text[values.index(_NONE)]!r} is not a base58btc character")
    number: int = sum(map(mul, reversed(values), _POWERS))
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)
