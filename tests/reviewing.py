"""A ledger that takes reviews: an issuer that it trusts, guests with credentials, hosts that give receipts."""

import asyncio
import json
from collections.abc import Mapping
from copy import deepcopy
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from ledger.canon import proofs
from ledger.identity.issuers import trust
from ledger.identity.issuing import issue
from ledger.net.development import NONE, Development
from ledger.reviews import admission, responses
from ledger.reviews.desk import Desk
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted
from tests.identities import IDV, ISSUER, NOW, RATINGS, Speaker, canonize
from tests.running import Running

DOMAIN = "http://127.0.0.1:8080"
HOST = Speaker(3)
OTHER_HOST = Speaker(13)
GUESTS = tuple(Speaker(seed) for seed in range(20, 30))
GUEST = GUESTS[0]
STAY = {"listing_id": "rose-cottage", "check_in": "2026-05-20", "check_out": "2026-05-24"}


@cache
def _issued(guest: str, person: str, level: str, issuer: Speaker, suites: tuple[str, ...], now: datetime) -> str:
    subject = {"id": guest, "idv_level": level, "idv_method": "passport", "issuer_guest_id": person}
    return json.dumps(
        issue(
            "guest",
            subject,
            id_=f"{IDV}/credentials/1",
            issuer=issuer.did,
            method=issuer.method,
            key=issuer.key,
            valid_from=now - timedelta(days=10),
            valid_until=now + timedelta(days=70),
            canonize=canonize,
            suites=suites,
        )
    )


def credential(
    guest: Speaker,
    person: str | None = None,
    *,
    level: str = "identity_verified",
    issuer: Speaker = ISSUER,
    suites: tuple[str, ...] = (proofs.EDDSA_JCS,),
    now: datetime = NOW,
) -> dict[str, Any]:
    """A credential that cannot be revoked and ends soon; one person per guest unless told otherwise."""
    return dict(json.loads(_issued(guest.did, person or f"person-of-{guest.did[-8:]}", level, issuer, suites, now)))


def stay_receipt(
    guest: Speaker, host: Speaker = HOST, reference: str = "B-1", *, now: datetime = NOW, **changes: Any
) -> dict[str, Any]:
    body = {
        "type": "StayReceipt",
        "booking_reference": reference,
        "host_did": host.did,
        "guest_did": guest.did,
        "issued_at": "2026-04-01T09:00:00Z",
        **STAY,
        **changes,
    }
    return host.sign(body, domain=None, now=now - timedelta(days=50))


def unsigned(guest: Speaker = GUEST, host: Speaker = HOST, reference: str = "B-1", **changes: Any) -> dict[str, Any]:
    """A review without its proof; a member that is changed to None is left out."""
    body = {
        "type": "ReviewSubmission",
        "booking_reference": reference,
        "host_did": host.did,
        "guest_credential": credential(guest),
        "ratings": dict(RATINGS),
        "review_text": "Quiet.\nDry.",
        "booking_evidence": stay_receipt(guest, host, reference),
        **STAY,
        **changes,
    }
    return {name: value for name, value in body.items() if value is not None}


def review(
    guest: Speaker = GUEST,
    host: Speaker = HOST,
    reference: str = "B-1",
    *,
    now: datetime = NOW,
    domain: str = DOMAIN,
    **changes: Any,
) -> dict[str, Any]:
    """A signed review that is accepted, unless `changes` prevent it."""
    return guest.sign(unsigned(guest, host, reference, **changes), now=now, domain=domain)


def response(
    review_id: str, host: Speaker = HOST, text: str = "Thank you.", *, now: datetime = NOW, domain: str = DOMAIN
) -> dict[str, Any]:
    body = {"type": "HostResponse", "review_id": review_id, "host_did": host.did, "response_text": text}
    return host.sign(body, now=now, domain=domain)


def encoded(body: Any) -> bytes:
    return json.dumps(body).encode()


def resigned(body: Mapping[str, Any], speaker: Speaker, **options: Any) -> dict[str, Any]:
    """The body with another proof."""
    bare = {name: value for name, value in deepcopy(dict(body)).items() if name != "proof"}
    return speaker.sign(bare, **{"domain": DOMAIN, **options})


def take(desk: Desk, data: bytes) -> Accepted | Waiting:
    """A review that may have to wait."""
    return asyncio.run(admission.submit(desk, data))


def submit(desk: Desk, data: bytes) -> Accepted:
    taken = take(desk, data)
    assert isinstance(taken, Accepted), taken
    return taken


def respond(desk: Desk, review_id: str, data: bytes) -> Accepted:
    return asyncio.run(responses.respond(desk, review_id, data))


class Reviewing(Running):
    """A running ledger with a desk, whose sequencer is started; the issuer of `tests.identities` is trusted."""

    desk: Desk

    def __init__(
        self, data: Path, database_url: str, development: Development = NONE, base_url: str | None = None
    ) -> None:
        super().__init__(data, database_url, development, base_url)
        draft = trust(self.ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
        assert draft is not None
        self.add(draft)

    def open(self, **options: Any) -> Any:
        ledger = super().open(**options)
        ledger.sequencer.start()
        self.desk = ledger.desk()
        return ledger

    def submit(self, body: Mapping[str, Any]) -> Accepted:
        return submit(self.desk, encoded(body))

    def respond(self, body: Mapping[str, Any]) -> Accepted:
        return respond(self.desk, body["review_id"], encoded(body))
