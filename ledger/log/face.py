"""The RFC-005 7.4 members of a reputation answer, as they follow from record and events (protocol.md 4, 5).

Service and verifier derive them with the same functions; a verifier compares, so the service cannot embellish.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from ledger.log.entries import Entry
from ledger.log.members import CATEGORIES
from ledger.log.openings import Opening, displayed
from ledger.log.record import mean_tenths

# The members of a record that an answer repeats beside its summary.
STATISTICS = ("events", "reviews", "ratings", "histogram", "repeats", "responses", "redactions", "checks")


@dataclass(slots=True)
class Event:
    """An entry that names the host, its place in the log, and the text it commits to where that is served."""

    index: int
    entry: Entry
    opening: Opening | None = None


def summary(host: str, record: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the answer says about the host as a whole; without a record the host has no reviews."""
    reviews = record["reviews"] if record else {"guest_verified": 0}
    sums = record["ratings"]["guest_verified"] if record else {}
    return {
        "host_did": host,
        "host_since": record["first_stay"] if record else None,
        "total_reviews": sum(reviews.values()),
        "verified_reviews": reviews["guest_verified"],
        "average_ratings": {category: average(*sums.get(category, (0, 0))) for category in CATEGORIES},
    }


def statistics(record: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What the summary is made of, exactly, so that an agent can weigh it in its own way."""
    if record is None:
        return None
    averages = {
        level: {category: average(*sums.get(category, (0, 0))) for category in CATEGORIES}
        for level, sums in record["ratings"].items()
    }
    return {**{name: record[name] for name in STATISTICS}, "average_ratings": averages}


def average(count: int, half_stars: int) -> float | None:
    """The mean to one decimal, half up; null when nobody rated."""
    return mean_tenths(half_stars, count) / 10 if count else None


def history(events: Iterable[Event]) -> list[dict[str, Any]]:
    """The listed reviews, newest first, from all events of a host."""
    listed: dict[int, dict[str, Any]] = {}
    for event in events:
        type_, members = event.entry.type, event.entry.members
        text = displayed(event.opening.text) if event.opening else None
        if type_ == "review":
            listed[event.index] = _listed_review(event.index, members, text)
        elif type_ == "response":
            listed[members["review"]]["host_response"] = {"response_text": text, "submitted_at": members["at"]}
        elif type_ == "upgrade":
            upgraded = {"verification_level": members["level"], "evidence": members["evidence"]}
            listed[members["review"]] |= {**upgraded, "guest_credential_issuer": _issuer_name(members)}
    return [listed[index] for index in sorted(listed, reverse=True)]


def unconfirmed(events: Iterable[Event]) -> set[int]:
    """The reviews among these events that came in as unconfirmed, and that none of them upgrades."""
    found, upgraded = set[int](), set[int]()
    for event in events:
        if event.entry.type == "review" and event.entry.members["level"] == "unconfirmed":
            found.add(event.index)
        elif event.entry.type == "upgrade":
            upgraded.add(event.entry.members["review"])
    return found - upgraded


def _listed_review(index: int, members: Mapping[str, Any], text: str | None) -> dict[str, Any]:
    return {
        "review_id": members["review_id"],
        "index": index,
        "listing_id": members["listing_id"],
        "check_in": members["check_in"],
        "check_out": members["check_out"],
        "ratings": members["ratings"],
        "review_text": text,
        "submitted_at": members["at"],
        "repeat": members["repeat"],
        "host_response": None,
        # An upgrade has these as well, and they take the place of the review's.
        "verification_level": members["level"],
        "evidence": members["evidence"],
        "guest_credential_issuer": _issuer_name(members),
    }


def _issuer_name(members: Mapping[str, Any]) -> str | None:
    issuer = members["evidence"]["issuer"]
    return issuer_name(issuer) if issuer else None


@lru_cache(maxsize=1024)
def issuer_name(issuer: str) -> str | None:
    """A DID as it is, an https issuer by its host name."""
    return issuer if issuer.startswith("did:") else urlsplit(issuer).hostname
