"""Questions about a host that have one right answer each, given its proved events; and what is wrong with another."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import quote

from audits import counts
from audits.answer import Answer, parse_answer
from audits.basis import Basis, brief, readable
from audits.face import Part, compare_history, compare_summary
from audits.review_answer import require_review
from audits.verify import verify_answer
from ledger.canon import base64, strict_json
from ledger.errors import BrokenRule, Malformed, NotProved
from ledger.log.checkpoint import open_checkpoint
from ledger.log.face import Event
from ledger.log.note import Verifier

CURSOR, EVENTS = "cursor_mismatch", "events_mismatch"
# Characters of a cursor: a longer one is refused.
MOST_CURSOR = 200


@dataclass(frozen=True, slots=True)
class Question:
    """`kind`: `list`, `full`, `aggregate` and `page` are asked of a checkpoint's size, or of what is newest where
    `sized` is false; `bare` without anything, `review` and `days` of what is newest; of `beside` only the members
    beside the record's are looked at. `below` is where a cursor, which came with another answer, goes on."""

    kind: str
    text: str = "verified"
    limit: int = 20
    below: int | None = None
    start: int = 0
    count: int = 0
    review: str = ""
    before: str | None = None
    sized: bool = True

    def path(self, host: str, size: int, cursor: str | None = None) -> str:
        about = f"v1/hosts/{quote(host, safe=':')}"
        if self.kind == "review":
            return f"v1/reviews/{self.review}?text={self.text}"
        if self.kind == "days":
            return f"{about}/events" + (f"?before={self.before}" if self.before else "")
        if self.kind == "bare":
            return f"{about}/reputation"
        asked = {
            "list": f"limit={self.limit}" + (f"&cursor={cursor}" if cursor else ""),
            "full": f"proof=full&limit={self.limit}",
            "aggregate": "proof=aggregate",
            "page": f"proof=page&from={self.start}&count={self.count}",
        }[self.kind]
        return f"{about}/reputation?text={self.text}&" + (f"size={size}&" if self.sized else "") + asked

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def judge(question: Question, said: bytes, basis: Basis, log: Verifier, hidden: set[Part] | None = None) -> None:
    """Raises NotProved with the code of the first thing that is not as it follows from the basis, Malformed where the
    answer cannot be read. Texts that are left out go into `hidden`, if that is given: they may have been redacted."""
    with readable():
        _judge(question, said, basis, log, hidden)


def _judge(question: Question, said: bytes, basis: Basis, log: Verifier, hidden: set[Part] | None) -> None:
    if question.kind == "review":
        require_review(said, question.review, question.text, basis, log, hidden)
        return
    face = strict_json.loads(said)
    if not isinstance(face, dict):
        raise Malformed("answer_malformed", "an answer must be an object")
    if question.kind == "days":
        counts.require(face, counts.of_host(basis.events), basis, question.before)
        return
    if question.kind == "beside":
        basis.require_beside(face)
        return
    compare_summary(face, basis.host, basis.record)
    shown = basis.shown(question.text)
    if question.kind in ("aggregate", "page", "full"):
        _require_proof(question, said, shown, basis, log, hidden)
    if question.kind in ("list", "full", "bare"):
        _require_run(question, face, shown, hidden)
    basis.require_beside(face)


def _require_run(question: Question, face: dict[str, Any], shown: Sequence[Event], hidden: set[Part] | None) -> None:
    """Exactly the reviews that were asked for, and a cursor if there are more."""
    compare_history(face, shown, hidden)
    reviews = sorted((event.index for event in shown if event.entry.type == "review"), reverse=True)
    older = [index for index in reviews if question.below is None or index < question.below]
    listed = [review.get("index") for review in face["review_history"]]
    if listed != older[: question.limit]:
        raise NotProved("history_mismatch", f"it lists {brief(listed)}, not {brief(older[: question.limit])}")
    cursor, more = face.get("next_cursor"), len(older) > question.limit
    if not is_cursor(cursor, more=more):
        raise NotProved(
            CURSOR, f"next_cursor is {brief(cursor)}, and there are {len(older) - len(listed)} more reviews"
        )


def is_cursor(value: object, *, more: bool) -> bool:
    """Whether it is as it must be where there are more reviews, or none."""
    return isinstance(value, str) and 0 < len(value) <= MOST_CURSOR if more else value is None


def _require_proof(
    question: Question, said: bytes, shown: Sequence[Event], basis: Basis, log: Verifier, hidden: set[Part] | None
) -> None:
    """Its own proof holds, at the size that was asked for, and shows these events."""
    try:
        verify_answer(said, log, basis.host, kind=question.kind, text=question.text)
    except BrokenRule as rule:
        raise NotProved("record_mismatch", f"no record follows from the events that are shown: {rule}") from None
    answer = parse_answer(said)
    checkpoint = open_checkpoint(answer.checkpoint, log)
    if (checkpoint.size, base64.encode(checkpoint.root)) != (basis.size, basis.root):
        raise Malformed("wrong_size", f"it is not of the tree of {basis.size} entries")
    if question.kind == "page":
        shown = shown[question.start : question.start + question.count]
        if answer.start != question.start or len(answer.events) != len(shown):
            at, number = answer.start, len(answer.events)
            raise NotProved(EVENTS, f"events {question.start} to {question.start + len(shown) - 1} were asked for, and "
                f"{number} from {at} on are shown")  # fmt: skip
    if question.kind != "aggregate":
        _compare_openings(answer, {event.index: event for event in shown}, hidden)


def _compare_openings(answer: Answer, shown: Mapping[int, Event], hidden: set[Part] | None) -> None:
    for event in answer.events:
        right = shown[event.index].opening
        if event.opening is not None and right is None:
            raise NotProved("opening_unexpected", f"the text of event {event.index} was not asked for, and is shown")
        if event.opening is None and right is not None:
            review = event.entry.members.get("review", event.index)
            if hidden is None:
                raise NotProved("opening_missing", f"the text of event {event.index} was asked for, and is not shown")
            hidden.add((review, "text" if event.entry.type == "review" else "response"))
