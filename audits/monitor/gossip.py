"""Checkpoints from elsewhere: other copies of a log, its witnesses, files of those who got an answer or a receipt.

Whoever tells it is a stranger. A checkpoint counts as far as the log signed it, tiles as far as they hash to that.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from audits.evidence import Fraud
from audits.forks import prove_fork
from audits.given import read_note
from audits.monitor.errands import Errands
from audits.reading import Reading
from audits.source import Source, WebSource, open_source
from ledger.errors import NotFound, NotProved, StaylogError
from ledger.log.add_checkpoint import monitoring_path
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.note import Verifier
from ledger.log.policy import Policy
from ledger.log.proofs import prefix_roots
from ledger.log.tiles import MemoryTiles, TileStore, TileTree
from ledger.log.tree import prefix_subtrees

# For all strangers together: they are asked at the same time.
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Signed:
    """A checkpoint that the log signed, and the note that shows it."""

    note: str
    checkpoint: Checkpoint

    @classmethod
    def read(cls, note: str, log: Verifier) -> "Signed":
        return cls(note, open_checkpoint(note, log))

    @property
    def size(self) -> int:
        return self.checkpoint.size

    @property
    def root(self) -> bytes:
        return self.checkpoint.root


def compare(smaller: Signed, larger: Signed, log: Verifier, tree: TileTree) -> Fraud | None:
    """The proof that the larger one does not begin with the smaller one, if that is so; `tree` is that of the larger
    one as somebody serves it, and NotProved if it is not the one that was signed."""
    if smaller.size == larger.size:
        began = larger.root
    elif not smaller.size:
        return None
    else:
        hashes = tree.subtrees(prefix_subtrees(smaller.size, larger.size), larger.size)
        root, began = prefix_roots(smaller.size, larger.size, hashes)
        if root != larger.root:
            raise NotProved("root_mismatch", f"the tiles are not of the tree of {larger.size} entries that was signed")
    return prove_fork(smaller.note, larger.note, log, tree) if began != smaller.root else None


@dataclass(frozen=True, slots=True)
class Place:
    """Where a checkpoint is to be had; `source` serves the tiles to it, if anybody does."""

    name: str
    read: Callable[[], str]
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What one place has: the checkpoint, a fork that its own tiles show, or why nothing could be made of it. A witness
    that never saw the log has neither."""

    where: str
    signed: Signed | None = None
    fraud: Fraud | None = None
    trouble: StaylogError | None = None


class Gossip:
    def __init__(self, places: Sequence[Place], log: Verifier, seconds: float = SECONDS) -> None:
        self._places = {place.name: place for place in places}
        self._log = log
        self._errands: Errands[Heard] = Errands(seconds)

    def ask(self, ours: Sequence[Signed]) -> list[Heard]:
        """What all places have. One that is larger is held against `ours` at once, by the tiles that it serves."""
        asked = {name: (lambda place=place: self._hear(place, ours)) for name, place in self._places.items()}
        heard = self._errands.run(asked)
        return [Heard(name, trouble=each) if isinstance(each, StaylogError) else each for name, each in heard.items()]

    def _hear(self, place: Place, ours: Sequence[Signed]) -> Heard:
        try:
            signed = Signed.read(place.read(), self._log)
        except NotFound as error:
            return Heard(place.name, trouble=error if place.source is not None else None)
        try:
            return Heard(place.name, signed, self._fork(place, signed, ours))
        except StaylogError as error:
            # The checkpoint is the log's word all the same.
            return Heard(place.name, signed, trouble=error)

    def _fork(self, place: Place, signed: Signed, ours: Sequence[Signed]) -> Fraud | None:
        for each in ours:
            if each.size == signed.size or each.size < signed.size and place.source is not None:
                tiles: TileStore = Reading(place.source, signed.size) if place.source is not None else MemoryTiles()
                if (fraud := compare(each, signed, self._log, TileTree(tiles))) is not None:
                    return fraud
        return None


def find_places(wheres: Iterable[str], policy: Policy | None, log: Verifier) -> list[Place]:
    """Addresses, folders and files; and each witness of the policy that has an address."""
    places = [_place(where) for where in wheres]
    for name, witness in policy.witnesses.items() if policy is not None else ():
        if witness.url is not None:
            places.append(_witness(f"witness {name}", WebSource(witness.url.rstrip("/")), log))
    return places


def _place(where: str) -> Place:
    if Path(where).is_file():
        return Place(where, lambda: read_note(Path(where)))
    source = open_source(where)
    return Place(source.name, lambda: source.get("log/checkpoint").decode(), source)


def _witness(name: str, source: Source, log: Verifier) -> Place:
    return Place(name, lambda: source.get(monitoring_path(log.name)).decode())
