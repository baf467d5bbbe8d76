"""The standalone verifier refuses what the library refuses, under the good signature of an operator who signs anything."""

import json
import re
from contextlib import suppress
from typing import Any

import pytest

from audits import standalone_verify
from audits.verify import verify_answer, verify_pages
from ledger.canon import base64, jcs
from ledger.errors import StaylogError
from ledger.log.face import statistics, summary
from ledger.log.note import Verifier
from tests.browser.verifying import ANSWERS, AT, FORGED, GOLDEN, forged
from tests.world import HOSTS

HOST = HOSTS[0]
SUMS = {"accuracy": [2, 17], "cleanliness": [2, 18], "communication": [2, 19], "overall": [2, 17], "value": [2, 20]}
NONE = {"guest_verified": 0, "host_attested": 0, "unconfirmed": 0}
RECORD: dict[str, Any] = {
    "v": 1,
    "host": HOST,
    "events": 3,
    "root": base64.encode(bytes(32)),
    "last_event": AT,
    "reviews": {**NONE, "guest_verified": 2},
    "ratings": {"guest_verified": SUMS, "host_attested": {}, "unconfirmed": {}},
    "histogram": [0, 0, 0, 0, 0, 0, 1, 1, 0],
    "repeats": 0,
    "responses": 1,
    "redactions": 0,
    "checks": {"conflict": 0, "contradicted": 0, "denied": 0, "unanswered": 0},
    "first_stay": "2026-01-01",
}
FULL, FULL_KEY = ANSWERS["own full"]


def verdicts(text: str, key: str = str(FORGED), host: str = HOST) -> tuple[bool, bool]:
    """Whether the standalone verifier accepts, and whether the library does."""
    accepted = []
    for check in (
        lambda: standalone_verify.verify([text], key, host),
        lambda: (verify_pages if text.startswith("[") else _one)([text.encode()], Verifier.parse(key), host),
    ):
        try:
            check()
            accepted.append(True)
        except (StaylogError, standalone_verify.Wrong, ValueError, TypeError, LookupError):
            accepted.append(False)
    return accepted[0], accepted[1]


def _one(documents: list[bytes], log: Verifier, host: str) -> object:
    return verify_answer(documents[0], log, host)


def aggregate(record: str, **changes: Any) -> str:
    """What the answer says beside the record follows from it, so that nothing but the record is wrong."""
    told = {**summary(HOST, RECORD), "statistics": statistics(RECORD)}
    with suppress(KeyError, ValueError):
        members = json.loads(record)
        told = {**summary(HOST, members), "statistics": statistics(members)}
    return json.dumps({**forged(HOST, record, (), told), **changes})


def test_accepts_a_record_that_events_could_give() -> None:
    assert verdicts(aggregate(jcs.dumps(RECORD).decode())) == (True, True)


@pytest.mark.parametrize(
    "changes",
    [
        {"histogram": [0, 0, 0, 0, 0, 0, 2, 0, 0]},
        {"histogram": [0, 0, 0, 0, 0, 0, 1, 2, 0]},
        {"repeats": 3},
        {"responses": 3, "events": 5},
        {"redactions": 4, "events": 7},
        {"events": 2},
        {"events": 6},
        {"first_stay": None},
        {"first_stay": "2026-02-30"},
        {"last_event": "2026-01-01"},
        {"reviews": {**NONE, "guest_verified": 2, "unconfirmed": 1}, "events": 4},
        {"checks": {**RECORD["checks"], "denied": 3}},
        {"ratings": {**RECORD["ratings"], "guest_verified": {**SUMS, "value": [2, 21]}}},
        {"ratings": {**RECORD["ratings"], "guest_verified": {**SUMS, "value": [1, 10]}}},
        {"ratings": {**RECORD["ratings"], "guest_verified": {**SUMS, "location": [0, 0]}}},
        {"ratings": {**RECORD["ratings"], "guest_verified": {**SUMS, "location": [3, 20]}}},
        {"ratings": {**RECORD["ratings"], "host_attested": {"overall": [1, 2]}}},
        {"ratings": {"guest_verified": SUMS}},
        {"more": 1},
        {"v": 2},
        {"root": base64.encode(bytes(31))},
    ],
    ids=json.dumps,
)
def test_refuses_a_record_that_no_events_give(changes: dict[str, Any]) -> None:
    assert verdicts(aggregate(jcs.dumps({**RECORD, **changes}).decode())) == (False, False)


@pytest.mark.parametrize("spelled", ["3.0", "3e0", "3.0000000000000001", "03", "3.5", '"3"', "-3"])
def test_refuses_a_count_that_is_no_plain_integer(spelled: str) -> None:
    record = jcs.dumps(RECORD).decode()
    assert verdicts(aggregate(record.replace('"events":3', f'"events":{spelled}'))) == (False, False)


@pytest.mark.parametrize("told", [None, {}, 0, False, {"events": 3}, {**RECORD}])
def test_refuses_statistics_that_are_not_all_of_the_record(told: Any) -> None:
    assert verdicts(aggregate(jcs.dumps(RECORD).decode(), statistics=told)) == (False, False)


@pytest.mark.parametrize("form", ["{}.0", "{}.0000000000000001", "{}e0", "{}E+00", '"{}"', "[{}]"])
def test_refuses_an_index_that_is_no_plain_integer(form: str) -> None:
    text, index = json.dumps(FULL["answer"]), FULL["answer"]["proof"]["events"][0]["index"]
    spelled = text.replace(f'"index": {index}, "opening"', f'"index": {form.format(index)}, "opening"')
    assert verdicts(text, FULL_KEY, FULL["did"]) == (True, True)
    assert verdicts(spelled, FULL_KEY, FULL["did"]) == (False, False)


@pytest.mark.parametrize(
    ("more", "accepted"),
    [
        (r'"x": "\ud83c\udf39"', True),
        (r'"x": "\ud800"', False),
        (r'"\udc00": 1', False),
        ('"x": 9007199254740991', True),
        ('"x": 9007199254740992', False),
        ('"x": 9007199254740992.0', False),
        ('"x": 1e21', True),
        ('"x": 1e400', False),
        ('"x": ' + "[" * 15 + '"[[[["' + "]" * 15, True),
        ('"x": ' + "[" * 16 + "]" * 16, False),
    ],
)
def test_reads_json_as_strictly(more: str, accepted: bool) -> None:
    text = f"{json.dumps(FULL['answer'])[:-1]}, {more}}}"
    assert verdicts(text, FULL_KEY, FULL["did"]) == (accepted, accepted)


@pytest.mark.parametrize(
    ("did", "accepted"),
    [
        ("did:web:" + "a" * 248, True),
        ("did:web:" + "a" * 249, False),
        ("did:jwk:" + "a" * 248, True),
        ("did:jwk:" + "a" * 249, False),
        ("did:web:a%3A65535", True),
        ("did:web:a%3A65536", False),
        ("did:web:a%3A66000:b", False),
        ("did:web:a%3A70000", False),
        ("did:web:a%3A7000:bbbbb", True),
        ("did:web:a%3A4430", True),
        ("did:web:a%3A443", False),
        ("did:web:a%3A443:b", False),
    ],
)
def test_reads_dids_as_strictly(did: str, accepted: bool) -> None:
    """That of the host, and that of an issuer in an entry."""
    answer = forged(did, None, (), {**summary(did, None)})
    assert verdicts(json.dumps(answer), host=did) == (accepted, accepted)
    entry = json.loads(FULL["answer"]["proof"]["events"][0]["entry"])
    entry["evidence"]["issuer"] = did
    if accepted:
        assert standalone_verify.read_entry(jcs.dumps(entry).decode())
    else:
        with pytest.raises(standalone_verify.Wrong):
            standalone_verify.read_entry(jcs.dumps(entry).decode())


def test_reads_pages_in_one_array() -> None:
    cases = {case["name"]: case for case in GOLDEN["answers"]}
    [names, *_] = [each["pages"] for each in GOLDEN["page_sets"] if "code" not in each]
    pages, host = [cases[name]["answer"] for name in names], cases[names[0]]["did"]
    key = GOLDEN["vkey"]
    assert verdicts(json.dumps(pages), key, host) == (True, True)
    assert verdicts(json.dumps(pages[:-1]), key, host) == (False, False)
    assert verdicts(json.dumps(pages[:1]), key, host) == (False, False)
    assert verdicts(json.dumps([pages]), key, host) == (False, False)
    assert verdicts("[]", key, host) == (False, False)


def test_no_day_has_an_hour_24() -> None:
    """From 3.14 on Python reads it as midnight of the next day."""
    assert re.fullmatch(standalone_verify.TIME, '"2026-01-01T23:00:00Z"')
    assert not re.fullmatch(standalone_verify.TIME, '"2026-01-01T24:00:00Z"')


def test_reads_an_index_head() -> None:
    """It names no host, and so stands in no answer: a verifier that does not know it gives another reason."""
    head = {"type": "index_head", "v": 1, "seq": 0, "count": 2**53 - 1, "root": base64.encode(bytes(32)), "at": AT}
    assert standalone_verify.read_entry(jcs.dumps(head).decode()) == head
    for changes in ({"seq": -1}, {"count": 2**53}, {"root": ""}, {"at": "2026-02-30T00:00:00Z"}, {"host_did": HOST}):
        with pytest.raises((standalone_verify.Wrong, ValueError)):
            standalone_verify.read_entry(json.dumps({**head, **changes}, sort_keys=True, separators=(",", ":")))
