"""Evidence that a question was answered otherwise than the signed log answers it.

About a host: its proved events, and the entries from which the rest follows. About an issuer: all entries, as what is
not there matters too.
"""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from audits import counts
from audits.answer import parse_answer
from audits.basis import Basis
from audits.broken_rules import MAX_UNPACKED, unpacked
from audits.evidence import (
    OBSERVED,
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
from audits.questions import Question, judge
from audits.served import verify_served
from ledger.canon import base64, strict_json
from ledger.errors import Malformed, NotProved
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.note import Verifier
from ledger.log.proofs import prefix_roots
from ledger.log.tiles import decode_bundle, encode_bundle
from ledger.log.tree import leaf_hash, prefix_subtrees, root_of


class Tree:
    """A tree by which counts are judged."""

    def __init__(self, checkpoint: Checkpoint, at: str) -> None:
        self.size, self.root, self.at = checkpoint.size, base64.encode(checkpoint.root), at


def prove(
    code: str,
    claim: str,
    documents: Sequence[bytes],
    question: Question,
    said: bytes,
    basis: Basis,
    audited: Audited,
    issuers: Sequence[int],
) -> Fraud:
    """`issuers` are the log indices of the entries from which the statuses follow."""
    as_of = None if basis.as_of is None else int(basis.as_of["size"])
    placed = audited.placed(*issuers, audited.size - 1, *([as_of - 1] if as_of is not None else []))
    proof = [] if as_of in (None, audited.size) else prefix_subtrees(as_of, audited.size)
    evidence = {
        "host": basis.host,
        "documents": [_text(document) for document in documents],
        "question": question.as_json(),
        "said": _text(said),
        "checkpoint": audited.note,
        "entries": write_entries(placed),
        "log_proof": audited.multiproof(placed),
        "as_of": as_of,
        "as_of_proof": written(audited.tree.subtrees(proof, audited.size)),
    }
    return Fraud("reply", code, claim, OBSERVED, evidence)


def check(code: str, evidence: Evidence, log: Verifier) -> Shown:
    host, documents = evidence["host"], [text.encode() for text in evidence["documents"]]
    checkpoint, placed = included(evidence, log)
    answers = [parse_answer(document) for document in documents]
    verify_served(documents, log, host)
    if any(open_checkpoint(answer.checkpoint, log) != checkpoint for answer in answers):
        unproved("the proved answer is of another tree")
    issuers = [each for each in placed if each.is_type("issuer") and each.get("role") == "guest"]
    statuses = {each.get("issuer"): each.get("action") for each in issuers}
    basis = Basis.of(host, answers, checkpoint, statuses, None)
    basis = Basis.of(host, answers, checkpoint, statuses, _as_of(evidence, checkpoint, basis))
    question = Question(**evidence["question"])
    try:
        judge(question, evidence["said"].encode(), basis, log)
    except NotProved as error:
        if error.code != code:
            unproved(f"the answer is wrong in another way than is claimed: {error.code}")
        signed = f"{log.name} signed a tree of {checkpoint.size} entries, which has all events of {host} that are shown"
        return checkpoint, [signed, f"the answer ({question.kind}) does not say what follows from them: {error}"]
    return unproved("the answer is as it must be")


def _as_of(evidence: Evidence, checkpoint: Checkpoint, basis: Basis) -> dict[str, Any] | None:
    """The tree that the evidence shows to end in a map head after the last event."""
    size, entries = evidence["as_of"], {each["index"]: each["entry"] for each in evidence["entries"]}
    if size is None or not basis.events:
        return None
    head = parse_entry(entries[size - 1].encode())
    if head.type != "map_head" or not basis.events[-1].index < size <= checkpoint.size:
        unproved("no map head is shown that follows the last event")
    root, began = checkpoint.root, checkpoint.root
    if size < checkpoint.size:
        root, began = prefix_roots(size, checkpoint.size, read_hashes(evidence["as_of_proof"]))
    if root != checkpoint.root:
        unproved("the tree that ends in that map head is not shown to begin the signed one")
    return {"size": size, "root": base64.encode(began), "at": head.members["at"]}


def prove_activity(claim: str, issuer: str, before: str | None, said: bytes, audited: Audited) -> Fraud:
    whole = encode_bundle(audited.entries(0, audited.size))
    if len(whole) > MAX_UNPACKED:
        raise NotProved("too_large", f"it takes all {audited.size} entries to show it, which are too many for a file")
    asked = {"issuer": issuer, "before": before, "said": _text(said)}
    packed = base64.encode(zlib.compress(whole, 9))
    return Fraud("activity", counts.CODE, claim, OBSERVED, {"checkpoint": audited.note, "entries": packed, **asked})


def check_activity(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint = open_checkpoint(evidence["checkpoint"], log)
    entries = decode_bundle(unpacked(base64.decode(evidence["entries"])), checkpoint.size)
    if len(entries) != checkpoint.size or root_of(map(leaf_hash, entries)) != checkpoint.root:
        unproved("the entries are not those of the tree that the log signed")
    right, said = dict[str, dict[str, int]](), strict_json.loads(evidence["said"].encode())
    for data in entries:
        entry = parse_entry(data)
        if entry.type in ("review", "upgrade") and entry.members["evidence"]["issuer"] == evidence["issuer"]:
            counts.count_for_issuer(right, entry)
    try:
        counts.require(_object(said), right, Tree(checkpoint, str(entry.at)), evidence["before"])
    except NotProved as error:
        if error.code == code:
            signed = f"{log.name} signed a tree of {checkpoint.size} entries, which are these"
            return checkpoint, [signed, f"the counts of {evidence['issuer']} are not theirs: {error}"]
    return unproved("the counts are as they must be, or wrong in another way than is claimed")


def _object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Malformed("answer_malformed", "an answer must be an object")
    return value


def _text(document: bytes) -> str:
    return document.decode(errors="replace")
