"""Whatever guests, hosts, thieves and clocks do in whatever order: nobody reviews a booking twice, nobody occupies
another's, what waits is decided, nothing acknowledged is lost, no level falls, the record is the fold, and every answer
and receipt verifies."""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from audits.receipts import verify_receipt
from ledger.canon.times import parse_time
from ledger.errors import StaylogError
from ledger.reviews import pending
from ledger.reviews.claims import Claimed
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted
from ledger.reviews.redaction import redaction_draft, withdraw
from ledger.store.rows import run
from tests.engines import PostgresServer
from tests.hosting import Hosted, HostSite, claim, evidence, notice
from tests.identities import NOW, THIEF, Speaker
from tests.ledger.reviews.booking_model import DIDS, NAMES, PERSONS, STAYS, Body, Model, Reviewed, Sent
from tests.network import Neighbourhood
from tests.reviewing import GUESTS, HOST, Reviewing, credential, encoded, response, review, stay_receipt, take

HONEST = st.sampled_from(GUESTS[:3])
PLACES, SITES = st.sampled_from(DIDS), st.sampled_from(DIDS[1:])
REFERENCES = st.sampled_from(list(STAYS))
WHICH = st.integers(0, 5)
AGES = timedelta(days=3650)


class ReviewMachine(RuleBasedStateMachine):
    """What is done to a ledger is foretold by the model, step by step."""

    new_url: Any
    outside: Neighbourhood

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="staylog-"))
        self.running = Reviewing(self.folder / "data", self.new_url(self.folder), self.outside.development)
        self.hosted = Hosted(self.running, self.outside)
        self.sites: dict[str, HostSite] = {f"did:web:{name}": self.hosted.add_host(name) for name in NAMES}
        # One knows its first guest, the other is silent at first.
        for reference, stay in STAYS.items():
            self.sites[DIDS[1]].book(GUESTS[0], reference, **stay)
        self.sites[DIDS[2]].down = 503
        self.speakers = {HOST.did: HOST, **{did: site.speaker for did, site in self.sites.items()}}
        self.model = Model(self.running.clock, self.sites)
        self.made = 0
        self.has_jumped = False

    @property
    def now(self) -> datetime:
        return self.running.clock()

    def teardown(self) -> None:
        """From wherever the story ends, what waits is decided within as many questions as the schedule has."""
        for _ in pending.SCHEDULE:
            self.running.clock.forward(hours=12)
            self.work()
        assert (self.model.waiting, self.model.claiming) == ({}, {})
        for _ in self.model.reviewed:
            # Whoever has a receipt of a review that nobody confirmed hands it in.
            self.supplement(0, None)
        self.answers_verify_and_count_what_was_acknowledged()
        assert self.running.fsck().findings == []
        for body, receipt in self.model.receipts:
            verify_receipt(encoded(receipt), self.running.ledger.verifier, submission=encoded(body))
        self.running.ledger.close()
        shutil.rmtree(self.folder)

    # What guests do

    @rule(guest=HONEST, host=PLACES, reference=REFERENCES)
    def review_with_a_receipt(self, guest: Speaker, host: str, reference: str) -> None:
        self.submit(guest, host, reference, shown=True)

    @rule(guest=HONEST, host=SITES, reference=REFERENCES)
    def have_the_host_asked(self, guest: Speaker, host: str, reference: str) -> None:
        self.submit(guest, host, reference, shown=False)

    @rule(guest=HONEST, host=PLACES, reference=REFERENCES)
    def review_without_a_receipt(self, guest: Speaker, host: str, reference: str) -> None:
        self.submit(guest, host, reference, shown=False)

    def submit(self, guest: Speaker, host: str, reference: str, *, shown: bool) -> None:
        """A review that is right in itself, with a receipt or without: what becomes of it is what the model says."""
        booking = PERSONS[guest.did], host, reference
        if self.has_jumped and self.model.has_asked_enough(booking[0]):
            # What was counted when the clock was elsewhere may be forgotten, or not.
            return
        without = {} if shown else {"booking_evidence": None}
        if self.model.calendar(host, reference) == "stay_not_over":
            self.refused(self.review(guest, host, reference, **without), "stay_not_over")
            self.running.clock.now = datetime.fromisoformat(STAYS[reference]["check_out"] + "T15:00:00Z") + timedelta(
                days=1
            )
        body = self.review(guest, host, reference, **without)
        verdict, what = self.model.foretell(guest, booking, shown=shown)
        if verdict == "refused":
            self.refused(body, what)
            self.model.tell_refusal(guest, booking, what)
            return
        taken = take(self.running.desk, encoded(body))
        if verdict == "unknown":
            assert isinstance(taken, Waiting)
            self.model.waiting[booking[:2]] = Sent(body, guest, booking, taken, len(self.sites[host].asked))
        else:
            assert isinstance(taken, Accepted)
            assert not taken.repeated
            self.model.enter(body, guest, booking, taken.receipt, "guest_verified", what)

    def replay(self) -> None:
        """The same again is no second review: whoever sends it gets the first receipt, of the text as far as it goes."""
        for sent in self.model.waiting.values():
            if not self.model.calendar(*sent.booking[1:]):
                again = take(self.running.desk, encoded(sent.body))
                assert isinstance(again, Waiting)
                assert (again.repeated, again.id) == (True, sent.waiting.id)
        for each in self.model.reviewed.values():
            if not self.model.calendar(*each.booking[1:]):
                receipt = each.receipt
                if "text" in each.redacted:
                    receipt = {**receipt, "openings": {**receipt["openings"], "text": None}}
                assert self.running.submit(each.body) == Accepted(receipt, repeated=True)
            if each.response is not None and "response" not in each.redacted:
                assert self.running.respond(each.response[0]) == Accepted(each.response[1], repeated=True)

    @rule(guest=HONEST, host=PLACES)
    def steal(self, guest: Speaker, host: str) -> None:
        """With the guest's receipt, with the guest's credential, or with a receipt of one's own making."""
        if self.model.calendar(host, "B-1"):
            return
        given = stay_receipt(guest, self.speakers[host])
        self.refused(self.review(THIEF, host, "B-1", booking_evidence=given), "booking_evidence_invalid")
        shown = credential(guest, PERSONS[guest.did], now=self.now)
        self.refused(self.review(THIEF, host, "B-1", guest_credential=shown), "holder_mismatch")
        forged = THIEF.sign({name: value for name, value in given.items() if name != "proof"}, domain=None)
        reviewed = (PERSONS[guest.did], host, "B-1") in self.model.reviewed
        expected = "already_reviewed" if reviewed else "booking_evidence_invalid"
        self.refused(self.review(guest, host, "B-1", booking_evidence=forged), expected)

    @rule(guest=HONEST, host=PLACES, shown=st.booleans())
    def claim(self, guest: Speaker, host: str, shown: bool) -> None:
        """The next booking to come, while nobody knows how it will be."""
        reference = self.model.next_stay(host)
        if reference is None:
            return
        booking, given = (PERSONS[guest.did], host, reference), {}
        if shown:
            given = {"booking_evidence": stay_receipt(guest, self.speakers[host], reference, **STAYS[reference])}
        stated = {"guest_credential": credential(guest, booking[0], now=self.now), **STAYS[reference], **given}
        body = claim(self.speakers[host], guest, reference, now=self.next_moment(), **stated)
        verdict, what = self.model.verdict(guest, booking, shown=shown, on_file=False)
        if verdict == "unknown" and booking[:2] in self.model.claiming:
            verdict, what = "refused", "quota_exceeded"
        if verdict == "shown" and self.model.is_outdated(booking, body):
            verdict, what = "refused", "notice_outdated"
        if verdict == "refused":
            with pytest.raises(StaylogError) as refused:
                self.hosted.book(body)
            assert refused.value.code == what
            return
        taken = self.hosted.book(body)
        if verdict == "unknown":
            assert isinstance(taken, Waiting)
            self.model.claiming[booking[:2]] = Sent(body, guest, booking, taken, 0)
        else:
            assert isinstance(taken, Claimed)
            self.model.claims[booking] = body

    @rule(which=WHICH, other=st.none() | HONEST)
    def supplement(self, which: int, other: Speaker | None) -> None:
        """The receipt that was missing, or was not; or somebody else's."""
        sent = self.pick(which, sorted(self.model.reviewed.values(), key=lambda each: each.level == "guest_verified"))
        if sent is None:
            return
        guest, (_, host, reference) = other or sent.guest, sent.booking
        given = stay_receipt(guest, self.speakers[host], reference, **STAYS[reference])
        body = evidence(sent.review_id, given, guest, now=self.now)
        wrong = [
            ("already_verified", sent.level != "unconfirmed"),
            ("holder_mismatch", guest is not sent.guest),
            ("booking_cancelled", self.model.is_cancelled(guest, host, reference)),
        ]
        for code in [code for code, is_wrong in wrong if is_wrong][:1]:
            with pytest.raises(StaylogError) as refused:
                self.hosted.supplement(body)
            assert refused.value.code == code
            return
        done = self.hosted.supplement(body)
        self.model.receipts.append((body, done.receipt))
        sent.level, sent.kind = "guest_verified", "stay_receipt"
        self.model.count_shown(sent)

    # What hosts do

    @rule(host=SITES, reference=REFERENCES, guest=st.none() | HONEST)
    def book(self, host: str, reference: str, guest: Speaker | None) -> None:
        """From now on a host knows a booking as this guest's, or does not know it."""
        self.sites[host].bookings.pop(reference, None)
        if guest is not None:
            self.sites[host].book(guest, reference, **STAYS[reference])

    @rule(host=SITES, down=st.sampled_from([None, None, 200, 302, 500, 503]))
    def change_mood(self, host: str, down: int | None) -> None:
        """Silent, with nothing that counts as an answer, or back."""
        self.sites[host].down = down

    @rule(host=PLACES, guest=HONEST, status=st.sampled_from(["confirmed", "confirmed", "cancelled"]))
    def give_notice(self, host: str, guest: Speaker, status: str) -> None:
        reference = self.model.next_stay(host)
        if reference is None:
            return
        self.next_moment()
        nonce = f"nonce-of-a-notice-{self.made}"
        body = notice(self.speakers[host], guest, reference, status, now=self.now, nonce=nonce, **STAYS[reference])
        known = self.model.notices.get((host, reference))
        if known is not None and self.now <= known[2]:
            with pytest.raises(StaylogError) as refused:
                self.hosted.book(body)
            assert refused.value.code == "notice_outdated"
            return
        self.hosted.book(body)
        self.model.notices[host, reference] = guest.did, status, self.now

    @rule(which=WHICH)
    def respond(self, which: int) -> None:
        sent = self.pick(which, list(self.model.reviewed.values()))
        if sent is None:
            return
        self.made += 1
        body = response(sent.review_id, self.speakers[sent.booking[1]], f"The {self.made}th.", now=self.now)
        # Times never fall: after a jump of the clock an entry may have a time that is to come.
        at = max(self.now, parse_time(self.running.ledger.reader.refresh().at))
        late = at - parse_time(sent.at) > timedelta(days=30)
        if not late and sent.response is None:
            sent.response = body, self.running.respond(body).receipt
            self.model.receipts.append(sent.response)
            return
        with pytest.raises(StaylogError) as refused:
            self.running.respond(body)
        expected = [("already_responded", sent.response is not None), ("response_window_closed", late)]
        assert refused.value.code in {code for code, wrong in expected if wrong}

    # What else happens

    @rule(which=WHICH, part=st.sampled_from(["text", "response"]))
    def redact(self, which: int, part: str) -> None:
        sent = self.pick(which, list(self.model.reviewed.values()))
        if sent is None:
            return
        arguments = (self.running.ledger.reader, sent.review_id, part, "gdpr_17", b"It is decided.", bytes(32))
        if part in sent.redacted or part == "response" and sent.response is None:
            with pytest.raises(StaylogError) as refused:
                redaction_draft(*arguments)
            assert refused.value.code == ("already_redacted" if part in sent.redacted else "nothing_to_redact")
            return
        withdraw(self.running.ledger.sequencer, redaction_draft(*arguments))
        sent.redacted |= {part}

    @rule(days=st.sampled_from([0, 1, 2, 5, 31]))
    def time_passes(self, days: int) -> None:
        self.running.clock.forward(days=days, seconds=1)

    @rule(minutes=st.sampled_from([1, 30, 720]), times=st.sampled_from([1, 3, 6]))
    def time_is_worked_through(self, minutes: int, times: int) -> None:
        for _ in range(times):
            self.running.clock.forward(minutes=minutes)
            self.work()

    @rule(
        minutes=st.lists(st.sampled_from([0, 1, 720]), max_size=3), stays=st.sampled_from([False, False, False, True])
    )
    def the_clock_jumps(self, minutes: list[int], stays: bool) -> None:
        """Ten years ahead, or back if it was ahead; and after some work, unless it stays there, to where it was."""
        way = -AGES if self.now > NOW + AGES / 2 else AGES
        self.running.clock.now += way
        self.has_jumped = True
        for each in minutes:
            self.running.clock.forward(minutes=each)
            self.work()
        if not stays:
            self.running.clock.now -= way

    @rule()
    def restart(self) -> None:
        """Nobody notices: what waited waits, and whoever sends the same again gets the same."""
        self.running.reopen()
        self.replay()

    def work(self) -> None:
        """The worker's decisions are what the model says of this moment."""
        self.hosted.work()
        for sent in list(self.model.waiting.values()):
            outcome = pending.look_up(self.running.desk, sent.waiting.id)
            if not isinstance(outcome, Waiting):
                del self.model.waiting[sent.booking[:2]]
                self.decide_review(sent, outcome)
        for sent in list(self.model.claiming.values()):
            outcome = pending.look_up(self.running.desk, sent.waiting.id)
            if not isinstance(outcome, Waiting):
                del self.model.claiming[sent.booking[:2]]
                self.decide_claim(sent, outcome)

    def decide_review(self, sent: Sent, outcome: Mapping[str, Any]) -> None:
        verdict, what = self.model.verdict(sent.guest, sent.booking, shown=False)
        if sent.booking in self.model.reviewed:
            verdict, what = "refused", "already_reviewed"
        if verdict == "refused":
            assert (outcome["status"], outcome["code"]) == ("rejected", what)
            self.model.tell_refusal(sent.guest, sent.booking, what)
            return
        assert outcome["status"] == "accepted"
        level = "guest_verified" if verdict == "shown" else "unconfirmed"
        if verdict == "unknown":
            # Asked often enough, and for long enough, or as often as there is.
            asked = self.sites[sent.booking[1]].asked[sent.asked_before :].count(sent.booking[2])
            assert asked + 1 >= 5
            assert self.now >= parse_time(sent.waiting.decide_by) or asked >= len(pending.SCHEDULE)
        # The guest sends the same again to have the receipt, on a day on which that can be done.
        today, self.running.clock.now = self.now, NOW + timedelta(days=30)
        again = self.running.submit(sent.body)
        self.running.clock.now = today
        assert (again.repeated, again.receipt["index"]) == (True, outcome["index"])
        self.model.enter(sent.body, sent.guest, sent.booking, again.receipt, level, what)
        if verdict == "unknown":
            self.model.tell_once(sent.booking, "unanswered")

    def decide_claim(self, sent: Sent, outcome: Mapping[str, Any]) -> None:
        verdict, what = self.model.verdict(sent.guest, sent.booking, shown=False, on_file=False)
        if not self.model.is_before(*sent.booking[1:]) or verdict == "unknown":
            verdict, what = "refused", "booking_unverifiable"
        elif verdict == "shown" and self.model.is_outdated(sent.booking, sent.body):
            verdict, what = "refused", "notice_outdated"
        if verdict == "refused":
            assert (outcome["status"], outcome["code"]) == ("rejected", what)
            return
        assert outcome["status"] == "accepted"
        self.model.claims[sent.booking] = sent.body

    # What always holds

    @invariant()
    def answers_verify_and_count_what_was_acknowledged(self) -> None:
        for host in DIDS:
            answer = json.loads(self.running.answer(host, limit=100, text="all"))
            here = {each.review_id: each for (_, where, _), each in self.model.reviewed.items() if where == host}
            levels = Counter(each.level for each in here.values())
            listed = {each["review_id"]: each for each in answer["review_history"]}
            assert {id_: each["verification_level"] for id_, each in listed.items()} == {
                id_: each.level for id_, each in here.items()
            }
            assert {id_: each["evidence"]["booking"] for id_, each in listed.items()} == {
                id_: each.kind for id_, each in here.items()
            }
            assert (answer["total_reviews"], answer["verified_reviews"]) == (len(here), levels["guest_verified"])
            if answer["statistics"] is None:
                assert (len(here), self.model.checks[host].total()) == (0, 0)
                continue
            assert Counter(answer["statistics"]["reviews"]) == levels
            assert Counter(answer["statistics"]["checks"]) == self.model.checks[host]
            assert answer["statistics"]["responses"] == sum(each.response is not None for each in here.values())
            assert answer["statistics"]["redactions"] == sum(len(each.redacted) for each in here.values())

    @invariant()
    def nothing_is_lost(self) -> None:
        stored = self.running.ledger.reader.entries(0, 10_000)
        for _, receipt in self.model.receipts:
            assert stored[receipt["index"]] == receipt["entry"].encode()

    @invariant()
    def what_waits_is_there_and_sealed(self) -> None:
        """One of a person and host at a time, of reviews and of claims."""
        with self.running.ledger.store.read() as connection:
            rows = run(connection, "SELECT sealed FROM submission WHERE due_at IS NOT NULL")
        assert len(rows) == len(self.model.waiting) + len(self.model.claiming)
        words = [b"booking_reference", b"B-1", *(guest.did.encode() for guest in GUESTS), *map(str.encode, DIDS)]
        assert not any(word in bytes(sealed) for (sealed,) in rows for word in words if len(word) > 3)

    # How it is said

    def pick(self, which: int, among: list[Reviewed]) -> Reviewed | None:
        return among[which % len(among)] if among else None

    def next_moment(self) -> datetime:
        """No two statements about a booking are of the same second."""
        self.made += 1
        self.running.clock.forward(seconds=1)
        return self.now

    def review(self, guest: Speaker, host: str, reference: str, **changes: Any) -> Body:
        """Never the same twice: that would be a repetition, and no second review."""
        self.made += 1
        given = {
            "review_text": f"The {self.made}th.",
            "guest_credential": credential(guest, PERSONS[guest.did], now=self.now),
            "booking_evidence": stay_receipt(guest, self.speakers[host], reference, **STAYS[reference]),
            **STAYS[reference],
            **changes,
        }
        return review(guest, self.speakers[host], reference, now=self.now, **given)

    def refused(self, body: Body, code: str) -> None:
        """And no review is taken in by it."""
        with pytest.raises(StaylogError) as refused:
            take(self.running.desk, encoded(body))
        assert refused.value.code == code


@pytest.mark.parametrize("engine", ["sqlite", "postgresql"])
def test_whatever_guests_and_hosts_do(
    engine: str, neighbourhood: Neighbourhood, request: pytest.FixtureRequest
) -> None:
    class Machine(ReviewMachine):
        outside = neighbourhood

        @staticmethod
        def new_url(folder: Path) -> str:
            if engine == "sqlite":
                return f"sqlite:///{folder}/ledger.db"
            server: PostgresServer = request.getfixturevalue("postgres")
            return server.url("machine")

    run_state_machine_as_test(Machine, settings=settings(max_examples=12, stateful_step_count=35, deadline=None))
