"""base58btc as multibase `z` carries it: did:key, multikeys and proof values."""

from ledger.errors import Malformed

_ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_VALUE = {character: value for value, character in enumerate(_ALPHABET)}
# Decoding is quadratic; nothing this project reads is longer than a DID.
MAX_CHARACTERS = 256


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
    number = 0
    for character in text:
        if character not in _VALUE:
            raise Malformed("base58_invalid", f"{character!r} is not a base58btc character")
        number = number * 58 + _VALUE[character]
    zeros = len(text) - len(text.lstrip("1"))
    return bytes(zeros) + number.to_bytes((number.bit_length() + 7) // 8)
