"""The form and the arithmetic of a record whose events are not at hand (protocol.md 4): aggregates and single pages."""

from typing import Any

from ledger.canon import base64, did, jcs, strict_json
from ledger.canon.times import check_date, check_time
from ledger.errors import Malformed, NotProved
from ledger.log.members import CATEGORIES, LEVELS, OPTIONAL_CATEGORIES, OUTCOMES
from ledger.log.record import empty_record


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
    if not isinstance(record, dict) or record.keys() != {*empty_record(host), "root"}:
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
