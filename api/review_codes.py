"""The codes of refused reviews, responses, notices and claims, and of limits: status, title, and what happened
and what to do."""

REVIEWS: dict[str, tuple[int, str, str]] = {
    "self_review": (
        403,
        "A review of oneself",
        "Guest and host are the same DID, or DIDs with the same key. Nobody reviews their own place.",
    ),
    "booking_evidence_invalid": (
        403,
        "Booking evidence does not count",
        "The stay receipt was not signed by the host's key that it names, was changed, or is about another booking, "
        "listing, host, guest or other dates than the review. The dates of a review must lie within the booked ones. "
        "Send the receipt exactly as the host gave it, or ask the host for a right one.",
    ),
    "booking_denied": (
        403,
        "The host denies the booking",
        "Nothing but the host could show that this stay was booked, and the host signed that it was not, not by this "
        "guest, or that it was cancelled in time. The log has an entry that says so. If you have a stay receipt of the "
        "host, submit the review with it as booking_evidence: then it counts, and the log says that the denial is "
        "contradicted.",
    ),
    "booking_cancelled": (
        403,
        "The booking was cancelled",
        "The host gave notice before the day of check-in that this booking was cancelled. What is said of it later "
        "does not count.",
    ),
    "booking_dates_mismatch": (
        403,
        "Other dates were booked",
        "The host confirms the booking, and for other dates than the review is of. The dates of a review must lie "
        "within the booked ones: sign it anew with the right ones.",
    ),
    "host_credential_required": (
        403,
        "A host's credential is needed",
        "A review of another platform rests on the host's word: send the HostCredential as host_credential.",
    ),
    "consent_mismatch": (
        403,
        "The guest consents to something else",
        "The document, the ratings and the text that a guest consents to must be exactly those that the host submits.",
    ),
    "document_invalid": (
        400,
        "Not such a document",
        "A booking's document is a PDF, or a JSON object, and its content must be what document_type says.",
    ),
    "document_mismatch": (
        400,
        "Another document",
        "The SHA-256 of the document is not the document_sha256 of the attestation.",
    ),
    "submission_not_found": (
        404,
        "No such submission",
        "There is no submission of this id that waits for a decision or was decided in the last 90 days. The id is in "
        "the answer 202 to who submitted it, and nowhere else. The same submission sent again tells as well.",
    ),
    "notice_outdated": (
        409,
        "A newer statement is on file",
        "Of two statements about one booking by the same speaker the one that was made later counts, and this one was "
        "made earlier, or at the same time. Sign it anew.",
    ),
    "already_verified": (
        409,
        "Already verified",
        "Evidence is handed in later for reviews that are unconfirmed. This one counts already.",
    ),
    "claim_too_late": (
        422,
        "Too late to claim a booking",
        "A booking is claimed before the day of check-in begins where the listing is; where that is not known, before "
        "it begins anywhere (UTC+14). After the stay, submit a review.",
    ),
    "response_window_closed": (
        403,
        "Too late to respond",
        "A host may respond to a review within 30 days of its submission.",
    ),
    "already_reviewed": (
        409,
        "Already reviewed",
        "A guest may review a booking once, and this guest has. The same submission sent again, byte for byte, is no "
        "second review: it gets the receipt of the first.",
    ),
    "already_responded": (
        409,
        "Already responded",
        "A review has one response at most, and it stays as it is. The same response sent again gets the receipt of "
        "the first.",
    ),
    "stay_not_over": (
        422,
        "The stay is not over",
        "A review is taken once the day of check-out is over in the listing's time zone; where that is not known, once "
        "it is over everywhere on Earth (UTC-12). Send the same review then, signed anew.",
    ),
    "log_time_ahead": (
        422,
        "The log's time is ahead",
        "The response came in good time, and cannot be entered: an earlier entry is dated ahead, no entry is dated "
        "before the one in front of it, and by the log's time the 30 days are over. Keep the signed refusal: it shows "
        "that the response came in time.",
    ),
    "too_late": (422, "Too long ago", "A stay can be reviewed for 365 days after check-out."),
    "booking_unverifiable": (
        422,
        "Nothing shows the booking",
        "A review needs evidence that the stay was booked: a StayReceipt in booking_evidence, which the host signs for "
        "the guest at booking time, by a key that its DID has now or was seen to have then; or a claim or notice from "
        "before check-in. The host itself can be asked only where its booking endpoint is known here, and by guests "
        "whose identity was verified. Ask the host for a stay receipt; `staylog booking receipt` makes it.",
    ),
    "rate_limited": (
        429,
        "Too many requests",
        "More requests came from this address than it may make in a while. Try again after the time in Retry-After. "
        "Answers can be kept: ask with If-None-Match, and cache tiles for ever.",
    ),
    "quota_exceeded": (
        429,
        "Quota exceeded",
        "One person, or one host, has submitted as much as it may in a while, or has something waiting for a decision "
        "already where only one may wait. Nothing was taken in; try again after the time in Retry-After.",
    ),
    "guest_did_unavailable": (
        503,
        "The guest's keys cannot be looked up",
        "The guest's DID is a did:web, and its document could not be fetched from its domain just now. Nothing was "
        "taken in; try again after the time in Retry-After.",
    ),
    "host_did_unavailable": (
        503,
        "The host's keys cannot be looked up",
        "The host's DID is a did:web, its document could not be fetched or read just now, and no key that was seen "
        "there before settles it. Nothing was taken in, and it counts against nobody; try again after the time in "
        "Retry-After.",
    ),
    "issuer_unavailable": (
        503,
        "The issuer's keys cannot be looked up",
        "What the issuer publishes of its keys could not be fetched just now. A review never needs it: there the "
        "issuer's keys are pinned.",
    ),
    "credential_unavailable": (
        503,
        "The credential cannot be fetched",
        "There is no credential to be had at its address just now. It is not taken for valid meanwhile.",
    ),
    "status_unavailable": (
        503,
        "Revocation cannot be looked up",
        "The credential says where it is published whether it was revoked, and that could not be looked up. It is not "
        "taken for valid meanwhile. Try again after the time in Retry-After.",
    ),
}
