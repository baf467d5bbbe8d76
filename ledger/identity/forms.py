"""The published JSON Schemas, held against what others send: what is published is what is enforced."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry, ValidationError, ValidationErrorKind

import schemas

# A document that is all wrong is told the first things.
MOST_FAULTS = 20


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, the keyword of the schema that says so, and in words."""

    path: tuple[str | int, ...]
    keyword: str
    message: str

    @property
    def field(self) -> str:
        return ".".join(map(str, self.path))

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.path else self.message


def faults(schema: str, definition: str, value: Any) -> list[Fault]:
    """What is wrong with `value` by a definition of a published schema."""
    validator = _validator(schema, definition)
    if validator.is_valid(value):
        return []
    found = []
    for error in validator.iter_errors(value):
        found.append(_fault(error))
        if len(found) == MOST_FAULTS:
            break
    return found


def told(found: Sequence[Fault]) -> str:
    """All of them in one line, the first few of many."""
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(map(str, found[:3])) + more


@cache
def _validator(schema: str, definition: str) -> Draft202012Validator:
    known = {f"/schemas/{name}": schemas.load(name) for name in schemas.NAMES}
    reference = {"$ref": f"/schemas/{schema}#/$defs/{definition}"}
    return Draft202012Validator(reference, registry=Registry(list(known.items())), offline=True)


def _fault(error: ValidationError) -> Fault:
    return Fault(tuple(error.instance_path), error.kind.name, _in_words(error.kind))


def _in_words(kind: ValidationErrorKind) -> str:
    """Without the value: it may be long, and it is known to who sent it."""
    facts = kind.as_dict()
    match kind.name:
        case "required":
            return f"the member {facts['property']!r} is missing"
        case "additionalProperties" | "unevaluatedProperties":
            return f"there is no member {', '.join(repr(name[:60]) for name in facts['unexpected'][:5])}"
        case "type":
            return f"{' or '.join(facts['types'])} expected"
        case "enum":
            return f"one of {_short(facts['options'])} expected"
        case "const":
            return f"{_short(facts['expected_value'])} expected"
        case "maxLength":
            return f"more than {facts['limit']} characters"
        case "minLength":
            return "empty" if facts["limit"] == 1 else f"fewer than {facts['limit']} characters"
        case "maxItems" | "minItems":
            return f"{'more' if kind.name == 'maxItems' else 'fewer'} than {facts['limit']} items"
        case "minimum" | "maximum":
            return f"{'less' if kind.name == 'minimum' else 'more'} than {facts['limit']}"
        case "multipleOf":
            return f"a multiple of {facts['multiple_of']} expected"
        case "pattern":
            return "of another form than the schema says"
        case "uniqueItems":
            return "an item appears twice"
        case _:
            return "none of the forms that the schema allows"


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 200 else text[:200] + "..."
