"""The codes of refused reviews and responses, and of limits: status, title, and what happened and what to do."""

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
    "too_late": (422, "Too long ago", "A stay can be reviewed for 365 days after check-out."),
    "booking_unverifiable": (
        422,
        "Nothing shows the booking",
        "A review needs evidence that the stay was booked: a StayReceipt in booking_evidence, which the host signs for "
        "the guest at booking time, by a key that its DID has now or was seen to have then. Ask the host for one; "
        "`staylog booking receipt` makes it.",
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
        "One person, or one host, has submitted as much as it may in a while. Nothing was taken in; try again after "
        "the time in Retry-After.",
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
