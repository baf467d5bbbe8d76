"""The host record (protocol.md 4): one deterministic fold over a host's entries, shared by service, auditors and tests.

The fold refuses a sequence that no honest ledger can hold; the code of the refusal names the rule.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from ledger.canon import base64, did, jcs, strict_json
from ledger.canon.times import check_date, check_time, seconds
from ledger.errors import BrokenRule, Malformed, NotProved
from ledger.log.entries import Entry, half_stars
from ledger.log.members import CATEGORIES, LEVELS, OPTIONAL_CATEGORIES, OUTCOMES
from ledger.log.tree import Edge

RESPONSE_WINDOW = 2_592_000


@dataclass(slots=True)
class ReviewState:
    """What later entries about a review depend on."""

    review_id: str
    at: str
    check_in: str
    level: str
    repeat: bool
    half_stars: dict[str, int]
    has_text: bool
    responded: bool = False
    redacted: frozenset[str] = frozenset()


class HostFold:
    """A host's record, entry by entry. To go on from a stored record, pass it with the sub-log's edge and those
    reviews (by log index) that the next entries name."""

    def __init__(
        self,
        host: str,
        record: bytes | None = None,
        edge: Edge | None = None,
        reviews: dict[int, ReviewState] | None = None,
    ) -> None:
        self.host = host
        self.reviews = {} if reviews is None else reviews
        self._review_ids = {review.review_id for review in self.reviews.values()}
        self.edge = edge or Edge()
        self._last_index = -1
        self._record: dict[str, Any] = strict_json.loads(record) if record else _empty(host)

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

    def record(self) -> bytes:
        return jcs.dumps({**self._record, "root": base64.encode(self.edge.root())})

    def _review(self, index: int, members: Mapping[str, Any]) -> None:
        if members["review_id"] in self._review_ids:
            raise BrokenRule("review_id_reused", f"{members['review_id']} is the id of an earlier review")
        review = ReviewState(
            review_id=members["review_id"],
            at=members["at"],
            check_in=members["check_in"],
            level=members["level"],
            repeat=members["repeat"],
            half_stars={category: half_stars(rating) for category, rating in members["ratings"].items()},
            has_text=members["text"] is not None,
        )
        self._review_ids.add(review.review_id)
        self.reviews[index] = review
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
        if review is None or review.review_id != members["review_id"]:
            raise BrokenRule(
                "review_unknown",
                f"entry {members['review']} is not the earlier review {members['review_id']} of this host",
            )
        return review

    def _count(self, review: ReviewState, sign: int) -> None:
        self._record["reviews"][review.level] += sign
        sums = self._record["ratings"][review.level]
        for category, stars in review.half_stars.items():
            count, total = sums.get(category, (0, 0))
            sums[category] = [count + sign, total + sign * stars]
            if count + sign == 0:
                del sums[category]

    def _count_verified(self, review: ReviewState) -> None:
        """The parts that are about guest_verified reviews only; no level is ever lowered, so they only grow."""
        if review.level != "guest_verified":
            return
        self._record["histogram"][review.half_stars["overall"] - 2] += 1
        self._record["repeats"] += review.repeat
        self._record["first_stay"] = min(self._record["first_stay"] or review.check_in, review.check_in)


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


def _empty(host: str) -> dict[str, Any]:
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


def read_record(text: str, host: str) -> dict[str, Any]:
    """The members of a record whose events are not at hand: its form and its own arithmetic are checked.

    Only the fold over all events shows that it is right; this shows that it could be.
    """
    try:
        data = text.encode()
        record = strict_json.loads(data)
        _check_form(record, host)
        _check_sums(record)
        canonical = jcs.dumps(record)
    except (AttributeError, KeyError, TypeError, ValueError, Malformed) as error:
        raise NotProved("record_invalid", f"no fold gives this record: {error}") from None
    if canonical != data:
        raise NotProved("record_invalid", "the record is not in JCS form")
    return dict(record)


def _check_form(record: Any, host: str) -> None:
    if not isinstance(record, dict) or record.keys() != {*_empty(host), "root"}:
        raise ValueError("it does not have exactly the members of a record")
    if record["v"] != 1 or did.check(record["host"]) != host:
        raise ValueError("it is of another version or another host")
    base64.decode_hash(record["root"])
    check_time(record["last_event"])
    if record["first_stay"] is not None:
        check_date(record["first_stay"])
    numbers = [record[name] for name in ("v", "events", "repeats", "responses", "redactions")]
    for name, keys in (("reviews", LEVELS), ("checks", OUTCOMES)):
        if record[name].keys() != set(keys):
            raise ValueError(f"{name} does not have exactly {', '.join(keys)}")
        numbers += record[name].values()
    if record["ratings"].keys() != set(LEVELS) or len(record["histogram"]) != 9:
        raise ValueError("ratings has three levels and the histogram nine counts")
    numbers += record["histogram"]
    for sums in record["ratings"].values():
        for pair in sums.values():
            numbers += pair
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ValueError("its numbers are whole and not negative")


def _check_sums(record: dict[str, Any]) -> None:
    reviews, verified = record["reviews"], record["reviews"]["guest_verified"]
    for level, sums in record["ratings"].items():
        for category in (*CATEGORIES, *sums):
            count, total = sums.get(category, (0, 0))
            if category not in CATEGORIES or category in sums and not count:
                raise ValueError(f"{category} is not a category that can stand here")
            if count != reviews[level] and (category not in OPTIONAL_CATEGORIES or count > reviews[level]):
                raise ValueError(f"{count} ratings of {category} for {reviews[level]} {level} reviews")
            if not 2 * count <= total <= 10 * count:
                raise ValueError(f"{count} ratings of {category} cannot have {total} half-stars")
    histogram = record["histogram"]
    stars = sum(count * (place + 2) for place, count in enumerate(histogram))
    if sum(histogram) != verified or stars != record["ratings"]["guest_verified"].get("overall", (0, 0))[1]:
        raise ValueError("the histogram does not fit the guest_verified ratings")
    if (record["first_stay"] is None) != (verified == 0):
        raise ValueError("first_stay is there exactly when a review is guest_verified")
    total = sum(reviews.values())
    others = record["responses"] + record["redactions"] + sum(record["checks"].values())
    if (
        record["repeats"] > verified
        or record["responses"] > total
        or record["redactions"] > total + record["responses"]
    ):
        raise ValueError("more repeats, responses or redactions than reviews allow")
    # What is left are upgrades, at most one for each guest_verified review.
    if not 0 <= record["events"] - total - others <= verified or not record["events"]:
        raise ValueError("the number of events does not fit the counts")
