"""Two hundred bookings at hosts of every kind, over TLS, and processes that ask them and are killed: every submission
is decided, and none twice."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import chain, repeat
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import monotonic, sleep
from typing import Any

import pytest

from audits.receipts import verify_receipt
from audits.verify import verify_answer
from ledger.canon import multikey
from ledger.canon.times import format_time, parse_time
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.reputation.answers import Query, reputation
from ledger.reviews import pending
from ledger.reviews.admission import Submission
from ledger.reviews.listings import add_listing
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted
from ledger.settings import Settings
from ledger.store.rows import run
from tests.crash.booking_child import SharedClock, Shift, decide
from tests.crash.booking_hosts import KINDS, Behaving
from tests.crash.child import READY
from tests.crash.harness import Child, examine
from tests.hosting import LISTING
from tests.identities import IDV, ISSUER, NOW, Speaker
from tests.network import Neighbourhood
from tests.reviewing import credential, encoded, review, take

HOSTS, BOOKINGS = 20, 10
GUESTS = [Speaker(seed) for seed in range(10, 10 + HOSTS * BOOKINGS)]
_WAITING = "SELECT count(*) FROM submission WHERE due_at IS NOT NULL"
_BUSY = "SELECT count(*) FROM submission WHERE due_at <= ? OR leased_until > ?"
_ALL_DUE = "SELECT max(due_at) FROM submission"


@dataclass(frozen=True)
class Sent:
    """A review that waits: of which host, as it was sent, and what its guest got."""

    site: Behaving
    body: Mapping[str, Any]
    waiting: Waiting


class Street:
    """A ledger, the hosts whose guests review them there, and the processes that decide on what waits."""

    def __init__(self, folder: Path, database_url: str, outside: Neighbourhood) -> None:
        self.settings = Settings.of(folder / "data", database_url)
        self.clock_file = folder / "clock"
        self.clock = SharedClock.at(self.clock_file, NOW)
        init_folder(self.settings, clock=self.clock)
        self.ledger = open_ledger(self.settings, clock=self.clock, development=outside.development)
        draft = trust(self.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
        assert draft is not None
        self.ledger.sequencer.append([draft])
        self.ledger.sequencer.start()
        self.desk = self.ledger.desk()
        self.outside = outside
        self.sites: list[Behaving] = []
        self.sent: list[Sent] = []
        self._children: list[Child] = []

    def add_host(self, kind: str) -> Behaving:
        key = multikey.encode(bytes(self.ledger.keys.statements.verify_key))
        site = Behaving(self.outside, key, self.clock, kind, len(self.sites))
        with self.ledger.store.write() as connection:
            add_listing(connection, site.speaker.did, LISTING, "Europe/London", "operator", site.endpoint)
        self.sites.append(site)
        return site

    def send(self, site: Behaving, guest: Speaker) -> None:
        """A booking, and a review of it without a receipt."""
        reference, days = f"B-{len(self.sent)}", {}
        if site.kind == "knows other dates":
            days = {"check_in": "2026-05-21"}
        if site.kind != "denies":
            site.book(guest, reference, **days)
        shown = credential(guest, now=NOW)
        body = review(guest, site.speaker, reference, now=NOW, booking_evidence=None, guest_credential=shown)
        waiting = take(self.desk, encoded(body))
        assert isinstance(waiting, Waiting), waiting
        self.sent.append(Sent(site, body, waiting))

    def open(self) -> None:
        for site in self.sites:
            site.down = None

    def staff(self, **how: Any) -> Child:
        """One more process, that works already."""
        child = Child(decide, Shift(self.settings, self.clock_file, self.outside.environment, **how))
        self._children.append(child)
        assert child.channel.recv_bytes() == READY
        return child

    def count(self, query: str, *values: Any) -> Any:
        with self.ledger.store.read() as connection:
            return run(connection, query, values)[0][0]

    def is_busy(self) -> bool:
        """Whether something is due, or somebody, maybe dead, works on it."""
        return bool(self.count(_BUSY, *[format_time(self.clock())] * 2))

    def settle(self) -> None:
        """Until nothing is left to do now."""
        end = monotonic() + 60
        while self.is_busy():
            assert monotonic() < end, "what is due is not done"
            sleep(0.05)

    def pass_time(self, amount: timedelta) -> None:
        self.clock.set(self.clock() + amount)

    def leap(self) -> bool:
        """To when all that wait are due; False when nothing waits any more."""
        due = self.count(_ALL_DUE)
        if due is not None:
            self.clock.set(max(self.clock(), parse_time(due)))
        return due is not None

    def wait_for_the_end(self) -> None:
        for _ in range(3 * len(pending.SCHEDULE)):
            self.settle()
            if not self.leap():
                return
        raise AssertionError("what waits is never decided")

    def close(self) -> None:
        for child in self._children:
            child.kill()
        self.ledger.close()

    def outcome(self, sent: Sent) -> Mapping[str, Any]:
        found = pending.look_up(self.desk, sent.waiting.id)
        assert not isinstance(found, Waiting), "it is not decided"
        return found

    def record(self, site: Behaving) -> Any:
        answer = reputation(
            self.ledger.reader, self.ledger.registries, site.speaker.did, Query(proof="full", limit=100)
        )
        verify_answer(answer, self.ledger.verifier, site.speaker.did, kind="full")
        return json.loads(answer)


@pytest.fixture
def street(tmp_path: Path, database_url: str, neighbourhood: Neighbourhood) -> Iterator[Street]:
    made = Street(tmp_path, database_url, neighbourhood)
    yield made
    made.close()


def test_every_submission_is_decided_once(street: Street) -> None:
    random, kinds = Random(7), chain(KINDS, repeat("prompt"))
    for number in range(HOSTS):
        site = street.add_host(next(kinds))
        for guest in GUESTS[number * BOOKINGS : (number + 1) * BOOKINGS]:
            street.send(site, guest)
    assert street.count(_WAITING) == len(street.sent) == 200
    street.open()
    # One dies by itself, when it has put some reviews into the log and has told nobody; the other goes on alone.
    # Of 200 it gets as many even where the other one has most of the machine.
    first, second = street.staff(die_at="signed", reviews=random.randrange(5, 15)), street.staff()
    assert street.leap()
    assert first.wait() == -SIGKILL
    # The dead one's work is free after two minutes, which is also when the other's is: both do it.
    street.pass_time(pending.LEASE)
    third = street.staff()
    street.settle()
    # The next is killed while it waits for hosts, of which some keep it waiting for seconds.
    assert street.leap()
    sleep(random.uniform(0.1, 1))
    assert street.is_busy()
    second.kill()
    assert second.wait() == -SIGKILL
    street.pass_time(pending.LEASE)
    fourth = street.staff()
    street.wait_for_the_end()
    for child in (third, fourth):
        child.channel.send_bytes(b"!")
        assert child.wait() == 0
    assert_decided(street)


@pytest.mark.parametrize("step", ["committed", "signed"])
def test_what_is_in_the_log_is_accepted_whatever_the_host_says_since(street: Street, step: str) -> None:
    """The worker dies when the review of a silent host is in the log and nobody was told; the host denies it then."""
    site = street.add_host("broken")
    street.send(site, GUESTS[0])
    street.open()
    dying = street.staff(die_at=step)
    for _ in pending.SCHEDULE[:-1]:
        assert street.leap()
        street.settle()
    assert street.leap()
    assert dying.wait() == -SIGKILL
    site.kind = "denies"
    site.bookings.clear()
    street.pass_time(pending.LEASE)
    street.staff()
    street.settle()
    assert street.outcome(street.sent[0])["status"] == "accepted"
    street.ledger.reader.refresh()
    record = street.record(site)
    assert [each["verification_level"] for each in record["review_history"]] == ["unconfirmed"]
    assert Counter(record["statistics"]["checks"]) == Counter(unanswered=1)


def assert_decided(street: Street) -> None:
    assert street.count("SELECT count(*) FROM submission WHERE lease IS NOT NULL OR sealed IS NULL") == 0
    assert street.count(_WAITING) == 0
    examine(street.ledger)
    entries = [json.loads(entry) for entry in street.ledger.reader.entries(0, street.ledger.reader.published.size)]
    places = set()
    for sent in street.sent:
        outcome, in_log = (
            street.outcome(sent),
            street.ledger.reader.known(Submission.of(street.desk, sent.body).replay_key),
        )
        expected, _ = KINDS[sent.site.kind]
        if outcome["status"] == "rejected":
            assert ((outcome["code"],), in_log) == (expected, None), sent.site.kind
            continue
        entry = entries[outcome["index"]]
        assert (entry["level"], entry["evidence"]["booking"]) == expected, sent.site.kind
        assert (entry["host_did"], outcome["index"]) == (sent.site.speaker.did, in_log)
        places.add(outcome["index"])
        receive_again(street, sent)
    assert places == {index for index, entry in enumerate(entries) if entry["type"] == "review"}
    for site in street.sites:
        assert_counted(street.record(site), site.kind)


def receive_again(street: Street, sent: Sent) -> None:
    """Whoever sends the same again gets the receipt, days later."""
    again = take(street.desk, encoded(sent.body))
    assert isinstance(again, Accepted)
    assert again.repeated
    verify_receipt(encoded(again.receipt), street.ledger.verifier, submission=encoded(sent.body))


def assert_counted(record: Any, kind: str) -> None:
    (level, *_), check = KINDS[kind]
    statistics = record["statistics"]
    reviews = Counter(each["verification_level"] for each in record["review_history"])
    assert reviews == ({level: BOOKINGS} if level in ("guest_verified", "unconfirmed") else {})
    checks = {outcome: count for outcome, count in (statistics["checks"] if statistics else {}).items() if count}
    assert checks == ({check: BOOKINGS} if check else {})
