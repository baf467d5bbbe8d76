"""What happens in the privacy tests of bookings: ten guests book with five hosts, who give notice; the guests claim
their bookings, some review them, with private words; others wait for hosts that do not answer. Then it is decided, and
what has had its time is erased.

Guests differ in the length of what they are called, as guests do: whoever sees nothing but lengths shall not know them
by these.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from ledger.canon import base58, jcs, multikey
from ledger.reviews.listings import add_listing
from ledger.store.rows import run
from tests.api.site import Person, Site, published, serving
from tests.hosting import BOOKED, LISTING, HostSite, claim, notice
from tests.identities import IDV, RATINGS, Speaker
from tests.reviewing import DOMAIN, credential, review, stay_receipt
from tests.security.database_files import Engine, dump

GUESTS, HOSTS = 10, 5
TABLES = ("submission", "booking", "feedback")
# Of nobody else's reviews.
WAITING = {"overall": 1.5, "accuracy": 2.5, "cleanliness": 3, "communication": 1.5, "value": 2, "location": 4.5}


@dataclass(frozen=True)
class Guest:
    number: int
    speaker: Person = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "speaker", Person(f"confiding guest {self.number}"))

    def word(self, what: str) -> str:
        return sha256(f"{what} of {self.number}".encode()).hexdigest()[:24]

    @property
    def person(self) -> str:
        return f"ig-{self.word('person')}" + "x" * 9 * self.number


@dataclass(frozen=True)
class Rows:
    """What the database has of one guest at one host: the rows of claim, notice and submission, and when that is due."""

    guest: int
    host: int
    due_at: str
    claim: tuple[bytes, ...]
    notice: tuple[bytes, ...]
    waiting: tuple[bytes, ...]


@dataclass
class Story:
    """`places` by when: `waiting`, `decided`, `stopped`; each is files, rows, answers and logs by name."""

    engine: str
    places: dict[str, dict[str, bytes]] = field(default_factory=dict)
    secrets: dict[str, bytes] = field(default_factory=dict)
    # What becomes public when a review is accepted.
    confided: dict[str, bytes] = field(default_factory=dict)
    # The sealed values of all rows, before anything was decided.
    sealed: dict[str, bytes] = field(default_factory=dict)
    rows: list[Rows] = field(default_factory=list)
    rates: list[tuple[bytes, int]] = field(default_factory=list)
    left: dict[str, int] = field(default_factory=dict)

    def tell(self, name: str, body: dict[str, Any]) -> None:
        """That something was said, of which nothing must be found."""
        said = {"submission": jcs.dumps(body), "reference": body["booking_reference"].encode()}
        said["proof"] = base58.decode(body["proof"]["proofValue"][1:])
        if "guest_credential" in body:
            said["credential"] = jcs.dumps(body["guest_credential"])
            said["proof of the credential"] = body["guest_credential"]["proof"]["proofValue"].encode()
        if "private_feedback" in body:
            said["feedback"] = body["private_feedback"].encode()
        if "guest_binding" in body:
            said["binding"] = body["guest_binding"]["value"].encode()
        if "booking_evidence" in body:
            said["receipt"] = jcs.dumps(body["booking_evidence"])
        self.secrets |= {f"{what} of {name}": value for what, value in said.items()}


@contextmanager
def logging_to(file: Path) -> Iterator[None]:
    """Whatever any library logs."""
    handler, root = logging.FileHandler(file), logging.getLogger()
    handler.setFormatter(logging.Formatter(logging.BASIC_FORMAT))
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
        handler.close()


def play(engine: Engine, folder: Path) -> Story:
    story, log = Story(engine.name), folder / "log"
    guests = [Guest(number) for number in range(GUESTS)]
    with ExitStack() as stack:
        stack.enter_context(logging_to(log))
        site = stack.enter_context(serving(folder, engine.url))
        hosts = [_host(site, number) for number in range(HOSTS)]
        story.secrets |= {f"{what} of {guest.number}": value for guest in guests for what, value in _names(guest)}
        site.running.clock.now = BOOKED
        _book(site, story, guests, hosts)
        site.running.clock.now = BOOKED + timedelta(days=50)
        told = _review(site, story, guests, hosts)
        _wait(site, story, guests, hosts)
        story.rates = [
            (bytes(key), paid)
            for table in ("rate", "day_rate")
            for key, paid in engine.query(f"SELECT key, paid FROM {engine.physical(table)}")
        ]
        for table in TABLES:
            key = "idx" if table == "feedback" else "stay" if table == "booking" else "key"
            for row, sealed in engine.query(f"SELECT {key}, sealed FROM {table}"):
                story.sealed[f"{table} {len(story.sealed)} {row!r}"] = bytes(sealed)
        story.places["waiting"] = _look(site, engine, hosts, told, log)
        _decide(site, hosts, told)
        story.left = {table: engine.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES}
        story.places["decided"] = _look(site, engine, hosts, told, log)
        site.ledger.close()
    engine.restart()
    story.places["stopped"] = engine.files()
    return story


def _host(site: Site, number: int) -> HostSite:
    key = multikey.encode(bytes(site.ledger.keys.statements.verify_key))
    made = HostSite(site.outside, key, site.running.clock, f"house{number}.example", 100 + number)
    with site.ledger.store.write() as connection:
        add_listing(connection, made.speaker.did, LISTING, "Europe/London", "operator", made.endpoint)
    return made


def _names(guest: Guest) -> list[tuple[str, bytes]]:
    speaker = guest.speaker
    texts = [("DID", speaker.did), ("multikey", speaker.multikey), ("issuer_guest_id", guest.person)]
    texts.append(("person", jcs.dumps([IDV, guest.person]).decode()))
    return [*((what, text.encode()) for what, text in texts), ("public key", speaker.public)]


def _stays(guests: list[Guest], hosts: list[HostSite], seed: int) -> list[tuple[Guest, int, HostSite]]:
    stays = [(guest, place, host) for guest in guests for place, host in enumerate(hosts)]
    return Random(seed).sample(stays, len(stays))


def _book(site: Site, story: Story, guests: list[Guest], hosts: list[HostSite]) -> None:
    """Claims and notices, in any order."""
    random = Random(7)
    for guest, place, host in _stays(guests, hosts, 3):
        site.running.clock.forward(seconds=random.randrange(30, 300))
        now, reference = site.running.clock(), f"REF-{guest.word(f'stay at {place}')}"
        receipt = stay_receipt(guest.speaker, host.speaker, reference, now=now + timedelta(days=50))
        said = [
            notice(host.speaker, guest.speaker, reference, now=now, nonce=guest.word(f"nonce at {place}")),
            claim(
                host.speaker,
                guest.speaker,
                reference,
                now=now,
                booking_evidence=receipt,
                guest_credential=credential(guest.speaker, guest.person, now=BOOKED),
            ),
        ]
        for body in random.sample(said, 2):
            answer = site.post("/v1/bookings", body)
            assert answer.status_code == 201, answer.text
            story.tell(f"{body['type']} of {guest.number} at {place}", body)


def _written(site: Site, guest: Guest, host: Speaker, stay: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "guest_credential": credential(guest.speaker, guest.person, now=BOOKED + timedelta(days=50)),
        "review_text": f"Damp and loud, {guest.word(f'text {stay}')}.",
        "private_feedback": f"Between us: {guest.word(f'feedback {stay}')}",
        "booking_evidence": None,
    }
    reference = f"REF-{guest.word(stay)}"
    return review(guest.speaker, host, reference, now=site.running.clock(), **{**usual, **changes})


def _review(site: Site, story: Story, guests: list[Guest], hosts: list[HostSite]) -> list[str]:
    """Some that rest on a claim on file, with private words, which are sealed for the host. Their ids."""
    made = []
    for guest in guests[:3]:
        body = _written(site, guest, hosts[0].speaker, "stay at 0", ratings=dict(RATINGS))
        answer = site.submit(body)
        assert (answer.status_code, answer.json()["private_feedback"]) == (201, "sealed"), answer.text
        story.tell(f"review of {guest.number}", body)
        made.append(answer.json()["review_id"])
    return made


def _wait(site: Site, story: Story, guests: list[Guest], hosts: list[HostSite]) -> None:
    """A review of every guest at every host, which waits: three a day for each."""
    random = Random(8)
    keys: dict[tuple[int, int], str] = {}
    for host in hosts:
        host.down = 503
    order = _stays(guests, hosts, 4)
    for some in ([each for each in order if each[1] < 3], [each for each in order if each[1] >= 3]):
        for guest, place, host in some:
            site.running.clock.forward(seconds=random.randrange(30, 120))
            body = _written(site, guest, host.speaker, f"waits at {place}", ratings=dict(WAITING))
            answer = site.submit(body)
            assert answer.status_code == 202, answer.text
            keys[guest.number, place] = answer.json()["submission_id"]
            story.tell(f"submission of {guest.number} at {place}", body)
            story.confided[f"text of {guest.number} at {place}"] = body["review_text"].encode()
            story.confided["ratings"] = jcs.dumps(body["ratings"])
        site.running.clock.forward(hours=25)
    story.rows = [_rows(site, guest, place, host, keys) for guest, place, host in _stays(guests, hosts, 5)]


def _rows(site: Site, guest: Guest, place: int, host: HostSite, ids: dict[tuple[int, int], str]) -> Rows:
    """By the ledger's own keys: an attacker who is told which row is which can only do better."""
    desk, reference = site.ledger.desk(DOMAIN), f"REF-{guest.word(f'stay at {place}')}"
    stay = desk.key("booking-of", host.speaker.did, reference)
    who = {"claim": ("claim", IDV, guest.person), "notice": ("notice",)}
    find = "SELECT stay, speaker, sealed FROM booking WHERE stay = :stay AND speaker = :speaker"
    kept = {}
    with site.ledger.store.read() as connection:
        for kind, parts in who.items():
            speaker = desk.key("booking-by", stay, *parts)
            [row] = run(connection, find.replace(":stay", "?").replace(":speaker", "?"), (stay, speaker))
            kept[kind] = tuple(bytes(value) for value in row)
        key = desk.key("submission-id", ids[guest.number, place])
        wanted = "SELECT due_at, key, replay, slot, sealed FROM submission WHERE key = ?"
        [(due_at, *values)] = run(connection, wanted, (key,))
    return Rows(guest.number, place, due_at, kept["claim"], kept["notice"], tuple(bytes(value) for value in values))


def _decide(site: Site, hosts: list[HostSite], told: list[str]) -> None:
    """The hosts answer that they know nobody, the private words are fetched, and 90 days after check-out are over."""
    for host in hosts:
        host.down = None
    worker = site.ledger.worker(DOMAIN)
    for _ in range(4):
        site.running.clock.forward(hours=13)
        asyncio.run(worker.work())
    now = site.running.clock()
    wanted = {"type": "FeedbackRequest", "host_did": hosts[0].speaker.did, "acknowledge": told}
    answer = site.post("/v1/feedback", hosts[0].speaker.sign(wanted, domain=DOMAIN, now=now))
    assert answer.status_code == 200, answer.text
    assert answer.json()["items"] == []
    site.running.clock.forward(days=80)
    worker.tidy()
    worker.scrub(thoroughly=True)


def _look(site: Site, engine: Engine, hosts: list[HostSite], told: list[str], log: Path) -> dict[str, bytes]:
    shown = published(site.get, [host.speaker.did for host in hosts], told)
    return {
        **{f"file {name}": data for name, data in engine.files().items()},
        **{f"rows of {table}": dump(engine, table) for table in engine.tables()},
        **{f"answer {path}": data for path, data in shown.items()},
        "log": log.read_bytes(),
    }
