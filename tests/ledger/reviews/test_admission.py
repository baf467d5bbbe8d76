"""Admission: in which order things are looked at, what is known again, and what may change while a review waits."""

import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import REGISTRY

from audits.receipts import verify_receipt
from ledger.canon import base64, jcs, proofs
from ledger.canon.times import format_time
from ledger.errors import Halted, NotAccepted, Refused, StaylogError, Unavailable, Uncertain
from ledger.folder import open_ledger
from ledger.identity.issuers import distrust, trust
from ledger.keys import rotate_pepper
from ledger.log.drafts import Author
from ledger.log.integrate import SomeRefused
from ledger.log.openings import Opening, commitment
from ledger.reviews.admission import REVIEWS_PER_PERSON
from ledger.reviews.listings import add_listing
from tests.identities import IDV, ISSUER, NOW, STATUS, THIEF, Speaker
from tests.identities import credential as revocable
from tests.ledger.canon.test_ed25519 import did_jwk
from tests.reviewing import (
    GUEST,
    GUESTS,
    HOST,
    OTHER_HOST,
    Reviewing,
    credential,
    encoded,
    resigned,
    review,
    stay_receipt,
    submit,
)
from tests.running import Writer

BLANK = "\t \n\u3000\u2028\x85"
SECOND_ISSUER = Speaker(40, "https://id.example", "/keys/1")


def code_of(call: Callable[[], object]) -> str:
    with pytest.raises(StaylogError) as refused:
        call()
    return refused.value.code


def entry_of(accepted: Any) -> dict[str, Any]:
    return dict(json.loads(accepted.receipt["entry"]))


def test_an_accepted_review_is_in_the_log_as_it_was_submitted(reviewing: Reviewing) -> None:
    body = review()
    accepted = reviewing.submit(body)
    entry = entry_of(accepted)
    assert not accepted.repeated
    assert {name: entry[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")} == {
        name: body[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")
    }
    assert (entry["level"], entry["repeat"], entry["at"]) == ("guest_verified", False, format_time(NOW))
    assert {name: entry["evidence"][name] for name in ("booking", "issuer", "idv_level")} == {
        "booking": "stay_receipt",
        "issuer": IDV,
        "idv_level": "identity_verified",
    }
    salt = base64.decode(accepted.receipt["openings"]["evidence"]["salt"])
    assert entry["evidence"]["commitment"] == commitment(salt, jcs.dumps({"submission": body, "booking": None}))
    assert accepted.receipt["openings"]["text"]["text"] == body["review_text"]
    report = verify_receipt(encoded(accepted.receipt), reviewing.ledger.verifier, submission=encoded(body))
    assert "the review rests on exactly this signed submission" in report.proved
    assert json.loads(reviewing.answer(HOST.did))["verified_reviews"] == 1
    assert reviewing.fsck().findings == []


@pytest.mark.parametrize("text", ["", BLANK])
def test_stores_a_text_of_white_space_only_as_none(reviewing: Reviewing, text: str) -> None:
    body = review(review_text=text)
    accepted = reviewing.submit(body)
    assert (entry_of(accepted)["text"], accepted.receipt["openings"]["text"]) == (None, None)
    verify_receipt(encoded(accepted.receipt), reviewing.ledger.verifier, submission=encoded(body))
    [listed] = json.loads(reviewing.answer(HOST.did))["review_history"]
    assert listed["review_text"] is None


@pytest.mark.parametrize("text", [None, ""])
def test_an_empty_text_is_none(reviewing: Reviewing, text: str | None) -> None:
    accepted = reviewing.submit(review(review_text=text))
    assert entry_of(accepted)["text"] is None
    assert accepted.receipt["openings"]["text"] is None
    verify_receipt(encoded(accepted.receipt), reviewing.ledger.verifier)


def test_the_type_may_be_left_out(reviewing: Reviewing) -> None:
    assert not reviewing.submit(review(type=None)).repeated


@pytest.mark.parametrize("suite", [proofs.EDDSA_RDFC, proofs.ED25519_2020])
def test_credentials_with_a_signed_graph_count_too(reviewing: Reviewing, suite: str) -> None:
    assert not reviewing.submit(review(guest_credential=credential(GUEST, suites=(suite,)))).repeated


def test_the_same_again_gets_the_same_receipt(reviewing: Reviewing) -> None:
    """Also in another spelling of the same JSON, after a restart, when the proof is stale, and when the log has grown."""
    body = review()
    first = reviewing.submit(body)
    reviewing.submit(review(GUESTS[1]))
    reviewing.clock.forward(days=30)
    reviewing.reopen()
    again = reviewing.submit(dict(reversed(body.items())))
    assert again.repeated
    assert again.receipt == first.receipt
    assert code_of(lambda: reviewing.submit(review(review_text="Another."))) == "stale_proof"


def test_the_same_twice_at_once_is_one_review(reviewing: Reviewing) -> None:
    body = review()
    with ThreadPoolExecutor(4) as threads:
        made = list(threads.map(lambda _: reviewing.submit(body), range(4)))
    assert sorted(each.repeated for each in made) == [False, True, True, True]
    assert all(each.receipt == made[0].receipt for each in made)


def test_private_feedback_is_said_to_be_sealed(reviewing: Reviewing) -> None:
    body = review(private_feedback="The tap drips.")
    first = reviewing.submit(body)
    assert first.receipt["private_feedback"] == "sealed"
    assert reviewing.submit(body).receipt == first.receipt
    assert "private_feedback" not in reviewing.submit(review(GUESTS[1], private_feedback="")).receipt


def test_what_is_cheap_is_looked_at_first(reviewing: Reviewing) -> None:
    """From the form to the booking, by mending one fault after the other."""
    reviewing.submit(review(reference="B-0"))
    unknown = Speaker(41, "https://nobody.example", "/keys/1")
    faults: dict[str, dict[str, Any]] = {
        "schema_invalid": {"listing_id": "no spaces"},
        "stay_not_over": {"check_out": "2026-06-01"},
        "wrong_domain": {"domain": "https://elsewhere.example"},
        "issuer_not_trusted": {"guest_credential": credential(GUEST, issuer=unknown)},
        "already_reviewed": {"reference": "B-0"},
        "booking_unverifiable": {"booking_evidence": None},
    }
    for code in list(faults):
        wrong = {name: value for changes in faults.values() for name, value in changes.items()}
        assert code_of(partial(reviewing.submit, review(**wrong))) == code
        del faults[code]
    assert not reviewing.submit(review()).repeated


def test_refusals_are_signed_for_whom_is_known(reviewing: Reviewing) -> None:
    reviewing.submit(review())
    unverifiable = review(GUESTS[1], booking_evidence=None)
    with pytest.raises(Refused) as refused:
        reviewing.submit(unverifiable)
    refusal = dict(refused.value.refusal)
    proof = refusal.pop("proof")
    assert refusal == {
        "type": "Refusal",
        "submission_sha256": sha256(jcs.dumps(unverifiable)).hexdigest(),
        "code": "booking_unverifiable",
        "at": format_time(NOW),
    }
    assert proof["verificationMethod"] == "did:web:127.0.0.1%3A8080#statements"
    proofs.verify(refusal, proof, [bytes(reviewing.ledger.keys.statements.verify_key)])
    # A thief with the guest's credential has shown nothing.
    with pytest.raises(NotAccepted) as stolen:
        reviewing.submit(resigned(review(), THIEF))
    assert stolen.value.code == "holder_mismatch"


def test_a_credential_that_can_be_revoked_waits_for_who_can_look_it_up(reviewing: Reviewing) -> None:
    shown = revocable(id=GUEST.did, suites=(proofs.EDDSA_JCS,))
    assert shown["credentialStatus"] == STATUS
    assert code_of(lambda: reviewing.submit(review(guest_credential=shown))) == "status_unavailable"


def test_one_person_reviews_a_booking_once(reviewing: Reviewing) -> None:
    """Whatever DID they come with, and whoever vouches for the DID."""
    trusted(reviewing, SECOND_ISSUER)
    other_did = GUESTS[1]
    reviewing.submit(review(guest_credential=credential(GUEST, "p-1")))
    same_person = review(other_did, guest_credential=credential(other_did, "p-1"))
    assert code_of(lambda: reviewing.submit(same_person)) == "already_reviewed"
    same_did = review(guest_credential=credential(GUEST, "q-9", issuer=SECOND_ISSUER), review_text="Other.")
    assert code_of(lambda: reviewing.submit(same_did)) == "already_reviewed"
    # At another host the same reference is another booking.
    assert not reviewing.submit(review(host=OTHER_HOST, guest_credential=credential(GUEST, "p-1"))).repeated


def test_one_person_at_once_by_two_dids_reviews_a_booking_once(reviewing: Reviewing) -> None:
    """Both pass every check before either is in the log; the sequencer decides."""
    bodies = [review(guest, guest_credential=credential(guest, "p-1")) for guest in GUESTS[:4]]

    def attempt(body: dict[str, Any]) -> str:
        try:
            reviewing.submit(body)
        except StaylogError as refusal:
            return refusal.code
        return "accepted"

    with ThreadPoolExecutor(4) as threads:
        assert sorted(threads.map(attempt, bodies)) == ["accepted"] + ["already_reviewed"] * 3


def test_two_services_take_a_booking_once(reviewing: Reviewing) -> None:
    """And mark all but the first review of a host by one person, though each hears of the others only by the database."""
    other = open_ledger(reviewing.settings, clock=reviewing.clock)
    other.sequencer.start()
    desks = [reviewing.desk, other.desk()]
    bodies = [
        review(guest, reference=f"B-{number % 2}", guest_credential=credential(guest, "p-1"))
        for number, guest in enumerate(GUESTS[:8])
    ]

    def attempt(number: int) -> str:
        try:
            return str(entry_of(submit(desks[number % 3 % 2], encoded(bodies[number])))["repeat"])
        except StaylogError as refusal:
            return refusal.code

    with ThreadPoolExecutor(4) as threads:
        outcomes = sorted(threads.map(attempt, range(8)))
    other.close()
    reviewing.ledger.reader.refresh()
    assert outcomes == ["False", "True"] + ["already_reviewed"] * 6
    assert json.loads(reviewing.answer(HOST.did))["statistics"]["repeats"] == 1
    assert reviewing.fsck().findings == []


def test_nobody_can_occupy_anothers_booking(reviewing: Reviewing) -> None:
    """A stranger who knows the reference is refused, and the guest is not kept from reviewing; two guests with receipts
    for one booking both stand, and the log says that there are two."""
    stranger = review(GUESTS[1], booking_evidence=stay_receipt(GUEST))
    assert code_of(lambda: reviewing.submit(stranger)) == "booking_evidence_invalid"
    reviewing.submit(review())
    size = reviewing.ledger.reader.published.size
    second = reviewing.submit(review(GUESTS[1]))
    assert second.receipt["index"] == size
    entries = [json.loads(each) for each in reviewing.ledger.reader.entries(size, size + 3)]
    assert [each["type"] for each in entries] == ["review", "booking_check", "map_head"]
    assert (entries[1]["outcome"], entries[1]["host_did"]) == ("conflict", HOST.did)
    answer = json.loads(reviewing.answer(HOST.did))
    assert (answer["verified_reviews"], answer["statistics"]["checks"]["conflict"]) == (2, 1)
    assert reviewing.fsck().findings == []


def test_a_second_review_of_a_host_is_marked(reviewing: Reviewing) -> None:
    """By the same DID, by another DID of the same person, and by the same DID under another issuer; at this host only."""
    trusted(reviewing, SECOND_ISSUER)
    first = reviewing.submit(review(guest_credential=credential(GUEST, "p-1")))
    again = reviewing.submit(review(reference="B-2", guest_credential=credential(GUEST, "p-1")))
    other_did = reviewing.submit(review(GUESTS[1], reference="B-3", guest_credential=credential(GUESTS[1], "p-1")))
    other_issuer = credential(GUEST, "q-9", issuer=SECOND_ISSUER)
    vouched = reviewing.submit(review(reference="B-4", guest_credential=other_issuer))
    elsewhere = reviewing.submit(review(host=OTHER_HOST, guest_credential=credential(GUEST, "p-1")))
    someone = reviewing.submit(review(GUESTS[2], reference="B-5"))
    marks = [entry_of(each)["repeat"] for each in (first, again, other_did, vouched, elsewhere, someone)]
    assert marks == [False, True, True, True, False, False]
    assert json.loads(reviewing.answer(HOST.did))["statistics"]["repeats"] == 3
    assert reviewing.fsck().findings == []


def test_guests_are_known_again_after_the_pepper_was_rotated(reviewing: Reviewing) -> None:
    reviewing.submit(review())
    rotate_pepper(reviewing.settings.service_keys)
    reviewing.reopen()
    assert code_of(lambda: reviewing.submit(review(review_text="Again."))) == "already_reviewed"
    assert entry_of(reviewing.submit(review(reference="B-2")))["repeat"]
    assert not entry_of(reviewing.submit(review(GUESTS[1], reference="B-3")))["repeat"]


def trusted(reviewing: Reviewing, issuer: Speaker) -> None:
    """By another process, as the command line does it."""
    change(reviewing, lambda registry: trust(registry, "guest", issuer.did, [issuer.multikey], None))


def change(reviewing: Reviewing, what: Callable[[Any], Any]) -> None:
    other = open_ledger(reviewing.settings, clock=reviewing.clock)
    other.sequencer.append([what(other.issuers())])
    other.close()
    reviewing.ledger.reader.refresh()


def meanwhile(reviewing: Reviewing, act: Callable[[], None]) -> None:
    """Let `act` happen once, after the next review was found good and before it is in the log."""
    before = reviewing.desk.random

    def random(count: int) -> bytes:
        reviewing.desk.random = before
        act()
        return before(count)

    reviewing.desk.random = random


def test_trust_is_looked_at_again_when_the_review_gets_into_the_log(reviewing: Reviewing) -> None:
    meanwhile(reviewing, lambda: change(reviewing, lambda registry: distrust(registry, "guest", IDV, None)))
    assert code_of(lambda: reviewing.submit(review())) == "issuer_not_trusted"
    assert json.loads(reviewing.answer(HOST.did))["total_reviews"] == 0


def test_a_compromised_key_is_looked_at_again_too(reviewing: Reviewing) -> None:
    """The issuer goes on with another key; the one that signed this credential counts no more."""

    def compromise() -> None:
        change(reviewing, lambda registry: distrust(registry, "guest", IDV, "2026-05-01T00:00:00Z"))
        change(reviewing, lambda registry: trust(registry, "guest", IDV, [Speaker(42).multikey], None))

    meanwhile(reviewing, compromise)
    assert code_of(lambda: reviewing.submit(review())) == "issuer_not_trusted"


def test_another_issuer_meanwhile_changes_nothing(reviewing: Reviewing) -> None:
    meanwhile(reviewing, lambda: trusted(reviewing, SECOND_ISSUER))
    assert not reviewing.submit(review()).repeated


def test_one_person_has_a_quota_at_all_hosts_together(reviewing: Reviewing) -> None:
    """What is refused does not count towards it."""
    hosts = [Speaker(seed) for seed in range(60, 60 + REVIEWS_PER_PERSON.count + 1)]
    assert code_of(lambda: reviewing.submit(review(booking_evidence=None))) == "booking_unverifiable"
    for host in hosts[:-1]:
        reviewing.submit(review(host=host))
    assert code_of(lambda: reviewing.submit(review(host=hosts[-1]))) == "quota_exceeded"
    reviewing.submit(review(GUESTS[1], host=hosts[-1]))
    reviewing.clock.forward(hours=1.2)
    fresh = reviewing.clock.now
    assert not reviewing.submit(review(host=hosts[-1], now=fresh)).repeated


def test_a_refused_review_occupies_nothing(reviewing: Reviewing) -> None:
    before = reviewing.ledger.reader.published
    wrong = review(booking_evidence=stay_receipt(GUEST, check_out="2026-05-23"))
    assert code_of(lambda: reviewing.submit(wrong)) == "booking_evidence_invalid"
    assert reviewing.ledger.reader.refresh() == before
    assert entry_of(reviewing.submit(review()))["repeat"] is False


def test_a_time_zone_that_is_known_counts(reviewing: Reviewing) -> None:
    reviewing.clock.now = NOW.replace(hour=10, minute=30)  # half past midnight on 2 June in Kiritimati
    today: dict[str, Any] = {"check_out": "2026-06-01", "check_in": "2026-05-30"}
    body = review(now=reviewing.clock.now, booking_evidence=stay_receipt(GUEST, **today), **today)
    assert code_of(lambda: reviewing.submit(body)) == "stay_not_over"
    with reviewing.ledger.store.write() as connection:
        add_listing(connection, HOST.did, "rose-cottage", "Pacific/Kiritimati", "operator")
    assert not reviewing.submit(body).repeated


def test_outcomes_are_counted(reviewing: Reviewing) -> None:
    def counted(outcome: str) -> float:
        return REGISTRY.get_sample_value("staylog_submissions_total", {"kind": "review", "outcome": outcome}) or 0

    outcomes = ("accepted", "repeated", "booking_unverifiable", "malformed_json")
    before = [counted(outcome) for outcome in outcomes]
    body = review()
    reviewing.submit(body)
    reviewing.submit(body)
    code_of(lambda: reviewing.submit(review(GUESTS[1], booking_evidence=None)))
    code_of(lambda: submit(reviewing.desk, b"{"))
    assert [counted(outcome) - start for outcome, start in zip(outcomes, before, strict=True)] == [1, 1, 1, 1]


def test_a_batch_of_conflicts_is_not_longer_than_a_batch_may_be(reviewing: Reviewing) -> None:
    """Each review may bring an entry about a conflict with it; the protocol has 255 entries in a batch."""
    writer = Writer(9)
    newest = reviewing.ledger.issuers().newest

    def author(number: int) -> Author:
        own = b"booking %d" % number
        return Author((own,), (b"guest %d" % number,), b"stay", (), writer.hash(), newest)

    drafts = [replace(writer.review(HOST.did), author=author(number)) for number in range(300)]
    reviewing.add(*drafts)
    assert json.loads(reviewing.answer(HOST.did, limit=1))["statistics"]["checks"]["conflict"] == 299
    assert reviewing.fsck().findings == []


def test_a_review_may_be_made_a_little_ahead_of_our_clock(reviewing: Reviewing) -> None:
    assert not reviewing.submit(review(now=NOW + timedelta(minutes=4))).repeated
    assert code_of(lambda: reviewing.submit(review(GUESTS[1], now=NOW + timedelta(minutes=6)))) == "stale_proof"


@pytest.mark.parametrize("member", ["review_text", "private_feedback"])
def test_a_text_has_no_nul(reviewing: Reviewing, member: str) -> None:
    """PostgreSQL could not keep it, and would refuse the whole batch with it."""
    changes: dict[str, Any] = {member: "a\0b"}
    assert code_of(partial(reviewing.submit, review(**changes))) == "schema_invalid"


@pytest.mark.parametrize("text", ["\x01\x7f\u2028\ufeff\uffff", "\U0001f3e1" * 2000, "e\u0301", "\n\r\t .", "\u200d"])
def test_any_other_text_is_kept_as_it_is(reviewing: Reviewing, text: str) -> None:
    receipt = reviewing.submit(review(review_text=text)).receipt
    assert receipt["openings"]["text"]["text"] == text
    verify_receipt(encoded(receipt), reviewing.ledger.verifier)


def test_whoever_breaks_a_batch_breaks_it_alone(reviewing: Reviewing) -> None:
    """By something that no check foresaw: a draft whose text the driver cannot write."""
    writer = Writer(4)
    broken, *good = (writer.review(HOST.did) for _ in range(4))
    assert broken.opening is not None
    broken = replace(broken, opening=Opening("\ud800", broken.opening.salt))
    with reviewing.ledger.store.write():
        # All of them wait, and become one batch.
        futures = [reviewing.ledger.sequencer.submit(draft) for draft in (good[0], broken, *good[1:])]
    with pytest.raises(StaylogError) as refused:
        futures[1].result(20)
    assert refused.value.code == "internal_error"
    for future in (futures[0], *futures[2:]):
        assert future.result(20).entry.host == HOST.did
    assert reviewing.fsck().findings == []


def test_nobody_signs_that_a_review_was_refused_that_may_be_in_the_log(tmp_path: Path) -> None:
    """The database is gone between the commit and the checkpoint."""
    made = Reviewing(tmp_path / "data", f"sqlite:///{tmp_path}/ledger.db")

    def lost(step: str) -> None:
        if step == "committed":
            made.ledger.sequencer._on_step = lambda _: None
            raise Unavailable("storage_unavailable", "the disk is gone")

    made.ledger.sequencer._on_step = lost
    body = review()
    with pytest.raises(Uncertain) as unknown:
        made.submit(body)
    assert unknown.value.code == "storage_unavailable"
    assert made.submit(body).repeated
    made.ledger.close()


def test_retrying_through_an_outage_uses_nothing_up(reviewing: Reviewing) -> None:
    body, going = review(), reviewing.ledger.sequencer.halted
    reviewing.ledger.sequencer.halted = Halted("log_damaged", "for a while")
    for _ in range(REVIEWS_PER_PERSON.count + 1):
        assert code_of(lambda: reviewing.submit(body)) == "log_damaged"
    reviewing.ledger.sequencer.halted = going
    assert not reviewing.submit(body).repeated


def test_guest_and_host_with_one_key_are_one(reviewing: Reviewing) -> None:
    """Though one calls itself did:key and the other did:jwk."""
    twin = Speaker(20, did_jwk(GUEST.public), "#0")
    assert twin.public == GUEST.public
    assert code_of(lambda: reviewing.submit(review(host=twin))) == "self_review"


def test_a_stay_too_long_ago_is_not_heard_of_again(reviewing: Reviewing) -> None:
    body = review()
    reviewing.submit(body)
    reviewing.clock.forward(days=365 + 8)
    assert code_of(lambda: reviewing.submit(body)) == "too_late"


def test_a_level_that_is_trusted_no_more_is_looked_at_again(reviewing: Reviewing) -> None:
    def lower() -> None:
        change(reviewing, lambda registry: distrust(registry, "guest", IDV, None))
        change(reviewing, lambda registry: trust(registry, "guest", IDV, [ISSUER.multikey], "email_verified"))

    meanwhile(reviewing, lower)
    assert code_of(lambda: reviewing.submit(review())) == "issuer_not_trusted"


def test_an_issuer_that_goes_in_the_same_batch_counts_no_more(reviewing: Reviewing) -> None:
    registry = reviewing.ledger.issuers()
    author = Author((b"booking",), (b"guest",), b"stay", (), Writer(7).hash(), registry.newest)
    waiting = replace(Writer(8).review(HOST.did), author=author)
    with pytest.raises(SomeRefused) as refused:
        reviewing.add(distrust(registry, "guest", IDV, None), waiting)
    assert [error.code for error in refused.value.refusals.values()] == ["busy"]


def test_what_a_conflict_commits_to(reviewing: Reviewing) -> None:
    reviewing.submit(review())
    given: list[bytes] = []

    def random(count: int) -> bytes:
        given.append(os.urandom(count))
        return given[-1]

    reviewing.desk.random = random
    second = reviewing.submit(review(GUESTS[1]))
    entry = json.loads(reviewing.ledger.reader.entries(second.receipt["index"] + 1, second.receipt["index"] + 2)[0])
    booking = {"booking_reference": "B-1", "guest_did": GUESTS[1].did, "host_did": HOST.did}
    assert entry["booking"] in {commitment(salt, jcs.dumps(booking)) for salt in given if len(salt) == 32}


def test_a_service_with_a_new_pepper_and_one_without_agree(reviewing: Reviewing) -> None:
    """While services are restarted one after the other."""
    rotate_pepper(reviewing.settings.service_keys)
    other = open_ledger(reviewing.settings, clock=reviewing.clock)
    other.sequencer.start()
    submit(other.desk(), encoded(review()))
    assert code_of(lambda: reviewing.submit(review(review_text="Again."))) == "already_reviewed"
    assert entry_of(reviewing.submit(review(reference="B-2")))["repeat"]
    other.close()
