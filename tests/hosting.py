"""Hosts that take bookings: their DID documents and booking endpoints in the neighbourhood, over TLS, by the kit that
hosts mount; and what hosts and guests say of bookings."""

import asyncio
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import unquote

from ledger.canon.times import format_time
from ledger.clock import Clock
from ledger.reviews import intake, supplement
from ledger.reviews.claims import Claimed
from ledger.reviews.desk import Desk
from ledger.reviews.guest_binding import bind
from ledger.reviews.hostkit import Booking, BookingVerifier
from ledger.reviews.listings import add_listing
from ledger.reviews.notices import Noticed
from ledger.reviews.pending import Waiting
from ledger.reviews.receipts import Accepted
from ledger.reviews.worker import Worker
from tests.identities import NOW, Speaker, did_document
from tests.network import Neighbourhood, Request, response
from tests.reviewing import DOMAIN, GUEST, STAY, Reviewing, credential, encoded, review, stay_receipt, take

LISTING = STAY["listing_id"]
# Before the stay of `tests.reviewing`, when it is booked.
BOOKED = NOW - timedelta(days=50)


class HostSite:
    """A host with a domain: its document is served, and its bookings are verified at /openstr/booking. `said` overrides
    what it answers; `down` is silent, with a status of its choice."""

    def __init__(
        self,
        outside: Neighbourhood,
        ledger_key: str,
        clock: Clock,
        name: str = "cottage.example",
        seed: int | None = None,
    ) -> None:
        self.outside = outside
        self.name = name
        self.speaker = Speaker(60 + sum(name.encode()) % 100 if seed is None else seed, f"did:web:{name}")
        self.endpoint = f"https://{name}/openstr/booking"
        self.bookings: dict[str, Booking] = {}
        self.asked: list[str] = []
        self.down: int | None = None
        self.clock = clock
        self.ledger_key = ledger_key
        self.publish(self.speaker)
        outside.house(name, self._answer)

    def publish(self, *speakers: Speaker) -> None:
        """Its DID document, with these keys, the first of which answers."""
        self.speaker = speakers[0]
        self.outside.put(f"https://{self.name}/.well-known/did.json", did_document(*speakers), cache_control="no-store")
        self.kit = BookingVerifier(
            self.endpoint,
            self.speaker.did,
            self.speaker.method,
            self.speaker.key,
            self._find,
            {DOMAIN: self.ledger_key},
            clock=self.clock,
        )

    def book(self, guest: Speaker = GUEST, reference: str = "B-1", **changes: Any) -> None:
        usual = {"status": "confirmed", "confirmed_at": "2026-04-01T09:00:00Z", "cancelled_at": None}
        self.bookings[reference] = Booking(**{"guest_did": guest.did, **STAY, **usual, **changes})

    def _find(self, reference: str) -> Booking | None:
        return self.bookings.get(reference)

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        """The kit as an ASGI application, behind this server."""
        path = request.url.removeprefix(f"https://{self.name}")
        self.asked.append(unquote(path.split("/")[-2]))
        if self.down is not None:
            writer.write(response(b"{}", self.down))
            return
        status, body, media_type = await call_asgi(self.kit, request, path)
        writer.write(response(body, status, media_type))


async def call_asgi(app: Any, request: Request, path: str) -> tuple[int, bytes, str]:
    sent: list[Mapping[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": request.body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "method": request.method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in request.headers.items()],
    }
    await app(scope, receive, send)
    headers = {bytes(name).lower(): bytes(value) for name, value in sent[0]["headers"]}
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], body, headers[b"content-type"].decode()


class Hosted:
    """A ledger that takes reviews, and a host with a domain whose endpoint it knows."""

    def __init__(self, reviewing: Reviewing, outside: Neighbourhood) -> None:
        self.reviewing = reviewing
        self.outside = outside
        self.site = self.add_host()

    @property
    def clock(self) -> Any:
        return self.reviewing.clock

    @property
    def desk(self) -> Desk:
        return self.reviewing.desk

    def add_host(self, name: str = "cottage.example", *, known: bool = True) -> HostSite:
        from ledger.canon import multikey

        key = multikey.encode(bytes(self.reviewing.ledger.keys.statements.verify_key))
        site = HostSite(self.outside, key, lambda: self.reviewing.clock(), name)
        if known:
            with self.reviewing.ledger.store.write() as connection:
                add_listing(connection, site.speaker.did, LISTING, "Europe/London", "operator", site.endpoint)
        return site

    def take(self, body: Mapping[str, Any]) -> Accepted | Waiting:
        return take(self.desk, encoded(body))

    def wait(self, body: Mapping[str, Any]) -> Waiting:
        taken = self.take(body)
        assert isinstance(taken, Waiting), taken
        return taken

    def review(
        self, guest: Speaker = GUEST, reference: str = "B-1", site: HostSite | None = None, **changes: Any
    ) -> Any:
        """A signed review without a receipt, unless it is given one, made now."""
        now = self.clock()
        given = {"booking_evidence": None, "guest_credential": credential(guest, now=now), "now": now, **changes}
        return review(guest, (site or self.site).speaker, reference, **given)

    def receipt(
        self, guest: Speaker = GUEST, reference: str = "B-1", site: HostSite | None = None, **changes: Any
    ) -> Any:
        return stay_receipt(guest, (site or self.site).speaker, reference, **changes)

    def book(self, body: Mapping[str, Any]) -> Noticed | Claimed | Waiting:
        return asyncio.run(intake.take_booking(self.desk, encoded(body)))

    def supplement(self, body: Mapping[str, Any]) -> Accepted:
        return asyncio.run(supplement.supplement(self.desk, body["review_id"], encoded(body)))

    def work(self) -> int:
        """What is due now, by a worker of its own, which is then gone."""
        return asyncio.run(Worker(self.reviewing.ledger.desk()).work())

    def go_on(self, **amount: float) -> int:
        self.clock.forward(**amount)
        return self.work()

    def time_out(self) -> None:
        """Three days of work."""
        for hours in range(0, 76, 1):
            self.go_on(hours=1 if hours else 0.1)

    def record(self, site: HostSite | None = None) -> Any:
        import json

        return json.loads(self.reviewing.answer((site or self.site).speaker.did, limit=100, text="all"))


def notice(
    host: Speaker,
    guest: Speaker = GUEST,
    reference: str = "B-1",
    status: str = "confirmed",
    *,
    now: datetime = BOOKED,
    nonce: str = "nonce-of-a-notice-1",
    **changes: Any,
) -> dict[str, Any]:
    body = {
        "type": "BookingNotice",
        "booking_reference": reference,
        "host_did": host.did,
        "guest_binding": bind(nonce, guest.did),
        "status": status,
        **STAY,
        **changes,
    }
    return host.sign(body, domain=DOMAIN, now=now)


def claim(
    host: Speaker, guest: Speaker = GUEST, reference: str = "B-1", *, now: datetime = BOOKED, **changes: Any
) -> dict[str, Any]:
    body = {
        "type": "BookingClaim",
        "booking_reference": reference,
        "host_did": host.did,
        "guest_credential": credential(guest, now=now),
        **STAY,
        **changes,
    }
    return guest.sign({name: value for name, value in body.items() if value is not None}, domain=DOMAIN, now=now)


def evidence(review_id: str, receipt: Mapping[str, Any], guest: Speaker = GUEST, *, now: datetime) -> dict[str, Any]:
    """An EvidenceSupplement."""
    body = {
        "type": "EvidenceSupplement",
        "review_id": review_id,
        "booking_reference": receipt["booking_reference"],
        "booking_evidence": dict(receipt),
    }
    return guest.sign(body, domain=DOMAIN, now=now)


def moment(now: datetime) -> str:
    return format_time(now)
