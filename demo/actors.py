"""Who takes part: an issuer, hosts and guests, each with a key that is made now and that nobody else has."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import multikey
from ledger.canon.times import format_time
from ledger.clock import utc_now
from ledger.identity import statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.issuing import issue

CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value")
# Long before any stay of the story, and longer ago than a statement may be that is not made to be kept.
BOOKED_DAYS_AGO = 40


class Actor:
    """Whoever has a key: a did:key, unless known under another name."""

    def __init__(self, name: str, did: str | None = None) -> None:
        self.name = name
        self.key = SigningKey.generate()
        self.multikey = multikey.encode(bytes(self.key.verify_key))
        self.did = did or f"did:key:{self.multikey}"
        self.method = f"{self.did}#{self.multikey}"

    def sign(
        self, body: Mapping[str, Any], *, domain: str | None, at: datetime | None = None, method: str | None = None
    ) -> dict[str, Any]:
        """`body` with a proof, now and under the own name unless told otherwise: anybody may claim another's."""
        return statements.sign(body, self.key, method or self.method, now=at or utc_now(), domain=domain)


class Issuer(Actor):
    """Looks at passports, so that hosts and ledgers need not."""

    def vouch_for(self, guest: "Guest") -> dict[str, Any]:
        """A credential that ends soon, and so needs no list of revoked ones."""
        now = utc_now()
        subject = {
            "id": guest.did,
            "idv_level": "identity_verified",
            "idv_method": "passport, in person",
            "issuer_guest_id": guest.person,
        }
        return issue(
            "guest",
            subject,
            id_=f"{self.did}/credentials/{guest.name.lower()}",
            issuer=self.did,
            method=self.method,
            key=self.key,
            valid_from=now - timedelta(days=10),
            valid_until=now + timedelta(days=70),
            canonize=canonicaliser().canonize,
        )


class Host(Actor):
    """Lets one place. One who has a domain is known by it, and can be asked there about bookings."""

    def __init__(self, name: str, listing: str, domain: str = "") -> None:
        super().__init__(name, f"did:web:{domain}" if domain else None)
        self.listing, self.domain = listing, domain
        self.booking_endpoint = f"https://{domain}/openstr/booking"

    def document(self) -> dict[str, Any]:
        """The DID document, which stands at the domain."""
        key = {"id": self.method, "type": "Multikey", "controller": self.did, "publicKeyMultibase": self.multikey}
        return {
            "@context": ["https://www.w3.org/ns/did/v1", "https://w3id.org/security/multikey/v1"],
            "id": self.did,
            "verificationMethod": [key],
            "assertionMethod": [self.method],
        }

    def confirm(self, stay: "Stay") -> dict[str, Any]:
        """The receipt for a booking. It names no ledger: the host does not know which one the guest will use."""
        return self.sign(stay.receipt(), domain=None, at=stay.booked)

    def respond(self, review_id: str, text: str, ledger: str) -> dict[str, Any]:
        body = {"type": "HostResponse", "review_id": review_id, "host_did": self.did, "response_text": text}
        return self.sign(body, domain=ledger)


class Guest(Actor):
    """Knows what the issuer calls them, and has their credential once it is issued."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.person = f"person-{self.multikey[-8:]}"
        self.credential: dict[str, Any] = {}

    def review(
        self,
        stay: "Stay",
        stars: float,
        text: str,
        ledger: str,
        *,
        receipt: Mapping[str, Any] | None = None,
        credential: Mapping[str, Any] | None = None,
        has_receipt: bool = True,
    ) -> dict[str, Any]:
        """A signed review; an honest guest shows their own credential and the receipt, if the host gave one."""
        body = {
            "type": "ReviewSubmission",
            **stay.members,
            "ratings": dict.fromkeys(CATEGORIES, stars),
            "review_text": text,
            "guest_credential": credential or self.credential,
        }
        if has_receipt:
            body["booking_evidence"] = receipt or stay.host.confirm(stay)
        return self.sign(body, domain=ledger)

    def hand_in(self, stay: "Stay", review_id: str, ledger: str, at: datetime) -> dict[str, Any]:
        """The receipt, for a review that was sent without it."""
        body = {
            "type": "EvidenceSupplement",
            "review_id": review_id,
            "booking_reference": stay.reference,
            "booking_evidence": stay.host.confirm(stay),
        }
        return self.sign(body, domain=ledger, at=at)


class Stay:
    """Three nights of a guest at a host's place. Its days are counted from today, once: midnight may come meanwhile."""

    def __init__(self, reference: str, guest: Guest, host: Host, *, left_days_ago: int) -> None:
        now = utc_now()
        left = now.date() - timedelta(days=left_days_ago)
        self.reference, self.guest, self.host = reference, guest, host
        self.booked = now - timedelta(days=BOOKED_DAYS_AGO)
        # What a receipt and a review say of it alike.
        self.members = {
            "booking_reference": reference,
            "listing_id": host.listing,
            "host_did": host.did,
            "check_in": str(left - timedelta(days=3)),
            "check_out": str(left),
        }

    def receipt(self) -> dict[str, Any]:
        """Unsigned: whoever signs it, it counts only by a key of the host."""
        made = {"guest_did": self.guest.did, "issued_at": format_time(self.booked)}
        return {"type": "StayReceipt", **self.members, **made}


class Cast:
    """Everybody, and the stays that they review."""

    def __init__(self) -> None:
        self.issuer = Issuer("idv.example", "https://idv.example")
        self.hanne, self.olav = Host("Hanne", "rose-cottage"), Host("Olav", "harbour-loft")
        self.ines = Host("Ines", "lake-cabin", "lakeside.example")
        self.tore = Host("Tore", "old-mill", "mill.example")
        self.guests = list(map(Guest, ("Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Mallory")))
        self.ada, self.ben, self.cleo, self.dora, self.emil, self.fay, self.mallory = self.guests
        self.adas = Stay("HC-1041", self.ada, self.hanne, left_days_ago=16)
        self.bens = Stay("HC-1042", self.ben, self.hanne, left_days_ago=9)
        self.cleos = Stay("HC-1043", self.cleo, self.hanne, left_days_ago=4)
        self.adas_at_olavs = Stay("OL-2077", self.ada, self.olav, left_days_ago=23)
        self.doras = Stay("LK-3107", self.dora, self.ines, left_days_ago=12)
        self.emils = Stay("MI-2208", self.emil, self.tore, left_days_ago=6)
        self.fays = Stay("LK-3112", self.fay, self.ines, left_days_ago=3)

    @property
    def with_domains(self) -> list[Host]:
        return [self.ines, self.tore]
