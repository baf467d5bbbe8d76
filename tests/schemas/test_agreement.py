"""Schema and code agree: what the code accepts the schema accepts, and it says what it leaves to the code."""

import json
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from ledger.canon import did, jcs
from ledger.canon.times import check_date, check_time
from ledger.errors import BadEntry, BadJSON, Malformed
from ledger.log.entries import MEMBERS, VRP_ARTIFACT, parse_entry
from schemas.vectors import make, world
from schemas.vectors.patch import replace
from tests.identities import statement
from tests.interop.vectors import golden
from tests.patches import apply_patch
from tests.schemas.strategies import ENTRIES, Members, mutated_entries
from tests.schemas.validators import (
    ENTRY,
    EXAMPLES,
    RECEIPT,
    RECORD,
    TOLD,
    check_answer,
    check_entry,
    valid,
)

# What shows a booking that the submission does not show itself.
BOOKINGS_OF_RECEIPTS = ("BookingNotice", "BookingClaim", "BookingVerification")


def test_a_ledger_of_every_type_and_all_its_answers_are_valid() -> None:
    log = TOLD.log
    assert {entry.type for entry in log.entries} == {*MEMBERS, VRP_ARTIFACT}
    for entry in log.entries:
        check_entry(entry.data.decode())
    kinds = set()
    hosts = (world.COTTAGE, world.HARBOUR, world.CABIN, world.MILL, world.BARN, world.ABSENT_ZEROS)
    for host, state, kind in product(hosts, log.published, ("full", "aggregate", "page")):
        answer = log.answer(host, kind, size=state.size, count=2)
        check_answer(answer)
        proof = answer["proof"]
        kinds.add((len(proof), proof["record"] is None, proof["map_other"] is None))
    # Present in full, as aggregate and as page; absent by zeros and by another leaf.
    assert kinds == {(size, False, True) for size in (6, 7, 9)} | {(n, True, z) for n in (6, 7) for z in (True, False)}


def test_the_receipt_of_a_review_is_valid() -> None:
    receipt = make.receipt(TOLD)["receipt"]
    RECEIPT.validate(receipt)
    for outcome in ("sealed", "undeliverable"):
        RECEIPT.validate({**receipt, "private_feedback": outcome})
    assert not valid(RECEIPT, {**receipt, "private_feedback": "delivered"})
    for kind in BOOKINGS_OF_RECEIPTS:
        RECEIPT.validate({**receipt, "booking": statement(kind)})
    for other in ("StayReceipt", "ReviewSubmission"):
        assert not valid(RECEIPT, {**receipt, "booking": statement(other)})
    RECEIPT.validate(apply_patch(receipt, [replace("/openings/text", None)]))


def test_public_entries_records_and_receipts_are_valid() -> None:
    log, record, receipt = (golden(f"{name}.json") for name in ("log-32", "record", "receipt"))
    for text in (*log["entries"], *receipt["log_entries"], *(step["entry"] for step in record["steps"])):
        check_entry(text)
    for step in record["steps"]:
        RECORD.validate(json.loads(step["record"]))
    RECEIPT.validate(receipt["receipt"])


def test_public_answers_are_valid() -> None:
    answers = golden("answers.json")
    by_name = {each["name"]: each["answer"] for each in answers["answers"]}
    for answer in by_name.values():
        check_answer(answer)
    for case in answers["accepted_patches"]:
        check_answer(apply_patch(by_name[case["base"]], case["patch"]))


# What the schemas accept, and what they leave to the code


@pytest.mark.parametrize("type_", MEMBERS)
def test_schema_and_code_accept_valid_entries(type_: str) -> None:
    @settings(max_examples=EXAMPLES // 20)
    @given(ENTRIES[type_])
    def accepted_by_both(entry: Members) -> None:
        assert parse_entry(jcs.dumps(entry)).type == type_
        ENTRY.validate(entry)

    accepted_by_both()


@settings(max_examples=EXAMPLES)
@given(mutated_entries())
def test_code_accepts_only_what_the_schema_accepts(entry: Members) -> None:
    """And where only the code refuses, it is for a reason that the schemas' descriptions name."""
    try:
        data = jcs.dumps(entry)
    except BadJSON:
        assert not valid(ENTRY, entry)
        return
    parsed = json.loads(data)
    try:
        parse_entry(data)
    except BadEntry:
        assert not valid(ENTRY, parsed) or any(beyond_schemas(parsed))
    else:
        assert valid(ENTRY, parsed)


def beyond_schemas(entry: Members) -> Iterator[bool]:
    """Whether an entry of valid form breaks the rules that a schema cannot say."""

    def refuses(check: Any, value: Any) -> bool:
        try:
            check(value)
        except (ValueError, Malformed):
            return True
        return False

    issuers = [entry.get("issuer"), entry.get("evidence", {}).get("issuer")]
    for value in (entry.get("host_did"), *(issuer for issuer in issuers if str(issuer).startswith("did:"))):
        yield value is not None and refuses(did.check, value)
    for name, check in (("at", check_time), ("since", check_time), ("check_in", check_date), ("check_out", check_date)):
        yield entry.get(name) is not None and refuses(check, entry[name])
    if entry["type"] == "review":
        yield entry["check_out"] <= entry["check_in"]


def told_entry(type_: str, **changed: Any) -> str:
    entry = next(entry for entry in TOLD.log.entries if entry.type == type_)
    return jcs.dumps({**entry.members, **changed}).decode()


LAST_DAY, HOUR_24 = "9999-12-31T23:59:59Z", "2026-01-01T24:00:00Z"


@pytest.mark.parametrize(
    ("type_", "member", "accepted", "refused"),
    [
        ("map_head", "size", [0, 2**53 - 1], [-1, 0.5, 1e21, True, "1", None]),
        (
            "map_head",
            "root",
            ["A" * 43 + "=", "/" * 42 + "8="],
            ["A" * 42 + "B=", "A" * 44, "A" * 43, "A" * 40, "-" * 43 + "="],
        ),
        (
            "map_head",
            "at",
            [LAST_DAY, "2024-02-29T00:00:00Z"],
            [HOUR_24, "2026-13-01T00:00:00Z", "2026-01-01T00:00:60Z"],
        ),
        (
            "genesis",
            "origin",
            ["a", "é/log", "a\ufeffb", "a\x7f"],
            ["", "a+b", "a b", "a\u0085", "a\u3000b", "a\x1f", "a\n"],
        ),
        ("genesis", "previous", [None, "old.example/log"], ["", 0]),
        (
            "issuer",
            "issuer",
            ["https://a", "https://a:1/[x]?q#f", "did:jwk:_"],
            ["https://", "http://a", "https://a b", "https://[::1]", "https://u:p@a", "a", "did:ion:x"],
        ),
        ("issuer", "issuer", ["https://" + "a" * 253], ["https://" + "a" * 254]),
        ("issuer", "issuer", ["https://a/" + "a" * 1800], ["https://a/" + "a" * 1801]),
        ("issuer", "since", [None, LAST_DAY], ["2026-01-01", HOUR_24, 0]),
        ("review", "check_in", ["0001-01-01"], ["2026-00-01", "2026-01-00", "2026-01-32", "26-01-01", "2026-1-1"]),
        ("review", "listing_id", ["~", "a" * 128], ["", "a" * 129, "a/b", "a b", "a\n", "é"]),
        (
            "review",
            "review_id",
            ["rev-" + "a" * 25 + "y", "rev-" + "7" * 25 + "4"],
            ["rev-" + "a" * 25 + "z", "rev-" + "A" * 26],
        ),
        (
            "review",
            "host_did",
            ["did:web:" + "a" * 248, "did:key:z1"],
            ["did:web:" + "a" * 249, "did:key:z0", "did:key:f1"],
        ),
        (
            "review",
            "host_did",
            ["did:web:a-b.c%3A1:%C3%BC"],
            ["did:web:a%3a80", "did:web:a:%c3", "did:web:a:", "did:web:A", "did:web:a."],
        ),
        ("review", "repeat", [True, False], [0, 1, None, "true"]),
        ("review", "text", [None], [""]),
        ("review", "v", [1.0], [2, True, "1", None]),
    ],
)
def test_schema_and_code_agree_at_the_edges(type_: str, member: str, accepted: list[Any], refused: list[Any]) -> None:
    for value in accepted:
        text = told_entry(type_, **{member: value})
        parse_entry(text.encode())
        ENTRY.validate(json.loads(text))
    for value in refused:
        text = told_entry(type_, **{member: value})
        with pytest.raises(BadEntry):
            parse_entry(text.encode())
        assert not valid(ENTRY, json.loads(text)), text


@pytest.mark.parametrize(
    ("code", "text"),
    [
        pytest.param("entry_invalid", told_entry("review", check_out="2026-02-30"), id="a date that does not exist"),
        pytest.param("entry_invalid", told_entry("review", check_in="0000-01-01"), id="the year 0"),
        pytest.param("entry_invalid", told_entry("policy", at="2026-02-29T00:00:00Z"), id="a time that does not exist"),
        pytest.param("entry_invalid", told_entry("review", check_out="2026-01-01"), id="a stay that ends too early"),
        pytest.param("entry_invalid", told_entry("review", check_out="2026-02-06"), id="a stay without a night"),
        pytest.param("entry_invalid", told_entry("review", host_did="did:web:a..example"), id="two dots in a host"),
        pytest.param("entry_invalid", told_entry("review", host_did="did:web:a.example%3A443"), id="the default port"),
        pytest.param("entry_invalid", told_entry("review", host_did="did:web:a.example%3A70000"), id="no such port"),
        pytest.param("entry_invalid", told_entry("review", host_did="did:web:a.example:%41"), id="a needless escape"),
        pytest.param("entry_too_large", told_entry("genesis", origin="a" * 65_535), id="too many bytes for a leaf"),
        pytest.param("entry_not_canonical", told_entry("policy").replace(",", ", "), id="blanks between members"),
        pytest.param("entry_unknown_type", told_entry("policy").replace('"v":1', '"v":1.0'), id="1.0 for 1"),
        pytest.param("entry_malformed", told_entry("policy").replace('"v":1', '"v":1,"v":1'), id="a repeated member"),
    ],
)
def test_only_the_code_refuses(code: str, text: str) -> None:
    ENTRY.validate(json.loads(text))
    with pytest.raises(BadEntry) as refusal:
        parse_entry(text.encode())
    assert refusal.value.code == code
