"""Entries that cannot stand together in one log (protocol.md 2 to 4): by its code, what shows that a rule is broken.

Few entries are enough for nearly every rule. They are in a tree that the log signed, and so convict it by themselves.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from audits.commitments import NOTHING, OF_NOTHING, REPEATED, commitments
from ledger.canon.times import seconds
from ledger.errors import BadEntry
from ledger.log.entries import Entry, parse_entry
from ledger.log.record import RESPONSE_WINDOW
from ledger.log.replay import MAX_BATCH


@dataclass(frozen=True, slots=True)
class Placed:
    """What stands at a place of the log; `entry` is None if it is not an entry."""

    index: int
    data: bytes
    entry: Entry | None

    @classmethod
    def read(cls, index: int, data: bytes) -> "Placed":
        try:
            return cls(index, data, parse_entry(data))
        except BadEntry:
            return cls(index, data, None)

    def is_type(self, type_: str) -> bool:
        return self.entry is not None and self.entry.type == type_

    def get(self, name: str) -> Any:
        return self.entry.members.get(name) if self.entry is not None else None


@dataclass(frozen=True, slots=True)
class Log:
    """Whose tree it is, and how large."""

    origin: str
    size: int


# Whether an earlier entry, together with the one that breaks the rule, shows that it does.
Pair = Callable[[Placed, Placed], bool]
Alone = Callable[[Placed, Log], bool]


def _same(type_: str, *names: str) -> Pair:
    """Two entries of a type that agree in these members."""
    return lambda first, second: (
        first.is_type(type_) and second.is_type(type_) and all(first.get(name) == second.get(name) for name in names)
    )


def _names(first: Placed, second: Placed) -> bool:
    """The second entry names the review that the first one is."""
    said = ("review_id", "host_did")
    return (
        first.is_type("review")
        and second.get("review") == first.index
        and all(first.get(name) == second.get(name) for name in said)
    )


def _falls(first: Placed, second: Placed) -> bool:
    return first.get("at") is not None and second.get("at") is not None and bool(second.get("at") < first.get("at"))


def _seq_falls(first: Placed, second: Placed) -> bool:
    are_heads = first.is_type("index_head") and second.is_type("index_head")
    return are_heads and bool(second.get("seq") < first.get("seq"))


def _not_named(first: Placed, second: Placed) -> bool:
    """The second entry names the place of the first, and that is not the review it means."""
    return second.get("review") == first.index and not _names(first, second)


def _upgraded(first: Placed, second: Placed) -> bool:
    confirmed = second.is_type("upgrade") and _names(first, second) and first.get("level") != "unconfirmed"
    return confirmed or _same("upgrade", "review")(first, second)


def _late(first: Placed, second: Placed) -> bool:
    if not second.is_type("response") or not _names(first, second):
        return False
    return seconds(second.get("at")) - seconds(first.get("at")) > RESPONSE_WINDOW


def _nothing(first: Placed, second: Placed) -> bool:
    redacts = second.is_type("redaction") and second.get("part") == "text"
    return redacts and _names(first, second) and first.get("text") is None


def _other_issuer(first: Placed, second: Placed) -> bool:
    upgrades = second.is_type("upgrade") and _names(first, second)
    return upgrades and bool(first.get("evidence")["issuer"] != second.get("evidence")["issuer"])


def _committed(placed: Placed) -> list[str]:
    return list(commitments(placed.entry.type, placed.entry.members)) if placed.entry is not None else []


PAIRS: dict[str, Pair] = {
    REPEATED: lambda first, second: not set(_committed(first)).isdisjoint(_committed(second)),
    "time_falls": _falls,
    "index_seq_falls": _seq_falls,
    "review_id_reused": _same("review", "review_id"),
    "review_unknown": _not_named,
    "response_repeated": _same("response", "review"),
    "response_late": _late,
    "redaction_repeated": _same("redaction", "review", "part"),
    "redaction_of_nothing": _nothing,
    "upgrade_not_unconfirmed": _upgraded,
    "issuer_changed": _other_issuer,
}


def _ill_formed(placed: Placed, _log: Log) -> bool:
    return placed.entry is None


ALONE: dict[str, Alone] = {
    **dict.fromkeys(
        ("entry_too_large", "entry_malformed", "entry_not_canonical", "entry_unknown_type", "entry_invalid"),
        _ill_formed,
    ),
    "genesis_missing": lambda placed, _: placed.index == 0 and not placed.is_type("genesis"),
    "genesis_repeated": lambda placed, _: placed.index > 0 and placed.is_type("genesis"),
    "genesis_batch": lambda placed, _: placed.index == 1 and not placed.is_type("map_head"),
    "origin_mismatch": lambda placed, log: (
        placed.index == 0 and placed.is_type("genesis") and placed.get("origin") != log.origin
    ),
    "map_head_size": lambda placed, _: placed.is_type("map_head") and placed.get("size") != placed.index,
    "map_head_not_last": lambda placed, log: placed.index == log.size - 1 and not placed.is_type("map_head"),
    "issuer_missing": lambda placed, _: (
        placed.is_type("review") and placed.get("level") != "host_attested" and placed.get("evidence")["issuer"] is None
    ),
    OF_NOTHING: lambda placed, _: NOTHING in _committed(placed),
    REPEATED: lambda placed, _: len(_committed(placed)) > len(set(_committed(placed))),
    # The review that it names comes later, or is itself.
    "review_unknown": lambda placed, _: placed.get("review") is not None and placed.get("review") >= placed.index,
}


def contradict(code: str, shown: Sequence[Placed], log: Log) -> bool:
    """Whether these entries of the log, ascending, show that the rule is broken."""
    if code == "batch_too_long":
        row = all(after.index == before.index + 1 for before, after in pairwise(shown))
        return row and len(shown) == MAX_BATCH + 1 and not any(placed.is_type("map_head") for placed in shown)
    if len(shown) == 1 and code in ALONE:
        return ALONE[code](shown[0], log)
    return len(shown) == 2 and code in PAIRS and PAIRS[code](*shown)
