"""The published schemas as validators that resolve their references offline."""

import json
from pathlib import Path
from typing import Any

from hypothesis import settings
from jsonschema_rs import Draft202012Validator, Registry, ValidationError

import schemas
from ledger.log.entries import VRP_ARTIFACT, parse_entry
from schemas.vectors import world

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
