"""The RFC-005 7.4 members of an answer, compared with what record and events give (protocol.md 5, checks c and d)."""

from typing import Any

from audits.answer import Answer
from ledger.errors import NotProved
from ledger.log.face import history, statistics, summary


def verify_summary(answer: Answer, host: str, record: dict[str, Any] | None) -> None:
    """The members about the host as a whole follow from its record."""
    for name, value in summary(host, record).items():
        if name not in answer.face or not same_json(answer.face[name], value):
            raise NotProved("face_mismatch", f"{name} is {answer.face.get(name)!r}, the record gives {value!r}")
    if "statistics" in answer.face and not same_json(answer.face["statistics"], statistics(record)):
        raise NotProved("face_mismatch", "the statistics are not those of the record")
    if answer.kind != "full" and "review_history" in answer.face:
        raise NotProved("history_unproved", f"a {answer.kind} proof cannot show a review_history")


def verify_history(answer: Answer) -> None:
    """`review_history` is a run of the reviews, newest first; members beside the known ones are not looked at."""
    listed, events = answer.face.get("review_history"), answer.events
    if not isinstance(listed, list) or not all(isinstance(review, dict) for review in listed):
        raise NotProved("history_mismatch", "review_history is a list of reviews")
    if not listed:
        return
    reviews = history(events)
    places = [place for place, review in enumerate(reviews) if same_json(review["index"], listed[0].get("index"))]
    expected = reviews[places[0] : places[0] + len(listed)] if places else []
    if len(expected) != len(listed):
        raise NotProved("history_mismatch", "review_history is not a run of this host's reviews")
    redacted = {e.entry.members["review"] for e in events if e.entry.members.get("part") == "response"}
    for got, want in zip(listed, expected, strict=True):
        for name, value in want.items():
            if name == "host_response" and want["index"] in redacted and got.get(name, "") is None:
                continue  # a redacted response may be listed as none at all
            if name not in got or not same_json(got[name], value):
                raise NotProved("history_mismatch", f"{want['review_id']}: the member {name} differs from the event")


def same_json(given: Any, expected: Any) -> bool:
    """Equal as JSON: true is not 1, but 4 and 4.0 are one number."""
    if isinstance(expected, dict):
        same_names = isinstance(given, dict) and given.keys() == expected.keys()
        return same_names and all(same_json(given[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        same_length = isinstance(given, list) and len(given) == len(expected)
        return same_length and all(map(same_json, given, expected))
    return bool(given == expected) and isinstance(given, bool) == isinstance(expected, bool)
