"""Receipts, tlog-proofs and growth: what a single guest or auditor can check with one file."""

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from nacl.signing import SigningKey

from audits.cli import verify
from audits.receipts import (
    verify_checkpoint,
    verify_growth,
    verify_intake,
    verify_receipt,
    verify_refusal,
    verify_tlog_proof,
)
from ledger.canon import base64, jcs, multikey
from ledger.errors import Malformed, NotProved, StaylogError
from ledger.identity import statements
from ledger.log.checkpoint import Checkpoint, open_checkpoint, sign_checkpoint
from ledger.log.cosignature import cosign
from ledger.log.note import Note
from ledger.log.openings import Opening, commitment
from ledger.log.policy import Policy
from ledger.log.tlog_proof import TlogProof
from ledger.log.tree import EMPTY_ROOT, leaf_hash
from tests.audits.bound import entered
from tests.hosting import notice
from tests.identities import Speaker
from tests.ledger.log.worked_example import WITNESS, WITNESS_KEY
from tests.reviewing import review
from tests.world import HOSTS, KEY, LOG, ORIGIN, World

HOST = Speaker(61, HOSTS[0])
SUBMISSION = review(host=HOST, review_text="Quiet.", private_feedback="The tap drips.")
UNPROVED = review(host=HOST, review_text="Quiet.", booking_evidence=None)
BOOKING = notice(HOST)
SALT = bytes(range(32))


def receipt(
    signed: dict[str, Any] = SUBMISSION, booking: dict[str, Any] | None = None, text: str | None = "Quiet."
) -> dict[str, Any]:
    world = World(11, HOSTS[:2]).grow(3)
    index = world.next_index
    kind = {"booking": "stay_receipt" if booking is None else "booking_notice"}
    sealed = {"commitment": commitment(SALT, jcs.dumps({"submission": signed, "booking": booking}))}
    members = entered(signed, text=world.commit(index, text), evidence=kind | sealed)
    world.review(members.pop("host_did"), **members)
    state = world.publish()
    entry = world.log.entries[index]
    proof = TlogProof(index, tuple(world.log.tree.inclusion(index, state.size)), state.note)
    return {
        "review_id": entry.members["review_id"],
        "status": "accepted",
        "verification_level": "guest_verified",
        "index": index,
        "entry": entry.data.decode(),
        "openings": {
            "text": world.log.openings[index].as_json() if text else None,
            "evidence": {"salt": base64.encode(SALT)},
        },
        "checkpoint": state.note,
        "tlog_proof": str(proof),
    }


RECEIPT = receipt()
LONGER = TlogProof.parse(RECEIPT["tlog_proof"])


def encoded(value: Any) -> bytes:
    return json.dumps(value).encode()


def test_a_receipt_of_a_redacted_text_says_that_it_is_not_shown() -> None:
    report = verify_receipt(encoded({**RECEIPT, "openings": {**RECEIPT["openings"], "text": None}}), LOG)
    assert report.withheld == ["the text that the entry commits to: it was redacted, or is not shown"]
    assert "the text is the one the entry commits to" not in report.proved


def test_a_receipt_proves_inclusion_and_text() -> None:
    report = verify_receipt(encoded({**RECEIPT, "private_feedback": "undeliverable"}), LOG)
    assert any(f"is entry {RECEIPT['index']} of" in line for line in report.proved)
    assert any("text" in line for line in report.proved)
    assert any("whose review" in line for line in report.not_proved)


def test_a_submission_opens_only_with_the_booking_that_was_used() -> None:
    on_notice = encoded(receipt(UNPROVED, BOOKING))
    assert verify_receipt(on_notice, LOG, submission=encoded(UNPROVED), booking=encoded(BOOKING))
    for submission, booking in ((UNPROVED, None), (SUBMISSION, encoded(BOOKING))):
        with pytest.raises(NotProved) as refusal:
            verify_receipt(on_notice, LOG, submission=encoded(submission), booking=booking)
        assert refusal.value.code == "opening_mismatch"


def test_a_receipt_without_text() -> None:
    assert verify_receipt(encoded(receipt(text=None)), LOG)


OTHER_ENTRY = World(12, HOSTS[:2]).grow(3).log.entries[-1].data.decode()
TAMPERED: list[tuple[str, dict[str, Any]]] = [
    ("receipt_mismatch", {"status": "pending"}),
    ("receipt_mismatch", {"verification_level": "unconfirmed"}),
    ("receipt_mismatch", {"review_id": "rev-" + "a" * 26}),
    ("receipt_mismatch", {"index": RECEIPT["index"] - 1}),
    ("receipt_mismatch", {"checkpoint": World(12).log.published[0].note}),
    ("receipt_mismatch", {"entry": OTHER_ENTRY}),
    ("root_mismatch", {"entry": RECEIPT["entry"].replace('"check_in":"2026-05', '"check_in":"2026-04')}),
    ("tlog_proof_extra", {"tlog_proof": str(TlogProof(LONGER.index, LONGER.path, LONGER.checkpoint, b"x"))}),
    ("proof_length", {"tlog_proof": str(TlogProof(LONGER.index, LONGER.path[:-1], LONGER.checkpoint))}),
    ("opening_mismatch", {"openings": {**RECEIPT["openings"], "text": Opening("Loud.", SALT).as_json()}}),
    ("opening_malformed", {"openings": {**RECEIPT["openings"], "text": "Quiet."}}),
    ("receipt_malformed", {"openings": {"text": None}}),
    ("receipt_malformed", {"openings": {**RECEIPT["openings"], "evidence": {"salt": None}}}),
    ("receipt_malformed", {"openings": {**RECEIPT["openings"], "evidence": {"salt": "AA=="}}}),
    ("receipt_malformed", {"openings": {**RECEIPT["openings"], "evidence": {"salt": base64.encode(SALT), "x": 1}}}),
    ("receipt_malformed", {"index": True}),
    ("receipt_malformed", {"entry": None}),
]  # fmt: skip


@pytest.mark.parametrize(("code", "changes"), TAMPERED, ids=[f"{i} {code}" for i, (code, _) in enumerate(TAMPERED)])
def test_tampered_receipts(code: str, changes: dict[str, Any]) -> None:
    with pytest.raises(StaylogError) as refusal:
        verify_receipt(encoded({**RECEIPT, **changes}), LOG)
    assert refusal.value.code == code


def test_a_receipt_is_an_object() -> None:
    with pytest.raises(Malformed) as refusal:
        verify_receipt(b"[]", LOG)
    assert refusal.value.code == "receipt_malformed"


def test_a_tlog_proof_with_and_without_witnesses() -> None:
    entry = RECEIPT["entry"].encode()
    assert verify_tlog_proof(RECEIPT["tlog_proof"], entry, LOG).size == open_checkpoint(RECEIPT["checkpoint"], LOG).size
    policy = Policy.parse(f"log {LOG}\nwitness w {WITNESS}\nquorum w\n")
    with pytest.raises(NotProved) as refusal:
        verify_tlog_proof(RECEIPT["tlog_proof"], entry, LOG, policy=policy)
    assert refusal.value.code == "quorum_missing"
    note = Note.parse(RECEIPT["checkpoint"])
    seen = Note(note.text, (*note.signatures, cosign(note.text, WITNESS.name, WITNESS_KEY, 1_771_147_800)))
    proof = str(TlogProof(LONGER.index, LONGER.path, str(seen)))
    report = verify_tlog_proof(proof, entry, LOG, policy=policy)
    assert "witness.example/w1 cosigned this checkpoint at 2026-02-15T09:30:00Z" in report.proved
    assert verify_receipt(encoded({**RECEIPT, "tlog_proof": proof, "checkpoint": str(seen)}), LOG, policy=policy)
    with pytest.raises(NotProved) as refusal:
        verify_receipt(encoded(RECEIPT), LOG, policy=policy)
    assert refusal.value.code == "quorum_missing"
    with pytest.raises(NotProved):
        verify_tlog_proof(RECEIPT["tlog_proof"], entry + b" ", LOG)


def test_growth() -> None:
    log = World(4).grow(6).log
    older, newer = log.published[1], log.published[-1]
    proof = log.tree.consistency(older.size, newer.size)
    report = verify_growth(older.note, newer.note, proof, LOG)
    assert any("unchanged" in line for line in report.proved)
    other = World(5).grow(6).log.published[-1]
    for first, second, path in ((older, newer, proof[1:]), (older, other, proof), (newer, older, proof)):
        with pytest.raises(NotProved):
            verify_growth(first.note, second.note, path, LOG)
    policy = Policy.parse(f"log {LOG}\nwitness w {WITNESS}\nquorum w\n")
    seen = newer.note + cosign(Note.parse(newer.note).text, WITNESS.name, WITNESS_KEY, 0).line()
    assert verify_growth(older.note, seen, proof, LOG, policy=policy).witnesses == (1, 1)
    with pytest.raises(NotProved) as refusal:
        verify_growth(older.note, newer.note, proof, LOG, policy=policy)
    assert refusal.value.code == "quorum_missing"


def test_growth_from_nothing() -> None:
    newer = World(4).grow(2).log.published[-1].note
    empty = sign_checkpoint(Checkpoint(ORIGIN, 0, EMPTY_ROOT), KEY)
    assert verify_growth(empty, newer, [], LOG)
    for older, proof in ((empty, [bytes(32)]), (sign_checkpoint(Checkpoint(ORIGIN, 0, bytes(32)), KEY), [])):
        with pytest.raises(NotProved):
            verify_growth(older, newer, proof, LOG)


def test_a_receipt_under_a_checkpoint_that_ends_in_the_review() -> None:
    """No honest log publishes such a checkpoint: its last leaf is a map head."""
    entry = RECEIPT["entry"].encode()
    note = sign_checkpoint(Checkpoint(ORIGIN, 1, leaf_hash(entry)), KEY)
    forged = {**RECEIPT, "index": 0, "checkpoint": note, "tlog_proof": str(TlogProof(0, (), note))}
    with pytest.raises(NotProved) as refusal:
        verify_receipt(encoded(forged), LOG)
    assert refusal.value.code == "map_head_not_last"


@pytest.mark.parametrize("timestamp", [0, 2**37, 2**63 - 1])
def test_any_time_a_witness_can_sign_is_told(timestamp: int) -> None:
    note = Note.parse(RECEIPT["checkpoint"])
    seen = Note(note.text, (*note.signatures, cosign(note.text, WITNESS.name, WITNESS_KEY, timestamp)))
    policy = Policy.parse(f"log {LOG}\nwitness w {WITNESS}\nquorum w\n")
    (told,) = [line for line in verify_checkpoint(str(seen), LOG, policy=policy).proved if "cosigned" in line]
    assert told.endswith("1970-01-01T00:00:00Z" if timestamp == 0 else "after 1970" if timestamp == 2**63 - 1 else "Z")


STATEMENTS = SigningKey(bytes([9] * 32))
STATEMENTS_KEY = bytes(STATEMENTS.verify_key)


def refusal(**changes: str) -> dict[str, Any]:
    said = {"type": "Refusal", "submission_sha256": sha256(jcs.dumps(SUBMISSION)).hexdigest(), "code": "too_late"}
    body = {**said, "at": "2026-06-01T12:00:00Z"}
    signed = statements.sign(body, STATEMENTS, "did:web:l.example#statements", now=datetime(2026, 6, 1, tzinfo=UTC))
    return {**signed, **changes}


def test_a_refusal_shows_who_refused_what_and_why() -> None:
    report = verify_refusal(encoded(refusal()), STATEMENTS_KEY, submission=encoded(SUBMISSION))
    assert report.proved == [
        "did:web:l.example#statements refused a submission as too_late, at 2026-06-01T12:00:00Z",
        "it is this submission that was refused",
    ]
    alone = verify_refusal(encoded(refusal()), STATEMENTS_KEY)
    assert "which submission it is about: show the signed submission too" in alone.not_proved


@pytest.mark.parametrize(
    ("code", "document", "submission"),
    [
        ("signature_invalid", refusal(code="expired"), SUBMISSION),
        ("signature_invalid", refusal(at="2026-06-02T12:00:00Z"), SUBMISSION),
        ("receipt_mismatch", refusal(), {**SUBMISSION, "review_text": "Loud."}),
        ("receipt_malformed", refusal(more="x"), SUBMISSION),
        ("receipt_malformed", {"type": "Refusal"}, SUBMISSION),
        ("receipt_malformed", {**refusal(), "proof": "x"}, SUBMISSION),
        ("signature_invalid", {**refusal(), "proof": {}}, SUBMISSION),
    ],
)
def test_other_refusals_do_not_hold(code: str, document: Any, submission: Any) -> None:
    with pytest.raises(StaylogError) as refused:
        verify_refusal(encoded(document), STATEMENTS_KEY, submission=encoded(submission))
    assert refused.value.code == code


def test_a_refusal_by_another_key_does_not_hold() -> None:
    with pytest.raises(NotProved):
        verify_refusal(encoded(refusal()), bytes(SigningKey(bytes(32)).verify_key))


def test_a_refusal_at_the_terminal(tmp_path: Path) -> None:
    for name, document in (("refusal.json", refusal()), ("review.json", SUBMISSION)):
        (tmp_path / name).write_bytes(encoded(document))
    files = [str(tmp_path / "refusal.json"), "--submission", str(tmp_path / "review.json")]
    done = CliRunner().invoke(verify, [*files, "--key", multikey.encode(STATEMENTS_KEY)])
    assert done.exit_code == 0, done.output
    assert "it is this submission that was refused" in done.output
    wrong = CliRunner().invoke(verify, [*files, "--key", "ledger.example/log+1+AAAA"])
    assert wrong.exit_code == 1


NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def intake(**changes: str) -> dict[str, Any]:
    said = {"type": "IntakeReceipt", "submission_sha256": sha256(jcs.dumps(SUBMISSION)).hexdigest()}
    times = {"received_at": "2026-06-01T12:00:00Z", "decide_by": "2026-06-04T12:00:00Z"}
    signed = {**said, **times, **changes}
    return statements.sign(signed, STATEMENTS, "did:web:l.example#statements", now=NOON)


def waiting(word: dict[str, Any]) -> dict[str, Any]:
    """The answer that it comes in."""
    return {"submission_id": "sub-x", "status_url": "https://l.example/v1/submissions/sub-x", "intake": word}


@pytest.mark.parametrize("shape", [lambda word: word, waiting])
def test_an_intake_receipt_shows_what_the_ledger_has_and_until_when_it_decides(shape: Any) -> None:
    document, submission = encoded(shape(intake())), encoded(SUBMISSION)
    report = verify_intake(document, STATEMENTS_KEY, now=NOON, submission=submission)
    taken = "did:web:l.example#statements took in a submission at 2026-06-01T12:00:00Z, to decide on it by "
    assert report.proved == [f"{taken}2026-06-04T12:00:00Z", "it is this submission that was taken in"]
    assert report.not_proved == ["what it will decide: there is time until 2026-06-04T12:00:00Z"]
    assert report.at == "2026-06-01T12:00:00Z"


def test_a_time_that_is_over_is_told_and_is_no_failure() -> None:
    in_time, late = (datetime(2026, 6, 4, 12, 0, second, tzinfo=UTC) for second in (0, 1))
    assert "over" not in str(verify_intake(encoded(intake()), STATEMENTS_KEY, now=in_time).proved)
    report = verify_intake(encoded(intake()), STATEMENTS_KEY, now=late)
    assert "the time to decide is over, by the clock here: 2026-06-04T12:00:01Z" in report.proved
    assert any(line.startswith("that it was not decided") for line in report.not_proved)
    assert "which submission it is about: show the signed submission too" in report.not_proved


@pytest.mark.parametrize(
    ("code", "document", "submission"),
    [
        ("signature_invalid", {**intake(), "decide_by": "2027-06-04T12:00:00Z"}, SUBMISSION),
        ("signature_invalid", {**intake(), "proof": {}}, SUBMISSION),
        ("receipt_mismatch", intake(), {**SUBMISSION, "review_text": "Loud."}),
        ("receipt_malformed", intake(decide_by="soon"), SUBMISSION),
        ("receipt_malformed", intake(type="Refusal"), SUBMISSION),
        ("receipt_malformed", intake(more="x"), SUBMISSION),
        ("receipt_malformed", {**intake(), "proof": "x"}, SUBMISSION),
        ("receipt_malformed", {"intake": None}, SUBMISSION),
        ("receipt_malformed", [], SUBMISSION),
    ],
)
def test_other_intake_receipts_do_not_hold(code: str, document: Any, submission: Any) -> None:
    with pytest.raises(StaylogError) as refused:
        verify_intake(encoded(document), STATEMENTS_KEY, now=NOON, submission=encoded(submission))
    assert refused.value.code == code


def test_an_intake_receipt_by_another_key_does_not_hold() -> None:
    with pytest.raises(NotProved):
        verify_intake(encoded(intake()), bytes(SigningKey(bytes(32)).verify_key), now=NOON)


def test_an_intake_receipt_at_the_terminal(tmp_path: Path) -> None:
    for name, document in (("a.json", intake()), ("b.json", waiting(intake())), ("review.json", SUBMISSION)):
        (tmp_path / name).write_bytes(encoded(document))
    key = ["--key", multikey.encode(STATEMENTS_KEY)]
    for name in ("a.json", "b.json"):
        done = CliRunner().invoke(verify, [str(tmp_path / name), *key, "--submission", str(tmp_path / "review.json")])
        assert done.exit_code == 0, done.output
        assert "it is this submission that was taken in" in done.output
    done = CliRunner().invoke(verify, [str(tmp_path / "a.json"), *key, "--booking", str(tmp_path / "review.json")])
    assert (done.exit_code, "does not apply to an intake receipt" in done.output) == (2, True)
