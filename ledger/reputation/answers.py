"""The reputation answer (reviews.md 6): RFC-005 7.4, exact statistics beside it, and the proofs of protocol.md 5."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from ledger.canon import base64, did
from ledger.errors import BadRequest, StaylogError
from ledger.identity.issuers import Registries, Registry
from ledger.log import answers
from ledger.log.face import Event, history, statistics, summary, unconfirmed
from ledger.log.hostmap import map_key
from ledger.log.reader import Reader, RecordState
from ledger.store.rows import Published

PROOFS = ("none", "full", "aggregate", "page")
TEXTS = ("verified", "all", "none")
DEFAULT_LIMIT = 20
MAX_LIMIT = 100
# Up to here it is cheaper to read all events of a host than to look for the newest reviews.
FEW_EVENTS = 100

_CURSOR = re.compile(r"([1-9][0-9]{0,15})\.([1-9][0-9]{0,15})")


@dataclass(frozen=True, slots=True)
class Query:
    """What is asked: `start` and `count` choose a page of events, `limit` and `cursor` a run of reviews."""

    proof: str = "none"
    size: int | None = None
    start: int = 0
    count: int = answers.MAX_PAGE_EVENTS
    limit: int = DEFAULT_LIMIT
    cursor: str | None = None
    text: str = "verified"


class Lengthy(Exception):
    """The host has more events than whoever asks wants to wait for."""


def reputation(
    reader: Reader,
    registries: Registries,
    host: str,
    query: Query,
    at_most: int | None = None,
    key_changed_at: str | None = None,
) -> bytes:
    """The answer about `host` as JSON. A host nobody reviewed is answered too. Lengthy is raised before the events are
    read when there are more than `at_most`. `key_changed_at` is when the keys of its DID were seen to change."""
    did.check(host)
    with reader.session():
        state, before = _state(reader, query)
        stored = reader.record(host, state.size)
        record = msgspec.json.decode(stored.data) if stored else None
        count = record["events"] if record else 0
        if at_most is not None and count > at_most:
            raise Lengthy
        # All events of a small host, which everything else is made from. A large one is read in parts.
        events = reader.events(host, state.size) if count <= FEW_EVENTS else None
        registry = registries.at(state.size)
        if query.proof == "none":
            shown = _listed(reader, host, state.size, before, events, query)
            if shown["next_cursor"] is not None and query.size is None and query.cursor is None and stored is not None:
                # Not of a size that changes though nothing has happened to the host.
                size = max(stored.as_of, _covering(reader, registry.newest))
                shown["next_cursor"] = _cursor(size, shown["review_history"][-1]["index"])
        else:
            shown = _proved(reader, host, state, before, stored, count, events, query)
        # The same until the host's next event, which is what it is kept by.
        as_of = stored.as_of if stored else 0
        issuers = _issuers(registry, _issuer_counts(reader, host, as_of, events))
    statuses = {each["issuer"]: each["status"] for each in issuers}
    for review in shown.get("review_history", ()):
        review["issuer_status"] = statuses.get(review["evidence"]["issuer"])
    more = {
        "issuers": issuers,
        "host_key_changed_at": key_changed_at,
        "statistics": statistics(record),
        "as_of": _as_of(stored),
    }
    return msgspec.json.encode({**summary(host, record), **shown, **more})


def _issuer_counts(reader: Reader, host: str, size: int, events: Sequence[Event] | None) -> Mapping[str, int]:
    """How many reviews rest on each issuer's credentials."""
    if events is None:
        return reader.issuer_counts.of(host, size)
    counts: dict[str, int] = {}
    for event in events:
        issuer = event.entry.members["evidence"]["issuer"] if event.entry.type == "review" else None
        if issuer is not None:
            counts[issuer] = counts.get(issuer, 0) + 1
    return counts


def _issuers(registry: Registry, counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Whose word the reviews rest on, and what has become of that: an agent may leave some out. The status is null for
    who was never trusted here, as where the operator added the entry by hand."""
    found = {name: registry.get("guest", name) for name in sorted(counts)}
    return [
        {"issuer": name, "status": known and known.status, "reviews": counts[name]} for name, known in found.items()
    ]


def _state(reader: Reader, query: Query) -> tuple[Published, int]:
    """The checkpoint that is asked about, and the log index below which reviews are listed."""
    if query.cursor is None:
        state = reader.published_at(query.size)
        return state, state.size
    try:
        match = _CURSOR.fullmatch(urlsafe_b64decode(query.cursor.encode() + b"==").decode())
    except ValueError:
        match = None
    if not match or query.size not in (None, int(match[1])):
        raise BadRequest("cursor_invalid", "the cursor is not one that this ledger gave out, or is of another size")
    return reader.published_at(int(match[1])), int(match[2])


def _as_of(stored: RecordState | None) -> dict[str, Any] | None:
    """The checkpoint that first covered the host's last event: the same until the next one."""
    return {"size": stored.as_of, "root": base64.encode(stored.root), "at": stored.at} if stored else None


def _listed(
    reader: Reader, host: str, size: int, before: int, events: Sequence[Event] | None, query: Query
) -> dict[str, Any]:
    if events is None:
        # One more than is listed tells whether there are more.
        events = reader.newest_reviews(host, size, min(before, size), query.limit + 1)
    return _run(history(_shown(events, unconfirmed(events), query.text)), size, before, query.limit)


def _run(reviews: list[dict[str, Any]], size: int, before: int, limit: int) -> dict[str, Any]:
    older = [review for review in reviews if review["index"] < before]
    listed, more = older[:limit], len(older) > limit
    return {"review_history": listed, "next_cursor": _cursor(size, listed[-1]["index"]) if more else None}


def _cursor(size: int, index: int) -> str:
    """To go on below this log index, at the checkpoint of this size."""
    return urlsafe_b64encode(f"{size}.{index}".encode()).rstrip(b"=").decode()


def _covering(reader: Reader, index: int) -> int:
    """The size of the first checkpoint that covers an entry; 0 where there is no entry."""
    published = reader.first_covering(index) if index >= 0 else None
    return published.size if published else 0


def _proved(
    reader: Reader,
    host: str,
    state: Published,
    before: int,
    stored: RecordState | None,
    count: int,
    events: Sequence[Event] | None,
    query: Query,
) -> dict[str, Any]:
    record = stored.data if stored else None
    path = reader.map.prove(state.map_top, map_key(host), state.map_root)
    map_head = reader.entries(state.size - 1, state.size)[0].decode()
    # Our encoder writes bytes as base64, much faster than we could.
    view = answers.View(host, state.note, state.size, map_head, path, record, written=list)
    if query.proof == "aggregate":
        return answers.aggregate(view, reader.tree)
    if query.proof == "full" and count > answers.MAX_FULL_EVENTS:
        raise StaylogError(
            "proof_too_large",
            f"this host has {count} events; above {answers.MAX_FULL_EVENTS} ask for "
            f"proof=page&from=0&count={answers.MAX_PAGE_EVENTS}&size={state.size} and go on from there",
        )
    if query.proof == "page" and stored is not None:
        sublog = reader.sublog(host, state.size, count, stored.edge)
        inside = 0 <= query.start < count
        events = reader.page(host, state.size, sublog.place(query.start), query.count) if inside else []
        # The review that an event is about may stand on an earlier page.
        about = {event.entry.members.get("review", event.index) for event in events}
        doubtful = reader.unconfirmed(sorted(about), state.size)
        return answers.page(view, reader.tree, _shown(events, doubtful, query.text), query.start, sublog)
    events = reader.events(host, state.size) if events is None else events
    answer = answers.full(view, reader.tree, _shown(events, unconfirmed(events), query.text))
    return {**answer, **_run(answer["review_history"], state.size, before, query.limit)}


def _shown(events: Sequence[Event], doubtful: set[int], text: str) -> Sequence[Event]:
    """Without the texts that are not asked for: those of the `doubtful` reviews, which are unconfirmed, and of the
    responses to them."""
    if text == "all" or not doubtful and text == "verified":
        return events
    return [
        replace(event, opening=None)
        if text == "none" or event.entry.members.get("review", event.index) in doubtful
        else event
        for event in events
    ]
