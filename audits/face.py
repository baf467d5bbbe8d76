"""The RFC-005 7.4 members of an answer, compared with what record and events give (protocol.md 5, checks c and d)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from audits.answer import Answer
from ledger.canon import strict_json
from ledger.errors import Malformed, NotProved
from ledger.log.face import Event, history, statistics, summary
from ledger.log.record import HostFold

# A review by its index, and which of its texts.
Part = tuple[int, str]


def verify_summary(answer: Answer, host: str, record: dict[str, Any] | None) -> None:
    """The members about the host as a whole follow from its record."""
    compare_summary(answer.face, host, record)
    if answer.kind != "full" and "review_history" in answer.face:
        raise NotProved("history_unproved", f"a {answer.kind} proof cannot show a review_history")


def verify_history(answer: Answer) -> None:
    """`review_history` is a run of the reviews, newest first; members beside the known ones are not looked at."""
    compare_history(answer.face, answer.events)


def verify_plain(data: bytes, proved: Sequence[Answer], hidden: set[Part] | None = None, least: int = 100) -> None:
    """An answer without a proof says what the one with a proof, in one or more parts, says at the same size; it lists
    the newest reviews, `least` of them at least if there are so many.

    Texts that it leaves out go into `hidden`, if that is given: a redaction may have come between the two answers.
    """
    face = strict_json.loads(data)
    if not isinstance(face, dict):
        raise Malformed("answer_malformed", "an answer must be an object")
    record = proved[0].record
    compare_summary(face, proved[0].face["host_did"], None if record is None else strict_json.loads(record))
    events = [event for answer in proved for event in answer.events]
    compare_history(face, events, hidden)
    _require_newest(face, events, least)


def of_unconfirmed(proved: Sequence[Answer]) -> set[Part]:
    """The texts that are shown to those alone who ask for all."""
    reviews = history([event for answer in proved for event in answer.events])
    hidden = [review["index"] for review in reviews if review["verification_level"] == "unconfirmed"]
    return {(index, part) for index in hidden for part in ("text", "response")}


def is_of_some_moment(
    data: bytes,
    proved: Sequence[Answer],
    since: int,
    least: int,
    fits: Callable[[Mapping[str, Any], Sequence[Event]], bool] = lambda _face, _events: True,
) -> bool:
    """Whether an answer without a proof says what the log said of the host when it had `since` events, or some more, of
    those that were proved later. Its texts may have gone since then. `fits` judges the members beside the record's.
    """
    host, events = proved[0].face["host_did"], [event for answer in proved for event in answer.events]
    fold = HostFold(host)
    for count in range(len(events) + 1):
        if count:
            fold.add(events[count - 1].index, events[count - 1].entry)
        record = fold.members() if count else None
        if count >= since and _is_of(data, host, record, events[:count], least):
            return fits(strict_json.loads(data), events[:count])
    return False


def _is_of(data: bytes, host: str, record: dict[str, Any] | None, events: Sequence[Event], least: int) -> bool:
    try:
        face = strict_json.loads(data)
        compare_summary(face, host, record)
        compare_history(face, events, set(), gone=True)
        _require_newest(face, events, least)
    except (AttributeError, Malformed, NotProved, TypeError):
        return False
    return True


def compare_summary(face: dict[str, Any], host: str, record: dict[str, Any] | None) -> None:
    for name, value in summary(host, record).items():
        if name not in face or not same_json(face[name], value):
            raise NotProved("face_mismatch", f"{name} is {face.get(name)!r}, the record gives {value!r}")
    if "statistics" in face and not same_json(face["statistics"], statistics(record)):
        raise NotProved("face_mismatch", "the statistics are not those of the record")


def compare_history(
    face: dict[str, Any], events: Sequence[Event], hidden: set[Part] | None = None, *, gone: bool = False
) -> None:
    listed = face.get("review_history")
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
                part = _left_out(name, value, got.get(name, ""))
                if part is None and gone:
                    part = _left_out(name, got.get(name), value)
                if part is None or hidden is None:
                    raise NotProved(
                        "history_mismatch", f"{want['review_id']}: the member {name} differs from the event"
                    )
                hidden.add((want["index"], part))


def _require_newest(face: dict[str, Any], events: Sequence[Event], least: int) -> None:
    indices = sorted((event.index for event in events if event.entry.type == "review"), reverse=True)
    listed = [review.get("index") for review in face["review_history"]]
    if len(listed) < min(least, len(indices)) or listed != indices[: len(listed)]:
        raise NotProved("history_mismatch", "review_history does not begin with the newest reviews, or ends too early")


def _left_out(name: str, value: Any, given: Any) -> str | None:
    """Which text of a review is not there, if that is all that differs in this member."""
    if name == "review_text" and given is None:
        return "text"
    without = {**value, "response_text": None} if name == "host_response" and isinstance(value, dict) else None
    return "response" if without is not None and (given is None or same_json(given, without)) else None


def same_json(given: Any, expected: Any) -> bool:
    """Equal as JSON: true is not 1, but 4 and 4.0 are one number."""
    if isinstance(expected, dict):
        same_names = isinstance(given, dict) and given.keys() == expected.keys()
        return same_names and all(same_json(given[name], value) for name, value in expected.items())
    if isinstance(expected, list):
        same_length = isinstance(given, list) and len(given) == len(expected)
        return same_length and all(map(same_json, given, expected))
    return bool(given == expected) and isinstance(given, bool) == isinstance(expected, bool)
