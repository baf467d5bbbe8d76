"""Entries: what a leaf of the log may say (protocol.md 2), type by type and member by member.

An entry is the JCS bytes of one JSON object whose members are exactly those of its type. The one exception is a VRP
artifact: 71 ASCII characters, so that its leaf hash is the one VRP verifiers compute.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from json import JSONDecoder
from typing import Any

from ledger.canon import jcs, strict_json
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
    check_date,
    check_did,
    check_evidence,
    check_hash,
    check_integer,
    check_issuer,
    check_listing_id,
    check_origin,
    check_ratings,
    check_review_id,
    check_time,
    nullable,
    object_of,
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
    if (known := _recognise(data)) is not None:
        return known
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


def _recognise(data: bytes) -> Entry | None:
    """The entry in `data` if it looks as nearly all do: one pattern then says what the strict reader and the canonical
    writer would say, several times faster. None leaves it to them, and the reason of a refusal too."""
    ending = _ENDING.search(data, max(len(data) - 40, 0))
    form = _FORMS.get(ending[1]) if ending else None
    if form is None or len(data) > MAX_ENTRY or not form.pattern.fullmatch(data):
        return None
    members = _DECODER.raw_decode(data.decode())[0]
    try:
        for name, rest in form.rests:
            rest(members[name])
        _check_whole(members)
    except (ValueError, Malformed):
        return None
    return Entry(data, members["type"], members)


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
    _check_whole(members)
    return Entry(data, type_, members)


def _check_whole(members: Mapping[str, Any]) -> None:
    """What no member shows by itself."""
    type_ = members["type"]
    if type_ in ("review", "upgrade"):
        level, booking = members["level"], members["evidence"]["booking"]
        allowed = BOOKINGS[level] if type_ == "review" else ("stay_receipt",)
        if booking not in allowed:
            raise BadEntry("entry_invalid", f"{type_}.evidence: {level} does not rest on booking {booking!r}")
    if type_ == "review" and members["check_out"] <= members["check_in"]:
        raise BadEntry("entry_invalid", "review.check_out: a stay ends after it began")


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
    "index_head": {"seq": check_integer, "count": check_integer, "root": check_hash, "at": check_time},
    "map_head": {"size": check_integer, "root": check_hash, "at": check_time},
}


@dataclass(frozen=True, slots=True)
class _Form:
    """How the bytes of a type look, and what the look of a member does not say."""

    pattern: re.Pattern[bytes]
    rests: tuple[tuple[str, Callable[[Any], object]], ...]


def _form(type_: str, checks: Mapping[str, Check]) -> _Form:
    named = {"type": one_of(type_), "v": Check(lambda _: None, "1")}
    rests = tuple((name, check.rest) for name, check in checks.items() if check.rest is not None)
    return _Form(re.compile(object_of({**checks, **named}).encode()), rests)


_DECODER = JSONDecoder()
# No member comes after these two.
_ENDING = re.compile(rb'"type":"([a-z_]+)","v":1\}$')
_FORMS = {type_.encode(): _form(type_, checks) for type_, checks in MEMBERS.items()}
