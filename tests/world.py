"""Invented ledgers: hosts, guests and everything that can happen to a review, drawn from a seeded random source."""

from base64 import b32encode
from datetime import timedelta
from random import Random
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.canon.times import format_time, parse_time
from ledger.log.entries import Entry, make_entry
from ledger.log.members import BASES, BOOKINGS, CATEGORIES, OUTCOMES
from ledger.log.memory import MemoryLog, Published
from ledger.log.note import ED25519, Verifier
from ledger.log.openings import Opening, commitment

ORIGIN = "ledger.example/log"
KEY = SigningKey(bytes(range(32)))
LOG = Verifier(ORIGIN, ED25519, bytes(KEY.verify_key))
START = "2026-01-01T00:00:00Z"
HOSTS = tuple(f"did:web:host{number}.example" for number in range(6))
ISSUERS = ("https://idv.example/issuers/1", "did:web:id.example", None)


class World:
    """A ledger that grows at random but never breaks a rule; `log` is the ledger itself."""

    def __init__(self, seed: int, hosts: tuple[str, ...] = HOSTS) -> None:
        self.random = Random(seed)
        self.hosts = hosts
        self.now = parse_time(START)
        self.log = MemoryLog(ORIGIN, KEY, bytes(32), START)
        self._batch: list[Entry] = []
        # Reviews in the log or in the open batch, by log index, with what has happened to them.
        self._reviews: dict[int, dict[str, Any]] = {}

    def grow(self, batches: int, most: int = 8) -> "World":
        for _ in range(batches):
            for _ in range(self.random.randrange(most + 1)):
                self.step()
            self.publish()
        return self

    def step(self) -> None:
        """One more entry of any kind that the rules allow just now."""
        kinds = [self.review] * 5 + [self.response, self.upgrade, self.redaction, self.booking_check, self.other]
        self.random.choice(kinds)()

    def publish(self) -> Published:
        batch, self._batch = self._batch, []
        return self.log.append_batch(batch, self.tick())

    def tick(self) -> str:
        self.now += timedelta(seconds=self.random.choice((0, 1, 3600, 86_400)))
        return format_time(self.now)

    def review(self, host: str | None = None, **members: Any) -> int:
        index = self.next_index
        level = members.get("level") or self.random.choice(
            ("guest_verified", "guest_verified", "host_attested", "unconfirmed")
        )
        day = self.random.randrange(1, 26)
        if "text" not in members:
            text = self.random.choice((None, "Quiet and clean.", "Très bien — 5★\n\u202eagain", "x" * 300))
            members["text"] = self.commit(index, text)
        review = {
            "review_id": "rev-" + b32encode(self.random.randbytes(16)).decode().rstrip("=").lower(),
            "host_did": host or self.random.choice(self.hosts),
            "listing_id": f"listing-{self.random.randrange(3)}",
            "check_in": f"2025-12-{day:02}",
            "check_out": f"2025-12-{day + self.random.randrange(1, 4):02}",
            "ratings": self.ratings(),
            "level": level,
            "evidence": self.evidence(self.random.choice(BOOKINGS[level])),
            "repeat": self.random.random() < 0.2,
            **members,
        }
        self._add("review", review)
        self._reviews[index] = {**review, "at": self._batch[-1].members["at"], "responded": False, "redacted": set()}
        return index

    def response(self) -> None:
        young = [
            index
            for index, review in self._reviews.items()
            if not review["responded"] and self.now - parse_time(review["at"]) < timedelta(days=29)
        ]
        if young:
            review = self._reviews[named := self.random.choice(young)]
            review["responded"], review["response"] = True, self.next_index
            text = self.commit(self.next_index, self.random.choice(("Thank you.", "We are sorry.")))
            self._add("response", {**self._about(named), "text": text, "statement": self.hash()})

    def upgrade(self) -> None:
        open_ = [index for index, review in self._reviews.items() if review["level"] == "unconfirmed"]
        if open_:
            named = self.random.choice(open_)
            self._reviews[named]["level"] = "guest_verified"
            # Who vouched for the guest stays as it was.
            vouched = {name: self._reviews[named]["evidence"][name] for name in ("issuer", "idv_level")}
            evidence = {**self.evidence("stay_receipt"), **vouched}
            self._add("upgrade", {**self._about(named), "level": "guest_verified", "evidence": evidence})

    def redaction(self) -> None:
        parts = [
            (index, part)
            for index, review in self._reviews.items()
            for part, there in (("text", review["text"] is not None), ("response", review["responded"]))
            if there and part not in review["redacted"]
        ]
        if parts:
            named, part = self.random.choice(parts)
            self._reviews[named]["redacted"].add(part)
            basis = self.random.choice(BASES)
            self._add("redaction", {**self._about(named), "part": part, "basis": basis, "decision": self.hash()})
            self.log.openings.pop(named if part == "text" else self._reviews[named]["response"], None)

    def booking_check(self) -> None:
        outcome = self.random.choice(OUTCOMES)
        self._add(
            "booking_check", {"host_did": self.random.choice(self.hosts), "outcome": outcome, "booking": self.hash()}
        )

    def other(self) -> None:
        """An entry that names no host."""
        self._add("policy", {"policy": self.hash()})

    def ratings(self) -> dict[str, float]:
        rated = [category for category in CATEGORIES if category != "location" or self.random.random() < 0.5]
        return {category: self.random.randrange(2, 11) / 2 for category in rated}

    def evidence(self, booking: str) -> dict[str, Any]:
        level = self.random.choice(("identity_verified", None))
        issuer = self.random.choice(ISSUERS)
        return {"booking": booking, "commitment": self.hash(), "idv_level": level, "issuer": issuer}

    def hash(self) -> str:
        return base64.encode(self.random.randbytes(32))

    def commit(self, index: int, text: str | None) -> str | None:
        if text is None:
            return None
        self.log.openings[index] = Opening(text, self.random.randbytes(32))
        return commitment(self.log.openings[index].salt, text.encode())

    @property
    def next_index(self) -> int:
        return len(self.log.entries) + len(self._batch)

    def _about(self, index: int) -> dict[str, Any]:
        review = self._reviews[index]
        return {"review": index, "review_id": review["review_id"], "host_did": review["host_did"]}

    def _add(self, type_: str, members: dict[str, Any]) -> None:
        self._batch.append(make_entry(type_, **members, at=self.tick()))
