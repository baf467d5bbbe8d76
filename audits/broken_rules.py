"""Proof that a log holds what none may hold: by a few entries or, where it matters what is not there, by all before."""

import zlib

from audits.contradictions import PAIRS, Log, Placed, contradict
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
from audits.rules import Rules
from ledger.canon import base64
from ledger.errors import NotProved, StaylogError
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier
from ledger.log.proofs import prefix_roots
from ledger.log.replay import MAX_BATCH
from ledger.log.tiles import decode_bundle, encode_bundle
from ledger.log.tree import leaf_hash, perfect_subtrees, prefix_subtrees, root_of

# What a prefix may unpack to: about a million entries of the usual size.
MAX_UNPACKED = 1 << 29


def prove(log: Audited, code: str, index: int, claim: str) -> Fraud:
    """That the entry at `index` breaks the rule: with the one before it that shows so, or with all of them."""
    [broken] = log.placed(index)
    shown = [broken]
    if code == "batch_too_long":
        shown = log.placed(*range(index - MAX_BATCH, index + 1))
    elif code in PAIRS:
        earlier = _earlier(log, code, broken)
        shown = [earlier, broken] if earlier is not None else [broken]
    if contradict(code, shown, Log(log.checkpoint.origin, log.size)):
        proof = {"entries": write_entries(shown), "log_proof": log.multiproof(shown)}
        return Fraud("entries", code, claim, SIGNED, {"checkpoint": log.note, **proof})
    whole = encode_bundle(log.entries(0, index + 1))
    if len(whole) > MAX_UNPACKED:
        raise NotProved(
            "too_large", f"it takes all {index + 1} entries to show {code}, and these are too many for a file"
        )
    packed = zlib.compress(whole, 9)
    rest = prefix_subtrees(index + 1, log.size)[(index + 1).bit_count() :]
    proof = {"entries": base64.encode(packed), "rest": written(log.tree.subtrees(rest, log.size))}
    return Fraud("prefix", code, claim, SIGNED, {"checkpoint": log.note, **proof})


def _earlier(log: Audited, code: str, broken: Placed) -> Placed | None:
    """The last entry before this one that shows, with it, that the rule is broken."""
    named = broken.get("review")
    if isinstance(named, int) and named < broken.index:
        [review] = log.placed(named)
        if PAIRS[code](review, broken):
            return review
    found = None
    for index, data in enumerate(log.entries(0, broken.index)):
        placed = Placed.read(index, data)
        if PAIRS[code](placed, broken):
            found = placed
    return found


def check_entries(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint, placed = included(evidence, log)
    if not contradict(code, placed, Log(log.name, checkpoint.size)):
        unproved(f"these entries do not show {code}")
    where = ", ".join(str(each.index) for each in placed[:4]) + (", ..." if len(placed) > 4 else "")
    return checkpoint, [
        f"entries {where} are in a tree of {checkpoint.size} that {log.name} signed",
        f"no honest log holds them: {code}",
    ]


def check_prefix(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint = open_checkpoint(evidence["checkpoint"], log)
    whole = unpacked(base64.decode(evidence["entries"]))
    # Each has two bytes at least, and only as many count as the tree has.
    entries = decode_bundle(whole, checkpoint.size)
    leaves = [leaf_hash(data) for data in entries]
    parts = [root_of(leaves[lo:hi]) for lo, hi in perfect_subtrees(0, len(entries))]
    root, _ = prefix_roots(len(entries), checkpoint.size, [*parts, *read_hashes(evidence["rest"])])
    if root != checkpoint.root:
        unproved("the entries do not begin the tree that the log signed")
    if (len(entries) - 1, code) not in _broken(entries):
        unproved(f"the last of these {len(entries)} entries does not break the rule {code}")
    return checkpoint, [
        f"the first {len(entries)} entries of a tree of {checkpoint.size} that {log.name} signed are these",
        f"the last of them breaks a rule, by what stands before it and what does not: {code}",
    ]


def unpacked(packed: bytes) -> bytes:
    unpack = zlib.decompressobj()
    try:
        data = unpack.decompress(packed, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(f"the entries do not unpack: {error}") from None
    if not unpack.eof:
        raise ValueError("the entries are cut off, or too many")
    return data


def _broken(entries: list[bytes]) -> list[tuple[int, str]]:
    broken: list[tuple[int, str]] = []
    rules = Rules(lambda index, rule: broken.append((index, rule.code)))
    try:
        for data in entries:
            rules.add(data)
    except StaylogError as error:
        broken.append((rules.replay.size, error.code))
    return broken
