"""The JSON bodies of the log's operations. `hosts` describes its answer itself: those bytes are made by the ledger."""

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

Hash = Annotated[str, Meta(pattern="^[A-Za-z0-9+/]{43}=$", description="Base64 of 32 bytes.")]
Index = Annotated[int, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Note = Annotated[str, Meta(description="A checkpoint: a C2SP signed note with the log's size and root, verbatim.")]
EntryText = Annotated[str, Meta(description="The exact bytes of an entry; hash them, not a parsed copy.")]
EntryType = Literal["review", "response", "upgrade", "redaction"]
Level = Literal["guest_verified", "host_attested", "unconfirmed"]


class Health(Struct, frozen=True):
    status: Literal["ok"]
    size: Count
    origin: str
    published_at: str
    log_time_ahead: Annotated[
        int, Meta(ge=0, description="By how many seconds the log's time is ahead of the clock; 0 as a rule.")
    ]


class LatestCheckpoint(Struct, frozen=True):
    origin: str
    size: Count
    root: Hash
    at: Annotated[str, Meta(description="The time of the map head that ends this tree.")]
    checkpoint: Note


class ListedCheckpoint(Struct, frozen=True):
    size: Count
    checkpoint: Note


class Checkpoints(Struct, frozen=True):
    checkpoints: list[ListedCheckpoint]
    next: Annotated[Count | None, Meta(description="`before` for the next page; null at the end.")]


class WitnessStatus(Struct, frozen=True):
    name: Annotated[str, Meta(description="As the policy calls it.")]
    vkey: Annotated[str, Meta(description="The key by which its cosignatures are checked.")]
    url: str | None
    state: Annotated[
        Literal["cosigned", "waiting", "unreachable", "refused", "unchecked", "ahead", "lying", "contradicts"],
        Meta(
            description="What came of asking it last: it cosigned; it was not asked yet; it does not answer; it does "
            "not sign; it signs with ML-DSA-44, which cannot be checked here; it says that it has seen more than there "
            "is; what it signs or says does not hold; it shows that this log has signed another history, or more, than "
            "is here."
        ),
    ]
    size: Annotated[Count | None, Meta(description="The newest checkpoint that it cosigned, as far as this is known.")]
    at: Annotated[str | None, Meta(description="When it saw that, by its own clock.")]
    detail: Annotated[str | None, Meta(description="What is wrong, in words.")]


class WitnessReport(Struct, frozen=True):
    policy: Annotated[
        str | None,
        Meta(description="The tlog-policy of this log, verbatim; null when nobody is asked. Get yours from elsewhere."),
    ]
    size: Annotated[Count, Meta(description="The newest published checkpoint.")]
    quorum: Annotated[
        bool | None, Meta(description="Whether enough witnesses cosigned that one; null without a policy.")
    ]
    witnessed: Annotated[ListedCheckpoint | None, Meta(description="The newest that enough witnesses cosigned.")]
    witnesses: list[WitnessStatus]


class ReviewsByLevel(Struct, frozen=True):
    guest_verified: Index
    host_attested: Index
    unconfirmed: Index


RedactionsByBasis = Annotated[dict[str, Index], Meta(description="Texts withdrawn, by legal basis, if any.")]
ChecksByOutcome = Annotated[dict[str, Index], Meta(description="What was found about bookings, by outcome, if any.")]


class DayStatistics(Struct, frozen=True):
    date: str
    entries: Count
    reviews: Annotated[ReviewsByLevel, Meta(description="By the level at which they came in.")]
    responses: Index
    upgrades: Index
    redactions: RedactionsByBasis
    checks: ChecksByOutcome


class Statistics(Struct, frozen=True):
    size: Annotated[
        Index,
        Meta(
            description="Of the checkpoint up to which was counted: the newest, but for some seconds after a large log "
            "was opened, when it is how far the count has come."
        ),
    ]
    at: Annotated[str, Meta(description="The time of the last entry that was counted.")]
    entries: Index
    reviews: Annotated[
        ReviewsByLevel, Meta(description="By the level that they have now: upgrades count as guest_verified.")
    ]
    responses: Index
    upgrades: Index
    redactions: RedactionsByBasis
    checks: ChecksByOutcome
    days: Annotated[list[DayStatistics], Meta(description="By date (UTC), but for days without any entry.")]


class CountedCheckpoint(Struct, frozen=True):
    size: Count
    root: Hash
    at: Annotated[str, Meta(description="The time of the map head that ends this tree.")]


class IssuerDay(Struct, frozen=True):
    """Reviews by the level at which they came in. An upgrade makes an unconfirmed review guest_verified: it is no
    review, and counted on its own day."""

    date: str
    guest_verified: Index
    host_attested: Index
    unconfirmed: Index
    upgrades: Index


class HostDay(Struct, frozen=True):
    """Entries of the log that name the host, by their type."""

    date: str
    review: Index
    response: Index
    upgrade: Index
    booking_check: Index
    redaction: Index


class IssuerActivity(Struct, frozen=True):
    """What rested on an issuer's credentials, day by day (UTC)."""

    first: Annotated[str, Meta(description="The first day of this answer.")] = field(name="from")
    to: Annotated[str, Meta(description="The last day of this answer; it may not be over yet.")]
    as_of: Annotated[CountedCheckpoint, Meta(description="The checkpoint whose entries were counted.")]
    days: Annotated[list[IssuerDay], Meta(description="By ascending date, but for days without any.")]


class HostEvents(Struct, frozen=True):
    """What came in about a host, day by day (UTC)."""

    first: Annotated[str, Meta(description="The first day of this answer.")] = field(name="from")
    to: Annotated[str, Meta(description="The last day of this answer; it may not be over yet.")]
    as_of: Annotated[CountedCheckpoint, Meta(description="The checkpoint whose entries were counted.")]
    days: Annotated[list[HostDay], Meta(description="By ascending date, but for days without any.")]


class Inclusion(Struct, frozen=True):
    index: Index
    size: Count
    leaf_hash: Hash
    proof: Annotated[list[Hash], Meta(description="RFC 9162 inclusion path, the leaf's sibling first.")]
    checkpoint: Note


class Consistency(Struct, frozen=True):
    first: Count
    second: Count
    proof: Annotated[list[Hash], Meta(description="RFC 9162 consistency proof; empty for equal sizes.")]


class Entries(Struct, frozen=True):
    start: Index
    entries: list[EntryText]


class EntryOpening(Struct, frozen=True):
    index: Index
    text: Annotated[str, Meta(description="Exactly as it was committed to: untrusted, with all control characters.")]
    salt: Hash


class Openings(Struct, frozen=True):
    start: Index
    openings: Annotated[list[EntryOpening], Meta(max_length=256, description="By ascending index.")]


class Jwk(Struct, frozen=True):
    kty: Literal["OKP"]
    crv: Literal["Ed25519"]
    x: str


class LogKey(Struct, frozen=True):
    """The log's public key in the spellings that verifiers want. Compare it with one from another source."""

    origin: str
    vkey: str
    jwk: Jwk
    pem: str


class OpeningShape(Struct, frozen=True):
    text: str
    salt: Hash


class ReviewEntry(Struct, frozen=True):
    index: Index
    type: EntryType
    entry: EntryText
    opening: Annotated[OpeningShape | None, Meta(description="What opens the entry's text commitment, if shown.")]
    tlog_proof: Annotated[str, Meta(description="c2sp.org/tlog-proof@v1: inclusion under the checkpoint below.")]


class Review(Struct, frozen=True):
    """Everything the log has about one review, each entry with its proof."""

    review_id: str
    host_did: str
    verification_level: Level
    checkpoint: Note
    entries: list[ReviewEntry]


class Salt(Struct, frozen=True):
    salt: Hash


KeysSeen = Annotated[
    dict[str, str] | UnsetType,
    Meta(
        description="The Ed25519 keys (multikeys) under which the ledger found the statement signed, and what a host "
        "with a domain signed of the booking, by their names."
    ),
]


class ReceiptOpenings(Struct, frozen=True):
    """What opens the commitments of the entry. `text` is null where there is none, or where it was redacted."""

    text: OpeningShape | None
    evidence: Annotated[Salt, Meta(description="With the signed submission it shows whose review it is.")]


class Receipt(Struct, frozen=True, omit_defaults=True):
    """What a guest keeps to prove offline, for ever, that the review is in the log: /schemas/receipt.v1.json."""

    review_id: str
    status: Literal["accepted"]
    verification_level: Level
    index: Index
    entry: EntryText
    openings: ReceiptOpenings
    checkpoint: Note
    tlog_proof: Annotated[str, Meta(description="c2sp.org/tlog-proof@v1: inclusion under the checkpoint.")]
    keys_seen: KeysSeen = UNSET
    private_feedback: Annotated[
        Literal["sealed", "undeliverable"] | UnsetType,
        Meta(description="Whether the private message is kept for the host, who alone can read it."),
    ] = UNSET
    booking: Annotated[
        dict[str, Any] | UnsetType,
        Meta(description="The notice, claim or answer that shows the booking: with the submission it opens evidence."),
    ] = UNSET


class ResponseOpenings(Struct, frozen=True):
    text: OpeningShape | None
    statement: Annotated[Salt, Meta(description="With the signed response it shows whose it is.")]


class ResponseReceipt(Struct, frozen=True):
    """What a host keeps to prove offline that the response is in the log."""

    review_id: str
    status: Literal["accepted"]
    index: Index
    entry: EntryText
    openings: ResponseOpenings
    checkpoint: Note
    tlog_proof: Annotated[str, Meta(description="c2sp.org/tlog-proof@v1: inclusion under the checkpoint.")]
    keys_seen: KeysSeen = UNSET


class UpgradeOpenings(Struct, frozen=True):
    text: None
    evidence: Annotated[Salt, Meta(description="With the signed supplement it shows by which evidence.")]


class UpgradeReceipt(Struct, frozen=True):
    """What a guest keeps to prove offline that the review counts as verified: /schemas/upgrade-receipt.v1.json."""

    review_id: str
    status: Literal["accepted"]
    verification_level: Literal["guest_verified"]
    index: Index
    entry: EntryText
    openings: UpgradeOpenings
    checkpoint: Note
    tlog_proof: Annotated[str, Meta(description="c2sp.org/tlog-proof@v1: inclusion under the checkpoint.")]
    keys_seen: KeysSeen = UNSET


IntakeReceipt = Annotated[
    dict[str, Any], Meta(description="The ledger's signed word that it will decide: /schemas/intake.v1.json.")
]


class Intake(Struct, frozen=True):
    """Taken in, and not decided yet."""

    submission_id: str
    status_url: Annotated[str, Meta(description="Where to look what became of it. Whoever has it can look: keep it.")]
    intake: IntakeReceipt


class SubmissionState(Struct, frozen=True, omit_defaults=True):
    """What became of a submission that had to wait."""

    status: Literal["pending", "accepted", "rejected"]
    decide_by: Annotated[str, Meta(description="When there is a decision at the latest.")]
    intake: IntakeReceipt | UnsetType = UNSET
    code: Annotated[str | UnsetType, Meta(description="Why it was rejected, explained at /problems/CODE.")] = UNSET
    detail: str | UnsetType = UNSET
    refusal: Annotated[
        dict[str, Any] | UnsetType, Meta(description="The ledger's signed word that it refused: evidence.")
    ] = UNSET
    receipt: Annotated[Receipt | UnsetType, Meta(description="Of a review; a claim that was verified has none.")] = (
        UNSET
    )


class BookingKept(Struct, frozen=True, omit_defaults=True):
    """What a host or guest said of a booking, on file."""

    type: Literal["BookingNotice", "BookingClaim"]
    status: Literal["kept", "verified"]
    received_at: str
    kept_until: Annotated[str, Meta(description="The day on which it is erased.")]
    before_check_in: Annotated[
        bool | UnsetType, Meta(description="Of a notice: one that came later counts only like an answer to a callback.")
    ] = UNSET


class FeedbackItem(Struct, frozen=True):
    review_id: str
    sealed: Annotated[
        str, Meta(description="Base64 of a NaCl sealed box. The words are UTF-8; a byte 0x80 and zeros follow them.")
    ]
    key: Annotated[str, Meta(description="The name of the host's key that opens it.")]


class FeedbackItems(Struct, frozen=True):
    items: list[FeedbackItem]


class SchemaList(Struct, frozen=True):
    schemas: list[str]
    contexts: list[str]


class TrustedIssuer(Struct, frozen=True):
    """What the newest entry says of an issuer, and the keys that it pins."""

    role: Literal["guest", "host"]
    issuer: Annotated[str, Meta(description="An https URL or a DID.")]
    status: Literal["trusted", "removed", "compromised"]
    keys: Annotated[
        list[str],
        Meta(description="Multikeys, sorted. The SHA-256 of this list in JCS is the `keys` of the entry at `index`."),
    ]
    max_idv_level: Literal["email_verified", "identity_verified", "payment_verified"] | None
    since: Annotated[str | None, Meta(description="Since when its keys were in other hands.")]
    index: Index
    at: str


class TrustedIssuers(Struct, frozen=True):
    issuers: list[TrustedIssuer]


class Explanation(Struct, frozen=True):
    """What a problem code means, and what to do about it."""

    type: str
    code: str
    status: Annotated[int, Meta(ge=400, le=599)]
    title: str
    explanation: str


class Explanations(Struct, frozen=True):
    problems: list[Explanation]
