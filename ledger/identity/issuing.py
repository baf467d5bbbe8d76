"""Issuing credentials: what an issuer signs, by the code that verifies it. For issuers, tests and the demo."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import proofs
from ledger.canon.proofs import Canonize
from ledger.canon.times import format_time
from ledger.errors import BadForm
from ledger.identity import contexts
from ledger.identity.credentials import TYPES
from ledger.identity.forms import faults, told

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
    """A signed credential about `subject`, with one proof per suite; BadForm when it would not have the closed form."""
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
    # Before anything is signed.
    wrong = [fault for fault in faults("credentials.v1.json", role, document) if fault.message != _UNSIGNED]
    if wrong:
        raise BadForm("schema_invalid", told(wrong), errors=[(fault.field, fault.message) for fault in wrong])
    options = {"verificationMethod": method, "created": format_time(valid_from)}
    made = [proofs.sign(document, suite, key, options, canonize) for suite in suites]
    return {**document, "proof": made[0] if len(made) == 1 else made}


_UNSIGNED = "the member 'proof' is missing"
