"""Issuing credentials: what an issuer signs, by the code that verifies it. For issuers, tests and the demo."""

from collections.abc import Mapping, Sequence
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
