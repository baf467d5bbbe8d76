"""Issuers, guests and hosts with real keys, and what they sign. Seeds are fixed, time stands still."""

import gzip
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import multikey, proofs
from ledger.canon.times import format_time
from ledger.identity import statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.credentials import Credential, verify
from ledger.identity.did import offline
from ledger.identity.issuers import Issuer, Registry
from ledger.identity.issuing import DEFAULT_SUITES, issue, issue_status_list

NOW = datetime(2026, 6, 1, 12, 0, tzinfo=UTC)
LEDGER = "https://ledger.example"
IDV = "https://idv.example"


class Speaker:
    """Whoever has a key: a did:key unless named otherwise."""

    def __init__(self, seed: int, did: str | None = None, key_name: str | None = None) -> None:
        self.key = SigningKey(bytes([seed] * 32))
        self.public = bytes(self.key.verify_key)
        self.multikey = multikey.encode(self.public)
        self.did = did or f"did:key:{self.multikey}"
        self.method = f"{self.did}{key_name or '#' + self.multikey}"

    def sign(self, body: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        return statements.sign(body, self.key, self.method, **{"now": NOW, "domain": LEDGER, **options})


ISSUER = Speaker(1, IDV, "/keys/1")
GUEST = Speaker(2)
HOST = Speaker(3)
THIEF = Speaker(4)
TRUST = Registry([Issuer(role, IDV, "trusted", (ISSUER.multikey,)) for role in ("guest", "host")])

GUEST_CLAIMS = {
    "id": GUEST.did,
    "idv_level": "payment_verified",
    "idv_method": "Passport chip read, with liveness check",
    "issuer_guest_id": "ig-55",
    "country_of_residence": "NO",
    "age_range": "35_44",
    "phone_verified": True,
    "payment_method_type": "debit_card",
}
PROPERTY = {
    "listing_id": "rose-cottage",
    "property_ref": "pr-22",
    "right_to_let_verified": True,
    "right_to_let_verified_at": "2026-03-29T14:00:00Z",
    "right_to_let_method": "Land registry title checked",
    "address_verified": True,
    "country": "GB",
    "local_registration_number": "LR-1",
    "local_registration_verified": False,
    "planning_permission_reference": "PP-7",
    "property_reputation": {"property_rating": 4.7, "property_rating_count": 12, "verified_stays": 31},
}
HOST_CLAIMS = {
    "id": HOST.did,
    "host_type": "business",
    "identity_verified": True,
    "identity_verified_at": "2026-03-28T09:15:00+01:00",
    "properties": [PROPERTY, {**PROPERTY, "listing_id": "loft-2"}],
    "issuer_host_id": "ih-7401",
    "business_name": "Fenview Stays",
    "business_registration_number": "123",
    "business_country": "GB",
    "phone_verified": False,
    "reputation": {
        "aggregate_rating": 5.0,
        "rating_count": 40,
        "response_rate_pct": 97,
        "cancellation_rate_pct": 0,
        "reputation_updated_at": "2026-05-01T00:00:00.5Z",
    },
}
CLAIMS: dict[str, dict[str, Any]] = {"guest": GUEST_CLAIMS, "host": HOST_CLAIMS}
STATUS = {
    "id": f"{IDV}/status/1#77",
    "type": "BitstringStatusListEntry",
    "statusPurpose": "revocation",
    "statusListIndex": "77",
    "statusListCredential": f"{IDV}/status/1",
}


def canonize(*documents: dict[str, Any]) -> list[bytes]:
    return canonicaliser().canonize(*documents)


def credential(
    role: str = "guest", suites: tuple[str, ...] = DEFAULT_SUITES, *, issuer: Speaker = ISSUER, **claims: Any
) -> dict[str, Any]:
    """A credential as an honest issuer makes it; `claims` that are None are left out."""
    subject = {name: value for name, value in {**CLAIMS[role], **claims}.items() if value is not None}
    return issue(
        role,
        deepcopy(subject),
        id_=f"{IDV}/credentials/55",
        issuer=issuer.did,
        method=issuer.method,
        key=issuer.key,
        valid_from=NOW - timedelta(days=10),
        valid_until=NOW + timedelta(days=70),
        canonize=canonize,
        status=STATUS if issuer.did == IDV else {**STATUS, "statusListCredential": f"{_origin(issuer)}/status/1"},
        suites=suites,
    )


def _origin(issuer: Speaker) -> str:
    """Where an issuer publishes; one that is but a key may do so anywhere."""
    return "/".join(issuer.did.split("/")[:3]) if issuer.did.startswith("https:") else IDV


def signed(
    document: Mapping[str, Any], suite: str = proofs.EDDSA_JCS, speaker: Speaker = ISSUER, **options: Any
) -> dict[str, Any]:
    """`document`, whatever it is, with a proof that holds: what a careless or dishonest issuer may sign. An option
    that is None is left out."""
    bare = {name: value for name, value in document.items() if name != "proof"}
    given = {"verificationMethod": speaker.method, "created": format_time(NOW - timedelta(days=10)), **options}
    given = {name: value for name, value in given.items() if value is not None}
    return {**bare, "proof": proofs.sign(bare, suite, speaker.key, given, canonize)}


def status_list(
    marked: Iterable[int] = (), *, url: str = STATUS["statusListCredential"], issuer: Speaker = ISSUER, **options: Any
) -> dict[str, Any]:
    """A status list as an honest issuer makes it."""
    usual: dict[str, Any] = {"valid_from": NOW - timedelta(hours=1), "canonize": canonize}
    return issue_status_list(
        marked, url=url, issuer=issuer.did, method=issuer.method, key=issuer.key, **{**usual, **options}
    )


def packed(bits: bytes) -> str:
    """`encodedList` of any bits, or of none that should be in one."""
    return "u" + urlsafe_b64encode(gzip.compress(bits, mtime=0)).rstrip(b"=").decode()


def did_document(*speakers: Speaker, **changes: Any) -> dict[str, Any]:
    """The document of a did:web that has the keys of these speakers, who are one."""
    methods = [
        {"id": each.method, "type": "Multikey", "controller": each.did, "publicKeyMultibase": each.multikey}
        for each in speakers
    ]
    usual = {
        "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
        "id": speakers[0].did,
        "verificationMethod": methods,
        "assertionMethod": [method["id"] for method in methods],
    }
    return {**usual, **changes}


def judge(document: Any, role: str = "guest", trust: Registry = TRUST, now: datetime = NOW) -> Credential:
    return verify(document, role, trust, now, canonize)


RATINGS = {"overall": 4.5, "accuracy": 5, "cleanliness": 4, "communication": 5, "value": 4, "location": 3.5}
STAY = {
    "booking_reference": "FENVIEW-2026-0042",
    "listing_id": "rose-cottage",
    "host_did": HOST.did,
    "check_in": "2026-05-20",
    "check_out": "2026-05-24",
}
REVIEW_ID = "rev-" + "a" * 26


def bodies() -> dict[str, tuple[Speaker, dict[str, Any]]]:
    """One statement of every kind without its proof, with who makes it."""
    shown = credential(suites=(proofs.EDDSA_JCS,))
    receipt = HOST.sign(
        {"type": "StayReceipt", **STAY, "guest_did": GUEST.did, "issued_at": "2026-04-01T09:00:00Z", "nonce": "n-1"}
    )
    review = {"guest_credential": shown, "ratings": RATINGS, "review_text": "Quiet.\nDry."}
    document = {"document_sha256": "ab" * 32, "ratings": RATINGS, "review_text": "Quiet."}
    consent = GUEST.sign({"type": "GuestConsent", "consent": True, **document, "guest_credential": shown})
    answer = {"request_id": "bvr-1", "known": True, "status": "confirmed", "guest_matches": True, "cancelled_at": None}
    times = {"confirmed_at": "2026-04-01T09:00:00Z", "issued_at": "2026-06-01T12:00:00Z"}
    made: list[tuple[Speaker, dict[str, Any]]] = [
        (GUEST, {"type": "ReviewSubmission", **STAY, **review, "private_feedback": "", "booking_evidence": receipt}),
        (HOST, {"type": "HostResponse", "review_id": REVIEW_ID, "host_did": HOST.did, "response_text": "Thank you."}),
        (HOST, {name: value for name, value in receipt.items() if name != "proof"}),
        (
            HOST,
            {
                "type": "BookingNotice",
                **STAY,
                "guest_binding": {"nonce": "h3Vb0s1kQyq2mTqv", "value": "klG1zCpqqRjlaC8BLfbq_Q9mxSMHVvkfeggFGgD5Alc"},
                "status": "confirmed",
            },
        ),
        (GUEST, {"type": "BookingClaim", **STAY, "guest_credential": shown, "booking_evidence": receipt}),
        (
            GUEST,
            {
                "type": "EvidenceSupplement",
                "review_id": REVIEW_ID,
                "booking_reference": STAY["booking_reference"],
                "booking_evidence": receipt,
            },
        ),
        (
            HOST,
            {
                "type": "BookingVerification",
                **{name: value for name, value in STAY.items() if name != "host_did"},
                **answer,
                **times,
            },
        ),
        (
            HOST,
            {
                "type": "CrossPlatformReview",
                **STAY,
                **document,
                "platform": "Elsewhere",
                "document_type": "application/pdf",
                "host_credential": credential("host", suites=(proofs.EDDSA_JCS,)),
                "guest_statement": consent,
            },
        ),
        (GUEST, {name: value for name, value in consent.items() if name != "proof"}),
        (HOST, {"type": "FeedbackRequest", "host_did": HOST.did}),
    ]
    return {body["type"]: (speaker, deepcopy(body)) for speaker, body in made}


CHALLENGE = "h3Vb0s1kQyq2mTqv"


def statement(kind: str, **changes: Any) -> dict[str, Any]:
    """A signed statement of a kind; a member that is changed to None is left out."""
    speaker, body = bodies()[kind]
    changed = {name: value for name, value in {**body, **changes}.items() if value is not None}
    return speaker.sign(changed, challenge=CHALLENGE if kind == "BookingVerification" else None)


def hear(body: Any, kind: str, **options: Any) -> statements.Signed:
    """The verdict of the ledger on a statement."""
    usual = {"domain": LEDGER, "now": NOW, "resolve": offline}
    if kind == "BookingVerification":
        usual |= {"speaker": HOST.did, "challenge": CHALLENGE}
    return statements.verify(body, kind, **{**usual, **options})
