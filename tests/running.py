"""A ledger that runs: in a temporary folder, on either engine, with a clock that tests set."""

from base64 import b32encode
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pytest

from audits.verify import verify_answer
from ledger.canon import base64
from ledger.canon.times import parse_time
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.log.drafts import Draft, make_draft
from ledger.log.fsck import Report, fsck
from ledger.log.mark_file import MarkFile
from ledger.log.members import BOOKINGS
from ledger.log.openings import Opening, commitment
from ledger.log.sequencer import Integrated
from ledger.net.development import NONE, Development
from ledger.reputation.answers import Query, reputation
from ledger.settings import Settings

HOST = "did:web:cottage.example"
OTHER = "did:web:harbour.example"


class SetClock:
    """Stands still until it is told to go on. `elapsed` is the time that has really passed: a `jump` is of the clock
    alone."""

    def __init__(self, now: str = "2026-06-01T12:00:00Z") -> None:
        self.now = parse_time(now)
        self._passed = timedelta()

    def __call__(self) -> datetime:
        return self.now

    def forward(self, **amount: float) -> None:
        self.now += timedelta(**amount)
        self._passed += timedelta(**amount)

    def jump(self, **amount: float) -> None:
        self.now += timedelta(**amount)

    def elapsed(self) -> float:
        return self._passed.total_seconds()


class Writer:
    """Drafts of everything, from a seeded random source."""

    def __init__(self, seed: int = 1) -> None:
        self.random = Random(seed)

    def review(
        self, host: str = HOST, level: str = "guest_verified", text: str | None = "Quiet.", **more: Any
    ) -> Draft:
        opening = None if text is None else Opening(text, self.random.randbytes(32))
        rated = ("overall", "accuracy", "cleanliness", "communication", "value")
        members = {
            "review_id": "rev-" + b32encode(self.random.randbytes(16)).decode().rstrip("=").lower(),
            "host_did": host,
            "listing_id": "rose-cottage",
            "check_in": "2026-05-01",
            "check_out": "2026-05-04",
            "ratings": {category: self.random.randrange(2, 11) / 2 for category in rated},
            "level": level,
            "evidence": self.evidence(BOOKINGS[level][0]),
            "repeat": False,
            "text": self._commitment(opening),
            **more,
        }
        return make_draft("review", members, opening=opening)

    def response(self, review: Integrated, text: str = "Thank you.") -> Draft:
        opening = Opening(text, self.random.randbytes(32))
        members = {**about(review), "text": self._commitment(opening), "statement": self.hash()}
        return make_draft("response", members, opening=opening)

    def upgrade(self, review: Integrated) -> Draft:
        evidence = self.evidence("stay_receipt")
        return make_draft("upgrade", {**about(review), "level": "guest_verified", "evidence": evidence})

    def redaction(self, review: Integrated, part: str = "text") -> Draft:
        return make_draft("redaction", {**about(review), "part": part, "basis": "gdpr_17", "decision": self.hash()})

    def check(self, host: str = HOST, outcome: str = "denied") -> Draft:
        return make_draft("booking_check", {"host_did": host, "outcome": outcome, "booking": self.hash()})

    def policy(self) -> Draft:
        return make_draft("policy", {"policy": self.hash()})

    def evidence(self, booking: str) -> dict[str, Any]:
        issuer = "https://idv.example/issuers/1"
        return {"booking": booking, "commitment": self.hash(), "idv_level": "identity_verified", "issuer": issuer}

    def hash(self) -> str:
        return base64.encode(self.random.randbytes(32))

    def _commitment(self, opening: Opening | None) -> str | None:
        return None if opening is None else commitment(opening.salt, opening.text.encode())


def about(review: Integrated) -> dict[str, Any]:
    members = review.entry.members
    return {"review_id": members["review_id"], "review": review.index, "host_did": members["host_did"]}


class Running:
    """An open ledger that can be closed and opened again. `development` is the world outside of it. Without a
    `base_url` it is a ledger on this machine alone, which trusts its clock."""

    def __init__(
        self, data: Path, database_url: str, development: Development = NONE, base_url: str | None = None
    ) -> None:
        self.clock = SetClock()
        self.development = development
        self.settings = Settings.of(data, database_url, base_url)
        init_folder(self.settings, clock=self.clock)
        self.ledger = self.open()

    def open(self, **options: Any) -> Ledger:
        clocks = {"clock": self.clock, "elapsed": self.clock.elapsed}
        self.ledger = open_ledger(self.settings, development=self.development, **{**clocks, **options})
        return self.ledger

    def reopen(self, **options: Any) -> Ledger:
        self.ledger.close()
        return self.open(**options)

    def add(self, *drafts: Draft) -> list[Integrated]:
        return self.ledger.sequencer.append(drafts)

    def answer(self, host: str = HOST, **query: Any) -> bytes:
        """A proved answer, which verifies."""
        answer = reputation(self.ledger.reader, self.ledger.registries, host, Query(**{"proof": "full", **query}))
        verify_answer(answer, self.ledger.verifier, host, text=query.get("text", "verified"))
        return answer

    def fsck(self) -> Report:
        with self.ledger.store.snapshot() as connection:
            mark = MarkFile(self.settings.mark).read()
            return fsck(connection, self.ledger.verifier, mark, lambda *_: None)


@pytest.fixture
def running(tmp_path: Path, database_url: str) -> Iterator[Running]:
    """A new ledger, on each engine; it must be clean when the test is over unless the test damaged it."""
    made = Running(tmp_path / "data", database_url)
    yield made
    made.ledger.close()


@pytest.fixture
def writer() -> Writer:
    return Writer()
