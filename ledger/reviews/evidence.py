"""What shows that a stay was booked. So far: a StayReceipt, which the host signs at booking time for the guest."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from ledger.canon import jcs
from ledger.errors import BadDID, BadForm, NotAccepted, NotYet
from ledger.identity import statements
from ledger.identity.did import Resolver

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


def judge(body: Mapping[str, Any], guest_did: str, *, domain: str, now: datetime, resolve: Resolver) -> str:
    """The kind of evidence that a review rests on, or why it rests on nothing."""
    evidence = body.get("booking_evidence")
    if not isinstance(evidence, dict) or evidence.get("type") != RECEIPT:
        raise NotYet(
            "booking_unverifiable",
            "nothing shows that this stay was booked: ask the host for a stay receipt, and submit the review with it "
            "as booking_evidence",
        )
    for name in ("booking_reference", "listing_id", "host_did"):
        if evidence[name] != body[name]:
            raise NotAccepted("booking_evidence_invalid", f"the stay receipt is for another {name} than the review")
    if evidence["guest_did"] != guest_did:
        raise NotAccepted("booking_evidence_invalid", "the stay receipt was given to another guest")
    if not evidence["check_in"] <= body["check_in"] < body["check_out"] <= evidence["check_out"]:
        booked = f"{evidence['check_in']} to {evidence['check_out']}"
        raise NotAccepted("booking_evidence_invalid", f"the stay was booked for {booked}, the review is of other dates")
    # A host whose keys cannot be had here at all is told so in its own words.
    keys = resolve(body["host_did"])
    try:
        statements.authenticate(evidence, RECEIPT, domain=domain, now=now, resolve=lambda _: keys)
    except NotAccepted as error:
        raise NotAccepted(
            "booking_evidence_invalid", f"the stay receipt does not count ({error.code}): {error.message}"
        ) from error
    return "stay_receipt"
