"""The golden answers: what both verifiers accept, and that each tampering is refused for its reason."""

import json
from typing import Any

import pytest

from audits import standalone_verify
from audits.verify import verify_answer, verify_pages
from ledger.canon import strict_json
from ledger.errors import StaylogError
from ledger.log.memory import MemoryLog
from ledger.log.note import Verifier
from ledger.log.openings import Opening
from tests.interop.vectors import KEY, golden, rebuilt
from tests.patches import apply_patch

VECTORS = golden("answers.json")
LOG = Verifier.parse(VECTORS["vkey"])
ANSWERS = {case["name"]: case for case in VECTORS["answers"]}

# By the name of the case; a prefix that ends in `*` stands for all that start so.
CODES = {
    "omitted-event": "proof_length",
    "omitted-event-new-multiproof": "sub_root_mismatch",
    "omitted-event-new-record": "map_root_mismatch",
    "reordered-events": "index_order",
    "swapped-entries": "root_mismatch",
    "repeated-event": "index_order",
    "wrong-index": "root_mismatch",
    "index-beyond-size": "index_out_of_range",
    "index-of-map-head": "index_order",
    "index-true": "answer_malformed",
    "event-extra-member": "answer_malformed",
    "changed-rating": "root_mismatch",
    "log-proof-extra": "proof_length",
    "log-proof-short": "proof_length",
    "log-proof-order": "root_mismatch",
    "aggregate-log-proof-order": "root_mismatch",
    "hash-of-31-bytes": "hash_length",
    "base64-*": "base64_invalid",
    "size-changed": "signature_invalid",
    "root-changed": "signature_invalid",
    "other-key-same-name": "signer_unknown",
    "other-log": "signer_unknown",
    "origin-is-not-key-name": "origin_mismatch",
    "signature-cut": "note_malformed",
    "known-key-bad-signature": "signature_invalid",
    "older-map-head": "map_head_not_last",
    "older-checkpoint": "map_head_not_last",
    "newer-time-in-map-head": "root_mismatch",
    "event-as-map-head": "map_head_not_last",
    "changed-record": "map_root_mismatch",
    "other-hosts-record": "map_root_mismatch",
    "record-with-blanks": "map_root_mismatch",
    "map-sibling-*": "map_root_mismatch",
    "map-proof-empty": "map_path_length",
    "map-zeros-spelled-out": "map_zeros_spelled_out",
    "claimed-absent-zeros": "map_root_mismatch",
    "claimed-absent-own-leaf": "map_other_elsewhere",
    "claimed-absent-*": "hash_length",
    "absent-other-elsewhere": "map_other_elsewhere",
    "absent-other-extra-member": "map_other_malformed",
    "absent-with-events": "foreign_event",
    "absent-with-reviews": "face_mismatch",
    "absent-with-history": "history_mismatch",
    "record-and-map-other": "map_other_unexpected",
    "aggregate-without-record": "map_root_mismatch",
    "full-without-events": "wrong_kind",
    "proof-extra-member": "answer_malformed",
    "opening-changed": "opening_mismatch",
    "opening-long-salt": "hash_length",
    "opening-salt-*": "hash_length",
    "opening-of-*": "opening_unexpected",
    "opening-extra-member": "opening_malformed",
    "average-*": "face_mismatch",
    "total-*": "face_mismatch",
    "verified-wrong": "face_mismatch",
    "host-since-attested": "face_mismatch",
    "host-did-wrong": "face_mismatch",
    "aggregate-average-wrong": "face_mismatch",
    "history-*": "history_mismatch",
    "page-shifted": "sub_root_mismatch",
    "page-beyond-end": "index_out_of_range",
    "page-event-left-out": "proof_length",
    "page-skips-an-event": "sub_root_mismatch",
    "page-empty": "index_out_of_range",
    "page-sub-proof-order": "sub_root_mismatch",
    "page-sub-proof-extra": "proof_length",
    "page-as-full": "answer_malformed",
    "page-opening-changed": "opening_mismatch",
}
SIGNED_CODES = {
    "duplicate-review-id": "review_id_reused",
    "level-lowered": "entry_invalid",
    "second-response": "response_repeated",
    "response-wrong-index": "review_unknown",
    "response-late": "response_late",
    "redaction-before-response": "redaction_of_nothing",
    "time-falls": "time_falls",
    "verified-without-booking": "entry_invalid",
    "rating-between-steps": "entry_invalid",
    "two-hosts-by-duplicate-member": "entry_malformed",
    "record-events": "sub_root_mismatch",
    "record-root": "sub_root_mismatch",
    "record-*": "record_mismatch",
    "map-head-wrong-size": "map_head_not_last",
    "map-head-not-last": "map_head_not_last",
    "map-head-before-event": "time_falls",
    "map-head-without-time": "entry_invalid",
    "map-head-extra-member": "entry_invalid",
    "map-head-version": "entry_unknown_type",
}


def expected_code(name: str, codes: dict[str, str]) -> str:
    return codes.get(name) or next(code for key, code in codes.items() if key[-1] == "*" and name.startswith(key[:-1]))


def encoded(answer: Any) -> bytes:
    return json.dumps(answer).encode()


def patched(case: dict[str, Any]) -> tuple[bytes, dict[str, Any]]:
    base = ANSWERS[case["base"]]
    return encoded(apply_patch(base["answer"], case["patch"])), base


def standalone(*answers: bytes, did: str) -> list[str]:
    lines: list[str] = standalone_verify.verify([answer.decode() for answer in answers], VECTORS["vkey"], did)
    return lines


@pytest.fixture(scope="module")
def ledger() -> MemoryLog:
    """The log of log-32.json, with the openings the answers show."""
    log = rebuilt(golden("log-32.json")["entries"], KEY)
    for case in ANSWERS.values():
        for event in case["answer"]["proof"].get("events", []):
            if event["opening"]:
                log.openings[event["index"]] = Opening.parse(event["opening"])
    return log


@pytest.mark.parametrize("case", VECTORS["answers"], ids=lambda case: case["name"])
def test_the_answers_are_reproduced(case: dict[str, Any], ledger: MemoryLog) -> None:
    proof = case["answer"]["proof"]
    made = ledger.answer(case["did"], case["kind"], start=proof.get("from", 0), count=5)
    assert strict_json.loads(encoded(made)) == strict_json.loads(encoded(case["answer"]))


@pytest.mark.parametrize("case", VECTORS["answers"], ids=lambda case: case["name"])
def test_accepted(case: dict[str, Any]) -> None:
    report = verify_answer(encoded(case["answer"]), LOG, case["did"], kind=case["kind"])
    assert {str(index): state for index, state in report.texts.items()} == case["texts"]
    assert standalone(encoded(case["answer"]), did=case["did"])


@pytest.mark.parametrize("case", VECTORS["accepted_patches"], ids=lambda case: case["name"])
def test_accepted_patches(case: dict[str, Any]) -> None:
    answer, base = patched(case)
    report = verify_answer(answer, LOG, base["did"], kind=base["kind"])
    assert {str(index): state for index, state in report.texts.items()} == case["texts"]
    lines = standalone(answer, did=base["did"])
    for state in ("withheld", "redacted"):
        assert sum(line.startswith(state) for line in lines) == list(case["texts"].values()).count(state)


@pytest.mark.parametrize("case", VECTORS["rejected_patches"], ids=lambda case: case["name"])
def test_rejected_patches(case: dict[str, Any]) -> None:
    answer, base = patched(case)
    with pytest.raises(StaylogError) as refusal:
        verify_answer(answer, LOG, base["did"], kind=base["kind"])
    assert refusal.value.code == expected_code(case["name"], CODES)
    with pytest.raises(Exception):
        standalone(answer, did=base["did"])


@pytest.mark.parametrize("case", VECTORS["rejected_signed"], ids=lambda case: case["name"])
def test_rejected_although_signed(case: dict[str, Any]) -> None:
    with pytest.raises(StaylogError) as refusal:
        verify_answer(encoded(case["answer"]), LOG, case["did"], kind="full")
    assert refusal.value.code == expected_code(case["name"], SIGNED_CODES)
    with pytest.raises(standalone_verify.Wrong):
        standalone(encoded(case["answer"]), did=case["did"])


@pytest.mark.parametrize("case", VECTORS["ages"], ids=lambda case: f"{case['base']} from {case['oldest']}")
def test_ages(case: dict[str, Any]) -> None:
    base = ANSWERS[case["base"]]
    if case["accept"]:
        verify_answer(encoded(base["answer"]), LOG, base["did"], oldest=case["oldest"])
    else:
        with pytest.raises(StaylogError) as refusal:
            verify_answer(encoded(base["answer"]), LOG, base["did"], oldest=case["oldest"])
        assert refusal.value.code == "too_old"


@pytest.mark.parametrize("case", VECTORS["page_sets"], ids=lambda case: case.get("reason", "complete"))
def test_page_sets(case: dict[str, Any]) -> None:
    did = ANSWERS["page-0"]["did"]
    pages = [encoded(ANSWERS[name]["answer"]) for name in case["pages"]]
    if case["accept"]:
        report = verify_pages(pages, LOG, did)
        assert {str(index): state for index, state in report.texts.items()} == ANSWERS["full-12"]["texts"]
        assert standalone(*pages, did=did)
    else:
        with pytest.raises(StaylogError) as refusal:
            verify_pages(pages, LOG, did)
        assert refusal.value.code == "pages_incomplete"
        with pytest.raises(standalone_verify.Wrong):
            standalone(*pages, did=did)


@pytest.mark.parametrize("case", VECTORS["other_dids"], ids=lambda case: case["did"])
def test_other_spellings_of_the_did(case: dict[str, str]) -> None:
    answer = encoded(ANSWERS[case["base"]]["answer"])
    with pytest.raises(StaylogError):
        verify_answer(answer, LOG, case["did"])
    with pytest.raises(standalone_verify.Wrong):
        standalone(answer, did=case["did"])
