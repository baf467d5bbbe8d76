"""Stay receipts: what a host signs at booking time for the guest is the strongest evidence that a stay was booked."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ledger.canon import jcs
from ledger.errors import BadDID, BadForm, NotAccepted, NotYet
from ledger.identity import statements
from ledger.identity.did import Keys, is_offline
from ledger.identity.resolution import HostKeys
from ledger.reviews.stays import lies_within

RECEIPT = "StayReceipt"
MAX_BYTES = 16 * 1024


def check_form(evidence: Any) -> None:
    """Whether a receipt has the form of one. Evidence of another kind is judged when it is its turn, if it is not so
    long that reading it would cost more than a review does."""
    if len(jcs.dumps_plain(evidence)) > MAX_BYTES:
        raise BadForm("too_large", f"booking_evidence has at most {MAX_BYTES // 1024} KiB")
    if not isinstance(evidence, dict) or evidence.get("type") != RECEIPT:
        return
    try:
        statements.check(evidence, RECEIPT)
    except BadForm as error:
        errors = [(f"booking_evidence.{field}".rstrip("."), message) for field, message in error.errors]
        raise BadForm(error.code, f"booking_evidence: {error.message}", errors=errors) from None
    except BadDID as error:
        raise BadDID(f"booking_evidence: {error.message}") from None


def receipt_of(body: Mapping[str, Any], guest_did: str) -> Mapping[str, Any] | None:
    """The stay receipt that comes with a review or claim, if it is about the same stay; whether it counts is not looked
    at yet."""
    receipt = body.get("booking_evidence")
    if not isinstance(receipt, dict) or receipt.get("type") != RECEIPT:
        return None
    for name in ("booking_reference", "listing_id", "host_did"):
        if receipt[name] != body[name]:
            raise NotAccepted("booking_evidence_invalid", f"the stay receipt is for another {name} than this")
    if receipt["guest_did"] != guest_did:
        raise NotAccepted("booking_evidence_invalid", "the stay receipt was given to another guest")
    if not lies_within(body, receipt):
        booked = f"{receipt['check_in']} to {receipt['check_out']}"
        raise NotAccepted("booking_evidence_invalid", f"the stay was booked for {booked}, this is of other dates")
    return receipt


def judge(receipt: Mapping[str, Any], host: HostKeys, *, domain: str, now: datetime) -> None:
    """Whether a receipt counts. NotAccepted when it is forged; NotYet or Unavailable when nobody can say.

    A host may have changed its keys since it gave the receipt: a key that was seen in its document around that time
    counts as well. What it signed with a key that nobody has seen is neither evidence nor forged.
    """
    method = receipt["proof"]["verificationMethod"]
    try:
        statements.claimed(receipt, RECEIPT, domain=domain, now=now)
        statements.signed_by(receipt, host.at(method, statements.created_at(receipt)))
    except NotAccepted as error:
        # While the host's keys of now are not known, it may be that one of them signed.
        if error.code == "proof_invalid" and method not in host.now() and not is_offline(receipt["host_did"]):
            raise NotYet(
                "booking_unverifiable",
                f"the stay receipt is signed with {method}, which is not a key that the host has now or was seen to "
                "have when the receipt was made: ask the host for a new one",
            ) from error
        raise NotAccepted(
            "booking_evidence_invalid", f"the stay receipt does not count ({error.code}): {error.message}"
        ) from error


def signed_by_host(said: Mapping[str, Any], host_did: str, host: HostKeys) -> list[tuple[Mapping[str, Any], Keys]]:
    """What a host with a domain signed of a booking, and the key that it did it by; none where the keys that the host
    was seen to have do not tell."""
    if is_offline(host_did):
        return []
    method = said["proof"]["verificationMethod"]
    try:
        signed = statements.signed_by(said, host.at(method, statements.created_at(said)))
    except NotAccepted:
        return []
    return [(said, {method: signed.key})]
