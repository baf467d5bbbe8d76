"""The committed vectors: made again they are the same bytes, and they show what they say they show."""

import json
from pathlib import Path
from typing import Any

import pytest

from audits import standalone_verify
from audits.answer import parse_answer
from audits.receipts import verify_receipt
from audits.verify import verify_answer, verify_pages
from ledger.errors import StaylogError
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier
from ledger.log.replay import Replay
from schemas.vectors import make, world
from tests.patches import apply_patch

FOLDER = Path(make.__file__).parent


def read(name: str) -> Any:
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


def dump(value: Any) -> bytes:
    return json.dumps(value).encode()


def standalone(*answers: Any, did: str) -> list[str]:
    lines: list[str] = standalone_verify.verify([json.dumps(answer) for answer in answers], LEDGER["vkey"], did)
    return lines


LEDGER, RECEIPT, ANSWERS = read("ledger.json"), read("receipt.json"), read("answers.json")
LOG = Verifier.parse(LEDGER["vkey"])
BY_NAME = {each["name"]: each for each in ANSWERS["answers"]}


def test_making_the_vectors_again_gives_the_same_bytes() -> None:
    made = make.files()
    assert sorted(made) == sorted(path.name for path in FOLDER.glob("*.json"))
    for name, text in made.items():
        assert (FOLDER / name).read_bytes() == text.encode(), f"{name}: run python -m schemas.vectors.make"


@pytest.mark.parametrize("vectors", [LEDGER, RECEIPT, ANSWERS], ids=["ledger", "receipt", "answers"])
def test_keys_are_marked_as_test_keys(vectors: Any) -> None:
    assert vectors["vkey"] == str(LOG)
    assert vectors["test_key"]["name"] == LOG.name
    assert "Never use it anywhere else" in vectors["test_key"]["warning"]


def test_ledger_replays_and_every_checkpoint_signs_it() -> None:
    replay, signed = Replay(), {state["size"]: state["checkpoint"] for state in LEDGER["checkpoints"]}
    for text in LEDGER["entries"]:
        replay.add(text.encode())
        if note := signed.pop(replay.tree.size, None):
            replay.require_head()
            assert open_checkpoint(note, LOG).root == replay.tree.root()
    assert not signed


@pytest.mark.parametrize("name", BY_NAME)
def test_answer_verifies_with_its_kind_and_texts(name: str) -> None:
    vector = BY_NAME[name]
    report = verify_answer(dump(vector["answer"]), LOG, vector["did"], kind=vector["kind"])
    assert {str(index): state for index, state in report.texts.items()} == vector["texts"]
    assert standalone(vector["answer"], did=vector["did"])


def test_answers_show_every_kind_and_every_state_of_a_text() -> None:
    assert {each["kind"] for each in ANSWERS["answers"]} == {"full", "aggregate", "page"}
    states = {state for each in ANSWERS["answers"] for state in each["texts"].values()}
    assert states == {"open", "redacted", "withheld", "unasked"}
    for name, by_other in (("absent-zeros", False), ("absent-other", True)):
        proof = BY_NAME[name]["answer"]["proof"]
        assert proof["record"] is None
        assert (proof["map_other"] is not None) == by_other


@pytest.mark.parametrize("variant", ANSWERS["tampered"], ids=lambda variant: str(variant["name"]))
def test_tampered_answer_is_refused_with_its_code(variant: Any) -> None:
    base = BY_NAME[variant["base"]]
    answer = apply_patch(base["answer"], variant["patch"])
    with pytest.raises(StaylogError) as refusal:
        verify_answer(dump(answer), LOG, base["did"], kind=base["kind"])
    assert refusal.value.code == variant["code"]
    if variant["code"] == "wrong_kind":
        # The standalone verifier is not told which kind was asked for; it says what the other kind leaves open.
        assert any("sums are right" in line for line in standalone(answer, did=base["did"]))
    else:
        with pytest.raises(Exception):
            standalone(answer, did=base["did"])


def test_tampering_is_not_caught_by_parsing_alone() -> None:
    """Nine in ten variants are well-formed: it is the checks that refuse them."""
    names = [variant["name"] for variant in ANSWERS["tampered"]]
    assert len(set(names)) == len(names)
    well_formed = 0
    for variant in ANSWERS["tampered"]:
        try:
            parse_answer(dump(apply_patch(BY_NAME[variant["base"]]["answer"], variant["patch"])))
            well_formed += 1
        except StaylogError:
            pass
    assert well_formed >= 0.9 * len(names)


@pytest.mark.parametrize("page_set", ANSWERS["page_sets"], ids=lambda page_set: "+".join(page_set["pages"]))
def test_page_sets(page_set: Any) -> None:
    pages = [dump(BY_NAME[name]["answer"]) for name in page_set["pages"]]
    if "code" not in page_set:
        report = verify_pages(pages, LOG, page_set["did"])
        assert {str(index): state for index, state in report.texts.items()} == page_set["texts"]
        assert standalone(*(BY_NAME[name]["answer"] for name in page_set["pages"]), did=page_set["did"])
        return
    with pytest.raises(StaylogError) as refusal:
        verify_pages(pages, LOG, page_set["did"])
    assert refusal.value.code == page_set["code"]
    if len(pages) > 1:
        with pytest.raises(standalone_verify.Wrong):
            standalone(*(BY_NAME[name]["answer"] for name in page_set["pages"]), did=page_set["did"])


def test_refuses_the_submission_that_is_not_signed() -> None:
    assert verify_receipt(dump(RECEIPT["receipt"]), LOG).proved
    with pytest.raises(StaylogError) as refusal:
        verify_receipt(dump(RECEIPT["receipt"]), LOG, submission=dump(RECEIPT["submission"]))
    assert (refusal.value.code, refusal.value.message) == (
        "entry_differs_from_submission",
        "the submission is not signed",
    )


@pytest.mark.parametrize("variant", RECEIPT["tampered"], ids=lambda variant: str(variant["name"]))
def test_tampered_receipt_is_refused_with_its_code(variant: Any) -> None:
    receipt = apply_patch(RECEIPT["receipt"], variant["patch"])
    with pytest.raises(StaylogError) as refusal:
        verify_receipt(dump(receipt), LOG, submission=dump(RECEIPT["submission"]))
    assert refusal.value.code == variant["code"]


def test_example_is_a_host_with_five_reviews_a_response_and_a_redaction() -> None:
    data = (FOLDER / "example-answer.json").read_bytes()
    report = verify_answer(data, LOG, world.COTTAGE, kind="full")
    answer = json.loads(data)
    record = json.loads(answer["proof"]["record"])
    assert answer["total_reviews"] == len(answer["review_history"]) == 5
    assert (record["responses"], record["redactions"]) == (1, 1)
    assert sorted(report.texts.values()) == ["open"] * 5 + ["redacted"]
