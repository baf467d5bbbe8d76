"""The proofs of reputation answers (protocol.md 5): full, aggregate, page, and the absence of a host.

What an answer says beside them follows from the record: `face.summary`.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ledger.canon import base64
from ledger.errors import BadRequest, NotStored, StaylogError
from ledger.log.face import Event, history
from ledger.log.hostmap import MapLeaf, MapProof, map_key, map_value
from ledger.log.tiles import TileTree
from ledger.log.tree import Subtree, multiproof_subtrees, root_of

MAX_FULL_EVENTS = 1000
MAX_PAGE_EVENTS = 500


@dataclass(frozen=True, slots=True)
class View:
    """One host at one published checkpoint: `path` is its way through the map, `record` None when it has none.

    `written` turns hashes into members of the answer: who encodes bytes as base64 later leaves the hundreds of a proof
    as they are.
    """

    host: str
    checkpoint: str
    size: int
    map_head: str
    path: MapProof
    record: bytes | None
    written: Callable[[Iterable[bytes]], list[Any]] = lambda hashes: list(map(base64.encode, hashes))


def full(view: View, tree: TileTree, events: Sequence[Event]) -> dict[str, Any]:
    """Everything: the answer and all it takes to check it offline."""
    if len(events) > MAX_FULL_EVENTS:
        raise StaylogError(
            "proof_too_large",
            f"{len(events)} events; above {MAX_FULL_EVENTS} ask for proof=page&from=0&count={MAX_PAGE_EVENTS}",
        )
    proof = {**_proof(view, tree, events), "events": [_event(event) for event in events]}
    return {"review_history": history(events), "proof": proof}


def aggregate(view: View, tree: TileTree) -> dict[str, Any]:
    """What the operator's map says, without the events that would show it is right."""
    return {"proof": _proof(view, tree, ())}


class Hashes(Protocol):
    """The sub-log of a host: how many events it has, and the hashes of its subtrees."""

    def __len__(self) -> int: ...

    def subtrees(self, subtrees: Sequence[Subtree]) -> list[bytes]: ...


class Leaves(list[bytes]):
    """A sub-log that is short enough to be hashed anew."""

    def subtrees(self, subtrees: Sequence[Subtree]) -> list[bytes]:
        return [root_of(self[lo:hi]) for lo, hi in subtrees]


def page(view: View, tree: TileTree, events: Sequence[Event], start: int, sublog: Hashes) -> dict[str, Any]:
    """Events `start`, `start` + 1, ... of the host, which has as many in all as its `sublog`."""
    if view.record is None:
        return full(view, tree, ())
    if not 0 <= start < len(sublog) or not 0 < len(events) <= MAX_PAGE_EVENTS:
        raise BadRequest(
            "page_out_of_range", f"a page has 1 to {MAX_PAGE_EVENTS} events and starts below {len(sublog)}"
        )
    proof = {
        **_proof(view, tree, events),
        "events": [_event(event) for event in events],
        "from": start,
        "sub_proof": view.written(sublog.subtrees(multiproof_subtrees(range(start, start + len(events)), len(sublog)))),
    }
    return {"proof": proof}


def _proof(view: View, tree: TileTree, events: Sequence[Event]) -> dict[str, Any]:
    shown = [*(event.index for event in events), view.size - 1]
    other = view.path.leaf if view.record is None else None
    if view.record is not None and view.path.leaf != MapLeaf(map_key(view.host), map_value(view.record)):
        raise NotStored(f"the stored record of {view.host} is not the one in the map")
    return {
        "checkpoint": view.checkpoint,
        "map_head": view.map_head,
        "log_proof": view.written(tree.multiproof(shown, view.size)),
        "map_proof": view.path.as_json(),
        "record": view.record.decode() if view.record is not None else None,
        "map_other": other.as_json() if other else None,
    }


def _event(event: Event) -> dict[str, Any]:
    return {
        "index": event.index,
        "entry": event.entry.data.decode(),
        "opening": event.opening.as_json() if event.opening else None,
    }
