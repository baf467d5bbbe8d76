"""What hosts with a domain and their guests do to a service over HTTP: bookings, notices, claims, other platforms."""

import asyncio
import json
from collections.abc import Mapping
from copy import deepcopy
from hashlib import sha256
from typing import Any

import httpx

from ledger.canon import multikey, proofs
from ledger.canon.times import format_time
from ledger.identity.issuers import trust
from ledger.reviews.listings import add_listing
from ledger.store.rows import run
from tests.api.site import Site
from tests.hosting import LISTING, HostSite
from tests.identities import IDV, ISSUER, RATINGS, STATUS, Speaker, status_list
from tests.identities import credential as usual_credential
from tests.reviewing import DOMAIN, HOST, STAY, credential, encoded, review
from tests.waiting import until

# Stays that are over, and one that has not begun.
NEXT: dict[str, Any] = {"listing_id": LISTING, "check_in": "2026-07-10", "check_out": "2026-07-14"}
PDF = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"


def add_host(site: Site, name: str, *, known: bool = True) -> HostSite:
    """A host with a domain, whose booking endpoint the ledger knows."""
    key = multikey.encode(bytes(site.ledger.keys.statements.verify_key))
    made = HostSite(site.outside, key, lambda: site.running.clock(), name)
    if known:
        with site.ledger.store.write() as connection:
            add_listing(connection, made.speaker.did, LISTING, "Europe/London", "operator", made.endpoint)
    return made


def asking(guest: Speaker, host: Speaker, reference: str = "B-1", site: Site | None = None, **changes: Any) -> Any:
    """A review that has nothing to show: only the host can say. Made now."""
    now = {} if site is None else {"now": site.running.clock()}
    shown = {} if site is None else {"guest_credential": credential(guest, now=site.running.clock())}
    return review(guest, host, reference, **{"booking_evidence": None, **now, **shown, **changes})


def state(site: Site, submission_id: str) -> Any:
    answer = site.get(f"/v1/submissions/{submission_id}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def settle(site: Site) -> None:
    """Until nothing is due that the service or we could do now."""

    def is_done() -> bool:
        asyncio.run(site.ledger.worker(DOMAIN).work())
        with site.ledger.store.read() as connection:
            due = run(
                connection,
                "SELECT count(*) FROM submission WHERE due_at <= ? OR leased_until IS NOT NULL",
                (format_time(site.running.clock()),),
            )
        return int(due[0][0]) == 0

    until(is_done, 30)


def wait_out(site: Site) -> None:
    """The three days that a host has, and the few times that it is asked however late it is."""
    site.running.clock.forward(hours=72)
    for _ in range(6):
        settle(site)
        site.running.clock.forward(minutes=1)


# Other platforms


def trust_hosts(site: Site) -> None:
    """The issuer of `tests.identities`, for credentials of hosts as well, none of which is revoked."""
    draft = trust(site.ledger.issuers(), "host", IDV, [ISSUER.multikey], None)
    if draft is not None:
        site.outside.put(STATUS["statusListCredential"], status_list())
        site.add(draft)


def host_credential(host: Speaker = HOST, **claims: Any) -> dict[str, Any]:
    """One for the listing of tests, whose status is published where `trust_hosts` puts it."""
    return usual_credential("host", suites=(proofs.EDDSA_JCS,), **{"id": host.did, **claims})


def attestation(
    host: Speaker = HOST, reference: str = "E-1", *, document: bytes = PDF, domain: str = DOMAIN, **changes: Any
) -> dict[str, Any]:
    """A signed CrossPlatformReview; a member that is changed to None is left out."""
    options = {name: changes.pop(name) for name in ("now",) if name in changes}
    body = {
        "type": "CrossPlatformReview",
        "booking_reference": reference,
        "host_did": host.did,
        "platform": "Elsewhere",
        "document_sha256": sha256(document).hexdigest(),
        "document_type": "application/pdf",
        "ratings": dict(RATINGS),
        "review_text": "Warm.",
        "host_credential": host_credential(host),
        **STAY,
        **changes,
    }
    given = {name: value for name, value in body.items() if value is not None}
    return host.sign(given, domain=domain, **options)


def consent(guest: Speaker, *, document: bytes = PDF, **changes: Any) -> dict[str, Any]:
    """A signed GuestConsent to what `attestation` says."""
    options = {name: changes.pop(name) for name in ("now", "signer") if name in changes}
    body = {
        "type": "GuestConsent",
        "consent": True,
        "document_sha256": sha256(document).hexdigest(),
        "ratings": dict(RATINGS),
        "review_text": "Warm.",
        "guest_credential": credential(guest),
        **deepcopy(changes),
    }
    signer: Speaker = options.pop("signer", guest)
    return signer.sign({name: value for name, value in body.items() if value is not None}, domain=DOMAIN, **options)


def attest(site: Site, body: Any, document: bytes = PDF, *, filename: str | None = "booking.pdf") -> httpx.Response:
    """Both parts, as a browser or curl sends them."""
    data = body if isinstance(body, bytes) else encoded(body)
    return site.client.post(
        "/v1/reviews/cross-platform",
        files={"attestation": (None, data, "application/json"), "document": (filename, document, "application/pdf")},
    )


def feedback_request(host: Speaker, *acknowledge: str, **options: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "FeedbackRequest", "host_did": host.did}
    if acknowledge:
        body["acknowledge"] = list(acknowledge)
    return host.sign(body, **{"domain": DOMAIN, **options})


def entry_of(receipt: Mapping[str, Any]) -> Any:
    return json.loads(receipt["entry"])
