"""The search for traces: a value in every encoding that a careless program might leave behind."""

import json
from base64 import b32encode, b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from struct import iter_unpack
from urllib.parse import quote_from_bytes

# How many bytes are looked at together.
GRAM = 8
SHORTEST = 2 * GRAM - 1


def spellings(value: bytes) -> Iterator[tuple[str, bytes]]:
    """A value and its SHA-256, each as it is and in all encodings."""
    yield from encodings(value)
    for how, found in encodings(sha256(value).digest()):
        yield f"SHA-256, {how}", found


def encodings(value: bytes) -> Iterator[tuple[str, bytes]]:
    yield "as it is", value
    yield "hex", value.hex().encode()
    yield "HEX", value.hex().upper().encode()
    for encode, bits, name in ((b64encode, 6, "base64"), (urlsafe_b64encode, 6, "base64url"), (b32encode, 5, "base32")):
        # As a part of something longer, which begins anywhere: without the characters that its neighbours change.
        for shift in range(3 if bits == 6 else 5):
            start, end = -(-8 * shift // bits), 8 * (shift + len(value)) // bits
            yield f"{name} at {shift}", encode(bytes(shift) + value)[start:end]
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return
    if text.isprintable():
        yield "UTF-16LE", text.encode("utf-16-le")
        yield "UTF-16BE", text.encode("utf-16-be")
        yield "JSON", json.dumps(text)[1:-1].encode()
        yield "in a URL", quote_from_bytes(value, safe="").encode()


class Search:
    """For many needles at once. In a haystack every eighth place is looked at: wherever a needle lies, one of its first
    eight runs of eight bytes begins there. Shorter ones are looked for one by one."""

    def __init__(self, values: Mapping[str, bytes]) -> None:
        self.needles: dict[bytes, str] = {}
        for name, value in values.items():
            for how, needle in spellings(value):
                self.needles.setdefault(needle, f"{name} ({how})")
        self._short = [needle for needle in self.needles if len(needle) < SHORTEST]
        self._grams: dict[bytes, list[tuple[int, bytes]]] = {}
        for needle in self.needles:
            if len(needle) >= SHORTEST:
                for shift in range(GRAM):
                    self._grams.setdefault(needle[shift : shift + GRAM], []).append((shift, needle))

    def __call__(self, haystacks: Mapping[str, bytes]) -> dict[str, set[str]]:
        """What was found in each, by name."""
        found = {where: self.search(data) for where, data in haystacks.items()}
        return {where: what for where, what in found.items() if what}

    def search(self, data: bytes) -> set[str]:
        found = {self.needles[needle] for needle in self._short if needle in data}
        for place, (gram,) in enumerate(iter_unpack(f"{GRAM}s", data[: len(data) // GRAM * GRAM])):
            for shift, needle in self._grams.get(gram, ()):
                start = place * GRAM - shift
                if start >= 0 and data.startswith(needle, start):
                    found.add(self.needles[needle])
        return found
