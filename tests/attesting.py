"""Hosts that hand in reviews of other platforms: their credentials, documents, and the consent of guests."""

import asyncio
import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest

from ledger.canon import proofs
from ledger.errors import StaylogError
from ledger.identity.issuers import trust
from ledger.reviews import crossplatform
from ledger.reviews.receipts import Accepted
from tests import identities
from tests.identities import IDV, ISSUER, NOW, RATINGS, STATUS, Speaker, status_list
from tests.network import Neighbourhood
from tests.reviewing import DOMAIN, GUEST, HOST, STAY, Reviewing, credential, encoded

PDF = b"%PDF-1.7\n1 0 obj\n(Booking HM-55, rose-cottage)\nendobj\ntrailer\n%%EOF\n"
JSON_DOCUMENT = b'{"booking": "HM-55", "listing": "rose-cottage"}'
TYPES = {PDF: "application/pdf", JSON_DOCUMENT: "application/json"}


def attesting_ledger(connected: Reviewing, neighbourhood: Neighbourhood) -> Reviewing:
    """A ledger that trusts an issuer of hosts' credentials, none of which is revoked."""
    draft = trust(connected.ledger.issuers(), "host", IDV, [ISSUER.multikey], None)
    assert draft is not None
    connected.add(draft)
    neighbourhood.put(STATUS["statusListCredential"], status_list([]), cache_control="no-store")
    return connected


def host_credential(host: Speaker = HOST, **claims: Any) -> dict[str, Any]:
    return identities.credential("host", (proofs.EDDSA_JCS,), **{"id": host.did, **claims})


def consent(
    document: bytes = PDF, guest: Speaker = GUEST, *, signer: Speaker | None = None, **changes: Any
) -> dict[str, Any]:
    body = {
        "type": "GuestConsent",
        "consent": True,
        "document_sha256": sha256(document).hexdigest(),
        "ratings": dict(RATINGS),
        "review_text": "Quiet.",
        "guest_credential": credential(guest),
        **changes,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return (signer or guest).sign(given, domain=DOMAIN, now=NOW)


def attestation(document: bytes = PDF, host: Speaker = HOST, **changes: Any) -> dict[str, Any]:
    """A review of another platform; what is changed to None is left out."""
    body = {
        "type": "CrossPlatformReview",
        "host_did": host.did,
        "platform": "Elsewhere",
        "booking_reference": "HM-55",
        "document_sha256": sha256(document).hexdigest(),
        "document_type": TYPES.get(document, "application/pdf"),
        "ratings": dict(RATINGS),
        "review_text": "Quiet.",
        "host_credential": host_credential(host),
        **STAY,
        **changes,
    }
    return host.sign({name: value for name, value in body.items() if value is not None}, domain=DOMAIN, now=NOW)


def attest(reviewing: Reviewing, body: Mapping[str, Any], document: bytes = PDF) -> Accepted:
    return asyncio.run(crossplatform.attest(reviewing.ledger.desk(), encoded(body), document))


def refusal(reviewing: Reviewing, body: Mapping[str, Any], document: bytes = PDF) -> StaylogError:
    before = reviewing.ledger.reader.refresh().size
    with pytest.raises(StaylogError) as refused:
        attest(reviewing, body, document)
    assert reviewing.ledger.reader.refresh().size == before
    return refused.value


def record(reviewing: Reviewing, host: Speaker = HOST) -> Any:
    return json.loads(reviewing.answer(host.did, limit=100))
