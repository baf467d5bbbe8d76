"""The OpenSTR context defines every claim by name, protects it, and leaves nothing to a default."""

from collections.abc import Iterator
from typing import Any

import pytest

import schemas
from ledger.identity import contexts
from tests.identities import canonize

OURS: dict[str, Any] = schemas.load_context("openstr.v1.jsonld")["@context"]
CREDENTIALS = schemas.load("credentials.v1.json")["$defs"]
CLAIMS = ("guest_subject", "host_subject", "property", "reputation", "property_reputation")


def inside(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from inside(inner)


def test_no_term_is_left_to_a_default_and_all_are_protected() -> None:
    for part in inside(OURS):
        assert "@vocab" not in part
        assert "@base" not in part
        assert "@import" not in part
        if "@context" in part:
            assert part["@context"]["@protected"] is True
    assert OURS["@protected"] is True


@pytest.mark.parametrize("definition", CLAIMS)
def test_every_claim_has_a_term(definition: str) -> None:
    """With the type that its values have: a flag, a number and a time are not text."""
    types = {
        "boolean": "boolean",
        "count": "integer",
        "rating": "double",
        "percentage": "integer",
        "moment": "dateTime",
    }
    for name, form in CREDENTIALS[definition]["properties"].items():
        if name == "id":
            continue
        term = OURS[name]
        kind = form.get("type") or form.get("$ref", "").rpartition("/")[2]
        expected = f"http://www.w3.org/2001/XMLSchema#{types[kind]}" if kind in types else None
        assert (term.get("@type") if isinstance(term, dict) else None) == expected, name
        assert (term["@id"] if isinstance(term, dict) else term) == f"https://openstr.org/vocab#{name}"


def test_every_term_is_a_claim_a_type_or_the_suite() -> None:
    claims = {name for definition in CLAIMS for name in CREDENTIALS[definition]["properties"]}
    types = {"OpenSTRGuestCredential", "OpenSTRHostCredential", "Ed25519Signature2020", "@protected"}
    assert OURS.keys() == (claims - {"id"}) | types


def test_the_suite_is_defined_as_its_own_context_does() -> None:
    """Otherwise a credential with both contexts would redefine a protected term."""
    suite = contexts._read(contexts.ED25519_2020_V1)["@context"]["Ed25519Signature2020"]
    assert OURS["Ed25519Signature2020"] == suite


def test_only_pinned_contexts_are_loaded() -> None:
    assert contexts.canonicaliser() is contexts.canonicaliser()
    assert set(contexts.PINS) == {url for allowed in contexts.ALLOWED for url in allowed}
    assert CREDENTIALS["context"]["enum"] == list(contexts.ALLOWED)
    for url in contexts.PINS:
        assert canonize({"@context": url, "@id": "urn:x", "@type": "urn:y"})
