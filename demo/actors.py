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
    """Lets one place."""

    def __init__(self, name: str, listing: str) -> None:
        super().__init__(name)
        self.listing = listing

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
    ) -> dict[str, Any]:
        """A signed review; an honest guest shows their own credential and the receipt that the host gave."""
        body = {
            "type": "ReviewSubmission",
            **stay.members,
            "ratings": dict.fromkeys(CATEGORIES, stars),
            "review_text": text,
            "guest_credential": credential or self.credential,
            "booking_evidence": receipt or stay.host.confirm(stay),
        }
        return self.sign(body, domain=ledger)


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
        self.ada, self.ben, self.cleo, self.mallory = map(Guest, ("Ada", "Ben", "Cleo", "Mallory"))
        self.adas = Stay("HC-1041", self.ada, self.hanne, left_days_ago=16)
        self.bens = Stay("HC-1042", self.ben, self.hanne, left_days_ago=9)
        self.cleos = Stay("HC-1043", self.cleo, self.hanne, left_days_ago=4)
        self.adas_at_olavs = Stay("OL-2077", self.ada, self.olav, left_days_ago=23)
