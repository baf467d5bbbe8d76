"""Answers, receipts and records: more members where that is allowed, no other form anywhere else."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ledger.canon import jcs
from ledger.errors import NotProved
from ledger.log.record_form import read_record
from schemas.vectors import make
from schemas.vectors.patch import Patch, add, remove, replace
from tests.patches import apply_patch
from tests.schemas.validators import (
    ANSWER,
    RECEIPT,
    RECORD,
    TOLD,
    valid,
)

ANSWERS = {each["name"]: each["answer"] for each in make.answers(TOLD)["answers"]}
HASH_31 = "A" * 42 + "=="


@pytest.mark.parametrize(
    ("base", "patch"),
    [
        ("full", [add("/as_of", {"size": 35}), add("/next_cursor", None)]),
        ("full", [add("/review_history/0/issuer_status", "compromised")]),
        ("full", [replace("/review_history", [])]),
        ("full", [replace("/review_history/3/host_response", None)]),
        ("full", [replace("/proof/events/0/opening", None), replace("/review_history/4/review_text", None)]),
        ("absent-zeros", [add("/about", "an unknown host")]),
    ],
)
def test_answers_may_have_more_members_and_fewer_texts(base: str, patch: Patch) -> None:
    ANSWER.validate(apply_patch(ANSWERS[base], patch))


@pytest.mark.parametrize(
    ("base", "patch"),
    [
        ("full", [remove("/proof")]),
        ("full", [remove("/host_since")]),
        ("full", [remove("/review_history")]),
        ("full", [remove("/proof/events")]),
        ("full", [add("/proof/extra", 1)]),
        ("full", [add("/proof/from", 0)]),
        ("full", [add("/proof/events/0/extra", 1)]),
        ("full", [add("/proof/events/0/opening/extra", 1)]),
        ("full", [remove("/proof/events/0/opening")]),
        ("full", [replace("/proof/events/0/index", True)]),
        ("full", [replace("/proof/events/0/opening/salt", HASH_31)]),
        ("full", [replace("/proof/events", [])]),
        ("full", [replace("/proof/log_proof/0", HASH_31)]),
        ("full", [replace("/proof/log_proof/0", "")]),
        ("full", [replace("/proof/map_proof", [])]),
        ("full", [replace("/proof/map_proof/1", "A" * 43 + "=")]),
        ("full", [replace("/proof/map_other", {"key": "A" * 43 + "=", "value": "A" * 43 + "="})]),
        ("full", [replace("/proof/record", None)]),
        ("full", [replace("/proof/checkpoint", "stays.example/log\n35\n")]),
        ("full", [replace("/total_reviews", True)]),
        ("full", [replace("/average_ratings/overall", 5.1)]),
        ("full", [remove("/average_ratings/location")]),
        ("full", [replace("/review_history/0/ratings/overall", 4.25)]),
        ("full", [replace("/review_history/0/evidence/booking", "hearsay")]),
        ("full", [add("/review_history/3/host_response/extra", 1)]),
        ("full", [remove("/review_history/0/repeat")]),
        ("aggregate", [add("/review_history", [])]),
        ("page-3", [add("/review_history", [])]),
        ("page-3", [replace("/proof/events", [])]),
        ("page-3", [replace("/proof/from", -1)]),
        ("page-3", [remove("/proof/sub_proof")]),
        ("page-3", [replace("/proof/record", None)]),
        ("absent-other", [add("/proof/map_other/extra", 1)]),
        ("absent-other", [replace("/proof/map_other/key", HASH_31)]),
        ("absent-zeros", [replace("/proof/events", ANSWERS["full"]["proof"]["events"])]),
    ],
)
def test_answers_of_another_form_are_not_valid(base: str, patch: Patch) -> None:
    assert not valid(ANSWER, apply_patch(ANSWERS[base], patch))


@pytest.mark.parametrize(
    "patch",
    [
        [replace("/status", "pending")],
        [replace("/verification_level", "verified")],
        [replace("/index", 5.5)],
        [remove("/openings/evidence")],
        [add("/openings/extra", 1)],
        [add("/openings/evidence/text", "")],
        [replace("/openings/evidence/salt", HASH_31)],
        [replace("/tlog_proof", "c2sp.org/tlog-proof@v1\nextra eA==\nindex 5\n\n")],
    ],
)
def test_receipts_of_another_form_are_not_valid(patch: Patch) -> None:
    assert not valid(RECEIPT, apply_patch(make.receipt(TOLD)["receipt"], patch))


@pytest.mark.parametrize(
    "patch",
    [
        [replace("/events", 0)],
        [replace("/v", 2)],
        [remove("/checks/denied")],
        [add("/histogram/-", 0)],
        [replace("/ratings/guest_verified/overall", [1])],
        [replace("/ratings/guest_verified/overall", [0, 0])],
        [remove("/ratings/guest_verified/value")],
        [add("/ratings/unconfirmed/charm", [1, 10])],
        [replace("/last_event", None)],
        [add("/score", 5)],
    ],
)
def test_records_of_another_form_are_not_valid(patch: Patch) -> None:
    record = json.loads(ANSWERS["full"]["proof"]["record"])
    RECORD.validate(record)
    assert not valid(RECORD, apply_patch(record, patch))


def test_code_accepts_only_records_that_the_schema_accepts() -> None:
    """Every value inside a record, replaced by others, and every member of it dropped."""

    def paths(value: Any, path: str = "") -> Iterator[str]:
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        for name, member in inner:
            yield f"{path}/{name}"
            yield from paths(member, f"{path}/{name}")

    seen = set()
    for name in ("full", "full-redacted", "full-unconfirmed", "full-no-texts"):
        host, record = ANSWERS[name]["host_did"], json.loads(ANSWERS[name]["proof"]["record"])
        for path in paths(record):
            others: tuple[Any, ...] = (
                None,
                True,
                -1,
                0,
                1,
                2,
                3.5,
                10**15,
                "",
                "2026-01-01",
                "2026-01-01T00:00:00Z",
                [],
                {},
                [1, 10],
            )
            for patch in (remove(path), *(replace(path, other) for other in others)):
                changed = apply_patch(record, [patch])
                try:
                    read_record(jcs.dumps(changed).decode(), host)
                except NotProved:
                    seen.add(("refused", valid(RECORD, changed)))
                else:
                    seen.add(("accepted", valid(RECORD, changed)))
    assert seen == {("accepted", True), ("refused", False), ("refused", True)}
