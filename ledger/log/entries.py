"""Entries: what a leaf of the log may say (protocol.md 2), type by type and member by member.

An entry is the JCS bytes of one JSON object whose members are exactly those of its type. The one exception is a VRP
artifact: 71 ASCII characters, so that its leaf hash is the one VRP verifiers compute.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ledger.canon import jcs, strict_json
from ledger.canon.times import check_date, check_time
from ledger.errors import BadEntry, Malformed
from ledger.log.members import (
    ACTIONS,
    BASES,
    BOOKINGS,
    IDV_LEVELS,
    LEVELS,
    OUTCOMES,
    PARTS,
    ROLES,
    Check,
    check_boolean,
    check_did,
    check_evidence,
    check_hash,
    check_integer,
    check_issuer,
    check_listing_id,
    check_origin,
    check_ratings,
    check_review_id,
    nullable,
    one_of,
)
from ledger.log.tiles import MAX_ENTRY
from ledger.log.tree import leaf_hash

VRP_ARTIFACT = "vrp_artifact"

_ARTIFACT = re.compile(rb"sha256:[0-9a-f]{64}")


@dataclass(slots=True)
class Entry:
    """A well-formed entry; `members` is empty for a VRP artifact."""

    data: bytes
    type: str
    members: Mapping[str, Any]
    _leaf_hash: bytes = field(default=b"", init=False, repr=False, compare=False)

    @property
    def leaf_hash(self) -> bytes:
        """Worked out for the first who asks: an answer without proof has dozens of entries and needs none."""
        if not self._leaf_hash:
            self._leaf_hash = leaf_hash(self.data)
        return self._leaf_hash

    @property
    def host(self) -> str | None:
        """The one host an entry may name: its top-level `host_did`."""
        return self.members.get("host_did")

    @property
    def at(self) -> str | None:
        return self.members.get("at")


def parse_entry(data: bytes) -> Entry:
    """The entry in `data`, or BadEntry: nothing unknown, missing, repeated or spelled another way is let in."""
    if _ARTIFACT.fullmatch(data):
        return Entry(data, VRP_ARTIFACT, {})
    entry = _read(data)
    if jcs.dumps_plain(entry.members) != data:
        raise BadEntry("entry_not_canonical", "the bytes of the entry are not its JCS form")
    return entry


def make_entry(type_: str, /, **members: Any) -> Entry:
    """The entry of these members, checked as a reader would check it."""
    return _read(jcs.dumps({"type": type_, "v": 1, **members}))


def half_stars(rating: float) -> int:
    """4.5 is 9 half-stars; sums of halves are exact only as integers."""
    return int(rating * 2)


def _read(data: bytes) -> Entry:
    """The entry in `data`, which may be spelled in another way."""
    if len(data) > MAX_ENTRY:
        raise BadEntry("entry_too_large", f"an entry of {len(data)} bytes; at most {MAX_ENTRY} are allowed")
    try:
        members = strict_json.loads(data)
        if not isinstance(members, dict):
            raise BadEntry("entry_malformed", "an entry is a JSON object")
        return _check(data, members)
    except BadEntry:
        raise
    except Malformed as error:
        raise BadEntry("entry_malformed", f"an entry is canonical JSON: {error}") from None


def _check(data: bytes, members: dict[str, Any]) -> Entry:
    type_ = members.get("type")
    if not isinstance(type_, str) or type_ not in MEMBERS:
        raise BadEntry("entry_unknown_type", f"no entry has the type {str(type_)[:40]!r}")
    if type(members.get("v")) is not int or members["v"] != 1:
        raise BadEntry("entry_unknown_type", f"an entry of version {str(members.get('v'))[:40]!r}; only 1 is known")
    checks = MEMBERS[type_]
    if unknown := members.keys() - checks.keys() - {"type", "v"}:
        raise BadEntry("entry_invalid", f"a {type_} entry has no member {min(unknown)[:40]!r}")
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
    return Entry(data, type_, members)


def _check_level(members: Mapping[str, Any]) -> None:
    level, booking = members["level"], members["evidence"]["booking"]
    allowed = BOOKINGS[level] if members["type"] == "review" else ("stay_receipt",)
    if booking not in allowed:
        raise BadEntry("entry_invalid", f"{members['type']}.evidence: {level} does not rest on booking {booking!r}")


_ABOUT_REVIEW: dict[str, Check] = {"review_id": check_review_id, "review": check_integer, "host_did": check_did}
MEMBERS: dict[str, dict[str, Check]] = {
    "genesis": {"origin": check_origin, "policy": check_hash, "previous": nullable(check_origin), "at": check_time},
    "policy": {"policy": check_hash, "at": check_time},
    "issuer": {
        "role": one_of(*ROLES),
        "issuer": check_issuer,
        "action": one_of(*ACTIONS),
        "keys": check_hash,
        "max_idv_level": nullable(one_of(*IDV_LEVELS)),
        "since": nullable(check_time),
        "at": check_time,
    },
    "review": {
        "review_id": check_review_id,
        "host_did": check_did,
        "listing_id": check_listing_id,
        "check_in": check_date,
        "check_out": check_date,
        "ratings": check_ratings,
        "level": one_of(*LEVELS),
        "evidence": check_evidence,
        "repeat": check_boolean,
        "text": nullable(check_hash),
        "at": check_time,
    },
    "response": {**_ABOUT_REVIEW, "text": check_hash, "statement": check_hash, "at": check_time},
    "upgrade": {**_ABOUT_REVIEW, "level": one_of("guest_verified"), "evidence": check_evidence, "at": check_time},
    "booking_check": {"host_did": check_did, "outcome": one_of(*OUTCOMES), "booking": check_hash, "at": check_time},
    "redaction": {
        **_ABOUT_REVIEW,
        "part": one_of(*PARTS),
        "basis": one_of(*BASES),
        "decision": check_hash,
        "at": check_time,
    },
    "map_head": {"size": check_integer, "root": check_hash, "at": check_time},
}
