"""What an operator could answer instead of the truth: four lies, from the laziest to the most diligent.

Whoever runs a ledger has every entry and all of this code, so the lies are made with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ledger.canon import base64, jcs, strict_json
from ledger.log.entries import parse_entry
from ledger.log.face import Event, history, statistics, summary
from ledger.log.openings import Opening
from ledger.log.record import fold
from ledger.log.tree import leaf_hash, multiproof_subtrees, root_of

Answer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Lie:
    """An answer that is not true, and how a verifier's refusal of it begins."""

    title: str
    answer: Answer
    refusal: str


def lies(answer: Answer, review_id: str, entries: Sequence[str]) -> list[Lie]:
    """Four ways to be rid of a bad review; `entries` are all of the log."""
    return [
        Lie("an average of 4.9 stars made up", _average(answer), "average_ratings of the answer"),
        Lie("the review left out of the list", _unlisted(answer, review_id), f"index of {review_id}"),
        Lie(
            "its rating changed, in the entry too, and all sums made anew",
            _changed(answer, review_id),
            "the entries shown are not in the tree that was signed",
        ),
        Lie(
            "the review dropped everywhere, with new sums and a new proof from the tree",
            _dropped(answer, review_id, entries),
            "the host's map path does not lead to the map root",
        ),
    ]


def _average(answer: Answer) -> Answer:
    return {**answer, "average_ratings": {**answer["average_ratings"], "overall": 4.9}}


def _unlisted(answer: Answer, review_id: str) -> Answer:
    listed = [review for review in answer["review_history"] if review["review_id"] != review_id]
    return {**answer, "review_history": listed}


def _changed(answer: Answer, review_id: str) -> Answer:
    events = []
    for event in answer["proof"]["events"]:
        entry = strict_json.loads(event["entry"])
        if (entry["type"], entry["review_id"]) == ("review", review_id):
            entry["ratings"] = dict.fromkeys(entry["ratings"], 5)
        events.append({**event, "entry": jcs.dumps(entry).decode()})
    return _retold(answer, events)


def _dropped(answer: Answer, review_id: str, entries: Sequence[str]) -> Answer:
    """The host's response to it goes too: it would name a review that is not there."""
    events = [event for event in answer["proof"]["events"] if review_id not in event["entry"]]
    lie = _retold(answer, events)
    size = strict_json.loads(answer["proof"]["map_head"])["size"] + 1
    leaves = [leaf_hash(entry.encode()) for entry in entries[:size]]
    shown = [*(event["index"] for event in events), size - 1]
    proof = [base64.encode(root_of(leaves[low:high])) for low, high in multiproof_subtrees(shown, size)]
    return {**lie, "proof": {**lie["proof"], "log_proof": proof}}


def _retold(answer: Answer, shown: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The answer that these events would give: record, sums, averages and list."""
    host, events = answer["host_did"], [_read(event) for event in shown]
    record = fold(host, ((event.index, event.entry) for event in events))
    sums = strict_json.loads(record)
    proof = {**answer["proof"], "record": record.decode(), "events": list(shown)}
    told = {**summary(host, sums), "statistics": statistics(sums), "review_history": history(events)}
    return {**answer, **told, "proof": proof}


def _read(event: Mapping[str, Any]) -> Event:
    opening = Opening.parse(event["opening"]) if event["opening"] else None
    return Event(event["index"], parse_entry(event["entry"].encode()), opening)
