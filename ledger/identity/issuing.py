"""Issuing credentials and status lists: what an issuer signs, by the code that verifies it. For issuers, tests and the
demo."""

import gzip
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import jcs, multikey, proofs
from ledger.canon.proofs import Canonize
from ledger.canon.times import format_time
from ledger.errors import BadForm
from ledger.identity import contexts
from ledger.identity.credentials import TYPES, check_method, examine
from ledger.identity.forms import faults, listed, told
from ledger.identity.issuers import Issuer, Registry
from ledger.identity.status import MAX_BYTES, MIN_BYTES, read_list, require_own

# RFC-004 demands the first; the second is verified some twenty times faster.
DEFAULT_SUITES = (proofs.ED25519_2020, proofs.EDDSA_JCS)


def issue(
    role: str,
    subject: Mapping[str, Any],
    *,
    id_: str,
    issuer: str,
    method: str,
    key: SigningKey,
    valid_from: datetime,
    valid_until: datetime,
    canonize: Canonize,
    status: Mapping[str, Any] | None = None,
    suites: Sequence[str] = DEFAULT_SUITES,
) -> dict[str, Any]:
    """A signed credential about `subject`, with one proof per suite. What a ledger would refuse is refused here."""
    document: dict[str, Any] = {
        "@context": list(contexts.ALLOWED[0]),
        "type": ["VerifiableCredential", TYPES[role]],
        "id": id_,
        "issuer": issuer,
        "validFrom": format_time(valid_from),
        "validUntil": format_time(valid_until),
        "credentialSubject": dict(subject),
    }
    if status is not None:
        document["credentialStatus"] = dict(status)
        require_own(str(status.get("statusListCredential")), issuer)
    # Before anything is signed: it has a JSON form, the closed form, and a key whose name is the issuer's.
    jcs.dumps([document, method])
    if wrong := faults("credentials.v1.json", role, {**document, "proof": None}, beside=("proof",)):
        raise BadForm("schema_invalid", told(wrong), errors=listed(wrong))
    check_method(method, issuer)
    options = {"verificationMethod": method, "created": format_time(valid_from)}
    made = [proofs.sign(document, suite, key, options, canonize) for suite in suites]
    credential = {**document, "proof": made[0] if len(made) == 1 else made}
    # What not even a ledger that trusts this key would accept is not handed out.
    own = Registry([Issuer(role, issuer, "trusted", (multikey.encode(bytes(key.verify_key)),))])
    examine(credential, role, own, valid_from, canonize)
    return credential


def issue_status_list(
    marked: Iterable[int],
    *,
    url: str,
    issuer: str,
    method: str,
    key: SigningKey,
    valid_from: datetime,
    canonize: Canonize,
    valid_until: datetime | None = None,
    purpose: str = "revocation",
    places: int = MIN_BYTES * 8,
    ttl_seconds: int | None = None,
    suites: Sequence[str] = (proofs.EDDSA_JCS,),
) -> dict[str, Any]:
    """A signed list of so many places, to be published at `url`; the `marked` ones are revoked, or suspended."""
    document: dict[str, Any] = {
        "@context": list(contexts.ALLOWED_IN_LISTS[1 if proofs.ED25519_2020 in suites else 0]),
        "type": ["VerifiableCredential", "BitstringStatusListCredential"],
        "id": url,
        "issuer": issuer,
        "validFrom": format_time(valid_from),
        **({"validUntil": format_time(valid_until)} if valid_until else {}),
        "credentialSubject": {
            "id": f"{url}#list",
            "type": "BitstringStatusList",
            "statusPurpose": purpose,
            "encodedList": pack(marked, places),
            **({"ttl": ttl_seconds * 1000} if ttl_seconds is not None else {}),
        },
    }
    # Before anything is signed: it can be published where a ledger would ask for it, and has the closed form.
    require_own(url, issuer)
    check_method(method, issuer)
    if wrong := faults("status-list.v1.json", "status_list", {**document, "proof": None}, beside=("proof",)):
        raise BadForm("schema_invalid", told(wrong), errors=listed(wrong))
    options = {"verificationMethod": method, "created": format_time(valid_from)}
    made = [proofs.sign(document, suite, key, options, canonize) for suite in suites]
    signed = {**document, "proof": made[0] if len(made) == 1 else made}
    read_list(signed, url, issuer, [bytes(key.verify_key)], valid_from, canonize)
    return signed


def pack(marked: Iterable[int], places: int) -> str:
    """`encodedList`: bit 0 is the left-most. The same bits give the same text, whenever it is made."""
    if places % 8 or not MIN_BYTES * 8 <= places <= MAX_BYTES * 8:
        raise BadForm("schema_invalid", f"a list has {MIN_BYTES * 8} to {MAX_BYTES * 8} places, a multiple of 8")
    bits = bytearray(places // 8)
    for place in marked:
        if not 0 <= place < places:
            raise BadForm("schema_invalid", f"the list has no place {place}: it ends at {places - 1}")
        bits[place >> 3] |= 0x80 >> (place & 7)
    return "u" + urlsafe_b64encode(gzip.compress(bytes(bits), mtime=0)).rstrip(b"=").decode()
