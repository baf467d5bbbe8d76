"""The reputation answer for the OpenAPI document. The ledger makes its bytes; a test holds this to them.

/schemas/answer.v1.json says more: what goes with what.
"""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, field

from api.shapes import Count, EntryText, Hash, Index, Level, Note, OpeningShape

Average = Annotated[float | None, Meta(description="A mean of stars to one decimal, half up; null when nobody rated.")]
Time = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$")]
Day = Annotated[str, Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
IssuerStatus = Annotated[
    Literal["trusted", "removed", "compromised"] | None,
    Meta(description="What the log says of the issuer at this size; null for one that was never trusted here."),
]
ByLevel = Annotated[dict[str, int], Meta(description="A number for each of the three levels.")]


class Averages(Struct, frozen=True, forbid_unknown_fields=True):
    overall: Average
    accuracy: Average
    cleanliness: Average
    communication: Average
    value: Average
    location: Average


class Evidence(Struct, frozen=True, forbid_unknown_fields=True):
    booking: str
    commitment: Hash
    idv_level: str | None
    issuer: str | None


class HostResponse(Struct, frozen=True, forbid_unknown_fields=True):
    response_text: str | None
    submitted_at: Time


class IssuerOf(Struct, frozen=True, forbid_unknown_fields=True):
    """An issuer whose credentials the host's guests have, and how many of the reviews rest on it."""

    issuer: str
    status: IssuerStatus
    reviews: Count


class ListedReview(Struct, frozen=True, forbid_unknown_fields=True):
    """A review as people read it. Texts are untrusted input."""

    review_id: str
    index: Index
    listing_id: str
    check_in: Day
    check_out: Day
    ratings: dict[str, float]
    review_text: str | None
    submitted_at: Time
    repeat: bool
    host_response: HostResponse | None
    verification_level: Level
    evidence: Evidence
    guest_credential_issuer: str | None
    issuer_status: IssuerStatus


class Statistics(Struct, frozen=True, forbid_unknown_fields=True):
    """What the averages are made of, exactly: counts, and sums of half-stars."""

    events: Index
    reviews: ByLevel
    ratings: Annotated[
        dict[str, dict[str, list[int]]], Meta(description="By level and category: how many, and their half-stars.")
    ]
    histogram: Annotated[list[int], Meta(description="Overall ratings of verified reviews: 1.0, 1.5, ... 5.0.")]
    repeats: Index
    responses: Index
    redactions: Index
    checks: dict[str, int]
    average_ratings: dict[str, Averages]


class AsOf(Struct, frozen=True, forbid_unknown_fields=True):
    """The checkpoint that first covered the host's last event."""

    size: Count
    root: Hash
    at: Time


class OtherLeaf(Struct, frozen=True, forbid_unknown_fields=True):
    key: Hash
    value: Hash


class ShownEvent(Struct, frozen=True, forbid_unknown_fields=True):
    index: Index
    entry: EntryText
    opening: OpeningShape | None


class Proof(Struct, frozen=True, forbid_unknown_fields=True):
    """What it takes to check the answer offline. An aggregate has no events; only a page has `from` and `sub_proof`."""

    checkpoint: Note
    map_head: EntryText
    log_proof: list[Hash]
    map_proof: list[str]
    record: str | None
    map_other: OtherLeaf | None
    events: list[ShownEvent] | UnsetType = UNSET
    start: Index | UnsetType = field(name="from", default=UNSET)
    sub_proof: list[Hash] | UnsetType = UNSET


class Reputation(Struct, frozen=True, forbid_unknown_fields=True):
    """A host's reputation: RFC-005 7.4, the statistics behind it, and with `proof=` what proves it."""

    host_did: str
    host_since: Day | None
    total_reviews: Index
    verified_reviews: Index
    average_ratings: Averages
    issuers: list[IssuerOf]
    host_key_changed_at: Annotated[
        Time | None,
        Meta(
            description="When this ledger last saw the keys of the host's did:web change; null if it never did. "
            "Whoever holds the domain holds the DID: it may have changed hands. Not proved."
        ),
    ]
    as_of: AsOf | None
    statistics: Statistics | None
    review_history: list[ListedReview] | UnsetType = UNSET
    next_cursor: str | UnsetType | None = UNSET
    proof: Proof | UnsetType = UNSET
