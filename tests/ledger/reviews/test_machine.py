"""Whatever guests, hosts and thieves do in whatever order: nobody reviews a booking twice, nobody occupies another's,
nothing acknowledged is lost, the record is the fold, and every answer and receipt verifies."""

import json
import shutil
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from audits.receipts import verify_receipt
from ledger.canon.times import parse_time
from ledger.errors import StaylogError
from ledger.reviews.receipts import Accepted
from tests.engines import PostgresServer
from tests.identities import THIEF, Speaker
from tests.reviewing import GUESTS, HOST, OTHER_HOST, Reviewing, credential, encoded, response, review, stay_receipt

HOSTS = {host.did: host for host in (HOST, OTHER_HOST)}
# Two of the guests are one person.
PERSONS = {GUESTS[0].did: "p-1", GUESTS[1].did: "p-1", GUESTS[2].did: "p-2", THIEF.did: "p-3"}
HONEST = st.sampled_from(GUESTS[:3])
PLACES = st.sampled_from(list(HOSTS.values()))
REFERENCES = st.sampled_from(["B-1", "B-2"])
Body = dict[str, Any]


class ReviewMachine(RuleBasedStateMachine):
    """`reviewed` has who reviewed which booking; the rest follows from it."""

    accepted, responses = Bundle("accepted"), Bundle("responses")
    new_url: Any

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="staylog-"))
        self.running = Reviewing(self.folder / "data", self.new_url(self.folder))
        self.reviewed: set[tuple[str, str, str]] = set()
        self.receipts: list[tuple[Body, dict[str, Any]]] = []
        self.conflicts = dict.fromkeys(HOSTS, 0)
        self.made = 0

    def teardown(self) -> None:
        assert self.running.fsck().findings == []
        for body, receipt in self.receipts:
            verify_receipt(encoded(receipt), self.running.ledger.verifier, submission=encoded(body))
        self.running.ledger.close()
        shutil.rmtree(self.folder)

    @rule(target=accepted, guest=HONEST, host=PLACES, reference=REFERENCES)
    def submit(self, guest: Speaker, host: Speaker, reference: str) -> Any:
        """A review that is right in itself: it is taken unless this person has reviewed the booking."""
        body = self.review(guest, host, reference)
        person, others = PERSONS[guest.did], {(who, ref) for who, where, ref in self.reviewed if where == host.did}
        if (person, reference) in others:
            self.refused(body, "already_reviewed")
            return body, None
        done = self.keep(body, self.running.submit(body))
        assert json.loads(done.receipt["entry"])["repeat"] == any(who == person for who, _ in others)
        self.conflicts[host.did] += any(ref == reference for _, ref in others)
        self.reviewed.add((person, host.did, reference))
        return body, done.receipt

    @rule(sent=accepted)
    def replay(self, sent: tuple[Body, Any]) -> None:
        body, receipt = sent
        if receipt is not None:
            again = self.running.submit(body)
            assert (again.repeated, again.receipt) == (True, receipt)

    @rule(guest=HONEST, host=PLACES, reference=REFERENCES)
    def steal(self, guest: Speaker, host: Speaker, reference: str) -> None:
        """With the guest's receipt, with the guest's credential, or with a receipt of one's own making."""
        given = stay_receipt(guest, host, reference)
        self.refused(self.review(THIEF, host, reference, booking_evidence=given), "booking_evidence_invalid")
        shown = credential(guest, PERSONS[guest.did], now=self.running.clock.now)
        self.refused(self.review(THIEF, host, reference, guest_credential=shown), "holder_mismatch")
        forged = THIEF.sign({name: value for name, value in given.items() if name != "proof"}, domain=None)
        expected = "booking_evidence_invalid"
        if (PERSONS[guest.did], host.did, reference) in self.reviewed:
            expected = "already_reviewed"
        self.refused(self.review(guest, host, reference, booking_evidence=forged), expected)

    @rule(target=responses, sent=accepted)
    def respond(self, sent: tuple[Body, Any]) -> Any:
        body, receipt = sent
        if receipt is None:
            return None
        now, self.made = self.running.clock.now, self.made + 1
        answer = response(receipt["review_id"], HOSTS[body["host_did"]], f"The {self.made}th.", now=now)
        late = now - parse_time(json.loads(receipt["entry"])["at"]) > timedelta(days=30)
        responded = any(each["review_id"] == receipt["review_id"] for each in self.answers())
        if not late and not responded:
            return answer, self.keep(answer, self.running.respond(answer)).receipt
        with pytest.raises(StaylogError) as refused:
            self.running.respond(answer)
        expected = [("already_responded", responded), ("response_window_closed", late)]
        assert refused.value.code in {code for code, wrong in expected if wrong}
        return None

    @rule(sent=consumes(responses))
    def replay_response(self, sent: Any) -> None:
        if sent is not None:
            again = self.running.respond(sent[0])
            assert (again.repeated, again.receipt) == (True, sent[1])

    @rule(days=st.sampled_from([0, 1, 15, 31]))
    def time_passes(self, days: int) -> None:
        self.running.clock.forward(days=days, seconds=1)

    @rule()
    def restart(self) -> None:
        self.running.reopen()

    @invariant()
    def answers_verify_and_count_what_was_acknowledged(self) -> None:
        for host in HOSTS:
            answer = json.loads(self.running.answer(host, limit=100))
            expected = {(person, ref) for person, where, ref in self.reviewed if where == host}
            assert answer["verified_reviews"] == answer["total_reviews"] == len(expected)
            checks = answer["statistics"]["checks"] if answer["statistics"] else {"conflict": 0}
            assert checks["conflict"] == self.conflicts[host]

    @invariant()
    def nothing_is_lost(self) -> None:
        stored = self.running.ledger.reader.entries(0, 10_000)
        for _, receipt in self.receipts:
            assert stored[receipt["index"]] == receipt["entry"].encode()

    def review(self, guest: Speaker, host: Speaker, reference: str, **changes: Any) -> Body:
        """Never the same twice: that would be a repetition, and no second review."""
        self.made += 1
        now, text = self.running.clock.now, f"The {self.made}th."
        shown = credential(guest, PERSONS[guest.did], now=now)
        return review(guest, host, reference, now=now, review_text=text, **{"guest_credential": shown, **changes})

    def keep(self, body: Body, done: Accepted) -> Accepted:
        assert not done.repeated
        self.receipts.append((body, done.receipt))
        return done

    def answers(self) -> list[dict[str, Any]]:
        return [receipt for body, receipt in self.receipts if body["type"] == "HostResponse"]

    def refused(self, body: Body, code: str) -> None:
        """And nothing is taken in by it."""
        before = self.running.ledger.reader.published
        with pytest.raises(StaylogError) as refused:
            self.running.submit(body)
        assert refused.value.code == code
        assert self.running.ledger.reader.refresh() == before


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_whatever_guests_and_hosts_do(engine: str, request: pytest.FixtureRequest) -> None:
    class Machine(ReviewMachine):
        @staticmethod
        def new_url(folder: Path) -> str:
            if engine == "sqlite":
                return f"sqlite:///{folder}/ledger.db"
            server: PostgresServer = request.getfixturevalue("postgres")
            return server.url("machine")

    run_state_machine_as_test(Machine, settings=settings(max_examples=12, stateful_step_count=20, deadline=None))
