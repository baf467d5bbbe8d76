"""Witnesses over HTTP: their lines on checkpoints, answers and receipts, and what is told of those that are missing."""

from pathlib import Path

import msgspec
import pytest

from api.shapes import WitnessReport
from audits.receipts import verify_checkpoint, verify_receipt, verify_tlog_proof
from audits.verify import verify_answer
from ledger.errors import NotProved, Unavailable
from ledger.log import witnesses
from ledger.log.note import Note
from ledger.store.rows import run
from tests.api.conftest import Service
from tests.api.site import Person
from tests.api.watched_site import watched
from tests.ledger.log.crooked import CROOK, Reply, crooked, honest_line, wait_for
from tests.reviewing import encoded, review


@pytest.fixture(autouse=True)
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witnesses, "LONGEST_PAUSE", 0.05)


def test_receipts_answers_and_checkpoints_have_their_witnesses(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a busy machine too.
    monkeypatch.setattr(witnesses, "GRACE_SECONDS", 30)
    with watched(tmp_path, database_url, lambda _: "quorum w\n") as (site, policy):
        log, host = site.ledger.verifier, Person("host")
        submitted = encoded(review(Person("guest"), host, now=site.running.clock()))
        first = site.submit(submitted)
        assert first.status_code == 201
        report = verify_receipt(first.content, log, policy=policy, submission=submitted)
        assert report.witnesses == (1, 1)
        # The same again, and for ever.
        assert site.submit(submitted).content == first.content
        note = site.get("/log/checkpoint").text
        assert verify_checkpoint(note, log, policy=policy).witnesses == (1, 1)
        assert note == site.get("/v1/log/checkpoint").json()["checkpoint"] == first.json()["checkpoint"]
        assert site.get("/v1/log/checkpoints").json()["checkpoints"][0]["checkpoint"] == note
        answer = site.get(f"/v1/hosts/{host.did}/reputation?proof=full")
        assert verify_answer(answer.content, log, host.did, policy=policy).witnesses == (1, 1)
        shown = site.get(f"/v1/reviews/{first.json()['review_id']}").json()["entries"][0]
        proved = verify_tlog_proof(shown["tlog_proof"], shown["entry"].encode(), log, policy=policy)
        assert proved.witnesses == (1, 1)


def test_what_is_told_of_them(tmp_path: Path, database_url: str) -> None:
    with (
        crooked(lambda _: Reply(404, "never heard of it\n")) as crook,
        watched(tmp_path, database_url, lambda _: f"witness c {CROOK} {crook.url}\nquorum w\n") as (site, _),
    ):
        site.review(Person("guest"), Person("host"))
        size = site.size
        wait_for(lambda: site.get("/v1/log/witnesses").json()["quorum"] is True)
        wait_for(lambda: site.get("/v1/log/witnesses").json()["witnesses"][1]["state"] == "refused")
        answer = site.get("/v1/log/witnesses")
        told = msgspec.json.decode(answer.content, type=WitnessReport)
        assert answer.headers["cache-control"] == "public, max-age=1"
        assert told.policy == site.running.settings.tlog_policy.read_text()
        assert (told.size, told.quorum) == (size, True)
        assert told.witnessed is not None
        assert told.witnessed.checkpoint == site.get("/log/checkpoint").text
        good, bad = told.witnesses
        assert (good.name, good.state, good.size, good.detail) == ("w", "cosigned", size, None)
        assert good.at == site.get("/v1/log/checkpoint").json()["at"]
        assert (bad.name, bad.vkey, bad.url, bad.size) == ("c", str(CROOK), crook.url, None)
        assert bad.detail is not None
        assert "ask its operator to trust the log's key (never heard of it)" in bad.detail
        metrics = site.get("/metrics").text
        assert f"staylog_witnessed_size {float(size)}" in metrics
        assert 'staylog_witness_requests_total{outcome="cosigned",witness="w"}' in metrics
        assert 'staylog_witness_requests_total{outcome="cosignature_refused",witness="c"}' in metrics


def test_a_log_without_witnesses_says_so(service: Service) -> None:
    told = msgspec.json.decode(service.get("/v1/log/witnesses").content, type=WitnessReport)
    assert told == WitnessReport(None, service.ledger.reader.published.size, None, None, [])


def test_a_missing_quorum_keeps_no_review_out(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(witnesses, "GRACE_SECONDS", 0.05)
    with (
        crooked(lambda _: Reply(503, "")) as crook,
        watched(
            tmp_path, database_url, lambda _: f"witness c {CROOK} {crook.url}\ngroup all all w c\nquorum all\n"
        ) as (site, policy),
    ):
        host = Person("host")
        for number in range(3):
            receipt = site.review(Person(f"guest {number}"), host)
            with pytest.raises(NotProved) as refused:
                policy.verify(receipt["checkpoint"])
            assert refused.value.code == "quorum_missing"
        told = site.get("/v1/log/witnesses").json()
        assert (told["quorum"], told["witnessed"]) == (False, None)
        assert site.get("/health").status_code == 200
        assert site.reputation(host)["total_reviews"] == 3


def test_an_answer_that_is_kept_gets_its_witnesses(tmp_path: Path, database_url: str) -> None:
    """What was answered before a cosignature came is not answered after it."""
    with (
        crooked(lambda _: Reply(503, "")) as crook,
        watched(tmp_path, database_url, lambda _: f"witness c {CROOK} {crook.url}\nquorum none\n") as (site, _),
    ):
        host = Person("host")
        site.review(Person("guest"), host)

        def signers() -> int:
            return len(Note.parse(site.reputation(host, "proof=full")["proof"]["checkpoint"]).signatures)

        wait_for(lambda: signers() == 2)
        clock = site.running.clock
        crook.says = lambda request: Reply(200, honest_line(request, clock().timestamp()))
        wait_for(lambda: signers() == 3)


def test_a_receipt_that_was_acknowledged_is_given_whatever_becomes_of_its_witnesses(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Unavailable("storage_unavailable", "nothing was acknowledged")

    with watched(tmp_path, database_url, lambda _: "quorum w\n") as (site, _):
        monkeypatch.setattr(site.ledger.reader, "first_witnessed", away)
        receipt = site.review(Person("guest"), Person("host"))
        verify_receipt(msgspec.json.encode(receipt), site.ledger.verifier)


def test_a_stored_line_that_does_not_hold_makes_no_quorum_and_no_error(tmp_path: Path, database_url: str) -> None:
    with watched(tmp_path, database_url, lambda _: "quorum w\n") as (site, _):
        wait_for(lambda: site.get("/v1/log/witnesses").json()["quorum"] is True)
        with site.ledger.store.write() as connection:
            [(line,)] = run(connection, "SELECT line FROM cosignature WHERE size = ?", (site.size,))
            run(connection, "UPDATE cosignature SET line = ? WHERE size = ?", (line[:-9] + "AAAAAA==\n", site.size))
        site.ledger.reader._newest = None
        assert site.get("/v1/log/witnesses").json()["quorum"] is False
        assert site.get("/").status_code == 200
