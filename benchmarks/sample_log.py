"""A log as a young marketplace would have it: one host with 24 reviews among the reviews of 250 other hosts."""

import random
from base64 import b32encode
from datetime import UTC, datetime, timedelta
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.canon.times import format_time
from ledger.log.entries import Entry, make_entry
from ledger.log.members import CATEGORIES
from ledger.log.memory import MemoryLog
from ledger.log.note import ED25519, Verifier
from ledger.log.openings import Opening, commitment

HOST = "did:web:stays.example:hosts:4711"
HOST_REVIEWS = 24
OTHER_HOSTS = 250
ENTRIES = 1_000
BATCH = 40
ORIGIN = "log.stays.example"
_START = datetime(2026, 1, 1, tzinfo=UTC)
_TEXT = (
    "the flat was spotless and quiet, a short walk from the tram; our host answered within minutes, left fresh bread "
    "and a map with her favourite cafés; beds were firm, the shower was hot, heating worked; at night you hear the "
    "Straßenbahn a little, but the balcony over the old roofs makes up for it and we would stay again"
)


def some_text(source: random.Random) -> str:
    """What a guest might write: 20 to 99 words."""
    return " ".join(source.choices(_TEXT.split(), k=source.randrange(20, 100)))


class SampleLog:
    """Every third review of `HOST` has a response; every text has its opening."""

    def __init__(self, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._key = SigningKey(self._random.randbytes(32))
        self._clock = _START
        self.log = MemoryLog(ORIGIN, self._key, self._random.randbytes(32), format_time(self._clock))
        self._batch: list[Entry] = []
        self._fill()

    @property
    def verifier(self) -> Verifier:
        return Verifier(ORIGIN, ED25519, bytes(self._key.verify_key))

    def _fill(self) -> None:
        own = {ENTRIES * (place + 1) // (HOST_REVIEWS + 1) for place in range(HOST_REVIEWS)}
        for number in range(ENTRIES):
            host = HOST if number in own else f"did:web:stays.example:hosts:{self._random.randrange(OTHER_HOSTS)}"
            self._review(host, responded=number % 3 == 0)
            if len(self._batch) >= BATCH:
                self._integrate()
        self._integrate()

    def _review(self, host: str, *, responded: bool) -> None:
        review_id = "rev-" + b32encode(self._random.randbytes(16)).decode().rstrip("=").lower()
        check_in = self._clock.date() - timedelta(days=self._random.randrange(5, 40))
        review = self._add(
            "review",
            review_id=review_id,
            host_did=host,
            listing_id=f"flat-{self._random.randrange(3)}",
            check_in=check_in.isoformat(),
            check_out=(check_in + timedelta(days=self._random.randrange(1, 5))).isoformat(),
            ratings={category: self._random.choice((3, 4, 4.5, 5)) for category in CATEGORIES},
            level="guest_verified",
            evidence={
                "booking": "stay_receipt",
                "commitment": self._hash(),
                "idv_level": "identity_verified",
                "issuer": "did:web:issuer.example",
            },
            repeat=self._random.random() < 0.1,
        )
        if responded:
            self._add("response", review_id=review_id, review=review, host_did=host, statement=self._hash())

    def _add(self, kind: str, **members: Any) -> int:
        """Append an entry that commits to a text; returns its log index."""
        self._clock += timedelta(minutes=self._random.randrange(1, 20))
        text = some_text(self._random)
        opening = Opening(text, self._random.randbytes(32))
        index = len(self.log.entries) + len(self._batch)
        committed = commitment(opening.salt, text.encode())
        self._batch.append(make_entry(kind, **members, text=committed, at=format_time(self._clock)))
        self.log.openings[index] = opening
        return index

    def _integrate(self) -> None:
        self.log.append_batch(self._batch, format_time(self._clock))
        self._batch.clear()

    def _hash(self) -> str:
        return base64.encode(self._random.randbytes(32))
