"""Entries: what a leaf of the log may say (protocol.md 2), type by type and member by member.

An entry is the JCS bytes of one JSON object whose members are exactly those of its type. The one exception is a VRP
artifact: 71 ASCII characters, so that its leaf hash is the one VRP verifiers compute.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from json import JSONEncoder
from typing import Any

from ledger.canon import base64, did, jcs, strict_json
from ledger.canon.times import check_date, check_time
from ledger.errors import BadEntry, BadNote, Malformed
from ledger.log.note import check_key_name
from ledger.log.tiles import MAX_ENTRY
from ledger.log.tree import leaf_hash

CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "value", "location")
OPTIONAL_CATEGORIES = {"location"}
LEVELS = ("guest_verified", "host_attested", "unconfirmed")
OUTCOMES = ("conflict", "contradicted", "denied", "unanswered")
PARTS = ("text", "response")
ROLES = ("guest", "host")
ACTIONS = ("trusted", "removed", "compromised")
IDV_LEVELS = ("email_verified", "identity_verified", "payment_verified")
BASES = ("gdpr_17", "court_order", "illegal_content", "third_party_data")
# Which booking evidence a level may rest on.
BOOKINGS = {
    "guest_verified": ("stay_receipt", "booking_notice", "booking_claim", "callback", "attestation"),
    "host_attested": ("attestation",),
    "unconfirmed": ("none",),
}
VRP_ARTIFACT = "vrp_artifact"

Check = Callable[[Any], None]


@dataclass(frozen=True, slots=True)
class Entry:
    """A well-formed entry; `members` is empty for a VRP artifact."""

    data: bytes
    type: str
    members: Mapping[str, Any]
    leaf_hash: bytes

    @property
    def host(self) -> str | None:
        """The one host an entry may name: its top-level `host_did`."""
        return self.members.get("host_did")

    @property
    def at(self) -> str | None:
        return self.members.get("at")


def parse_entry(data: bytes) -> Entry:
    """The entry in `data`, or BadEntry: nothing unknown, missing, repeated or spelled another way is let in."""
    if len(data) > MAX_ENTRY:
        raise BadEntry("entry_too_large", f"an entry of {len(data)} bytes; at most {MAX_ENTRY} are allowed")
    if _ARTIFACT.fullmatch(data):
        return Entry(data, VRP_ARTIFACT, {}, leaf_hash(data))
    try:
        members = strict_json.loads(data)
        if not isinstance(members, dict):
            raise BadEntry("entry_malformed", "an entry is a JSON object")
        entry = _check(data, members)
    except BadEntry:
        raise
    except Malformed as error:
        raise BadEntry("entry_malformed", f"an entry is canonical JSON: {error}") from None
    if _written(members).encode() != data:
        raise BadEntry("entry_not_canonical", "the bytes of the entry are not its JCS form")
    return entry


def make_entry(type_: str, **members: Any) -> Entry:
    """The entry of these members, checked as a reader would check it."""
    return parse_entry(jcs.dumps({"type": type_, "v": 1, **members}))


# What `_check` lets through has ASCII names, whole numbers and halves. For that the C encoder writes the JCS form.
_written = JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode


def half_stars(rating: float) -> int:
    """4.5 is 9 half-stars; sums of halves are exact only as integers."""
    return int(rating * 2)


def _check(data: bytes, members: dict[str, Any]) -> Entry:
    type_ = members.get("type")
    if not isinstance(type_, str) or type_ not in MEMBERS:
        raise BadEntry("entry_unknown_type", f"no entry has the type {str(type_)[:40]!r}")
    if type(members.get("v")) is not int or members["v"] != 1:
        raise BadEntry("entry_unknown_type", f"an entry of version {str(members.get('v'))[:40]!r}; only 1 is known")
    checks = MEMBERS[type_]
    for name in members.keys() - checks.keys() - {"type", "v"}:
        raise BadEntry("entry_invalid", f"a {type_} entry has no member {name[:40]!r}")
    for name, check in checks.items():
        if name not in members:
            raise BadEntry("entry_invalid", f"a {type_} entry needs the member {name!r}")
        try:
            check(members[name])
        except (ValueError, Malformed) as error:
            raise BadEntry("entry_invalid", f"{type_}.{name}: {error}") from None
    if type_ in ("review", "upgrade"):
        _check_level(members)
    if type_ == "review" and members["check_out"] <= members["check_in"]:
        raise BadEntry("entry_invalid", "review.check_out: a stay ends after it began")
    return Entry(data, type_, members, leaf_hash(data))


def _check_level(members: Mapping[str, Any]) -> None:
    level, booking = members["level"], members["evidence"]["booking"]
    allowed = BOOKINGS[level] if members["type"] == "review" else ("stay_receipt",)
    if booking not in allowed:
        raise BadEntry("entry_invalid", f"{members['type']}.evidence: {level} does not rest on booking {booking!r}")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("text expected")
    return value


def _hash(value: Any) -> None:
    base64.decode_hash(_text(value))


def _matches(pattern: str, what: str) -> Check:
    compiled = re.compile(pattern)

    def check(value: Any) -> None:
        if not compiled.fullmatch(_text(value)):
            raise ValueError(f"{what} expected")

    return check


def _one_of(*allowed: str) -> Check:
    def check(value: Any) -> None:
        if _text(value) not in allowed:
            raise ValueError(f"one of {', '.join(allowed)} expected")

    return check


def _nullable(inner: Check) -> Check:
    def check(value: Any) -> None:
        if value is not None:
            inner(value)

    return check


def _integer(value: Any) -> None:
    if type(value) is not int or value < 0:
        raise ValueError("a whole number from 0 expected")


def _boolean(value: Any) -> None:
    if type(value) is not bool:
        raise ValueError("true or false expected")


def _origin(value: Any) -> None:
    try:
        check_key_name(_text(value))
    except BadNote as error:
        raise ValueError(str(error)) from None


def _did(value: Any) -> None:
    did.check(value)


def _issuer(value: Any) -> None:
    """An issuer id in full: a DID or an https URL."""
    if _text(value).startswith("did:"):
        did.check(value)
    elif not _HTTPS.fullmatch(value):
        raise ValueError("a DID or an https URL expected")


def _ratings(value: Any) -> None:
    if not isinstance(value, dict):
        raise ValueError("an object of ratings expected")
    for name in value.keys() - set(CATEGORIES):
        raise ValueError(f"no category {name[:40]!r}")
    for name in CATEGORIES:
        if name not in value and name not in OPTIONAL_CATEGORIES:
            raise ValueError(f"{name} is not rated")
    for name, rating in value.items():
        if type(rating) not in (int, float) or not 1 <= rating <= 5 or rating * 2 % 1:
            raise ValueError(f"{name}: a multiple of 0.5 from 1 to 5 expected")
        if type(rating) is float and rating.is_integer():
            raise ValueError(f"{name}: {rating} is written {int(rating)}")


def _evidence(value: Any) -> None:
    if not isinstance(value, dict) or value.keys() != _EVIDENCE.keys():
        raise ValueError(f"an object of exactly {', '.join(_EVIDENCE)} expected")
    for name, check in _EVIDENCE.items():
        check(value[name])


_ARTIFACT = re.compile(rb"sha256:[0-9a-f]{64}")
# A plain host, so that everybody who reads the issuer's name from it reads the same.
_HTTPS = re.compile(
    r"https://[A-Za-z0-9.-]{1,253}(?::[0-9]{1,5})?(?:[/?#][A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{0,1800})?"
)
# The 26th character carries 3 bits of the 16 bytes; its other two are zero.
_review_id = _matches(r"rev-[a-z2-7]{25}[aeimquy4]", "rev- and 26 base32 characters of 16 bytes")
_EVIDENCE: dict[str, Check] = {
    "booking": _one_of(*BOOKINGS["guest_verified"], "none"),
    "commitment": _hash,
    "idv_level": _nullable(_one_of(*IDV_LEVELS)),
    "issuer": _nullable(_issuer),
}
MEMBERS: dict[str, dict[str, Check]] = {
    "genesis": {"origin": _origin, "policy": _hash, "previous": _nullable(_origin), "at": check_time},
    "policy": {"policy": _hash, "at": check_time},
    "issuer": {
        "role": _one_of(*ROLES),
        "issuer": _issuer,
        "action": _one_of(*ACTIONS),
        "keys": _hash,
        "max_idv_level": _nullable(_one_of(*IDV_LEVELS)),
        "since": _nullable(check_time),
        "at": check_time,
    },
    "review": {
        "review_id": _review_id,
        "host_did": _did,
        "listing_id": _matches(r"[A-Za-z0-9._~-]{1,128}", "1 to 128 characters of A-Z a-z 0-9 . _ ~ -"),
        "check_in": check_date,
        "check_out": check_date,
        "ratings": _ratings,
        "level": _one_of(*LEVELS),
        "evidence": _evidence,
        "repeat": _boolean,
        "text": _nullable(_hash),
        "at": check_time,
    },
    "response": {
        "review_id": _review_id,
        "review": _integer,
        "host_did": _did,
        "text": _hash,
        "statement": _hash,
        "at": check_time,
    },
    "upgrade": {
        "review_id": _review_id,
        "review": _integer,
        "host_did": _did,
        "level": _one_of("guest_verified"),
        "evidence": _evidence,
        "at": check_time,
    },
    "booking_check": {"host_did": _did, "outcome": _one_of(*OUTCOMES), "booking": _hash, "at": check_time},
    "redaction": {
        "review_id": _review_id,
        "review": _integer,
        "host_did": _did,
        "part": _one_of(*PARTS),
        "basis": _one_of(*BASES),
        "decision": _hash,
        "at": check_time,
    },
    "map_head": {"size": _integer, "root": _hash, "at": check_time},
}
