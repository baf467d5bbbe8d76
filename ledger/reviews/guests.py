"""Who has shown to be a guest: the subject of a credential that counts, by the key that the credential is about."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ledger.canon import did, multikey, proofs
from ledger.errors import NotAccepted
from ledger.identity import credentials, statements
from ledger.identity.contexts import canonicaliser
from ledger.identity.credentials import Chosen
from ledger.identity.did import Keys, is_offline, offline
from ledger.reviews.desk import Desk
from ledger.store.limiter import HOUR, Limit

# Whoever has a domain has any number of hosts in it, which take long to answer.
HOSTS_PER_PERSON = Limit(
    "hosts/person", 60, HOUR, 60, "quota_exceeded", "one person may have hosts' domains looked up 60 times in an hour"
)
# The levels by which somebody is worth asking a host for.
IDENTIFIED = ("identity_verified", "payment_verified")


@dataclass(frozen=True, slots=True)
class Guest:
    """The DID and its keys; the issuer, its own reference of the person, which is the same for all DIDs of theirs, the
    level and the key that it vouched by; and the newest issuer entry when that was found to count."""

    did: str
    keys: Keys
    issuer: str
    issuer_guest_id: str
    level: str
    issuer_key: bytes
    trusted_at: int

    @property
    def person(self) -> tuple[str, str]:
        return self.issuer, self.issuer_guest_id

    @property
    def is_identified(self) -> bool:
        return self.level in IDENTIFIED

    def as_json(self) -> dict[str, Any]:
        return {
            "did": self.did,
            "keys": {method: multikey.encode(key) for method, key in self.keys.items()},
            "issuer": self.issuer,
            "issuer_guest_id": self.issuer_guest_id,
            "level": self.level,
            "issuer_key": multikey.encode(self.issuer_key),
            "trusted_at": self.trusted_at,
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> "Guest":
        keys = {method: multikey.decode(key) for method, key in value["keys"].items()}
        return cls(**{**value, "keys": keys, "issuer_key": multikey.decode(value["issuer_key"])})


def check(body: Mapping[str, Any], kind: str, host_did: str) -> Chosen:
    """The proof of the credential in a guest's statement about a host: its form, and what is plain without asking."""
    guest = str(statements.speaker_of(body, kind))
    did.check(guest)
    if guest == host_did or _keys_of(guest) & _keys_of(host_did):
        raise NotAccepted("self_review", "guest and host are the same, or have the same key")
    return credentials.check(body["guest_credential"], "guest")


async def identify(desk: Desk, body: Mapping[str, Any], kind: str, chosen: Chosen) -> Guest:
    """The guest signed the body, and is the subject of a credential that counts, and still does."""
    now = desk.clock()
    guest = statements.claimed(body, kind, domain=desk.domain, now=now)
    keys = offline(guest) if is_offline(guest) else None
    if keys is not None:
        statements.authenticate(body, keys)
    registry, shown = desk.registries.newest(), body["guest_credential"]
    verify = partial(credentials.verify, shown, "guest", registry, now, canonicaliser().canonize, chosen)
    # To bring a graph into its canonical form takes as long as Argon2.
    credential = verify() if chosen[0] == proofs.EDDSA_JCS else await desk.aside(verify)
    if keys is None:
        # Only now that an issuer has vouched for it: a stranger's word sends us nowhere.
        keys = await desk.asked(desk.dids.guest(guest))
        statements.authenticate(body, keys)
    await desk.asked(desk.statuses.require_good(credential))
    person, level = str(credential.claims["issuer_guest_id"]), str(credential.claims["idv_level"])
    return Guest(guest, keys, credential.issuer, person, level, credential.key, registry.newest)


def require_trusted(desk: Desk, guest: Guest) -> int:
    """The newest issuer entry, under which the guest's issuer is trusted still."""
    desk.reader.refresh()
    registry = desk.registries.newest()
    if guest.issuer_key not in registry.keys("guest", guest.issuer, guest.level):
        raise NotAccepted("issuer_not_trusted", f"the key of {guest.issuer} is not trusted any more")
    return registry.newest


def _keys_of(name: str) -> set[bytes]:
    """As far as they are in the name: nobody is asked before anybody has shown who they are."""
    return set(offline(name).values()) if is_offline(name) else set()
