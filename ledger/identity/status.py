"""Bitstring status lists (W3C Bitstring Status List 1.0): whether a credential was revoked or suspended.

A list is a credential itself, signed by the issuer of those that it is about, at an address of the issuer's. What
cannot be looked up is never good, and is worth another try. What can be is read into its bits, which alone are kept,
for an hour at most.
"""

import zlib
from asyncio import get_running_loop
from base64 import urlsafe_b64decode
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from ledger import metrics
from ledger.canon import proofs
from ledger.canon.proofs import Canonize
from ledger.clock import Clock
from ledger.errors import Malformed, NotAccepted, NotFetched, StaylogError, Unavailable
from ledger.identity import contexts
from ledger.identity.credentials import SKEW, Credential, Trust, check_method, choose_proof, issuer_of, moment
from ledger.identity.did import document_url
from ledger.identity.forms import faults, told
from ledger.net.fetch import Fetcher
from ledger.net.guard import check_url
from ledger.net.lookups import FAILURE_SECONDS, Found, Lookups, lifetime
from ledger.net.profiles import STATUS_LIST

# At least so many credentials share a list that nobody can tell which one is looked up.
MIN_BYTES = 131_072 // 8
MAX_BYTES = 2 << 20
# RFC-004 6.3.2.
LONGEST_SECONDS = 3600
MOST_KEPT = 64

_GZIP = 31


class ListName(NamedTuple):
    """A list, and whose word it must be."""

    role: str
    issuer: str
    url: str


@dataclass(frozen=True, slots=True)
class StatusList:
    """What remains of a list: its bits, what they are about, and the key that signed it."""

    purposes: tuple[str, ...]
    bits: bytes
    key: bytes

    def is_set(self, index: int) -> bool:
        """Bit 0 is the left-most."""
        if index >= len(self.bits) * 8:
            raise NotAccepted("status_invalid", f"the status list ends before the place {index}")
        return bool(self.bits[index >> 3] >> (7 - (index & 7)) & 1)


class StatusLists:
    """Looks up what has become of credentials; `trust` is whom the ledger believes now."""

    def __init__(self, fetcher: Fetcher, clock: Clock, trust: Callable[[], Trust]) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._trust = trust
        self._readers = ThreadPoolExecutor(2, thread_name_prefix="lists")
        self._lists: Lookups[ListName, StatusList] = Lookups(self._look_up, clock, most=MOST_KEPT)

    async def require_good(self, credential: Credential) -> None:
        """Raise unless every list that the credential names says that it is neither revoked nor suspended; counted."""
        if not credential.statuses:
            return
        try:
            for entry in credential.statuses:
                await self._check(credential, entry)
        except StaylogError as refusal:
            metrics.STATUSES.labels(refusal.code).inc()
            raise
        metrics.STATUSES.labels("good").inc()

    async def _check(self, credential: Credential, entry: Mapping[str, Any]) -> None:
        url, purpose = entry["statusListCredential"], entry["statusPurpose"]
        require_own(url, credential.issuer)
        name = ListName(credential.role, credential.issuer, url)
        try:
            found = await self._lists.get(name)
            if found.key not in self._trust().keys(name.role, name.issuer, None):
                # It was signed by a key that counted then; the issuer may have another one by now.
                self._lists.forget(name)
                found = await self._lists.get(name)
        except NotFetched as failure:
            raise Unavailable(
                "status_unavailable",
                f"whether the credential was revoked cannot be looked up now ({failure.code}): {failure.message}",
                retry_after=failure.retry_after or FAILURE_SECONDS,
            ) from failure
        if purpose not in found.purposes:
            raise NotAccepted("status_invalid", f"the status list {url} is not about {purpose}")
        if found.is_set(int(entry["statusListIndex"])):
            if purpose == "suspension":
                raise NotAccepted("credential_suspended", "the issuer has suspended this credential for now")
            raise NotAccepted("credential_revoked", "the issuer has revoked this credential")

    async def _look_up(self, name: ListName) -> Found[StatusList]:
        fetched = await self._fetcher.fetch(name.url, STATUS_LIST)
        keys, now = self._trust().keys(name.role, name.issuer, None), self._clock()

        def read() -> Found[StatusList]:
            document = fetched.json()
            found = read_list(document, name.url, name.issuer, keys, now, contexts.canonicaliser().canonize)
            return Found(found, _seconds(document, fetched.max_age, self._clock()))

        # A megabyte is parsed, hashed and unpacked: others need not wait for it.
        return await get_running_loop().run_in_executor(self._readers, read)


def read_list(document: Any, url: str, issuer: str, keys: list[bytes], now: datetime, canonize: Canonize) -> StatusList:
    """The list at `url`, if it is what `issuer` signed; NotFetched if what came is not, NotAccepted if what is there
    cannot be a list for the issuer's credentials."""
    if not isinstance(document, dict) or document.get("@context") not in contexts.ALLOWED_IN_LISTS:
        raise NotFetched("fetch_unproved", f"{url} is not a status list in contexts that define what it says")
    if wrong := faults("status-list.v1.json", "status_list", {**document, "proof": None}, beside=("proof",)):
        raise NotFetched("fetch_unproved", f"{url} is not a status list: {told(wrong)}")
    if issuer_of(document) != issuer or document["id"] != url:
        raise NotAccepted("status_invalid", f"{url} is a status list of another issuer, or of another address")
    try:
        _, proof = choose_proof(document)
        check_method(proof["verificationMethod"], issuer)
        _check_times(document, proof, now)
        unsigned = {name: value for name, value in document.items() if name != "proof"}
        key = proofs.verify(unsigned, proof, keys, canonize)
    except (NotAccepted, Malformed) as refusal:
        raise NotFetched("fetch_unproved", f"{url} does not hold ({refusal.code}): {refusal.message}") from refusal
    subject = document["credentialSubject"]
    purposes = subject["statusPurpose"]
    return StatusList(tuple([purposes] if isinstance(purposes, str) else purposes), unpack(subject["encodedList"]), key)


def unpack(encoded: str) -> bytes:
    """The bits of `encodedList`, and nothing beyond what a list may have, however small it was packed."""
    stream = zlib.decompressobj(wbits=_GZIP)
    try:
        packed = urlsafe_b64decode(encoded[1:] + "=" * (-len(encoded[1:]) % 4))
        bits = stream.decompress(packed, MAX_BYTES + 1)
    except (ValueError, zlib.error):
        raise NotAccepted("status_invalid", "the status list is not base64url of what gzip packed") from None
    if len(bits) > MAX_BYTES:
        raise NotAccepted("status_invalid", f"the status list has more than {MAX_BYTES * 8} places")
    if not stream.eof or stream.unused_data:
        raise NotAccepted("status_invalid", "the status list is not one whole gzip stream")
    if len(bits) < MIN_BYTES:
        raise NotAccepted("status_invalid", f"the status list has fewer than {MIN_BYTES * 8} places")
    return bits


def require_own(url: str, issuer: str) -> None:
    """An issuer's list is at its own origin. One that is but a key has none, and the list is signed by that key."""
    if issuer.startswith(("did:key:", "did:jwk:")):
        return
    at_home = check_url(document_url(issuer) if issuer.startswith("did:") else issuer.partition("#")[0]).origin
    if check_url(url).origin != at_home:
        raise NotAccepted("status_invalid", f"the status list {url} is not at {at_home}, which is the issuer's")


def _check_times(document: Mapping[str, Any], proof: Mapping[str, Any], now: datetime) -> None:
    if "validUntil" in document and now >= moment(document, "validUntil"):
        raise NotAccepted("expired", f"the status list held until {document['validUntil']}")
    if "validFrom" in document and now < moment(document, "validFrom") - SKEW:
        raise NotAccepted("not_yet_valid", f"the status list holds from {document['validFrom']}")
    if moment(proof, "created") > now + SKEW or "expires" in proof and now >= moment(proof, "expires"):
        raise NotAccepted("proof_time_invalid", "the proof was created in the future, or has expired")


def _seconds(document: Mapping[str, Any], max_age: int | None, now: datetime) -> float:
    """How long a list is believed: an hour, or shorter if its `ttl`, in milliseconds, its server or its end say so."""
    ttl = document["credentialSubject"].get("ttl", LONGEST_SECONDS * 1000) // 1000
    kept = min(lifetime(ttl, LONGEST_SECONDS), lifetime(max_age, LONGEST_SECONDS))
    if "validUntil" not in document:
        return kept
    return min(kept, (moment(document, "validUntil") - now).total_seconds())
