"""The vectors of credentials and statements show what they say, also to another canonicaliser and another Argon2."""

from hashlib import sha256
from typing import Any

import pytest

from ledger.canon import multikey, proofs
from ledger.canon.times import parse_time
from ledger.errors import StaylogError
from ledger.identity import statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.credentials import verify
from ledger.identity.did import offline
from ledger.identity.issuers import Issuer, Registry
from schemas.vectors import identity
from tests.ledger.canon.test_rdf import oracle
from tests.ledger.identity.test_guestref import defined_person, defined_reference
from tests.patches import apply_patch
from tests.schemas.test_vectors import read

CREDENTIALS, STATEMENTS = read("credentials.json"), read("statements.json")
BASES = {each["role"]: each["credential"] for each in CREDENTIALS["credentials"]}
TRUST = Registry(
    Issuer(each["role"], each["issuer"], "trusted", tuple(each["keys"])) for each in CREDENTIALS["trusted"]
)


def judge(document: Any, role: str) -> str:
    try:
        return verify(document, role, TRUST, parse_time(CREDENTIALS["now"]), canonicaliser().canonize).suite
    except StaylogError as refusal:
        return refusal.code


@pytest.mark.parametrize("role", BASES)
def test_each_proof_holds_by_itself(role: str) -> None:
    for proof in BASES[role]["proof"]:
        assert judge({**BASES[role], "proof": proof}, role) == proofs.suite_of(proof)


@pytest.mark.parametrize("each", CREDENTIALS["credentials"], ids=lambda each: each["role"])
def test_steps_are_what_two_canonicalisers_say(each: dict[str, Any]) -> None:
    document = {name: value for name, value in each["credential"].items() if name != "proof"}
    assert [step["suite"] for step in each["proofs"]] == [
        proofs.suite_of(proof) for proof in each["credential"]["proof"]
    ]
    for step, proof in zip(each["proofs"], each["credential"]["proof"], strict=True):
        canonical = step["canonical_options"].encode(), step["canonical_document"].encode()
        assert b"".join(sha256(part).digest() for part in canonical).hex() == step["signed"]
        if step["suite"] != proofs.EDDSA_JCS:
            options = {name: value for name, value in proof.items() if name != "proofValue"}
            assert canonical == (oracle({**options, "@context": document["@context"]}), oracle(document))


@pytest.mark.parametrize("case", CREDENTIALS["refused"], ids=lambda case: case["name"])
def test_changed_credentials_are_refused(case: dict[str, Any]) -> None:
    changed = apply_patch(BASES[case["role"]], case["patch"])
    assert judge(changed, case["role"]) == case["code"]


@pytest.mark.parametrize("each", STATEMENTS["statements"], ids=lambda each: each["statement"]["type"])
def test_statements_are_heard(each: dict[str, Any]) -> None:
    body = each["statement"]
    heard = statements.verify(
        body, body["type"], domain=STATEMENTS["domain"], now=parse_time(STATEMENTS["now"]), resolve=offline
    )
    speaker = "guest" if body["type"] == "ReviewSubmission" else "host"
    assert multikey.encode(heard.key) == identity.PUBLIC[speaker]
    bare = {name: value for name, value in body.items() if name != "proof"}
    assert proofs.signed_bytes(bare, body["proof"]).hex() == each["signed"]


@pytest.mark.parametrize("each", STATEMENTS["guest_references"], ids=lambda each: each["host_did"])
def test_references_are_as_defined(each: dict[str, str]) -> None:
    pepper = bytes.fromhex(each["pepper"])
    assert each["guest_ref"] == defined_reference(each["key_id"], pepper, each["host_did"], each["guest_did"])
    person = defined_person(pepper, each["host_did"], each["issuer"], each["issuer_guest_id"])
    assert each["person"] == person.hex()


def test_keys_are_marked_as_test_keys() -> None:
    for vectors in (CREDENTIALS, STATEMENTS):
        assert "Never use them anywhere else" in vectors["warning"]
        assert set(vectors["seeds"]) == {"issuer", "guest", "host"}
