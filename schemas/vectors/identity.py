"""Credentials, statements and guest references, with every step between them and their signatures.

Needs the `server` extra, unlike the other vectors.
"""

from datetime import UTC, datetime, timedelta
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import jcs, multikey, proofs
from ledger.canon.times import format_time
from ledger.identity import statements
from ledger.identity.contexts import OPENSTR_V1, PINS, canonicaliser
from ledger.identity.did import did_key
from ledger.identity.guestref import guest_ref, person
from ledger.identity.issuing import issue
from schemas.vectors.patch import Patch, add, remove, replace

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
LEDGER = "https://stays.example"
IDV = "https://passport.example"
KEYS = {name: SigningKey(bytes([seed] * 32)) for name, seed in (("issuer", 0x51), ("guest", 0x52), ("host", 0x53))}
PUBLIC = {name: multikey.encode(bytes(key.verify_key)) for name, key in KEYS.items()}
GUEST, HOST = (did_key(bytes(KEYS[name].verify_key)) for name in ("guest", "host"))
STATUS = {
    "id": f"{IDV}/status/1#77",
    "type": "BitstringStatusListEntry",
    "statusPurpose": "revocation",
    "statusListIndex": "77",
    "statusListCredential": f"{IDV}/status/1",
}
SUBJECTS: dict[str, dict[str, Any]] = {
    "guest": {
        "id": GUEST,
        "idv_level": "identity_verified",
        "idv_method": "Passport chip read, with a liveness check",
        "issuer_guest_id": "ig-55",
        "phone_verified": True,
    },
    "host": {
        "id": HOST,
        "host_type": "individual",
        "identity_verified": True,
        "identity_verified_at": "2026-03-28T09:15:00+01:00",
        "issuer_host_id": "ih-7",
        "properties": [
            {
                "listing_id": listing,
                "property_ref": f"pr-{listing}",
                "right_to_let_verified": True,
                "right_to_let_verified_at": "2026-03-29T14:00:00Z",
                "right_to_let_method": "Land registry",
                "address_verified": True,
                "country": "GB",
                "property_reputation": {"property_rating": 4.7, "verified_stays": 31},
            }
            for listing in ("rose-cottage", "loft-2")
        ],
        "reputation": {"aggregate_rating": 5.0, "rating_count": 40},
    },
}
# name, role, patch of the credential with all three proofs, code
REFUSED: tuple[tuple[str, str, Patch, str], ...] = (
    ("a changed claim", "guest", [replace("/credentialSubject/idv_level", "payment_verified")], "proof_invalid"),
    ("a claim left out", "guest", [remove("/credentialSubject/phone_verified")], "proof_invalid"),
    ("true as text", "guest", [replace("/credentialSubject/phone_verified", "true")], "schema_invalid"),
    ("an undefined term", "guest", [add("/credentialSubject/vip", True)], "undefined_term"),
    ("a context appended", "guest", [add("/@context/-", "https://evil.example/v1")], "context_not_allowed"),
    ("a context inside", "guest", [add("/credentialSubject/@context", {})], "context_not_allowed"),
    ("another issuer", "guest", [replace("/issuer", "https://other.example")], "issuer_not_trusted"),
    (
        "another origin of the key",
        "guest",
        [replace("/proof/2/verificationMethod", "https://other.example/keys/1")],
        "issuer_key_mismatch",
    ),
    ("another purpose", "guest", [replace("/proof/2/proofPurpose", "authentication")], "wrong_proof_purpose"),
    ("a chain of proofs", "guest", [add("/proof/0/previousProof", "urn:uuid:1")], "proof_chain"),
    ("no known proof", "guest", [replace("/proof", [{"type": "Ed25519Signature2018"}])], "proof_type_not_supported"),
    ("an expired one", "guest", [replace("/validUntil", "2026-05-31T12:00:00Z")], "expired"),
    ("a host's as a guest's", "guest", [replace("/type/1", "OpenSTRHostCredential")], "wrong_credential_type"),
    (
        "a right to let withdrawn",
        "host",
        [replace("/credentialSubject/properties/0/right_to_let_verified", False)],
        "proof_invalid",
    ),
    (
        "a listing twice",
        "host",
        [
            replace("/credentialSubject/properties/1/listing_id", "rose-cottage"),
            replace("/credentialSubject/properties/1/property_ref", "pr-rose-cottage"),
        ],
        "schema_invalid",
    ),
)


def credentials() -> dict[str, Any]:
    """The file `credentials.json`."""
    made = {role: credential(role) for role in SUBJECTS}
    return {
        "about": "Credentials of OpenSTR RFC-004 by a trusted issuer, judged at `now`. For each proof: the canonical "
        "proof options and document, and the 64 bytes that are signed, two SHA-256 hashes. A refused one is its base "
        "after an RFC 6902 patch; `code` says why. The contexts are those whose SHA-256 (of their JCS form) is given.",
        "warning": "Test keys: their seeds are public. Never use them anywhere else.",
        "now": format_time(NOW),
        "contexts": PINS,
        "openstr_context": f"{OPENSTR_V1} is contexts/openstr.v1.jsonld",
        "seeds": {name: bytes(key).hex() for name, key in KEYS.items()},
        "trusted": [{"role": role, "issuer": IDV, "keys": [PUBLIC["issuer"]]} for role in SUBJECTS],
        "credentials": [
            {"role": role, "credential": document, "proofs": [_steps(document, proof) for proof in document["proof"]]}
            for role, document in made.items()
        ],
        "refused": [{"name": name, "role": role, "patch": patch, "code": code} for name, role, patch, code in REFUSED],
    }


def credential(role: str) -> dict[str, Any]:
    """With all three proofs."""
    return issue(
        role,
        SUBJECTS[role],
        id_=f"{IDV}/credentials/{role}-1",
        issuer=IDV,
        method=f"{IDV}/keys/1",
        key=KEYS["issuer"],
        valid_from=NOW - timedelta(days=10),
        valid_until=NOW + timedelta(days=70),
        status=STATUS,
        canonize=canonicaliser().canonize,
        suites=(proofs.ED25519_2020, proofs.EDDSA_RDFC, proofs.EDDSA_JCS),
    )


def _steps(document: dict[str, Any], proof: dict[str, Any]) -> dict[str, Any]:
    bare = {name: value for name, value in document.items() if name != "proof"}
    options = {name: value for name, value in proof.items() if name != "proofValue"}
    if proofs.suite_of(proof) == proofs.EDDSA_JCS:
        canonical = [jcs.dumps(options), jcs.dumps(bare)]
    else:
        canonical = canonicaliser().canonize({**options, "@context": document["@context"]}, bare)
    return {
        "suite": proofs.suite_of(proof),
        "canonical_options": canonical[0].decode(),
        "canonical_document": canonical[1].decode(),
        "signed": proofs.signed_bytes(bare, proof, canonicaliser().canonize).hex(),
    }


def spoken() -> dict[str, Any]:
    """The file `statements.json`."""
    stay = {"booking_reference": "ROSE-42", "listing_id": "rose-cottage", "host_did": HOST}
    dates = {"check_in": "2026-05-20", "check_out": "2026-05-24"}
    receipt = _signed(
        "host",
        {"type": "StayReceipt", **stay, "guest_did": GUEST, **dates, "issued_at": "2026-04-01T09:00:00Z"},
        domain=None,
    )
    ratings = {"overall": 4.5, "accuracy": 5, "cleanliness": 4, "communication": 5, "value": 4}
    review = {"guest_credential": credential("guest"), **dates, "ratings": ratings, "review_text": "Quiet. Dry."}
    response = {"review_id": "rev-" + "a" * 26, "host_did": HOST, "response_text": "Thank you."}
    return {
        "about": "Statements for the ledger `domain`, at `now`, and what it keeps of the guest. `signed` is the 64 "
        "bytes under the signature: SHA-256 of the JCS proof options, and of the JCS statement without its proof.",
        "warning": "Test keys: their seeds are public. Never use them anywhere else.",
        "now": format_time(NOW),
        "domain": LEDGER,
        "seeds": {name: bytes(key).hex() for name, key in KEYS.items()},
        "statements": [
            _heard(receipt),
            _heard(_signed("guest", {"type": "ReviewSubmission", **stay, **review, "booking_evidence": receipt})),
            _heard(_signed("host", {"type": "HostResponse", **response})),
        ],
        "guest_references": [_reference(host) for host in (HOST, "did:web:cottage.example")],
    }


def _signed(speaker: str, body: dict[str, Any], domain: str | None = LEDGER) -> dict[str, Any]:
    did = {"guest": GUEST, "host": HOST}[speaker]
    return statements.sign(body, KEYS[speaker], f"{did}#{PUBLIC[speaker]}", now=NOW, domain=domain)


def _heard(statement: dict[str, Any]) -> dict[str, Any]:
    bare = {name: value for name, value in statement.items() if name != "proof"}
    return {"statement": statement, "signed": proofs.signed_bytes(bare, statement["proof"]).hex()}


def _reference(host: str) -> dict[str, str]:
    pepper = bytes(range(32))
    return {
        "key_id": "p1",
        "pepper": pepper.hex(),
        "host_did": host,
        "guest_did": GUEST,
        "guest_ref": guest_ref("p1", pepper, host, GUEST),
        "issuer": IDV,
        "issuer_guest_id": "ig-55",
        "person": person(pepper, host, IDV, "ig-55").hex(),
    }
