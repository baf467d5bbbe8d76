"""The commitments of an entry (protocol.md 2). Each is made with 32 random bytes, so an honest log never has two equal
ones, and none that is the SHA-256 of nothing. Such an entry was written without what a guest or host signed.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from ledger.canon import base64

REPEATED, OF_NOTHING = "commitment_repeated", "commitment_of_nothing"
NOTHING = base64.encode(sha256(b"").digest())

_MEMBERS = {
    "review": ("text",),
    "response": ("text", "statement"),
    "booking_check": ("booking",),
    "redaction": ("decision",),
}


def commitments(type_: str, members: Mapping[str, Any]) -> Iterator[str]:
    """Those of an entry of this type; a review without a text has none for it."""
    for name in _MEMBERS.get(type_, ()):
        if members[name] is not None:
            yield members[name]
    if type_ in ("review", "upgrade"):
        yield members["evidence"]["commitment"]
