"""Row 11: verdicts on credentials by suite and on a statement, in Ed25519 verifications; and the refusal of poison."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from nacl.signing import SigningKey

from benchmarks.measure import alternate, cpu_per_call, ed25519_verification, require
from benchmarks.report import Bar, Row, at_most
from benchmarks.workspace import Workspace
from ledger.canon import multikey, proofs
from ledger.errors import NotAccepted
from ledger.identity import statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.credentials import verify
from ledger.identity.did import did_key, offline
from ledger.identity.issuers import Issuer, Registry
from ledger.identity.issuing import issue

NOTES = (
    "Row 11: CPU of the whole verdict on a parsed credential (form, contexts, trust, times, proof; not its status) and "
    "on a signed response. Poison is a credential of about 1 kB that takes pyld more than 25 s.",
)
NOW = datetime(2026, 6, 1, tzinfo=UTC)
IDV = "https://idv.example"
LEDGER = "https://ledger.example"
POISON_SECONDS = 0.010
# Twice what was measured: so that nobody makes it dearer without noticing.
BARS = {proofs.EDDSA_JCS: at_most(20), proofs.EDDSA_RDFC: at_most(300), proofs.ED25519_2020: at_most(300)}


def rows(work: Workspace) -> list[Row]:
    canonize = canonicaliser().canonize
    found = []
    for role, places in (("guest", 0), ("host", 1), ("host", 20)):
        for suite in proofs.SUITES:
            document = _credential(role, places, suite)
            require(verify(document, role, TRUST, NOW, canonize).suite == suite, "a credential that verifies")
            what = f"verdict, {role}{f' of {places}' if places else ''}, {suite}"
            found.append(_row(work, what, verify, (document, role, TRUST, NOW, canonize), BARS[suite]))
    found.append(_row(work, "verdict, signed response", _hear, (_response(),), at_most(10)))
    poison = _poison()
    sides = {"ours": lambda: cpu_per_call(_refuse, [(poison,)] * 3), "peer": lambda: POISON_SECONDS}
    what = "refuse the poison credential"
    found.append(Row(11, what, "bound", "ms", alternate(2 * work.plan.rounds, sides, work.step, what), at_most(1)))
    return found


def _row(work: Workspace, what: str, function: Callable[..., object], arguments: tuple[Any, ...], bar: Bar) -> Row:
    verify_signature = ed25519_verification()
    sides = {
        "ours": lambda: cpu_per_call(function, [arguments] * 5),
        "peer": lambda: cpu_per_call(verify_signature, [()] * 100),
    }
    samples = alternate(work.plan.rounds, sides, work.step, what)
    return Row(11, what, "1 Ed25519 verification", "us", samples, bar)


ISSUER, SPEAKER = SigningKey(bytes([1] * 32)), SigningKey(bytes([2] * 32))
DID = did_key(bytes(SPEAKER.verify_key))
TRUST = Registry(
    [Issuer(role, IDV, "trusted", (multikey.encode(bytes(ISSUER.verify_key)),)) for role in ("guest", "host")]
)
GUEST = {
    "idv_level": "identity_verified",
    "idv_method": "Passport chip",
    "issuer_guest_id": "ig-55",
    "phone_verified": True,
}
HOST = {
    "host_type": "individual",
    "identity_verified": True,
    "identity_verified_at": "2026-03-28T09:15:00Z",
    "issuer_host_id": "ih-7401",
}


def _place(number: int) -> dict[str, Any]:
    return {
        "listing_id": f"rose-cottage-{number}",
        "property_ref": f"pr-{number}",
        "right_to_let_verified": True,
        "right_to_let_verified_at": "2026-03-29T14:00:00Z",
        "right_to_let_method": "Land registry title checked",
        "address_verified": True,
        "country": "GB",
    }


def _credential(role: str, places: int, suite: str) -> dict[str, Any]:
    claims = {**HOST, "properties": [_place(number) for number in range(places)]} if role == "host" else GUEST
    return issue(
        role,
        {"id": DID, **claims},
        id_=f"{IDV}/credentials/1",
        issuer=IDV,
        method=f"{IDV}/keys/1",
        key=ISSUER,
        valid_from=NOW - timedelta(days=1),
        valid_until=NOW + timedelta(days=80),
        status={
            "type": "BitstringStatusListEntry",
            "statusPurpose": "revocation",
            "statusListIndex": "7",
            "statusListCredential": f"{IDV}/status/1",
        },
        canonize=canonicaliser().canonize,
        suites=(suite,),
    )


def _response() -> dict[str, Any]:
    body = {"type": "HostResponse", "review_id": "rev-" + "a" * 26, "host_did": DID, "response_text": "Thank you."}
    return statements.sign(body, SPEAKER, f"{DID}#{DID.removeprefix('did:key:')}", now=NOW, domain=LEDGER)


def _hear(body: dict[str, Any]) -> None:
    statements.verify(body, "HostResponse", domain=LEDGER, now=NOW, resolve=offline)


def _poison() -> dict[str, Any]:
    """Two objects that look alike, with eight children each that look alike."""
    document = _credential("host", 1, proofs.ED25519_2020)
    children = [{"verified_stays": 1}] * 8
    document["credentialSubject"]["properties"] = [{"listing_id": "a", "property_reputation": children}] * 2
    return {name: value for name, value in document.items() if name != "proof"}


def _refuse(document: dict[str, Any]) -> None:
    try:
        canonicaliser().canonize(document)
    except NotAccepted as refusal:
        require(refusal.code == "too_complex", "a refusal of poison")
    else:
        require(False, "a refusal of poison")
