"""Which questions a checkpoint draws about a host, besides those that are always asked."""

from dataclasses import replace
from datetime import date, timedelta
from urllib.parse import quote

from audits import counts
from audits.basis import Basis
from audits.draws import Draw
from audits.questions import Question
from ledger.canon import strict_json

TEXTS = ("verified", "all", "none")
MOST_LIMIT, MOST_COUNT, MOST_FULL = 100, 500, 1000


def questions(basis: Basis, draw: Draw) -> list[Question]:
    """What is asked about a host besides what is always asked; the same for everyone who draws."""
    reviews = [event.entry.members["review_id"] for event in basis.events if event.entry.type == "review"]
    events = len(basis.events)
    found = [
        Question("list", draw.one_of(TEXTS), 1 + draw.below(MOST_LIMIT)),
        # So short that there are cursors.
        Question("list", draw.one_of(TEXTS), 1 + draw.below(max(len(reviews) // 2, 1)) % MOST_LIMIT),
        Question("aggregate", draw.one_of(TEXTS)),
    ]
    if events:
        start, count = draw.below(events), 1 + draw.below(MOST_COUNT)
        found.append(Question("page", draw.one_of(TEXTS), start=start, count=count))
    if events <= MOST_FULL:
        found.append(Question("full", draw.one_of(TEXTS), 1 + draw.below(MOST_LIMIT)))
    # Most who ask name no size.
    found = [replace(question, sized=bool(draw.below(2))) for question in found]
    found.append(Question("days", before=some_day(counts.of_host(basis.events), basis.at, draw)))
    if reviews:
        found.append(Question("review", draw.one_of(TEXTS), review=draw.one_of(reviews)))
    return found


def some_day(days: counts.Days, at: str, draw: Draw) -> str | None:
    """A date before which counts are asked for; as often none, for the newest."""
    first, last = date.fromisoformat(min(days, default=at)[:10]), date.fromisoformat(at[:10])
    before = first + timedelta(1 + draw.below(max((last - first).days, 0) + 1))
    return None if draw.below(2) else str(before)


def following(question: Question, said: bytes | None) -> tuple[Question | None, str | None]:
    """The question that the cursor of a right answer asks, and the cursor."""
    if said is None or question.kind != "list":
        return None, None
    face = strict_json.loads(said)
    cursor = face.get("next_cursor")
    if cursor is None:
        return None, None
    below = face["review_history"][-1]["index"]
    return replace(question, below=below), quote(cursor, safe="")
