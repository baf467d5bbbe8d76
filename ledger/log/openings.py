"""Commitments and what opens them (protocol.md 1, 2): the log holds hashes; texts stand beside it, withdrawable."""

import unicodedata
from hashlib import sha256
from typing import Any, NamedTuple

from ledger.canon import base64
from ledger.errors import BadBase64, Malformed, NotProved

SALT_SIZE = 32


def commitment(salt: bytes, data: bytes) -> str:
    """The salt's length is checked first: with a movable border one hash would open to many texts."""
    if len(salt) != SALT_SIZE:
        raise BadBase64("hash_length", f"a salt has {SALT_SIZE} bytes, not {len(salt)}")
    return base64.encode(sha256(b"\x05" + salt + data).digest())


class Opening(NamedTuple):
    """A text and the salt it was committed with."""

    text: str
    salt: bytes

    @classmethod
    def parse(cls, value: Any) -> "Opening":
        if not isinstance(value, dict) or value.keys() != {"text", "salt"}:
            raise Malformed("opening_malformed", "an opening is an object of exactly text and salt")
        if not all(isinstance(part, str) and part for part in value.values()):
            raise Malformed("opening_malformed", "the text and the salt of an opening are strings, and not empty")
        return cls(value["text"], base64.decode_hash(value["salt"]))

    def as_json(self) -> dict[str, str]:
        return {"text": self.text, "salt": base64.encode(self.salt)}

    def require(self, committed: str) -> None:
        if commitment(self.salt, self.text.encode()) != committed:
            raise NotProved("opening_mismatch", "the text does not open the commitment in the entry")


# Format characters since Unicode 15: a Python of before, and a browser of today, must display the same.
_LATER = dict.fromkeys(range(0x13439, 0x13440))
# Line ends and tabs are layout. The joiners are spelling: Persian words and emoji sequences need them.
_KEPT = "\t\n\u200c\u200d"
_WITHOUT_KEPT = str.maketrans(dict.fromkeys(_KEPT))
# Unicode's property White_Space, as every version since 6.3 has it. `str.isspace` has U+001C to U+001F as well, and
# JavaScript's `trim` has U+FEFF instead of U+0085; JavaScript's `\p{White_Space}` has exactly these.
WHITE_SPACE = "\t\n\v\f\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B))) + "\u2028\u2029\u202f\u205f\u3000"


def displayed(text: str) -> str:
    """`text` without control and format characters, which can hide or reorder what people read. Tab, line feed, U+200C
    and U+200D are kept."""
    if text.isprintable() or text.translate(_WITHOUT_KEPT).isprintable():
        return text  # nearly every text; what is printable has neither
    return "".join(c for c in text.translate(_LATER) if c in _KEPT or unicodedata.category(c) not in ("Cc", "Cf"))


def is_blank(text: str) -> bool:
    """Whether `text` is empty or white space only: as a review's text that is none, as a response it is refused."""
    return not text.strip(WHITE_SPACE)
