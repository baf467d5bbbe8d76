"""Proof that a map head does not follow from the one before it and the entries between: the one lie no answer shows.

The head before it commits to every host's record; the entries between the two say what has to become of those that they
name; so the new root can be worked out from one path for each of them. Nothing else of the map, and none of the older
entries but those about reviews that are named, is needed.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from audits.contradictions import Placed
from audits.evidence import (
    SIGNED,
    Audited,
    Evidence,
    Fraud,
    Shown,
    included,
    read_hashes,
    unproved,
    write_entries,
    written,
)
from ledger.canon import base64, strict_json
from ledger.errors import BrokenRule
from ledger.log.hostmap import HostMap, MapLeaf, MapProof, map_key, map_value, parse_siblings, updated_root, verify_map
from ledger.log.note import Verifier
from ledger.log.record import HostFold, KnownReviews, Reviews
from ledger.log.replay import MAX_BATCH, Replay

CODE = "map_root_mismatch"


def prove(log: Audited, index: int, claim: str, reviews: KnownReviews) -> Fraud:
    """That the map head at `index` is wrong while the one before it is right. Replays all entries up to that one;
    `reviews` keeps what it needs to know meanwhile."""
    batch = _batch(log, index)
    named = {each.get("review") for each in batch} - {None}
    before, replay = [], Replay(reviews, on_break=lambda _index, _rule: None)
    for place, data in enumerate(log.entries(0, batch[0].index + 1)):
        entry = replay.add(data)
        if place in named or entry.members.get("review") in named:
            before.append(Placed(place, data, entry))
    hosts = [_host(replay, host, batch) for host in _touched(batch)]
    shown = [*(each for each in before if each.index < batch[0].index), *batch]
    proof = {
        "entries": write_entries(shown),
        "log_proof": log.multiproof(shown),
        "first": batch[0].index,
        "hosts": hosts,
    }
    return Fraud("transition", CODE, claim, SIGNED, {"checkpoint": log.note, **proof})


def _batch(log: Audited, index: int) -> list[Placed]:
    """From the map head before the one at `index`, or the genesis, up to it."""
    start = max(index - MAX_BATCH - 1, 0)
    placed = [Placed.read(place, data) for place, data in enumerate(log.entries(start, index + 1), start)]
    heads = [each.index for each in placed[:-1] if each.is_type("map_head")]
    return placed[(heads[-1] if heads else start) - start :]


def _host(replay: Replay, host: str, batch: Sequence[Placed]) -> dict[str, Any]:
    """What the map had of the host when its turn came; from then on it has what the entries make of it."""
    fold, path = replay.hosts.get(host), replay.map.prove(map_key(host))
    record = fold.record().decode() if fold is not None else None
    edge = written(fold.edge.nodes) if fold is not None else []
    other = path.leaf.as_json() if path.leaf is not None and fold is None else None
    if fold is None:
        fold = HostFold(host, reviews=replay.reviews)
    replay.map.set(map_key(host), map_value(_folded(fold, batch)))
    return {"host": host, "record": record, "edge": edge, "map_proof": path.as_json(), "map_other": other}


def _folded(fold: HostFold, batch: Iterable[Placed]) -> bytes:
    for each in batch:
        if each.entry is not None and each.entry.host == fold.host:
            fold.add(each.index, each.entry)
    return fold.record()


def _touched(batch: Sequence[Placed]) -> list[str]:
    """The hosts that the batch names, each once, in their order."""
    return list(
        dict.fromkeys(each.entry.host for each in batch if each.entry is not None and each.entry.host is not None)
    )


def check(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint, placed = included(evidence, log)
    batch = [each for each in placed if each.index >= evidence["first"]]
    first, last = batch[0], batch[-1]
    row = [each.index for each in batch] == list(range(first.index, last.index + 1))
    inside = any(each.entry is None or each.is_type("map_head") for each in batch[1:-1])
    began = first.is_type("map_head") or first.index == 0
    if code != CODE or not row or inside or not began or not last.is_type("map_head") or first is last:
        unproved("a map head, the one before it and all entries between are needed")
    hosts = evidence["hosts"]
    if [each["host"] for each in hosts] != _touched(batch):
        unproved("what the map had of each host that the entries name is needed")
    # Before the genesis the map is empty.
    root = base64.decode_hash(first.get("root")) if first.is_type("map_head") else HostMap().root()
    reviews = _reviews(placed[: -len(batch)])
    for given in hosts:
        root = _next_root(root, given, batch, reviews)
    if base64.encode(root) == last.get("root"):
        unproved("this map head follows from the one before it")
    return checkpoint, [
        f"entries {first.index} to {last.index} are in a tree of {checkpoint.size} that {log.name} signed",
        f"the map head at {last.index} says {last.get('root')}; by the head before it and the entries between, it has "
        f"to be {base64.encode(root)}: the records of hosts do not follow from the entries",
    ]


def _reviews(before: Sequence[Placed]) -> Reviews:
    """The reviews that the batch may name, and what has happened to them, as far as it is shown."""
    known = Reviews()
    by_host = sorted((each for each in before if each.entry is not None), key=lambda each: str(each.get("host_did")))
    for host, events in groupby(by_host, key=lambda each: str(each.get("host_did"))):
        fold = HostFold(host, reviews=known)
        for each in sorted(events, key=lambda each: each.index):
            if each.entry is not None:
                fold.add(each.index, each.entry)
    return known


def _next_root(root: bytes, given: Evidence, batch: Sequence[Placed], reviews: Reviews) -> bytes:
    host, record = given["host"], given["record"]
    other = MapLeaf.parse(given["map_other"]) if given["map_other"] is not None else None
    siblings = parse_siblings(given["map_proof"])
    verify_map(host, None if record is None else record.encode(), other, siblings, root)
    if record is None:
        fold, leaf = HostFold(host, reviews=reviews), other
    else:
        edge = b"".join(read_hashes(given["edge"]))
        fold, leaf = HostFold.resume(host, strict_json.loads(record), edge, reviews), None
    try:
        after = map_value(_folded(fold, batch))
    except BrokenRule as rule:
        unproved(f"the entries break another rule: {rule.code}")
    return updated_root(MapProof(siblings, leaf), map_key(host), after)
