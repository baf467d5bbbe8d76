"""Each schema teaches, and names exactly the members, words and limits of the code."""

import json
import subprocess
import sys
from itertools import chain
from typing import Any

import pytest
from jsonschema_rs import meta

import schemas
from audits import answer as audits_answer
from audits import receipts as audits_receipts
from ledger.canon import did, strict_json
from ledger.log import face, members
from ledger.log.answers import MAX_FULL_EVENTS, MAX_PAGE_EVENTS
from ledger.log.entries import MEMBERS
from ledger.log.hostmap import KEY_BITS
from ledger.log.members import BOOKINGS, CATEGORIES, LEVELS
from schemas.vectors import world
from tests.schemas.validators import (
    COMMON,
    ENTRY_DEFS,
    ROOT,
    SCHEMAS,
    TOLD,
)


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
    rating = COMMON["rating"]
    assert (rating["minimum"], rating["maximum"], rating["multipleOf"]) == (1, 5, 0.5)
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
    averages = SCHEMAS["answer.v1.json"]["$defs"]["averages"]
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
    assert set(schema["properties"]) == {*told, "as_of", "host_key_changed_at", "issuers", "next_cursor", "statistics"}
    record = json.loads(told["proof"]["record"])
    assert schema["$defs"]["statistics"]["required"] == list(face.statistics(record) or ())
    assert set(schema["$defs"]["listed_review"]["required"]) == {*told["review_history"][0]}
    common = set(schema["$defs"]["proof_members"]["required"])
    for kind, names in audits_answer._MEMBERS.items():
        definition = schema["$defs"][f"{kind}_proof"]
        assert {*definition.get("required", []), *common} == names
        assert definition["unevaluatedProperties"] is False


def test_receipt_has_the_members_of_the_code() -> None:
    review, response = SCHEMAS["receipt.v1.json"], SCHEMAS["response-receipt.v1.json"]
    assert set(response["properties"]) - {"keys_seen"} == set(response["required"]) == set(audits_receipts._MEMBERS)
    assert set(review["required"]) == {*audits_receipts._MEMBERS, "verification_level"}
    assert set(review["properties"]) == {*review["required"], "private_feedback", "booking", "keys_seen"}
    upgrade = SCHEMAS["upgrade-receipt.v1.json"]
    assert set(upgrade["properties"]) - {"keys_seen"} == set(upgrade["required"]) == set(review["required"])
    for type_, schema in (("review", review), ("response", response), ("upgrade", upgrade)):
        assert set(schema["properties"]["openings"]["properties"]) == {"text", audits_receipts._OWN[type_]}


# What the project makes is what the schemas describe
