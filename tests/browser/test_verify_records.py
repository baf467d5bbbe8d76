"""The page and Python's verifier agree about hosts' records: of events that break a rule, and without their events."""

import json
from contextlib import suppress
from typing import Any

import pytest

from ledger.canon import base64, jcs
from ledger.errors import StaylogError
from ledger.log.entries import parse_entry
from ledger.log.record import HostFold, sublog_leaf
from ledger.log.tree import root_of
from tests.browser.browser import Browser
from tests.browser.verifying import AT, FORGED, agree, answer_case, forged, reports
from tests.interop.vectors import golden
from tests.world import HOSTS

RECORD = golden("record.json")
pytestmark = pytest.mark.usefixtures("verify_page")


def test_rules_that_a_signing_operator_breaks(browser: Browser) -> None:
    """Sequences without a record, under a good signature, each with the last record that there was."""
    host, cases = RECORD["host"], []
    for case in RECORD["no_record"]:
        texts, state = case["entries"], HostFold(host)
        with suppress(StaylogError):
            for at, text in enumerate(texts, 2):
                state.add(at, parse_entry(text.encode()))
        record = state.record().decode()
        cases.append(answer_case(case["name"], forged(host, record, texts), str(FORGED), host))
    codes = agree(browser, cases)
    assert len(codes) == len(RECORD["no_record"]) > 40
    assert None not in codes


FOLDED = {
    *("review_id_reused", "review_unknown", "response_repeated", "response_late", "upgrade_not_unconfirmed"),
    *("redaction_of_nothing", "redaction_repeated"),
}


def broken_rules_found(browser: Browser) -> set[str | None]:
    """Which rules the page itself finds broken, where number and root of the events are right."""
    host, cases = RECORD["host"], []
    for case in RECORD["no_record"]:
        try:
            entries = [parse_entry(text.encode()) for text in case["entries"]]
        except StaylogError:
            continue
        root = root_of([sublog_leaf(2 + at, entry.leaf_hash) for at, entry in enumerate(entries)])
        record = jcs.dumps({"events": len(entries), "root": base64.encode(root)}).decode()
        cases.append(answer_case(case["name"], forged(host, record, case["entries"]), str(FORGED), host))
    return {report.code for report in reports(browser, cases)}


def test_the_page_finds_each_broken_rule_itself(browser: Browser) -> None:
    assert broken_rules_found(browser) >= FOLDED


HUGE = 2**53 - 1
FACE = {"host_did": HOSTS[0], "host_since": "2026-01-01", "total_reviews": 2, "verified_reviews": 2}
SUMS = {"accuracy": [2, 17], "cleanliness": [2, 18], "communication": [2, 19], "overall": [2, 17], "value": [2, 20]}
GOOD_RECORD: dict[str, Any] = {
    "v": 1,
    "host": HOSTS[0],
    "events": 2,
    "root": base64.encode(bytes(32)),
    "last_event": AT,
    "reviews": {"guest_verified": 2, "host_attested": 0, "unconfirmed": 0},
    "ratings": {"guest_verified": SUMS, "host_attested": {}, "unconfirmed": {}},
    "histogram": [0, 0, 0, 0, 0, 0, 1, 1, 0],
    "repeats": 0,
    "responses": 0,
    "redactions": 0,
    "checks": {"conflict": 0, "contradicted": 0, "denied": 0, "unanswered": 0},
    "first_stay": "2026-01-01",
}
MEANS = {"overall": 4.3, "accuracy": 4.3, "cleanliness": 4.5, "communication": 4.8, "value": 5.0, "location": None}


def huge_record(verified: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """As many reviews as integers allow: ten times a sum of their stars is no integer of JavaScript."""
    stars = 2 * verified + 1
    sums = {name: [verified, stars] for name in SUMS}
    record = {
        **GOOD_RECORD,
        "events": verified,
        "reviews": {**GOOD_RECORD["reviews"], "guest_verified": verified},
        "ratings": {**GOOD_RECORD["ratings"], "guest_verified": sums},
        "histogram": [verified - 1, 1, 0, 0, 0, 0, 0, 0, 0],
    }
    means = dict.fromkeys(SUMS, (10 * stars + verified) // (2 * verified) / 10)
    face = {**FACE, "total_reviews": verified, "verified_reviews": verified}
    return record, {**face, "average_ratings": {**means, "location": None}}


def test_records_without_their_events(browser: Browser) -> None:
    face = {**FACE, "average_ratings": MEANS}
    records: list[tuple[Any, dict[str, Any]]] = [
        (GOOD_RECORD, face),
        huge_record(HUGE // 2 - 1),
        huge_record(10**15 + 1),
    ]
    records += [({**GOOD_RECORD, name: value}, face) for name, values in BAD_MEMBERS.items() for value in values]
    records += [({name: value for name, value in GOOD_RECORD.items() if name != left}, face) for left in GOOD_RECORD]
    records += [({**GOOD_RECORD, "more": 1}, face), ([], face), (5, face), (None, face)]
    texts = [(jcs.dumps(record).decode(), face) for record, face in records]
    texts += [("", face), ("{", face), (json.dumps(GOOD_RECORD), face), (f"{texts[0][0]} ", face)]
    cases = [
        answer_case(f"{number}: {text[:300]}", forged(HOSTS[0], text, (), face), str(FORGED), HOSTS[0])
        for number, (text, face) in enumerate(texts)
    ]
    codes = agree(browser, cases)
    assert codes[:3] == [None] * 3
    assert set(codes[3:]) == {"record_invalid", None, "face_mismatch"}
    assert codes[3:].count("record_invalid") > 50


BAD_MEMBERS: dict[str, list[Any]] = {
    "v": [2, True, "1", None],
    "host": [HOSTS[1], "did:web:UPPER.example", None, 7],
    "events": [0, 1, 3, 4, 5, HUGE, -1, 2.5, "2", None],
    "root": ["", base64.encode(bytes(31)), None, "A" * 43 + "B"],
    "last_event": ["2026-02-30T00:00:00Z", "2026-01-01", None, "0000-01-01T00:00:00Z", "2026-01-01T24:00:00Z"],
    "first_stay": [None, "2026-02-29", "2024-02-29", "0001-01-01", 1],
    "reviews": [
        {**GOOD_RECORD["reviews"], "guest_verified": 3},
        {**GOOD_RECORD["reviews"], "host_attested": 1},
        {**GOOD_RECORD["reviews"], "unconfirmed": HUGE},
        {"guest_verified": 2},
        [2, 0, 0],
        None,
    ],
    "ratings": [
        {**GOOD_RECORD["ratings"], "guest_verified": {**SUMS, **more}}
        for more in (
            *({"overall": [2, 18]}, {"overall": [2, 3]}, {"value": [2, 21]}, {"value": [1, 10]}, {"value": [2, 20, 1]}),
            *(
                {"location": [2, 20]},
                {"location": [1, 10]},
                {"location": [0, 0]},
                {"location": [3, 20]},
                {"charm": [2, 20]},
            ),
            *({"value": [2, HUGE]}, {"value": [True, 20]}, {"value": "ab"}, {"value": None}, {"value": [2, 19.5]}),
        )
    ]
    + [
        {"guest_verified": SUMS},
        {**GOOD_RECORD["ratings"], "unconfirmed": {"overall": [1, 2]}},
        None,
        {**GOOD_RECORD["ratings"], "unconfirmed": []},
    ],
    "histogram": [[0] * 9, [0] * 8, [0, 0, 0, 0, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 0, 1, 1, 0.5], {}, None, [HUGE] * 9],
    "repeats": [1, 2, 3, HUGE, -1, None],
    "responses": [1, 3, HUGE],
    "redactions": [1, 3, "0"],
    "checks": [{**GOOD_RECORD["checks"], "denied": 1}, {}, {**GOOD_RECORD["checks"], "lost": 0}, None],
}
