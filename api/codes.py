"""The catalogue of problem codes: for each its status, a title, and what happened and what to do.

A code's status is decided here and nowhere else. A refusal whose code is not listed is answered as `internal_error`:
a reader that stumbles over damaged bytes must not blame the client for them.
"""

from typing import NamedTuple

from api.identity_codes import IDENTITY
from api.review_codes import REVIEWS


class Code(NamedTuple):
    status: int
    title: str
    explanation: str


CODES: dict[str, Code] = {
    **{name: Code(*known) for name, known in (IDENTITY | REVIEWS).items()},
    "bad_request": Code(
        400,
        "Bad request",
        "The request is not well-formed HTTP for this service. Check the request line, the Host header and the body.",
    ),
    "parameter_invalid": Code(
        400,
        "Invalid parameter",
        "A parameter is missing, unknown, given twice, out of range or does not go with another one. `errors` names "
        "each of them and says what is expected. Nothing is ignored silently: a misspelled `proof=` would give an "
        "answer without the proof that was asked for.",
    ),
    "did_not_canonical": Code(
        400,
        "DID not canonical",
        "A DID has one spelling here: did:web with a lower-case host name, did:key, or did:jwk, without path, query or "
        "fragment. In a URL it is one path segment, decoded once, so its percent signs are escaped: the host "
        "did:web:a.example%3A8443 is asked for as /v1/hosts/did:web:a.example%253A8443/reputation.",
    ),
    "tile_path_invalid": Code(
        400,
        "Not a tile path",
        "Tiles are named as c2sp.org/tlog-tiles says: /log/tile/<level>/<index>[.p/<width>], bundles of entries "
        "/log/tile/entries/<index>[.p/<width>]. The level is 0 to 63, the index has groups of three digits, all but "
        "the last behind an x (1234067 is x001/x234/067), the width is 1 to 255.",
    ),
    "cursor_invalid": Code(
        400,
        "Invalid cursor",
        "A cursor is taken as it is from `next_cursor` of an answer about the same host. Leave it out to start with "
        "the newest review.",
    ),
    "page_out_of_range": Code(
        400,
        "Page out of range",
        "`from` counts the host's events from 0 and must be below `events` of its record; a page has 1 to 500 events. "
        "Ask with proof=aggregate to learn how many there are.",
    ),
    "not_found": Code(
        404,
        "Not found",
        "Nothing is served at this address. A tile that the log will have later is not found until a published "
        "checkpoint covers it. The addresses are listed at /schema.",
    ),
    "review_not_found": Code(
        404,
        "Review not found",
        "No published review has this id. An id is `rev-` and 26 lower-case base32 characters, as in the receipt and "
        "in the host's answer.",
    ),
    "unknown_size": Code(
        404,
        "Unknown size",
        "`size` must be the size of a published checkpoint, and consistency reaches up to the newest one. "
        "/v1/log/checkpoints lists them; without `size` the newest is taken.",
    ),
    "index_out_of_range": Code(
        404,
        "No entry with this index",
        "Entries are counted from 0 and the index must be below the size of the checkpoint that was asked for. If the "
        "entry is new, ask again without `size`.",
    ),
    "method_not_allowed": Code(
        405,
        "Method not allowed",
        "This address exists, but not for this method. The Allow header names those it has.",
    ),
    "request_timeout": Code(
        408,
        "Request too slow",
        "The head of the request, or its body, did not come within its time. Send it again, as a whole. "
        "A slow line is no hindrance as long as 4 KiB come each second.",
    ),
    "url_too_long": Code(
        414,
        "URL too long",
        "The target of a request has at most 8 KiB. No address here needs more: ask for less at once.",
    ),
    "head_too_large": Code(
        431,
        "Head too large",
        "A request line and its headers have at most 16 KiB together, and at most 100 lines. Leave out headers "
        "that are not needed, such as cookies: none are read here.",
    ),
    "proof_too_large": Code(
        413,
        "Proof too large",
        "A full proof has at most 1,000 events. Ask for all pages at one size instead: "
        "proof=page&from=0&count=500&size=..., then from=500 and so on. Together they prove the same.",
    ),
    "too_large": Code(
        413, "Request too large", "A request body has at most 256 KiB, and a credential in it at most 64 KiB."
    ),
    "unsupported_media_type": Code(
        415,
        "Unsupported media type",
        "The body is not of a type that is read here. Send JSON with Content-Type: application/json.",
    ),
    "internal_error": Code(
        500,
        "Internal error",
        "A fault of this service, not of the request. It has been logged. If it stays, tell the operator when it was.",
    ),
    "not_stored": Code(
        500,
        "Stored data missing or damaged",
        "Something that the log has signed for is missing from its storage or damaged there, so no answer is given "
        "rather than a wrong one. Mirrors of the log may still have it. The operator should run `staylog fsck`.",
    ),
    "busy": Code(
        503,
        "Busy",
        "More work is waiting than can be taken, all connections are in use, or another process holds the database. "
        "Nothing was acknowledged; try again after the time in Retry-After.",
    ),
    "storage_full": Code(
        503,
        "Storage full",
        "The log has no room to write. Nothing was acknowledged, and what is published can still be read.",
    ),
    "storage_unavailable": Code(
        503,
        "Storage unavailable",
        "The database does not answer in time, or cannot be written. Nothing was acknowledged; try again after the "
        "time in Retry-After, with the same submission: what was kept in spite of this is not kept twice.",
    ),
    "commit_not_replicated": Code(
        503,
        "Committed without its standby",
        "The database committed something that its synchronous standby may not have. Nothing is acknowledged or signed "
        "until an operator has looked; what is published can still be read. Send the same submission again after that: "
        "what was kept in spite of this is not kept twice.",
    ),
    "clock_unconfirmed": Code(
        503,
        "Clock not confirmed",
        "The service's clock is further ahead than the time that has really passed explains, or the service was away "
        "for more than a day. An entry that is dated ahead would hold the log's time there, so nothing is added and "
        "nothing is decided until the clock is corrected, a witness confirms it, or the operator does "
        "(--accept-clock). What is published can be read. Send the same again after the time in Retry-After.",
    ),
    "log_behind": Code(
        503,
        "Log behind its own signature",
        "The storage is older than the last checkpoint this log signed, as after an old backup was restored. To sign "
        "now would fork the log, so nothing is signed until an operator has looked.",
    ),
    "log_forked": Code(
        503,
        "Log forked",
        "The storage does not extend the last checkpoint this log signed. Nothing is signed until an operator has "
        "looked. Keep the checkpoints you have: they are evidence.",
    ),
    "mark_missing": Code(
        503,
        "Not known what was signed last",
        "The note of what this log signed last is missing, so to sign now might fork the log. Nothing is signed until "
        "an operator has looked; what is published can still be read.",
    ),
    "mark_unreadable": Code(
        503,
        "Note of what was signed last damaged",
        "The note of what this log signed last cannot be read, so to sign now might fork the log. Nothing is signed "
        "until an operator has looked; what is published can still be read.",
    ),
    "database_changed": Code(
        503,
        "Another database",
        "The database is another one than the one that was signed from, as after a failover or a restored backup, and "
        "nothing shows yet that it has all that was signed. Nothing is signed until a witness agrees or an operator "
        "has looked. Try again after the time in Retry-After; what is published can still be read.",
    ),
    "log_damaged": Code(
        503,
        "Log damaged",
        "What is stored does not hash to what would be signed. Nothing is signed until an operator has looked.",
    ),
}
