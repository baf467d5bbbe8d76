"""Guests who have something to hide, the service that they trust with it, and what is left of what they said."""

import json
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from ipaddress import IPv6Address
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from ledger.canon import proofs
from ledger.canon.times import format_time, parse_time
from ledger.identity.issuing import issue
from ledger.keys import ServiceKeys
from tests.api.site import Person
from tests.identities import IDV, ISSUER, NOW, RATINGS, Speaker
from tests.reviewing import DOMAIN, encoded, review, stay_receipt
from tests.security.pairing import Database
from tests.waiting import until

SCRIPT = Path(__file__).with_name("private_service.py")
GUESTS, HOSTS = 10, 5
OTHER_ISSUER = Speaker(41)


@dataclass(frozen=True)
class Guest:
    """Somebody whose every value is long enough to be told from noise."""

    name: str
    speaker: Person = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "speaker", Person(f"guest {self.name}"))

    def word(self, what: str) -> str:
        return sha256(f"{what} of {self.name}".encode()).hexdigest()[:24]

    @property
    def person(self) -> str:
        return f"ig-{self.word('person')}"

    @property
    def address(self) -> str:
        number = int(self.word("address")[:2], 16)
        return f"198.51.100.{number}" if number % 2 else str(IPv6Address(f"2001:db8:{number:x}:7:9::{number + 1:x}"))

    def credential(self, *, issuer: Speaker = ISSUER, person: str | None = None) -> dict[str, Any]:
        claims = {"id": self.speaker.did, "idv_level": "identity_verified", "idv_method": "passport"}
        return issue(
            "guest",
            {**claims, "issuer_guest_id": person or self.person},
            id_=f"{IDV}/credentials/{self.word('credential')}",
            issuer=issuer.did,
            method=issuer.method,
            key=issuer.key,
            valid_from=NOW - timedelta(days=10),
            valid_until=NOW + timedelta(days=70),
            canonize=lambda *_: [],
            suites=(proofs.EDDSA_JCS,),
        )


@dataclass(frozen=True)
class Told:
    """A review that was sent, by whom, about whom, and the receipt."""

    guest: Guest
    host: Person
    body: dict[str, Any]
    receipt: dict[str, Any]

    @property
    def index(self) -> int:
        return int(self.receipt["index"])


class Service:
    """The service in its process; `now` is what it takes for the time."""

    def __init__(self, folder: Path, database_url: str, stack: ExitStack) -> None:
        self.data = folder / "data"
        self.logs = {name: folder / name for name in ("log", "stdout", "stderr")}
        self._clock = folder / "clock"
        self._reads = count()
        self.now = NOW
        given = {"data": str(self.data), "database": database_url, "base_url": DOMAIN, "seed": 9}
        given |= {"log": str(self.logs["log"]), "clock": str(self._clock)}
        issuers = {IDV: [ISSUER.multikey], OTHER_ISSUER.did: []}
        with self.logs["stdout"].open("wb") as out, self.logs["stderr"].open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, str(SCRIPT), json.dumps({**given, "issuers": issuers})], stdout=out, stderr=err
            )
        stack.callback(self.stop)
        until(lambda: self.process.poll() is not None or b"listens on" in self.logs["stdout"].read_bytes(), 30)
        words = self.logs["stdout"].read_text().split()
        assert words, self.logs["stderr"].read_text()
        self.client = stack.enter_context(httpx.Client(base_url=words[-1], trust_env=False, timeout=30))

    @property
    def now(self) -> datetime:
        return parse_time(self._clock.read_text())

    @now.setter
    def now(self, moment: datetime) -> None:
        new = self._clock.with_suffix(".new")
        new.write_text(format_time(moment))
        new.replace(self._clock)

    def post(self, path: str, body: Any, guest: Guest | None) -> httpx.Response:
        headers = {"content-type": "application/json"} | ({"x-forwarded-for": guest.address} if guest else {})
        data = body if isinstance(body, bytes) else encoded(body)
        return self._ask("POST", path, content=data, headers=headers)

    def get(self, path: str) -> httpx.Response:
        """By readers of whom none reads too much: the clock stands."""
        return self._ask("GET", path, headers={"x-forwarded-for": f"192.0.2.{next(self._reads) // 100}"})

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Again, where a database has just been started and old connections to it are lost."""
        for _ in range(20):
            answer = self.client.request(method, path, **options)
            if answer.status_code != 503:
                break
        return answer

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)


@dataclass(repr=False)
class Scene:
    """What happened, and what is left of it."""

    engine: str
    keys: ServiceKeys
    # The 50 reviews of the ten, in the order of the log, and those of others that followed.
    reviews: list[Told]
    later: dict[str, Told]
    bodies: list[dict[str, Any]]
    # By place: files while it runs and after it has stopped, rows, answers, logs.
    files: dict[str, bytes] = field(default_factory=dict)
    rows: dict[str, bytes] = field(default_factory=dict)
    answers: dict[str, bytes] = field(default_factory=dict)
    logs: dict[str, bytes] = field(default_factory=dict)
    # The files after a guest's DID was put into a table.
    planted: dict[str, bytes] = field(default_factory=dict)
    database: Database = field(default_factory=lambda: Database((), ()))
    known: dict[int, list[bytes]] = field(default_factory=dict)
    salts: dict[int, list[bytes]] = field(default_factory=dict)
    # The keys of the limiter's rows in the order in which old pages and tuples show that they were changed, as far as
    # the end of the 50 reviews.
    changes: list[bytes] = field(default_factory=list)

    @property
    def guests(self) -> list[Guest]:
        return list(dict.fromkeys(told.guest for told in (*self.reviews, *self.later.values())))

    @property
    def places(self) -> dict[str, bytes]:
        return {**self.files, **self.rows, **self.answers, **self.logs}


def tell(service: Service, guest: Guest, host: Person, stay: str, **changes: Any) -> Told:
    """A review that is accepted."""
    body = written(service, guest, host, stay, **changes)
    answer = service.post("/v1/reviews", body, guest)
    assert answer.status_code == 201, answer.text
    return Told(guest, host, body, answer.json())


def written(service: Service, guest: Guest, host: Person, stay: str, **changes: Any) -> dict[str, Any]:
    reference = f"REF-{guest.word(stay)}"
    receipt = stay_receipt(guest.speaker, host, reference, nonce=guest.word(f"nonce {stay}"))
    told = {
        "guest_credential": guest.credential(),
        "review_text": f"Quiet and dry, {guest.word(f'text {stay}')}.",
        "private_feedback": f"Between us: {guest.word(f'feedback {stay}')}",
        "ratings": dict(RATINGS),
        "booking_evidence": receipt,
    }
    return review(guest.speaker, host, reference, now=service.now, **{**told, **changes})
