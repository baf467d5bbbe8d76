"""A reputation answer as it was received: read strictly, typed, nothing verified yet."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ledger.canon import base64, strict_json
from ledger.errors import Malformed
from ledger.log.entries import Entry, parse_entry
from ledger.log.face import Event
from ledger.log.hostmap import MapLeaf, parse_siblings
from ledger.log.openings import Opening

_AGGREGATE = {"checkpoint", "map_head", "log_proof", "map_proof", "record", "map_other"}
_MEMBERS = {
    "full": _AGGREGATE | {"events"},
    "aggregate": _AGGREGATE,
    "page": _AGGREGATE | {"events", "from", "sub_proof"},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """`face` is the whole JSON object; the rest is its `proof`, decoded. `events` is empty in an aggregate."""

    face: dict[str, Any]
    kind: str
    checkpoint: str
    map_head: Entry
    log_proof: list[bytes]
    siblings: tuple[bytes, ...]
    record: str | None
    other: MapLeaf | None
    events: list[Event]
    start: int
    sub_proof: list[bytes]


def parse_answer(data: bytes) -> Answer:
    """The answer in one document. Raises Malformed."""
    return _answer(strict_json.loads(data))


def parse_pages(documents: Sequence[bytes]) -> list[Answer]:
    """The pages of one host, each in a document of its own or all in one JSON array. Raises Malformed."""
    values = [strict_json.loads(data) for data in documents]
    if len(values) == 1 and isinstance(values[0], list):
        [values] = values
    return [_answer(value) for value in values]


def _answer(face: Any) -> Answer:
    proof = face.get("proof") if isinstance(face, dict) else None
    if not isinstance(proof, dict):
        raise Malformed("answer_malformed", "an answer must be an object with a proof: ask with ?proof=full")
    kind = next((kind for kind, members in _MEMBERS.items() if proof.keys() == members), None)
    if kind is None:
        raise Malformed(
            "answer_malformed", "the proof must have exactly the members of a full, aggregate or page proof"
        )
    record, other, start = proof["record"], proof["map_other"], proof.get("from", 0)
    if type(start) is not int or start < 0:
        raise Malformed("answer_malformed", "from is a whole number from 0")
    return Answer(
        face=face,
        kind=kind,
        checkpoint=_text(proof["checkpoint"]),
        map_head=parse_entry(_text(proof["map_head"]).encode()),
        log_proof=_hashes(proof["log_proof"]),
        siblings=parse_siblings(_texts(proof["map_proof"])),
        record=None if record is None else _text(record),
        other=None if other is None else MapLeaf.parse(other),
        events=[_event(event) for event in _list(proof.get("events", []))],
        start=start,
        sub_proof=_hashes(proof.get("sub_proof", [])),
    )


def _event(value: Any) -> Event:
    if not isinstance(value, dict) or value.keys() != {"index", "entry", "opening"}:
        raise Malformed("answer_malformed", "an event must be an object of exactly index, entry and opening")
    if type(value["index"]) is not int or value["index"] < 0:
        raise Malformed("answer_malformed", "the index of an event is a whole number from 0")
    opening = value["opening"]
    entry = parse_entry(_text(value["entry"]).encode())
    return Event(value["index"], entry, None if opening is None else Opening.parse(opening))


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Malformed("answer_malformed", f"text expected, not {str(value)[:40]!r}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise Malformed("answer_malformed", f"a list expected, not {str(value)[:40]!r}")
    return value


def _texts(value: Any) -> list[str]:
    return [_text(item) for item in _list(value)]


def _hashes(value: Any) -> list[bytes]:
    return [base64.decode_hash(text) for text in _texts(value)]
