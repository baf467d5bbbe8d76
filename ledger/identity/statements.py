"""Signed statements of guests and hosts (design: who signs what): each with its own type, closed form and one proof.

The proof is Data Integrity, `eddsa-jcs-2022`, purpose `assertionMethod`, by a key of the speaker's DID. The type is in
what is signed and no two types have the same members, so that no statement can be replayed as another.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from nacl.signing import SigningKey

from ledger.canon import did, proofs, strict_json
from ledger.canon.times import check_date, format_time, parse_moment
from ledger.errors import BadDID, BadForm, NotAccepted
from ledger.identity.did import Keys, Resolver
from ledger.identity.forms import PROOF_CODES, Fault, faults, listed, told

# How old a statement may be when it arrives, and how far clocks may be apart.
WINDOW = timedelta(minutes=5)
MAX_BYTES = 256 * 1024
# A claim stands in a receipt, and that in the answer about a submission: this far from what JSON may nest.
MAX_DEPTH = strict_json.MAX_DEPTH - 2

_SCHEMA = "statements.v1.json"
# Documents inside of statements: they have verdicts and codes of their own.
EMBEDDED = ("guest_credential", "host_credential", "booking_evidence", "guest_statement")
_DIDS = ("host_did", "guest_did")
_OF_NUMBERS = ("type", "minimum", "maximum", "multipleOf")
_TEXTS = ("review_text", "private_feedback", "response_text")


@dataclass(frozen=True, slots=True)
class Kind:
    """Who makes a kind of statement, and the code for who else does. What is made to be kept may be of any age. What
    answers somebody is heard only from whom was asked."""

    speaker: Callable[[Mapping[str, Any]], str | None]
    mismatch: str
    kept: bool = False
    answers: bool = False


def _guest(body: Mapping[str, Any]) -> str:
    """The subject of the credential that is shown. A credential alone is no proof of being the guest: every host that
    the guest booked with has a copy."""
    credential = body["guest_credential"]
    if isinstance(credential, str):
        raise NotAccepted("jwt_not_acceptable", "guest_credential: a JSON object with a proof expected, not a JWT")
    if not isinstance(credential, dict):
        raise BadForm("schema_invalid", "guest_credential: object expected")
    types = credential.get("type")
    if "EnvelopedVerifiableCredential" in (types if isinstance(types, list) else [types]):
        raise NotAccepted("jwt_not_acceptable", "guest_credential: a credential with a proof expected, not an envelope")
    subject = credential.get("credentialSubject")
    name = subject.get("id") if isinstance(subject, dict) else None
    if not isinstance(name, str) or not name.startswith("did:"):
        raise NotAccepted(
            "holder_binding_unavailable", "the credential's subject is not a DID: it has no key to sign by"
        )
    return name


def _host(body: Mapping[str, Any]) -> str:
    return str(body["host_did"])


def _nobody(body: Mapping[str, Any]) -> None:
    """The body does not say; whoever reads it knows whom to expect."""


KINDS = {
    "ReviewSubmission": Kind(_guest, "holder_mismatch"),
    "HostResponse": Kind(_host, "not_the_host"),
    "StayReceipt": Kind(_host, "not_the_host", kept=True),
    "BookingNotice": Kind(_host, "not_the_host", kept=True),
    "BookingClaim": Kind(_guest, "holder_mismatch", kept=True),
    "EvidenceSupplement": Kind(_nobody, "holder_mismatch"),
    "BookingVerification": Kind(_nobody, "not_the_host", answers=True),
    "CrossPlatformReview": Kind(_host, "not_the_host"),
    "GuestConsent": Kind(_guest, "holder_mismatch"),
    "FeedbackRequest": Kind(_host, "not_the_host"),
}
# The one type that may be left out, since OpenSTR RFC-005 7.2 has none.
UNNAMED = "ReviewSubmission"


@dataclass(frozen=True, slots=True)
class Signed:
    """Who signed a statement, with which key, when."""

    speaker: str
    method: str
    key: bytes
    created: datetime


def speaker_of(body: Mapping[str, Any], kind: str) -> str | None:
    """Who must have signed a body that has the form of its kind; None where it does not say."""
    return KINDS[kind].speaker(body)


def parse(data: bytes) -> Any:
    """The JSON value of what is sent as a statement. Raises BadJSON when it is none, or nests more than 14 levels."""
    return strict_json.loads(data, max_depth=MAX_DEPTH)


def check(body: Any, kind: str) -> None:
    """Whether `body` has the form of a statement of this kind; the documents inside of it are not looked into."""
    if not isinstance(body, dict):
        raise BadForm("schema_invalid", f"a {kind} is a JSON object")
    if body.get("type", UNNAMED) != kind:
        raise BadForm("schema_invalid", f"type: a {kind} is expected here, this is a {str(body.get('type'))[:60]}")
    for name in EMBEDDED:
        if isinstance(body.get(name), dict) and "credential_uri" in body[name]:
            raise BadForm("credential_by_reference", f"{name}: send the credential itself, not where to fetch it")
    if found := faults(_SCHEMA, kind, body, beside=EMBEDDED):
        raise _refusal(found)
    for name in _DIDS:
        if name in body:
            did.check(body[name])
    _check_dates(body)


def verify(
    body: Any,
    kind: str,
    *,
    domain: str,
    now: datetime,
    resolve: Resolver,
    speaker: str | None = None,
    challenge: str | None = None,
) -> Signed:
    """Who signed `body`, a statement of this kind for the ledger at `domain`. Whom the body names must have signed, and
    `speaker` where one is expected. An EvidenceSupplement names nobody: whoever signed is told."""
    check(body, kind)
    signer = claimed(body, kind, domain=domain, now=now, speaker=speaker, challenge=challenge)
    return authenticate(body, resolve(signer))


def claimed(
    body: Mapping[str, Any],
    kind: str,
    *,
    domain: str,
    now: datetime,
    speaker: str | None = None,
    challenge: str | None = None,
) -> str:
    """Who is said to have signed a body that has the form of its kind, once all is right but the signature: whose keys
    are then worth looking up."""
    if KINDS[kind].answers and speaker is None:
        raise ValueError(f"a {kind} is heard only from whom was asked: name the speaker")
    proof, rule = body["proof"], KINDS[kind]
    # A StayReceipt may leave it out: the host does not know which ledger the guest will use.
    if proof.get("domain", domain) != domain:
        raise NotAccepted("wrong_domain", f"the statement is for {proof['domain']}, this is {domain}")
    if proof.get("challenge") != challenge:
        raise NotAccepted("wrong_challenge", "the statement does not answer the question that was asked")
    created = created_at(body)
    if created > now + WINDOW or created < now - WINDOW and not rule.kept:
        raise NotAccepted("stale_proof", f"the proof was created at {proof['created']}, not within five minutes of now")
    signer = str(proof["verificationMethod"].partition("#")[0])
    for expected in (speaker_of(body, kind), speaker):
        if expected not in (None, signer):
            raise NotAccepted(rule.mismatch, f"signed by a key of {signer[:256]}, not of {str(expected)[:256]}")
    return signer


def authenticate(body: Mapping[str, Any], keys: Keys) -> Signed:
    """Who signed it: the signer that it names, whose keys these are."""
    method = body["proof"]["verificationMethod"]
    signer = method.partition("#")[0]
    if method not in keys:
        raise NotAccepted("bad_verification_method", f"{method} is not a key that may assert for {signer}")
    return signed_by(body, [keys[method]])


def signed_by(body: Mapping[str, Any], keys: Iterable[bytes]) -> Signed:
    """The same, where one of several keys may have had the name."""
    proof = body["proof"]
    unsigned = {name: value for name, value in body.items() if name != "proof"}
    key = proofs.verify(unsigned, proof, keys)
    method = proof["verificationMethod"]
    return Signed(method.partition("#")[0], method, key, created_at(body))


def sign(
    body: Mapping[str, Any],
    key: SigningKey,
    method: str,
    *,
    now: datetime,
    domain: str | None = None,
    challenge: str | None = None,
) -> dict[str, Any]:
    """`body` with its proof, by a key whose verification method id is `method`."""
    options = {"verificationMethod": method, "created": format_time(now)}
    options |= {name: value for name, value in (("domain", domain), ("challenge", challenge)) if value is not None}
    unsigned = {name: value for name, value in body.items() if name != "proof"}
    return {**unsigned, "proof": proofs.sign(unsigned, proofs.EDDSA_JCS, key, options)}


def created_at(body: Mapping[str, Any]) -> datetime:
    try:
        return parse_moment(body["proof"]["created"])
    except ValueError as error:
        raise BadForm("date_invalid", f"proof.created: {error}") from None


def _check_dates(body: Mapping[str, Any]) -> None:
    for name in ("check_in", "check_out"):
        try:
            if name in body:
                check_date(body[name])
        except ValueError as error:
            raise BadForm("date_invalid", f"{name}: {error}", errors=[(name, str(error))]) from None
    if "check_in" in body and "check_out" in body and body["check_out"] <= body["check_in"]:
        raise BadForm(
            "date_invalid", "check_out: a stay ends after it began", errors=[("check_out", "not after check_in")]
        )


def _refusal(found: list[Fault]) -> BadDID | BadForm | NotAccepted:
    """The code of the first thing that has one of its own."""
    message, errors = told(found), listed(found)
    for fault in found:
        first, last = (fault.path[0], fault.path[-1]) if fault.path else ("", "")
        if first == "proof" and len(fault.path) == 2 and last in PROOF_CODES:
            return NotAccepted(PROOF_CODES[str(last)], message)
        if last in _DIDS and fault.keyword == "anyOf":
            return BadDID(f"{message}: a did:web, did:key or did:jwk in its one spelling expected")
        if first == "ratings" and fault.keyword in _OF_NUMBERS and len(fault.path) == 2:
            return BadForm("rating_out_of_range", message, errors=errors)
        if last in _TEXTS and fault.keyword == "maxLength":
            return BadForm("text_too_long", message, errors=errors)
        if fault.keyword == "format" or last in ("check_in", "check_out") and fault.keyword == "pattern":
            return BadForm("date_invalid", message, errors=errors)
    return BadForm("schema_invalid", message, errors=errors)
