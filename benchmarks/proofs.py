"""Row 1, proofs: making and verifying them, for the same leaves and sizes on both sides."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pymerkle

from benchmarks import peer
from benchmarks.measure import alternate, cpu_per_call, require
from benchmarks.report import Bar, Row, times_less
from benchmarks.workspace import Workspace
from ledger.log.proofs import verify_consistency, verify_inclusion
from ledger.log.tiles import TileTree
from ledger.log.tree import leaf_hash


@dataclass(frozen=True, slots=True)
class Side:
    """A function and the arguments of each call."""

    function: Callable[..., object]
    calls: Sequence[tuple[Any, ...]]

    def sample(self) -> float:
        return cpu_per_call(self.function, self.calls)


def proof_rows(work: Workspace, ours: TileTree, theirs: pymerkle.SqliteTree) -> list[Row]:
    size, hot = work.plan.leaves, work.draw(work.plan.hot, work.plan.leaves, seed=1)
    _warm_up(work, ours, theirs, hot)
    root, entries = ours.root(size), work.entries(size)
    # pymerkle counts leaves from 1; our leaf `index` is its leaf `index + 1`, and a tree of that size ends with it.
    leaves = {index: leaf_hash(entries[index]) for index in hot}
    olds = {index + 1: ours.root(index + 1) for index in hot}

    def row(what: str, our_side: Side, peer_side: Side, bar: Bar) -> Row:
        sides = {"ours": our_side.sample, "peer": peer_side.sample}
        return Row(1, what, peer.NAME, "us", alternate(work.plan.rounds, sides, work.step, what), bar)

    return [
        row(
            "inclusion proof, warm",
            Side(ours.inclusion, [(index, size) for index in hot]),
            Side(theirs.prove_inclusion, [(index + 1,) for index in hot]),
            times_less(5),
        ),
        row(
            "consistency proof, warm",
            Side(ours.consistency, [(first, size) for first in olds]),
            Side(theirs.prove_consistency, [(first,) for first in olds]),
            times_less(5),
        ),
        row(
            "verify inclusion",
            Side(verify_inclusion, [(leaf, i, size, ours.inclusion(i, size), root) for i, leaf in leaves.items()]),
            Side(
                pymerkle.verify_inclusion,
                [(leaf, root, theirs.prove_inclusion(i + 1), i + 1, size) for i, leaf in leaves.items()],
            ),
            times_less(1.5),
        ),
        row(
            "verify consistency",
            Side(verify_consistency, [(n, size, old, root, ours.consistency(n, size)) for n, old in olds.items()]),
            Side(
                pymerkle.verify_consistency,
                [(old, root, theirs.prove_consistency(n), n, size) for n, old in olds.items()],
            ),
            times_less(1.5),
        ),
        _new_leaf_row(work, ours, theirs),
    ]


def _warm_up(work: Workspace, ours: TileTree, theirs: pymerkle.SqliteTree, hot: Sequence[int]) -> None:
    """Random leaves until pymerkle has its large subtrees, then those that will be measured."""
    work.step(f"warming up with {work.plan.warm_up} proofs")
    size = work.plan.leaves
    for index in [*work.draw(work.plan.warm_up, size, seed=2), *hot]:
        # The first hash of a pymerkle path is the leaf itself.
        require(ours.inclusion(index, size) == theirs.prove_inclusion(index + 1).path[1:], "that proofs are equal")
    for index in hot:
        ours.consistency(index + 1, size)
        theirs.prove_consistency(index + 1)


def _new_leaf_row(work: Workspace, ours: TileTree, theirs: pymerkle.SqliteTree) -> Row:
    """Leaves nobody asked for lately: what a hit in the cache of expanded tiles saves."""
    size, hot, rounds = work.plan.leaves, work.plan.hot, work.plan.rounds
    indices = work.draw(hot * rounds, size, seed=3)
    ours_left, theirs_left = list(indices), list(indices)

    def take(left: list[int]) -> list[int]:
        taken, left[:] = left[:hot], left[hot:]
        return taken

    sides = {
        "ours": lambda: cpu_per_call(ours.inclusion, [(index, size) for index in take(ours_left)]),
        "peer": lambda: cpu_per_call(theirs.prove_inclusion, [(index + 1,) for index in take(theirs_left)]),
    }
    what = "inclusion proof, leaf not asked for before"
    return Row(1, what, peer.NAME, "us", alternate(rounds, sides, work.step, what), None)
