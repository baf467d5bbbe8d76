"""The published JSON Schemas, held against what others send: what is published is what is enforced."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator, Registry, ValidationError, ValidationErrorKind

import schemas

# No list in any form is longer. The validator finds every fault before it tells the first: a list of ten thousand wrong
# items would keep it busy for seconds.
MAX_ITEMS = 200
MOST_LISTED = 20
# The members of a proof whose own codes say more than that the form is wrong.
PROOF_CODES = {
    "type": "proof_type_not_supported",
    "cryptosuite": "proof_type_not_supported",
    "proofPurpose": "wrong_proof_purpose",
    "proofValue": "proof_value_invalid",
    "verificationMethod": "bad_verification_method",
    "domain": "wrong_domain",
    "@context": "context_not_allowed",
}


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


def faults(schema: str, definition: str, value: Any, *, beside: tuple[str, ...] = ()) -> list[Fault]:
    """What is wrong with `value` by a definition of a published schema, whatever its members named `beside` are."""
    if isinstance(value, dict) and beside:
        value = {name: None if name in beside else inner for name, inner in value.items()}
    if _has_long_list(value):
        return [Fault(next(_long_lists(value)), "maxItems", f"more than {MAX_ITEMS} items")]
    validator = _validator(schema, definition, beside)
    if validator.is_valid(value):
        return []
    found = [_fault(error) for error in validator.iter_errors(value)]
    # A date that has not even the form of one is told once.
    dates = {fault.path for fault in found if fault.keyword == "format"}
    return [fault for fault in found if fault.keyword != "pattern" or fault.path not in dates]


def told(found: Sequence[Fault]) -> str:
    """All of them in one line, the first few of many."""
    more = f" (and {len(found) - 3} more)" if len(found) > 3 else ""
    return "; ".join(map(str, found[:3])) + more


def _has_long_list(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_long_list(inner) for inner in value.values() if type(inner) is not str)
    return isinstance(value, list) and (len(value) > MAX_ITEMS or any(map(_has_long_list, value)))


def _long_lists(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _long_lists(inner, (*path, name))
    elif isinstance(value, list):
        if len(value) > MAX_ITEMS:
            yield path
        for number, inner in enumerate(value):
            yield from _long_lists(inner, (*path, number))


def listed(found: Sequence[Fault]) -> list[tuple[str, str]]:
    """Where and what, for machines: the first of many."""
    return [(fault.field, fault.message) for fault in found[:MOST_LISTED]]


@cache
def _validator(schema: str, definition: str, beside: tuple[str, ...]) -> Draft202012Validator:
    known = {f"/schemas/{name}": schemas.load(name) for name in schemas.NAMES}
    properties = known[f"/schemas/{schema}"]["$defs"][definition].get("properties", {})
    properties |= {name: True for name in beside if name in properties}
    reference = {"$ref": f"/schemas/{schema}#/$defs/{definition}"}
    # With formats: the pattern of a date cannot tell whether the day exists.
    return Draft202012Validator(reference, registry=Registry(list(known.items())), offline=True, validate_formats=True)


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
            return _patterns().get(facts["pattern"], "of another form than the schema says")
        case "format":
            return "a date that exists expected" if facts["format"] == "date" else "a time that exists expected"
        case "uniqueItems":
            return "an item appears twice"
        case _:
            return "none of the forms that the schema allows"


@cache
def _patterns() -> dict[str, str]:
    """What each pattern of the schemas is for."""
    found = {}
    for name in schemas.NAMES:
        for form in schemas.load(name).get("$defs", {}).values():
            if "pattern" in form:
                example = f", as {form['examples'][0]}" if "examples" in form else ""
                found[form["pattern"]] = f"{form['title'].lower()} expected{example}"
    return found


def _short(value: Any) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 200 else text[:200] + "..."
