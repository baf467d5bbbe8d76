"""What waits for a decision: who may wait, what is kept meanwhile, and what is told of it until it is forgotten."""

import asyncio
import json
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from audits.receipts import verify_receipt, verify_refusal
from ledger.canon import jcs
from ledger.errors import NotFound, NotStored, StaylogError, TooMany, Unavailable
from ledger.identity import statements
from ledger.reviews import pending
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted
from ledger.reviews.worker import Worker
from ledger.store.rows import run
from tests.hosting import Hosted, HostSite
from tests.outcomes import become, checks, silent
from tests.reviewing import GUESTS, credential, encoded


def refusal(hosted: Hosted, body: Any) -> StaylogError:
    with pytest.raises(StaylogError) as refused:
        hosted.take(body)
    return refused.value


def row(hosted: Hosted) -> Any:
    with hosted.desk.store.read() as connection:
        [found] = run(connection, "SELECT key, sealed, replay, slot, due_at, leased_until, lease FROM submission")
    return found


def sites(hosted: Hosted, count: int) -> list[HostSite]:
    made = [hosted.add_host(f"house-{number}.example") for number in range(count)]
    for site in made:
        site.down = 503
    return made


# Who may wait


def test_the_same_again_waits_once(hosted: Hosted) -> None:
    waiting = silent(hosted)
    asked = len(hosted.site.asked)
    hosted.clock.forward(hours=1)
    again = hosted.wait(waiting.body)
    assert (again.id, again.intake, again.repeated) == (waiting.id, waiting.intake, True)
    assert len(hosted.site.asked) == asked


def test_one_of_a_person_and_host_waits_at_a_time(hosted: Hosted) -> None:
    silent(hosted)
    other = hosted.review(GUESTS[1], "B-3", guest_credential=credential(GUESTS[1], f"person-of-{GUESTS[0].did[-8:]}"))
    for body in (hosted.review(reference="B-2"), other):
        refused = refusal(hosted, body)
        assert refused.code == "quota_exceeded"
        assert "one may wait at a time" in refused.message
    assert hosted.site.asked == ["B-1"]


def test_others_and_other_hosts_are_not_in_the_way(hosted: Hosted) -> None:
    first = silent(hosted)
    [elsewhere] = sites(hosted, 1)
    assert hosted.wait(hosted.review(GUESTS[1])).id != first.id
    assert hosted.wait(hosted.review(site=elsewhere, reference="B-2")).id != first.id


def test_what_was_decided_makes_room_for_the_next(hosted: Hosted) -> None:
    silent(hosted)
    hosted.site.down = None
    hosted.go_on(minutes=1)
    assert silent(hosted, reference="B-2").repeated is False


def test_three_in_a_day_of_which_nothing_is_shown(hosted: Hosted) -> None:
    """At all hosts together."""
    *three, fourth = sites(hosted, 4)
    for site in three:
        hosted.wait(hosted.review(site=site))
    refused = refusal(hosted, hosted.review(site=fourth))
    assert (refused.code, fourth.asked) == ("quota_exceeded", [])
    assert hosted.wait(hosted.review(GUESTS[1], site=fourth))
    hosted.clock.forward(days=1)
    assert hosted.wait(hosted.review(site=fourth))


def test_a_host_that_confirms_at_once_gives_it_back(hosted: Hosted) -> None:
    for number in range(5):
        hosted.site.book(reference=f"B-{number}")
        assert isinstance(hosted.take(hosted.review(reference=f"B-{number}")), Accepted)


def test_a_host_that_denies_does_not(hosted: Hosted) -> None:
    for number in range(3):
        assert refusal(hosted, hosted.review(reference=f"B-{number}")).code == "booking_denied"
    assert refusal(hosted, hosted.review(reference="B-9")).code == "quota_exceeded"
    assert (hosted.site.asked, checks(hosted)) == (["B-0", "B-1", "B-2"], {"denied": 1})


def test_so_many_wait_and_no_more(hosted: Hosted, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pending.MOST_PENDING == 100_000
    silent(hosted)
    monkeypatch.setattr(pending, "MOST_PENDING", 2)
    assert hosted.wait(hosted.review(GUESTS[1]))
    refused = refusal(hosted, hosted.review(GUESTS[2]))
    assert refused.code == "busy"
    assert isinstance(refused.__cause__, Unavailable)
    # What waits already waits on, and what shows itself needs no room.
    assert hosted.work() == 0
    assert isinstance(hosted.take(hosted.review(GUESTS[3], booking_evidence=hosted.receipt(GUESTS[3]))), Accepted)


def test_it_is_quick_however_many_wait(hosted: Hosted) -> None:
    """Never the whole table: it has the submissions in it."""
    if not hosted.desk.store.is_sqlite:
        pytest.skip("PostgreSQL plans by what is there")
    for query, values in ((pending._COUNT, ()), (pending._DUE, ("a", "b", "c", "d", 1)), (pending._FORGET, ("a",))):
        with hosted.desk.store.read() as connection:
            plan = [str(step[-1]) for step in run(connection, f"EXPLAIN QUERY PLAN {query}", values)]
        assert all("ix_submission_" in step for step in plan if "submission" in step), plan
        assert not any(step == "SCAN submission" for step in plan), plan


# What is told


def test_while_it_waits(hosted: Hosted) -> None:
    waiting = silent(hosted)
    found = pending.look_up(hosted.desk, waiting.id)
    assert isinstance(found, Waiting)
    assert (found.decide_by, found.intake) == ("2026-06-04T12:00:00Z", waiting.intake)
    assert found.intake["submission_sha256"] == sha256(jcs.dumps(waiting.body)).hexdigest()
    assert (found.intake["type"], found.intake["received_at"]) == ("IntakeReceipt", "2026-06-01T12:00:00Z")
    key = bytes(hosted.desk.keys.statements.verify_key)
    statements.signed_by(found.intake, [key])


@pytest.mark.parametrize("confirmed", [True, False])
def test_the_receipt_is_the_one_that_a_repetition_gets(hosted: Hosted, confirmed: bool) -> None:
    waiting = silent(hosted, private_feedback="The tap drips.")
    if confirmed:
        hosted.site.down = None
        hosted.site.book()
        hosted.go_on(minutes=1)
    else:
        hosted.time_out()
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["decide_by"]) == ("accepted", waiting.decide_by)
    repeated = hosted.take(waiting.body)
    assert isinstance(repeated, Accepted)
    assert json.dumps(outcome["receipt"]) == json.dumps(repeated.receipt)
    assert outcome["receipt"]["private_feedback"] == ("sealed" if confirmed else "undeliverable")
    assert ("booking" in outcome["receipt"]) == confirmed
    receipt = encoded(outcome["receipt"])
    report = verify_receipt(receipt, hosted.reviewing.ledger.verifier, submission=encoded(waiting.body))
    assert "the review rests on exactly this signed submission" in report.proved


def test_a_rejection_has_its_code_and_the_ledgers_signature(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.go_on(minutes=1)
    outcome = become(hosted, waiting)
    assert (outcome["status"], outcome["code"], "receipt" in outcome) == ("rejected", "booking_denied", False)
    key = bytes(hosted.desk.keys.statements.verify_key)
    report = verify_refusal(encoded(outcome["refusal"]), key, submission=encoded(waiting.body))
    assert "it is this submission that was refused" in report.proved


def test_an_id_that_nobody_has(hosted: Hosted) -> None:
    with pytest.raises(NotFound) as refused:
        pending.look_up(hosted.desk, "sub-" + "a" * 26)
    assert refused.value.code == "submission_not_found"


def test_it_is_forgotten_after_ninety_days(hosted: Hosted) -> None:
    waiting = silent(hosted)
    hosted.site.down = None
    hosted.go_on(minutes=1)
    hosted.clock.forward(days=90, seconds=-1)
    worker = Worker(hosted.reviewing.ledger.desk())
    assert worker.tidy() == 0
    assert become(hosted, waiting)["status"] == "rejected"
    hosted.clock.forward(seconds=1)
    assert worker.tidy() == 1
    with pytest.raises(NotFound):
        pending.look_up(hosted.desk, waiting.id)


# What is kept


def test_while_it_waits_the_row_opens_in_its_own_place_only(hosted: Hosted) -> None:
    waiting = silent(hosted)
    sealed = bytes(row(hosted)[1])
    assert GUESTS[0].did.encode() not in sealed
    with pytest.raises(NotStored):
        hosted.desk.vault.open("submission", sealed, b"another row")
    assert waiting.id.encode() not in b"".join(bytes(value) for value in row(hosted)[:4])


def test_what_was_submitted_is_gone_once_it_is_decided(hosted: Hosted) -> None:
    silent(hosted)
    before = row(hosted)
    hosted.site.down = None
    hosted.go_on(minutes=1)
    after = row(hosted)
    assert after[0] == before[0]
    assert after[2:] == (None, None, None, None, None)
    assert bytes(before[1]) not in bytes(after[1])


def test_an_outcome_opens_with_the_id_alone(hosted: Hosted) -> None:
    """Not by all rows and all keys of the service."""
    waiting = silent(hosted)
    key, _, replay, slot, *_ = row(hosted)
    hosted.site.down = None
    hosted.go_on(minutes=1)
    sealed = bytes(row(hosted)[1])
    keys = hosted.desk.keys
    for bound in ((), (key,), (replay,), (slot,), (keys.booking,), (bytes(keys.statements),), (b"",)):
        for purpose in ("outcome", "submission", "beside"):
            with pytest.raises(NotStored):
                hosted.desk.vault.open(purpose, sealed, *(bytes(each) for each in bound))
    assert hosted.desk.vault.open("outcome", sealed, waiting.id.encode())["code"] == "booking_denied"


def test_no_copy_is_left_in_the_file_of_the_database(hosted: Hosted) -> None:
    """However often the row was written anew while it waited."""
    if not hosted.desk.store.is_sqlite:
        pytest.skip("what PostgreSQL leaves is the business of tests/ledger/store")
    worker = Worker(hosted.reviewing.ledger.desk())
    for number, guest in enumerate(GUESTS[:6]):
        silent(hosted, guest=guest, reference=f"B-{number}")
    with hosted.desk.store.read() as connection:
        sealed = [bytes(each) for (each,) in run(connection, "SELECT sealed FROM submission")]
    for minutes in (1, 5, 30):
        hosted.clock.now = hosted.clock.now + timedelta(minutes=minutes)
        asyncio.run(worker.work())
    hosted.site.down = None
    hosted.clock.forward(hours=2)
    assert asyncio.run(worker.work()) == 6
    worker.scrub()
    file = hosted.desk.store.url.database
    assert file is not None
    data = Path(file).read_bytes() + Path(f"{file}-wal").read_bytes()
    # A row that is long has its end in pages of its own.
    assert [len(each) for each in sealed if each[:64] in data or each[-64:] in data] == []


def test_a_person_who_has_to_wait_is_told_for_how_long(hosted: Hosted) -> None:
    silent(hosted)
    hosted.go_on(minutes=1)
    refused = refusal(hosted, hosted.review(reference="B-2"))
    assert isinstance(refused.__cause__, TooMany)
    assert refused.__cause__.retry_after == 240
