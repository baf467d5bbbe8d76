"""`GET /v1/reviews/{review_id}`: what the log has about one review, the public part of its receipt (protocol.md 6)."""

from collections.abc import Sequence
from typing import cast

from litestar import get
from litestar.di import NamedDependency

from api.caching import SECOND
from api.log import inclusion_path
from api.openapi import responses
from api.parameters import ReviewId, Text
from api.shapes import EntryType, Level, OpeningShape, Review, ReviewEntry
from ledger.canon import base64
from ledger.folder import Ledger
from ledger.log.face import Event
from ledger.log.tlog_proof import TlogProof
from ledger.store.rows import Published


@get(
    "/v1/reviews/{review_id:str}",
    response_headers={"Cache-Control": SECOND},
    responses=responses("review_not_found"),
    sync_to_thread=True,
    tags=["reputation"],
)
def review(ledger: NamedDependency[Ledger], review_id: ReviewId, text: Text = "verified") -> Review:
    """All entries about a review, each with proof that it is under the newest checkpoint."""
    state = ledger.reader.published
    events = ledger.reader.review(review_id, state.size)
    level = _level(events)
    shown = text == "all" or (text == "verified" and level != "unconfirmed")
    return Review(
        review_id,
        str(events[0].entry.host),
        level,
        state.note,
        [_entry(ledger, state, event, shown) for event in events],
    )


def _level(events: Sequence[Event]) -> Level:
    """The level after an upgrade, if there was one."""
    return next(event.entry.members["level"] for event in reversed(events) if "level" in event.entry.members)


def _entry(ledger: Ledger, state: Published, event: Event, shown: bool) -> ReviewEntry:
    opening = event.opening if shown else None
    path = inclusion_path(ledger.reader, event.entry.leaf_hash, event.index, state)
    return ReviewEntry(
        event.index,
        cast("EntryType", event.entry.type),
        event.entry.data.decode(),
        OpeningShape(opening.text, base64.encode(opening.salt)) if opening else None,
        str(TlogProof(event.index, tuple(path), state.note)),
    )


HANDLERS = [review]
