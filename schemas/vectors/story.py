"""How the ledger behind the vectors is told: with a fixed key, numbered salts and a clock that is set by hand."""

from base64 import b32encode
from hashlib import sha256
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import jcs
from ledger.log.entries import Entry, make_entry, parse_entry
from ledger.log.members import CATEGORIES
from ledger.log.memory import MemoryLog
from ledger.log.note import ED25519, Verifier
from ledger.log.openings import Opening, commitment

ORIGIN = "stays.example/log"
SEED = sha256(b"staylog vectors: log key").digest()
LOG = Verifier(ORIGIN, ED25519, bytes(SigningKey(SEED).verify_key))
PASSPORT = "https://passport.example/issuers/guests"
POLICY = b'{"policy":"an invented admission policy"}'


class Story:
    """`states` gives the state of each committed text by log index, `submissions` what each review rests on."""

    def __init__(self) -> None:
        self.at = "2026-01-05T08:00:00Z"
        self.log = MemoryLog(ORIGIN, SigningKey(SEED), sha256(POLICY).digest(), self.at)
        self.states: dict[int, str] = {}
        self.submissions: dict[int, tuple[dict[str, Any], bytes]] = {}
        self._queue: list[Entry] = []
        self._salts = 0

    def publish(self, at: str) -> None:
        """Sign what has queued up, and go on at `at`."""
        self.log.append_batch(self._queue, self.at)
        self._queue.clear()
        self.at = at

    def add(self, type_: str, **members: Any) -> int:
        """Queue an entry; returns the index it will have."""
        self._queue.append(make_entry(type_, at=self.at, **members))
        return len(self.log.entries) + len(self._queue) - 1

    def artifact(self, data: bytes) -> None:
        self._queue.append(parse_entry(b"sha256:" + sha256(data).hexdigest().encode()))

    def review(
        self,
        host: str,
        stay: tuple[str, str, str],
        stars: tuple[float, ...],
        text: str | None = None,
        *,
        level: str = "guest_verified",
        booking: str = "stay_receipt",
        idv_level: str | None = "identity_verified",
        repeat: bool = False,
        served: bool = True,
    ) -> int:
        """A review of `stay` (listing, check-in, check-out); the stars are in the order of CATEGORIES."""
        listing_id, check_in, check_out = stay
        facts = {
            "host_did": host,
            "listing_id": listing_id,
            "check_in": check_in,
            "check_out": check_out,
            "ratings": dict(zip(CATEGORIES, stars, strict=False)),
        }
        number = len(self.submissions) + 1
        submission = {
            **facts,
            "type": "ReviewSubmission",
            "booking_reference": f"INVENTED-{number}",
            "review_text": text,
        }
        opening, salt = self._opening(text), self._salt()
        index = self.add(
            "review",
            **facts,
            review_id="rev-" + b32encode(sha256(b"stay %d" % number).digest()[:16]).decode().lower().rstrip("="),
            level=level,
            evidence=self._evidence(booking, submission, salt, idv_level),
            repeat=repeat,
            text=_committed(opening),
        )
        self.submissions[index] = submission, salt
        self._serve(index, opening, "open" if served else "unasked" if level == "unconfirmed" else "withheld")
        return index

    def respond(self, review: int, text: str) -> int:
        opening = self._opening(text)
        statement = jcs.dumps({"type": "HostResponse", "response_text": text})
        index = self.add(
            "response",
            **self._about(review),
            text=_committed(opening),
            statement=commitment(self._salt(), statement),
        )
        self._serve(index, opening, "open")
        return index

    def upgrade(self, review: int) -> None:
        evidence = self._evidence("stay_receipt", self.submissions[review][0], self._salt(), "identity_verified")
        self.add("upgrade", **self._about(review), level="guest_verified", evidence=evidence)

    def check(self, host: str, outcome: str) -> None:
        booking = jcs.dumps({"booking_reference": "INVENTED", "guest_did": "did:web:guest.example", "host_did": host})
        self.add("booking_check", host_did=host, outcome=outcome, booking=commitment(self._salt(), booking))

    def redact(self, review: int, part: str, basis: str, index: int) -> None:
        """Withdraw the text of entry `index`: the review itself or the response to it."""
        decision = commitment(self._salt(), b"an invented decision")
        self.add("redaction", **self._about(review), part=part, basis=basis, decision=decision)
        del self.log.openings[index]
        self.states[index] = "redacted"

    def _about(self, review: int) -> dict[str, Any]:
        members = self.log.entries[review].members
        return {"review_id": members["review_id"], "review": review, "host_did": members["host_did"]}

    def _evidence(self, booking: str, submission: Any, salt: bytes, idv_level: str | None) -> dict[str, Any]:
        return {
            "booking": booking,
            "issuer": None if idv_level is None else PASSPORT,
            "idv_level": idv_level,
            "commitment": commitment(salt, jcs.dumps({"submission": submission, "booking": None})),
        }

    def _salt(self) -> bytes:
        self._salts += 1
        return sha256(b"staylog vectors: salt %d" % self._salts).digest()

    def _opening(self, text: str | None) -> Opening | None:
        return None if text is None else Opening(text, self._salt())

    def _serve(self, index: int, opening: Opening | None, state: str) -> None:
        if opening is not None:
            self.states[index] = state
            if state == "open":
                self.log.openings[index] = opening


def _committed(opening: Opening | None) -> str | None:
    return None if opening is None else commitment(opening.salt, opening.text.encode())
