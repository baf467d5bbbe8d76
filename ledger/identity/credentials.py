"""Verdicts on OpenSTR credentials (RFC-004: W3C VC 2.0 with Ed25519 proofs), one stable code for each refusal.

The order is that of cost: form, contexts, trust and times take microseconds, the proof up to milliseconds. The form
comes before the proof because a JSON-LD signature covers a graph: only a document of the closed form says in its JSON
what its graph says. Whether a credential was revoked is published elsewhere; `Credential.statuses` tells where.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from ledger import metrics
from ledger.canon import jcs, proofs
from ledger.canon.proofs import Canonize
from ledger.canon.times import parse_moment
from ledger.errors import BadForm, NotAccepted, StaylogError
from ledger.identity import contexts
from ledger.identity.did import method_of
from ledger.identity.forms import PROOF_CODES, Fault, faults, listed, told

MAX_BYTES = 64 * 1024
MAX_PROOFS = 4
TYPES = {"guest": "OpenSTRGuestCredential", "host": "OpenSTRHostCredential"}
# How far the clocks of honest systems may be apart.
SKEW = timedelta(minutes=5)
# A guest's credential that cannot be revoked must end by itself (RFC-004 6.3.3).
LONGEST_WITHOUT_STATUS = timedelta(days=90)

_SCHEMA = "credentials.v1.json"
_ORIGIN = re.compile(r"(https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?)(?:[/?#].*)?")
_DID_URL = re.compile(r"(did:[^#?/]+)#([^#?/]+)")


# A suite, and the proof by it.
Chosen = tuple[str, Mapping[str, Any]]


class Trust(Protocol):
    """The pinned keys of an issuer that is trusted for this role and level, or NotAccepted `issuer_not_trusted`."""

    def keys(self, role: str, issuer: str, idv_level: str | None) -> list[bytes]: ...


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential whose proof holds, by an issuer that is trusted, at a time within its validity."""

    role: str
    id: str
    issuer: str
    # What the issuer says: the credential's subject, with `id`.
    claims: Mapping[str, Any]
    valid_until: datetime
    suite: str
    key: bytes
    # Where it is published whether the credential was revoked or suspended: BitstringStatusListEntry objects.
    statuses: tuple[Mapping[str, Any], ...]

    @property
    def subject(self) -> str:
        return str(self.claims["id"])

    def names_listing(self, listing_id: str) -> bool:
        return any(item["listing_id"] == listing_id for item in self.claims["properties"])

    def require_listing(self, listing_id: str) -> None:
        """A host's credential covers a listing that it names and for which the right to let was verified."""
        for item in self.claims["properties"]:
            if item["listing_id"] == listing_id and item["right_to_let_verified"] is True:
                return
        raise NotAccepted("listing_not_covered", f"the credential does not say that the host may let {listing_id!r}")


def verify(
    document: Any, role: str, trust: Trust, now: datetime, canonize: Canonize, chosen: Chosen | None = None
) -> Credential:
    """The verdict on a parsed credential of a guest or a host, counted. `chosen` is what `check` found in it, if
    somebody has looked already."""
    try:
        credential = examine(document, role, trust, now, canonize, chosen)
    except StaylogError as refusal:
        metrics.CREDENTIALS.labels(role, refusal.code).inc()
        raise
    metrics.CREDENTIALS.labels(role, "accepted").inc()
    return credential


def examine(
    document: Any, role: str, trust: Trust, now: datetime, canonize: Canonize, chosen: Chosen | None = None
) -> Credential:
    """The same, not counted: for whoever made the credential."""
    suite, proof = chosen or check(document, role)
    claims, issuer = document["credentialSubject"], issuer_of(document)
    if issuer == claims["id"]:
        raise NotAccepted("self_issued", "the issuer speaks of itself")
    keys = trust.keys(role, issuer, claims.get("idv_level"))
    check_method(proof["verificationMethod"], issuer)
    valid_until = _check_times(document, proof, now)
    statuses = _statuses(document)
    if not statuses:
        _require_short(document, role, valid_until)
    unsigned = {name: value for name, value in document.items() if name != "proof"}
    key = proofs.verify(unsigned, proof, keys, canonize)
    return Credential(role, document["id"], issuer, claims, valid_until, suite, key, statuses)


def check(document: Any, role: str) -> Chosen:
    """The suite and the proof that count, of a document that has the form of a credential of this role."""
    _check_kind(document, role)
    chosen = choose_proof(document)
    _check_form(document, role)
    return chosen


def _check_kind(document: Any, role: str) -> None:
    """Whether it is a credential of this role at all, in contexts that define what it says."""
    if isinstance(document, str):
        raise NotAccepted("jwt_not_acceptable", "a credential is a JSON object with a Data Integrity proof, not a JWT")
    if not isinstance(document, dict):
        raise BadForm("schema_invalid", "a credential is a JSON object")
    if len(jcs.dumps_plain(document)) > MAX_BYTES:
        raise BadForm("too_large", f"a credential has at most {MAX_BYTES // 1024} KiB")
    if "credential_uri" in document:
        raise BadForm("credential_by_reference", "send the credential itself, not where it can be fetched")
    types = _types(document)
    if "EnvelopedVerifiableCredential" in types:
        raise NotAccepted("jwt_not_acceptable", "a credential with a Data Integrity proof expected, not an envelope")
    if document.get("@context") not in contexts.ALLOWED or _has_context(
        [value for name, value in document.items() if name not in ("@context", "proof")]
    ):
        lists = " or ".join(f"[{', '.join(allowed)}]" for allowed in contexts.ALLOWED)
        raise NotAccepted("context_not_allowed", f"the contexts must be exactly {lists}, and stand nowhere else")
    if TYPES[role] not in types:
        raise NotAccepted("wrong_credential_type", f"an {TYPES[role]} expected")


def _types(document: Mapping[str, Any]) -> list[Any]:
    types = document.get("type")
    return types if isinstance(types, list) else [types]


def _has_context(value: Any) -> bool:
    if isinstance(value, dict):
        return "@context" in value or _has_context(list(value.values()))
    return isinstance(value, list) and any(map(_has_context, value))


def choose_proof(document: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The suite and the proof that is cheapest to verify. Each proof of a set stands alone, so one is enough."""
    given = document.get("proof")
    found: list[Any] = given if isinstance(given, list) else [given]
    if not 0 < len(found) <= MAX_PROOFS or not all(isinstance(proof, dict) for proof in found):
        raise BadForm("schema_invalid", f"proof: an object, or a list of at most {MAX_PROOFS} objects, expected")
    if any("previousProof" in proof for proof in found):
        raise NotAccepted("proof_chain", "proofs that build on each other are not supported")
    by_suite: dict[str, Mapping[str, Any]] = {}
    for proof in found:
        suite = proofs.suite_of(proof)
        if suite in by_suite:
            raise BadForm("schema_invalid", f"proof: more than one {suite}, so that it is not clear which counts")
        if suite is not None:
            by_suite[suite] = proof
    for suite in proofs.SUITES:
        if suite in by_suite:
            _check_proof(by_suite[suite], suite)
            return suite, by_suite[suite]
    raise NotAccepted("proof_type_not_supported", f"a proof by one of {', '.join(proofs.SUITES)} expected")


def _check_proof(proof: Mapping[str, Any], suite: str) -> None:
    found = faults(_SCHEMA, suite, proof)
    for fault in found:
        if fault.path and fault.path[0] in PROOF_CODES:
            raise NotAccepted(PROOF_CODES[str(fault.path[0])], f"proof.{fault}")
    if found:
        inside = [Fault(("proof", *fault.path), fault.keyword, fault.message) for fault in found]
        raise _form_refusal(inside, {"proof": proof})


def _check_form(document: Mapping[str, Any], role: str) -> None:
    if "validUntil" not in document:
        raise NotAccepted("missing_expiry", "a credential must say until when it holds (validUntil)")
    if found := faults(_SCHEMA, role, document):
        raise _form_refusal(found, document)


def _form_refusal(found: list[Fault], document: Mapping[str, Any]) -> StaylogError:
    message, errors = told(found), listed(found)
    if all(fault.keyword == "additionalProperties" or _is_relative(document, fault) for fault in found):
        return NotAccepted("undefined_term", f"{message}; a signature may not cover what the form does not have")
    if any(fault.keyword == "format" for fault in found):
        return BadForm("date_invalid", message, errors=errors)
    return BadForm("schema_invalid", message, errors=errors)


def _is_relative(document: Any, fault: Fault) -> bool:
    """An `id` that is relative, or a blank node: it would be signed as another name than the one that is read."""
    if not fault.path or fault.path[-1] != "id":
        return False
    value = document
    for step in fault.path:
        value = value[step]
    return isinstance(value, str) and (value.startswith("_:") or ":" not in value)


def issuer_of(document: Mapping[str, Any]) -> str:
    issuer = document["issuer"]
    return str(issuer["id"] if isinstance(issuer, dict) else issuer)


def check_method(method: str, issuer: str) -> None:
    """The key's name is under the issuer's: its DID, or its origin."""
    if issuer.startswith("did:"):
        match = _DID_URL.fullmatch(method)
        if match is None and method.startswith("did:"):
            raise NotAccepted("bad_verification_method", "the DID of the issuer, # and the name of a key expected")
        if match is None or match[1] != issuer:
            raise NotAccepted("issuer_key_mismatch", f"the verification method is not under the issuer {issuer}")
        expected = {"key": issuer.removeprefix("did:key:"), "jwk": "0"}.get(method_of(issuer))
        if expected not in (None, match[2]):
            raise NotAccepted("bad_verification_method", f"the key of this DID has the name #{expected}")
        return
    origins = [_ORIGIN.fullmatch(address) for address in (issuer, method)]
    if origins[1] is None and method.startswith("https:"):
        raise NotAccepted("bad_verification_method", "an https URL of a plain host expected")
    if origins[0] is None or origins[1] is None or origins[0][1] != origins[1][1]:
        raise NotAccepted("issuer_key_mismatch", f"the verification method is not of the origin of {issuer}")


def _check_times(document: Mapping[str, Any], proof: Mapping[str, Any], now: datetime) -> datetime:
    valid_from, valid_until = moment(document, "validFrom"), moment(document, "validUntil")
    created = moment(proof, "created")
    if now >= valid_until:
        raise NotAccepted("expired", f"the credential held until {document['validUntil']}")
    if now < valid_from - SKEW:
        raise NotAccepted("not_yet_valid", f"the credential holds from {document['validFrom']}")
    if created < valid_from - SKEW or created > now + SKEW:
        raise NotAccepted("proof_time_invalid", "the proof was created before the credential holds, or in the future")
    if "expires" in proof and now >= moment(proof, "expires"):
        raise NotAccepted("proof_time_invalid", f"the proof held until {proof['expires']}")
    return valid_until


def moment(container: Mapping[str, Any], name: str) -> datetime:
    try:
        return parse_moment(container[name])
    except ValueError as error:
        raise BadForm("date_invalid", f"{name}: {error}") from None


def _statuses(document: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    given = document.get("credentialStatus", [])
    statuses = tuple(given) if isinstance(given, list) else (given,)
    names = [status["id"] for status in statuses if "id" in status]
    # In a graph they would be one: what the issuer said of the first could be read of the second.
    if len(set(names)) != len(names):
        raise BadForm("schema_invalid", "credentialStatus: two entries have the same id")
    return statuses


def _require_short(document: Mapping[str, Any], role: str, valid_until: datetime) -> None:
    if role == "host":
        raise NotAccepted("missing_status", "a host's credential must say where its revocation is published")
    level = document["credentialSubject"]["idv_level"]
    if level != "email_verified" and valid_until - moment(document, "validFrom") > LONGEST_WITHOUT_STATUS:
        days = LONGEST_WITHOUT_STATUS.days
        raise NotAccepted("missing_status", f"a credential of more than {days} days must have a credentialStatus")


def role_of(document: Any) -> str:
    """The role that a credential claims to be for."""
    for role, name in TYPES.items():
        if isinstance(document, dict) and name in _types(document):
            return role
    raise NotAccepted("wrong_credential_type", f"one of {', '.join(TYPES.values())} expected")
