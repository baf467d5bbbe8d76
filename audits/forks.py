"""Proof that a log signed two histories; and what shows that it went back to an older one."""

from audits.evidence import OBSERVED, SIGNED, Evidence, Fraud, Shown, read_hashes, unproved, written
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier
from ledger.log.proofs import prefix_roots
from ledger.log.tiles import TileTree
from ledger.log.tree import prefix_subtrees


def prove_fork(older: str, newer: str, log: Verifier, tree: TileTree) -> Fraud:
    """From two checkpoints, the smaller first, and the tree of the larger one."""
    first, second = open_checkpoint(older, log), open_checkpoint(newer, log)
    proof = [] if first.size == second.size else tree.subtrees(prefix_subtrees(first.size, second.size), second.size)
    claim = (
        f"the log signed a tree of {second.size} entries that does not begin with the tree of {first.size} it signed"
    )
    evidence = {"older": older, "newer": newer, "proof": written(proof)}
    return Fraud("fork", "log_forked", claim, SIGNED, evidence)


def check_fork(code: str, evidence: Evidence, log: Verifier) -> Shown:
    older, newer = open_checkpoint(evidence["older"], log), open_checkpoint(evidence["newer"], log)
    if code != "log_forked" or not 0 < older.size <= newer.size:
        unproved("a fork is shown by two checkpoints, the smaller first")
    if older.size == newer.size:
        root = began = newer.root
    else:
        # What the smaller tree would have to be if the larger one began with it.
        root, began = prefix_roots(older.size, newer.size, read_hashes(evidence["proof"]))
    if root != newer.root or began == older.root:
        unproved("the two trees are not shown to be different")
    return newer, [
        f"{log.name} signed a tree of {older.size} entries and one of {newer.size}",
        "the larger one does not begin with the smaller one: entries were changed, taken away or shown to some only",
    ]


def prove_rollback(seen: str, served: str, log: Verifier) -> Fraud:
    before, after = open_checkpoint(seen, log), open_checkpoint(served, log)
    claim = f"a tree of {after.size} entries was served as the newest after the log had signed one of {before.size}"
    return Fraud("rollback", "rolled_back", claim, OBSERVED, {"seen": seen, "served": served})


def check_rollback(code: str, evidence: Evidence, log: Verifier) -> Shown:
    before, after = open_checkpoint(evidence["seen"], log), open_checkpoint(evidence["served"], log)
    if code != "rolled_back" or after.size >= before.size:
        unproved("what was served is not smaller than what was seen before")
    return before, [f"{log.name} signed a tree of {before.size} entries, and one of {after.size}"]
