"""What fraud proofs are made of: a claim, and signed trees with some of their entries.

A proof is `signed` when the log's own signatures convict it: nobody else could have made it. It is `observed` when what
was served was not signed: the file then shows what is wrong with it, and that it came from this log is the word of
whoever recorded it. It is `witnessed` when it takes the word of a witness beside the log's own.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from audits.contradictions import Placed
from ledger.canon import base64
from ledger.errors import NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.note import Verifier
from ledger.log.proofs import multiproof_root
from ledger.log.tiles import TileTree
from ledger.log.tree import leaf_hash

TYPE = "StaylogFraudProof"
SIGNED, OBSERVED, WITNESSED = "signed", "observed", "witnessed"

Evidence = Mapping[str, Any]
# The checkpoint that a proof is about, and what it shows in plain words.
Shown = tuple[Checkpoint, list[str]]


@dataclass(frozen=True, slots=True)
class Fraud:
    """What is claimed and what shows it. `kind` says what the evidence is made of, `code` what is broken."""

    kind: str
    code: str
    claim: str
    proof: str
    evidence: Evidence

    def as_json(self, log: Verifier) -> dict[str, Any]:
        said = {"kind": self.kind, "code": self.code, "claim": self.claim, "log": str(log), "proof": self.proof}
        return {"type": TYPE, "v": 1, **said, "evidence": self.evidence}


@dataclass(frozen=True, slots=True)
class Audited:
    """A tree that was read to its end: its signed checkpoint, its hashes, and its entries [start, stop) on demand.
    `known` has roots of smaller trees that were worked out before; `is_whole` tells which smaller trees end in a map
    head, as far as that was looked at."""

    note: str
    checkpoint: Checkpoint
    tree: TileTree
    entries: Callable[[int, int], Iterable[bytes]]
    known: Callable[[int], bytes | None] = lambda _size: None
    is_whole: Callable[[int], bool] = lambda _size: True

    @property
    def size(self) -> int:
        return self.checkpoint.size

    def root(self, size: int) -> bytes:
        """Of the first `size` entries."""
        return self.known(size) or self.tree.root(size)

    def placed(self, *indices: int) -> list[Placed]:
        return [Placed.read(index, next(iter(self.entries(index, index + 1)))) for index in sorted(set(indices))]

    def multiproof(self, placed: Sequence[Placed]) -> list[str]:
        return written(self.tree.multiproof([each.index for each in placed], self.size))


def unproved(why: str) -> NoReturn:
    raise NotProved("fraud_unproved", why)


def written(hashes: Iterable[bytes]) -> list[str]:
    return [base64.encode(value) for value in hashes]


def read_hashes(texts: Sequence[str]) -> list[bytes]:
    return [base64.decode_hash(text) for text in texts]


def write_entries(placed: Sequence[Placed]) -> list[dict[str, Any]]:
    """What is not even text is in base64."""
    return [{"index": each.index, **_as_text(each.data)} for each in placed]


def _as_text(data: bytes) -> dict[str, str]:
    try:
        return {"entry": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.encode(data)}


def read_entries(values: Sequence[Mapping[str, Any]]) -> list[Placed]:
    placed = []
    for value in values:
        data = value["entry"].encode() if "entry" in value else base64.decode(value["base64"])
        if type(value["index"]) is not int:
            raise TypeError("an index is a whole number")
        placed.append(Placed.read(value["index"], data))
    return placed


def included(evidence: Evidence, log: Verifier) -> tuple[Checkpoint, list[Placed]]:
    """The entries of `evidence`, ascending, once they are known to stand in its checkpoint's tree."""
    checkpoint, placed = open_checkpoint(evidence["checkpoint"], log), read_entries(evidence["entries"])
    leaves = [(each.index, leaf_hash(each.data)) for each in placed]
    if multiproof_root(leaves, checkpoint.size, read_hashes(evidence["log_proof"])) != checkpoint.root:
        unproved("the entries are not in the tree that the log signed")
    return checkpoint, placed
