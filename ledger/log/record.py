"""The host record (protocol.md 4): one deterministic fold over a host's entries, shared by service, auditors and tests.

The fold refuses a sequence that no honest ledger can hold; the code of the refusal names the rule.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from operator import itemgetter
from typing import Any, Protocol

from ledger.canon import base64
from ledger.canon.times import seconds
from ledger.errors import BrokenRule, NotStored
from ledger.log.entries import Entry, half_stars
from ledger.log.hostmap import map_key
from ledger.log.members import CATEGORIES, LEVELS, OUTCOMES
from ledger.log.tree import HASH_SIZE, Edge, fold_edge

RESPONSE_WINDOW = 2_592_000

# A record in JCS: no text in it needs an escape.
_FORM = (
    '{"checks":{"conflict":%d,"contradicted":%d,"denied":%d,"unanswered":%d},"events":%d,"first_stay":%s,'
    '"histogram":[%d,%d,%d,%d,%d,%d,%d,%d,%d],"host":"%s","last_event":%s,'
    '"ratings":{"guest_verified":{%s},"host_attested":{%s},"unconfirmed":{%s}},'
    '"redactions":%d,"repeats":%d,"responses":%d,'
    '"reviews":{"guest_verified":%d,"host_attested":%d,"unconfirmed":%d},"root":"%s","v":1}'
)
_outcomes, _levels = itemgetter(*OUTCOMES), itemgetter(*LEVELS)
_numbers = itemgetter("redactions", "repeats", "responses")
_SORTED = sorted(CATEGORIES)
_OVERALL = _SORTED.index("overall")
# Of a level in which each category was rated.
_RATED = ",".join(f'"{name}":[%d,%d]' for name in _SORTED)


@dataclass(slots=True)
class ReviewState:
    """What later entries about a review depend on. It has a byte of half-stars for each category, sorted by name, which
    is zero for one that was not rated."""

    review_id: str
    host: str
    at: str
    check_in: str
    level: str
    repeat: bool
    half_stars: bytes
    has_text: bool
    issuer: str | None
    responded: bool = False
    redacted: frozenset[str] = frozenset()


class Reviews:
    """The reviews that later entries may name, by log index. An id is used once."""

    def __init__(self, states: Mapping[int, ReviewState] | None = None) -> None:
        self._states = dict(states or {})
        self._ids = {review.review_id for review in self._states.values()}

    def add(self, index: int, review: ReviewState) -> None:
        if review.review_id in self._ids:
            raise BrokenRule("review_id_reused", f"{review.review_id} is the id of an earlier review")
        self._ids.add(review.review_id)
        self._states[index] = review

    def get(self, index: int) -> ReviewState | None:
        return self._states.get(index)

    def items(self) -> Iterable[tuple[int, ReviewState]]:
        return self._states.items()


class KnownReviews(Protocol):
    """What a fold asks of `Reviews`: an auditor keeps them on disk."""

    def add(self, index: int, review: ReviewState) -> None: ...

    def get(self, index: int) -> ReviewState | None: ...


class HostFold:
    """A host's record, entry by entry. Folds of several hosts may share their reviews."""

    __slots__ = ("_last_index", "_record", "_sums", "edge", "host", "key", "reviews")

    def __init__(self, host: str, record: dict[str, Any] | None = None, reviews: KnownReviews | None = None) -> None:
        self.host = host
        # Where it stands in the map.
        self.key = map_key(host)
        self.reviews = reviews or Reviews()
        self.edge = Edge()
        self._last_index = -1
        self._record = record or empty_record(host)
        # By level, for each category how many have rated it and their half-stars: in place of the record's ratings.
        self._sums = {level: _summed(rated) for level, rated in self._record.pop("ratings").items()}

    @classmethod
    def resume(cls, host: str, record: dict[str, Any], edge: bytes, reviews: KnownReviews) -> "HostFold":
        """Go on from the members of a record, the nodes of its sub-log's edge, and those reviews that the next entries
        name."""
        fold = cls(host, record, reviews)
        nodes = [edge[at : at + HASH_SIZE] for at in range(0, len(edge), HASH_SIZE)]
        events, root = fold._record["events"], fold._record["root"]
        if len(nodes) != events.bit_count() or base64.encode(fold_edge(nodes)) != root:
            raise NotStored(f"the stored sub-log edge of {host} does not give the root in its record")
        fold.edge = Edge(events, nodes)
        return fold

    def add(self, index: int, entry: Entry) -> None:
        """Count `entry`, which stands at `index` of the log; a refusal leaves the fold as it was."""
        if entry.host != self.host:
            raise BrokenRule("foreign_event", f"entry {index} does not name {self.host}")
        if index <= self._last_index:
            raise BrokenRule("index_order", f"entry {index} comes after entry {self._last_index}")
        at = entry.members["at"]
        if at < (self._record["last_event"] or ""):
            raise BrokenRule("time_falls", f"entry {index} is older than the host's entry before it")
        _RULES[entry.type](self, index, entry.members)
        self._last_index = index
        self._record["events"] += 1
        self._record["last_event"] = at
        self.edge.append(sublog_leaf(index, entry.leaf_hash))

    def members(self) -> dict[str, Any]:
        ratings = {level: _rated(sums) for level, sums in self._sums.items()}
        return {**self._record, "ratings": ratings, "root": base64.encode(self.edge.root())}

    def record(self) -> bytes:
        """What JCS makes of the members. They are always the same ones, and to fill them in takes half the time."""
        told, root = self._record, base64.encode(self.edge.root())
        filled = (
            *_outcomes(told["checks"]),
            told["events"],
            _quoted(told["first_stay"]),
            *told["histogram"],
            self.host,
            _quoted(told["last_event"]),
            *map(_written, _levels(self._sums)),
            *_numbers(told),
            *_levels(told["reviews"]),
            root,
        )
        return (_FORM % filled).encode()

    def _review(self, index: int, members: Mapping[str, Any]) -> None:
        ratings = members["ratings"]
        review = ReviewState(
            review_id=members["review_id"],
            host=self.host,
            at=members["at"],
            check_in=members["check_in"],
            level=members["level"],
            repeat=members["repeat"],
            half_stars=bytes([half_stars(ratings[name]) if name in ratings else 0 for name in _SORTED]),
            has_text=members["text"] is not None,
            issuer=members["evidence"]["issuer"],
        )
        self.reviews.add(index, review)
        self._count(review, 1)
        self._count_verified(review)

    def _response(self, index: int, members: Mapping[str, Any]) -> None:
        review = self._named(index, members)
        if review.responded:
            raise BrokenRule("response_repeated", f"{review.review_id} has a response already")
        if seconds(members["at"]) - seconds(review.at) > RESPONSE_WINDOW:
            raise BrokenRule("response_late", f"the response to {review.review_id} came after 30 days")
        review.responded = True
        self._record["responses"] += 1

    def _upgrade(self, index: int, members: Mapping[str, Any]) -> None:
        review = self._named(index, members)
        if review.level != "unconfirmed":
            raise BrokenRule("upgrade_not_unconfirmed", f"{review.review_id} is {review.level} already")
        self._count(review, -1)
        review.level = members["level"]
        self._count(review, 1)
        self._count_verified(review)

    def _booking_check(self, _index: int, members: Mapping[str, Any]) -> None:
        self._record["checks"][members["outcome"]] += 1

    def _redaction(self, index: int, members: Mapping[str, Any]) -> None:
        review, part = self._named(index, members), members["part"]
        if not (review.has_text if part == "text" else review.responded):
            raise BrokenRule("redaction_of_nothing", f"{review.review_id} has no {part} to redact")
        if part in review.redacted:
            raise BrokenRule("redaction_repeated", f"the {part} of {review.review_id} is redacted already")
        review.redacted |= {part}
        self._record["redactions"] += 1

    def _named(self, index: int, members: Mapping[str, Any]) -> ReviewState:
        review = self.reviews.get(members["review"]) if members["review"] < index else None
        if review is None or (review.review_id, review.host) != (members["review_id"], self.host):
            raise BrokenRule(
                "review_unknown",
                f"entry {members['review']} is not the earlier review {members['review_id']} of this host",
            )
        return review

    def _count(self, review: ReviewState, sign: int) -> None:
        self._record["reviews"][review.level] += sign
        sums = self._sums[review.level]
        for place, stars in enumerate(review.half_stars):
            if stars:
                sums[2 * place] += sign
                sums[2 * place + 1] += sign * stars

    def _count_verified(self, review: ReviewState) -> None:
        """The parts that are about guest_verified reviews only; no level is ever lowered, so they only grow."""
        if review.level != "guest_verified":
            return
        self._record["histogram"][review.half_stars[_OVERALL] - 2] += 1
        self._record["repeats"] += review.repeat
        self._record["first_stay"] = min(self._record["first_stay"] or review.check_in, review.check_in)


def _quoted(text: str | None) -> str:
    return "null" if text is None else f'"{text}"'


def _summed(rated: Mapping[str, list[int]]) -> list[int]:
    return [number for name in _SORTED for number in rated.get(name, (0, 0))]


def _rated(sums: list[int]) -> dict[str, list[int]]:
    return {name: sums[2 * place : 2 * place + 2] for place, name in enumerate(_SORTED) if sums[2 * place]}


def _written(sums: list[int]) -> str:
    if not any(sums):
        return ""
    if all(sums):
        return _RATED % (*sums,)
    return ",".join([f'"{name}":[{count},{stars}]' for name, (count, stars) in _rated(sums).items()])


_RULES = {
    "review": HostFold._review,
    "response": HostFold._response,
    "upgrade": HostFold._upgrade,
    "booking_check": HostFold._booking_check,
    "redaction": HostFold._redaction,
}


def fold(host: str, events: Iterable[tuple[int, Entry]]) -> bytes:
    """The record of a host from all its entries in log order."""
    state = HostFold(host)
    for index, entry in events:
        state.add(index, entry)
    return state.record()


def sublog_leaf(index: int, leaf: bytes) -> bytes:
    """The log index is part of the leaf: an entry cannot be shown twice under one record."""
    return sha256(b"\x00" + index.to_bytes(8) + leaf).digest()


def mean_tenths(half_star_sum: int, count: int) -> int:
    """The mean in tenths, half up, in integers: 4.25 is 43 tenths whatever binary fractions say."""
    return (10 * half_star_sum + count) // (2 * count)


def empty_record(host: str) -> dict[str, Any]:
    """Where the fold starts; `root` is worked out from the edge."""
    return {
        "v": 1,
        "host": host,
        "events": 0,
        "reviews": dict.fromkeys(LEVELS, 0),
        "ratings": {level: {} for level in LEVELS},
        "histogram": [0] * 9,
        "repeats": 0,
        "responses": 0,
        "redactions": 0,
        "checks": dict.fromkeys(OUTCOMES, 0),
        "first_stay": None,
        "last_event": None,
    }
