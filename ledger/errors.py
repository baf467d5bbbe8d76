"""Every refusal has a class and a stable code; a few codes occur in two classes.

    StaylogError               proof_too_large, internal_error
    ├── Refused                any of the others, with the ledger's signed word that it refused
    ├── Uncertain              any of the others, and what it is about may be in the log all the same
    ├── Malformed              the bytes are not what they claim to be: answer_malformed, receipt_malformed,
    │   │                      opening_malformed, map_other_malformed, map_zeros_spelled_out, base58_invalid,
    │   │                      fraud_malformed, bundle_mismatch, note_malformed, wrong_size
    │   ├── BadJSON            malformed_json, duplicate_key, too_deep, not_utf8, number_out_of_range
    │   ├── BadBase64          base64_invalid, hash_length
    │   ├── BadDID             did_not_canonical
    │   ├── BadKey             key_not_acceptable
    │   ├── BadForm            schema_invalid, too_large, rating_out_of_range, text_too_long, date_invalid,
    │   │                      credential_by_reference, document_invalid, document_mismatch
    │   ├── BadNote            note_malformed, vkey_malformed, checkpoint_malformed, tlog_proof_malformed,
    │   │                      policy_malformed, request_malformed, answer_malformed
    │   ├── BadTilePath        tile_path_invalid
    │   └── BadEntry           entry_too_large, entry_malformed, entry_not_canonical, entry_unknown_type, entry_invalid
    ├── BrokenRule             well-formed, but no ledger may hold it: genesis_missing, genesis_repeated,
    │                          genesis_batch, batch_too_long, time_falls, map_head_size, map_head_not_last,
    │                          map_root_mismatch, foreign_event, index_order, review_id_reused, review_unknown,
    │                          response_repeated, response_late, upgrade_not_unconfirmed, redaction_of_nothing,
    │                          redaction_repeated, issuer_untrusted, issuer_missing, issuer_changed,
    │                          index_seq_falls
    ├── NotProved              a signature, proof or derived value does not hold: signer_unknown, signature_invalid,
    │   │                      origin_mismatch, cosignature_invalid, cosignature_refused, cosignature_unchecked,
    │   │                      quorum_missing, index_out_of_range, index_order, proof_length, hash_length,
    │   │                      root_mismatch, sub_root_mismatch, map_path_length, map_root_mismatch,
    │   │                      map_other_unexpected, map_other_elsewhere, map_head_not_last,
    │   │                      absent_with_events, foreign_event, time_falls, record_invalid, record_mismatch,
    │   │                      face_mismatch, history_mismatch, history_unproved, opening_mismatch,
    │   │                      opening_unexpected, pages_differ, pages_incomplete, wrong_kind, too_old,
    │   │                      from_the_future, receipt_mismatch, tlog_proof_extra, feedback_unreadable,
    │   │                      entry_differs_from_submission, submission_unreadable, issuers_mismatch, as_of_mismatch,
    │   │                      cursor_mismatch, events_mismatch, review_mismatch, activity_mismatch, opening_missing,
    │   │                      fraud_unproved, promise_open, promise_broken, rolled_back, too_large
    │   └── OutOfTime          cosignature_time, log_time_ahead
    ├── NotAccepted            a credential or statement that does not count here
    │                          proofs: proof_type_not_supported, proof_chain, wrong_proof_purpose, proof_value_invalid,
    │                          proof_invalid, proof_time_invalid, bad_verification_method, wrong_domain,
    │                          wrong_challenge, stale_proof
    │                          JSON-LD: context_not_allowed, undefined_term, too_complex
    │                          credentials: wrong_credential_type, jwt_not_acceptable, issuer_not_trusted,
    │                          issuer_key_mismatch, self_issued, missing_expiry, expired, not_yet_valid,
    │                          missing_status, status_invalid, credential_revoked, credential_suspended,
    │                          listing_not_covered
    │                          speakers: did_document_invalid, holder_binding_unavailable, holder_mismatch,
    │                          not_the_host, self_review
    │                          addresses: address_not_allowed
    │                          bookings: booking_evidence_invalid, booking_cancelled, booking_denied,
    │                          booking_dates_mismatch; responses: response_window_closed
    │                          other platforms: host_credential_required, consent_mismatch
    │                          signed requests: signature_malformed, signature_expired, signature_invalid,
    │                          digest_mismatch, ledger_unknown
    ├── NotFetched             nothing of use came from an address: fetch_unresolved, fetch_unreachable, fetch_tls,
    │                          fetch_timeout, fetch_status, fetch_redirected, fetch_too_large, fetch_encoded,
    │                          fetch_not_json, fetch_unproved, fetch_too_often
    ├── NotYet                 right in itself, but not here and now: stay_not_over, too_late, booking_unverifiable,
    │                          claim_too_late, log_time_ahead
    ├── Done                   it was done before, in another way: already_reviewed, already_responded,
    │                          already_verified, already_redacted, notice_outdated, nonce_repeated
    ├── TooMany                rate_limited, quota_exceeded
    ├── NotStored              not_stored: something that must exist is missing or damaged
    ├── BadRequest             parameter_invalid, cursor_invalid, page_out_of_range, method_not_allowed
    ├── NotFound               not_found, review_not_found, submission_not_found, unknown_size, index_out_of_range,
    │                          nothing_to_redact
    ├── Unavailable            worth another try later: busy, storage_full, storage_unavailable, database_changed,
    │   │                      ledger_unreachable, status_unavailable, issuer_unavailable, credential_unavailable,
    │   │                      guest_did_unavailable, host_did_unavailable, clock_unconfirmed
    │   ├── Outdated           busy: what a draft rests on has changed meanwhile
    │   └── Unconfirmed        storage_unavailable: the connection was lost during a COMMIT, which may have happened
    ├── Halted                 the log must not sign until an operator has looked: log_behind, log_forked, log_damaged,
    │   │                      mark_missing, mark_unreadable
    │   └── Unreplicated       commit_not_replicated: a COMMIT was cancelled while it waited for its standby
    └── Misconfigured          settings_invalid, not_initialised, already_initialised, key_unreadable, key_mismatch,
                               key_exists, key_unwritable, database_outdated, database_not_durable,
                               database_unsuitable, database_rights_missing, extra_missing,
                               context_changed, issuer_invalid, issuer_unknown, issuer_already, issuer_changed,
                               issuer_key_missing, issuer_key_foreign, issuer_keys_many, issuer_key_compromised,
                               listing_invalid, file_exists, file_unwritable, file_unreadable, development_refused,
                               confirmation_missing, checkpoint_not_accepted, entry_not_by_hand

A code never changes its meaning; messages may. Codes are what metrics count and what tests pin.
"""

from collections.abc import Mapping, Sequence
from typing import Any


class StaylogError(Exception):
    """Base of every refusal: `code` is for machines, the message for people."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Refused(StaylogError):
    """`reason` is the refusal itself, `refusal` the ledger's signed word about it."""

    def __init__(self, reason: StaylogError, refusal: Mapping[str, Any]) -> None:
        super().__init__(reason.code, reason.message)
        self.reason = reason
        self.refusal = refusal


class Uncertain(StaylogError):
    """`reason` is what went wrong. Nobody may sign that this was refused: it may have been taken in."""

    def __init__(self, reason: StaylogError) -> None:
        super().__init__(reason.code, reason.message)
        self.reason = reason


class Malformed(StaylogError):
    pass


class BadJSON(Malformed):
    pass


class BadBase64(Malformed):
    pass


class BadDID(Malformed):
    def __init__(self, message: str) -> None:
        super().__init__("did_not_canonical", message)


class BadKey(Malformed):
    def __init__(self, message: str) -> None:
        super().__init__("key_not_acceptable", message)


class BadForm(Malformed):
    """`errors` has a place and a message for each thing that is wrong."""

    def __init__(self, code: str, message: str, *, errors: Sequence[tuple[str, str]] = ()) -> None:
        super().__init__(code, message)
        self.errors = tuple(errors)


class BadNote(Malformed):
    pass


class BadTilePath(Malformed):
    def __init__(self, message: str) -> None:
        super().__init__("tile_path_invalid", message)


class BadEntry(Malformed):
    pass


class BrokenRule(StaylogError):
    pass


class NotProved(StaylogError):
    pass


class OutOfTime(NotProved):
    """A witness has signed a checkpoint, and its time, `timestamp`, does not fit the log's time or our clock."""

    def __init__(self, code: str, message: str, *, timestamp: int) -> None:
        super().__init__(code, message)
        self.timestamp = timestamp


class NotAccepted(StaylogError):
    pass


class NotFetched(StaylogError):
    """`status` is the HTTP status that came, if any did; `retry_after` the seconds after which to ask again."""

    def __init__(self, code: str, message: str, *, status: int | None = None, retry_after: int | None = None) -> None:
        super().__init__(code, message)
        self.status = status
        self.retry_after = retry_after


class NotStored(StaylogError):
    def __init__(self, message: str) -> None:
        super().__init__("not_stored", message)


class BadRequest(StaylogError):
    pass


class NotFound(StaylogError):
    pass


class NotYet(StaylogError):
    pass


class Done(StaylogError):
    pass


class TooMany(StaylogError):
    """`retry_after` is in seconds."""

    def __init__(self, code: str, message: str, *, retry_after: int) -> None:
        super().__init__(code, message)
        self.retry_after = retry_after


class Unavailable(StaylogError):
    """Nothing was acknowledged; `retry_after` is in seconds."""

    def __init__(self, code: str, message: str, *, retry_after: int = 5) -> None:
        super().__init__(code, message)
        self.retry_after = retry_after


class Outdated(Unavailable):
    pass


class Unconfirmed(Unavailable):
    """What was written may be there: what the database holds later decides."""


class Halted(StaylogError):
    retry_after = 300


class Unreplicated(Halted):
    """What was written is on the primary, and may not be on the synchronous standby."""


class Misconfigured(StaylogError):
    pass
