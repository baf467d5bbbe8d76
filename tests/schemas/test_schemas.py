"""The schemas say what the code does: they accept all that it accepts, and their lists are the code's lists."""

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain, product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from jsonschema_rs import Draft202012Validator, Registry, ValidationError, meta

import schemas
from audits import answer as audits_answer
from audits import receipts as audits_receipts
from ledger.canon import did, jcs, strict_json
from ledger.canon.times import check_date, check_time
from ledger.errors import BadEntry, BadJSON, Malformed, NotProved
from ledger.log import face, members
from ledger.log.answers import MAX_FULL_EVENTS, MAX_PAGE_EVENTS
from ledger.log.entries import MEMBERS, VRP_ARTIFACT, parse_entry
from ledger.log.hostmap import KEY_BITS
from ledger.log.members import BOOKINGS, CATEGORIES, LEVELS
from ledger.log.record_form import read_record
from schemas.vectors import make, world
from schemas.vectors.patch import Patch, add, remove, replace
from tests.interop.vectors import golden
from tests.patches import apply_patch
from tests.schemas.strategies import ENTRIES, Members, mutated_entries

ROOT = Path(__file__).parents[2]

SCHEMAS = {name: schemas.load(name) for name in schemas.NAMES}
REGISTRY = Registry([(schema["$id"], schema) for schema in SCHEMAS.values()])
EXAMPLES = max(1000, settings().max_examples)
TOLD = world.tell()
COMMON = SCHEMAS["common.v1.json"]["$defs"]
ENTRY_DEFS = SCHEMAS["entry.v1.json"]["$defs"]


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[name], registry=REGISTRY, offline=True)


ENTRY, RECORD, ANSWER, RECEIPT = (validator(f"{name}.v1.json") for name in ("entry", "record", "answer", "receipt"))


def valid(schema: Draft202012Validator, value: Any) -> bool:
    try:
        schema.validate(value)
    except ValidationError:
        return False
    return True


def check_entry(text: str) -> None:
    if parse_entry(text.encode()).type != VRP_ARTIFACT:
        ENTRY.validate(json.loads(text))


def check_answer(answer: dict[str, Any]) -> None:
    """The answer, and the texts inside its proof."""
    ANSWER.validate(answer)
    proof = answer["proof"]
    for text in (proof["map_head"], *(event["entry"] for event in proof.get("events", []))):
        check_entry(text)
    if proof["record"] is not None:
        RECORD.validate(json.loads(proof["record"]))


# The files themselves


@pytest.mark.parametrize("name", schemas.NAMES)
def test_schema_is_a_schema_that_teaches(name: str) -> None:
    schema = SCHEMAS[name]
    meta.validate(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == f"/schemas/{name}"
    for part in (schema, *schema.get("$defs", {}).values()):
        assert part["title"]
        assert part["description"].endswith(".")


def test_names_are_the_files_and_the_readme_names_them_all() -> None:
    folder = ROOT / "schemas"
    assert sorted(path.name for path in folder.glob("*.json")) == list(schemas.NAMES)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    for path in chain(folder.glob("*.json"), (folder / "vectors").glob("*.json")):
        assert path.name in readme
    with pytest.raises(KeyError, match=r"no schema '\.\./pyproject\.toml'"):
        schemas.load("../pyproject.toml")


def test_loading_needs_the_standard_library_only() -> None:
    code = (
        "import sys, schemas; [schemas.load(name) for name in schemas.NAMES]; "
        "sys.exit(bool({'jsonschema_rs', 'ledger', 'nacl', 'rfc8785'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


# The schemas and the code have the same lists


def test_every_entry_type_has_its_definition() -> None:
    assert set(ENTRY_DEFS) == set(MEMBERS)
    assert SCHEMAS["entry.v1.json"]["oneOf"] == [{"$ref": f"#/$defs/{name}"} for name in ENTRY_DEFS]


@pytest.mark.parametrize("type_", MEMBERS)
def test_entry_has_exactly_the_members_of_its_type(type_: str) -> None:
    definition = ENTRY_DEFS[type_]
    assert set(definition["properties"]) == set(definition["required"]) == {"type", "v", *MEMBERS[type_]}
    assert definition["additionalProperties"] is False
    assert definition["properties"]["type"] == {"const": type_}
    assert definition["properties"]["v"] == {"const": 1}


def test_enums_are_the_constants_of_the_code() -> None:
    def entry(type_: str, member: str) -> list[Any]:
        return list(ENTRY_DEFS[type_]["properties"][member]["enum"])

    assert COMMON["level"]["enum"] == list(LEVELS)
    assert COMMON["idv_level"]["enum"] == [*members.IDV_LEVELS, None]
    assert COMMON["booking"]["enum"] == [*BOOKINGS["guest_verified"], "none"]
    assert COMMON["rating"]["enum"] == [half_stars / 2 for half_stars in range(2, 11)]
    assert entry("booking_check", "outcome") == list(members.OUTCOMES)
    assert entry("issuer", "role") == list(members.ROLES)
    assert entry("issuer", "action") == list(members.ACTIONS)
    assert entry("redaction", "part") == list(members.PARTS)
    assert entry("redaction", "basis") == list(members.BASES)


def test_limits_are_those_of_the_code() -> None:
    proofs = SCHEMAS["answer.v1.json"]["$defs"]
    assert COMMON["count"]["maximum"] == strict_json.MAX_INTEGER
    assert COMMON["did"]["maxLength"] == did.MAX_BYTES
    assert proofs["proof_members"]["properties"]["map_proof"]["maxItems"] == KEY_BITS
    assert proofs["full_proof"]["properties"]["events"]["maxItems"] == MAX_FULL_EVENTS
    assert proofs["page_proof"]["properties"]["events"]["maxItems"] == MAX_PAGE_EVENTS


def test_levels_rest_on_the_bookings_of_the_code() -> None:
    rules = [rule["properties"] for rule in ENTRY_DEFS["review"]["oneOf"]]
    stated = {rule["level"]["const"]: rule["evidence"]["properties"]["booking"]["enum"] for rule in rules}
    assert stated == {level: list(bookings) for level, bookings in BOOKINGS.items()}


def test_categories_and_evidence_are_those_of_the_code() -> None:
    sums = SCHEMAS["record.v1.json"]["$defs"]["sums"]
    averages = SCHEMAS["answer.v1.json"]["properties"]["average_ratings"]
    rated = [name for name in CATEGORIES if name not in members.OPTIONAL_CATEGORIES]
    for definition in (COMMON["ratings"], sums, averages):
        assert list(definition["properties"]) == list(CATEGORIES)
        assert definition["additionalProperties"] is False
    assert COMMON["ratings"]["required"] == sums["anyOf"][1]["required"] == rated
    assert averages["required"] == list(CATEGORIES)
    assert set(COMMON["evidence"]["properties"]) == set(COMMON["evidence"]["required"]) == set(members._EVIDENCE)


def test_record_has_the_members_of_the_fold() -> None:
    record = json.loads(TOLD.log.answer(world.COTTAGE)["proof"]["record"])
    schema = SCHEMAS["record.v1.json"]
    assert set(schema["properties"]) == set(schema["required"]) == set(record)
    for member, names in (("reviews", LEVELS), ("ratings", LEVELS), ("checks", members.OUTCOMES)):
        inner = schema["properties"][member]
        assert list(inner["properties"]) == inner["required"] == list(names)
        assert inner["additionalProperties"] is False


def test_answer_has_the_members_of_the_code() -> None:
    schema = SCHEMAS["answer.v1.json"]
    told = TOLD.log.answer(world.COTTAGE)
    assert schema["required"] == [*face.summary(world.COTTAGE, None), "proof"]
    assert set(schema["properties"]) == {*told}
    assert set(schema["$defs"]["listed_review"]["required"]) == {*told["review_history"][0]}
    common = set(schema["$defs"]["proof_members"]["required"])
    for kind, names in audits_answer._MEMBERS.items():
        definition = schema["$defs"][f"{kind}_proof"]
        assert {*definition.get("required", []), *common} == names
        assert definition["unevaluatedProperties"] is False


def test_receipt_has_the_members_of_the_code() -> None:
    schema = SCHEMAS["receipt.v1.json"]
    assert set(schema["properties"]) == set(schema["required"]) == set(audits_receipts._MEMBERS)


# What the project makes is what the schemas describe


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
    RECEIPT.validate({**receipt, "private_feedback": "delivered"})
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
