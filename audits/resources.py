"""Evidence that tiles or bundles were served that are not those of the tree that the log signed."""

from audits.evidence import OBSERVED, Audited, Evidence, Fraud, Shown, read_hashes, unproved, written
from ledger.canon import base64
from ledger.errors import BadEntry
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.note import Verifier
from ledger.log.proofs import verify_inclusion
from ledger.log.tiles import HEIGHT, WIDTH, TileTree, decode_bundle, parse_tile_path
from ledger.log.tree import HASH_SIZE, fold_edge, inclusion_subtrees, leaf_hash, perfect_subtrees


def prove_resource(note: str, checkpoint: Checkpoint, tree: TileTree, path: str, served: bytes) -> Fraud | None:
    """That the tree has another hash at one place of the tile or bundle at `path`; None if it has not."""
    level, index, width = parse_tile_path(path)
    bits = HEIGHT * (level or 0)
    for place in range(width):
        first = (index * WIDTH + place) << bits
        [right] = tree.subtrees([(first, first + (1 << bits))], checkpoint.size)
        if hash_at(served, level, place) != right:
            # The siblings inside of the subtree itself are not needed.
            proof = tree.subtrees(inclusion_subtrees(first, checkpoint.size)[bits:], checkpoint.size)
            shown = {"hash": base64.encode(right), "proof": written(proof), "served": base64.encode(served)}
            evidence = {"checkpoint": note, "path": path, "place": place, **shown}
            code = "bundle_mismatch" if level is None else "tile_mismatch"
            return Fraud("resource", code, f"{path} is not what the signed tree has", OBSERVED, evidence)
    return None


def check_resource(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint, path, place = open_checkpoint(evidence["checkpoint"], log), evidence["path"], evidence["place"]
    level, index, width = parse_tile_path(path)
    right, bits = base64.decode_hash(evidence["hash"]), HEIGHT * (level or 0)
    node = index * WIDTH + place
    if code != ("bundle_mismatch" if level is None else "tile_mismatch") or not 0 <= place < width:
        unproved("the resource has no such place")
    if (node + 1) << bits > checkpoint.size:
        unproved("the tree has no complete subtree there")
    # Above the level of a tile the tree is one of the tile's own hashes.
    nodes = -(-checkpoint.size >> bits)
    verify_inclusion(right, node, nodes, read_hashes(evidence["proof"]), checkpoint.root)
    if hash_at(base64.decode(evidence["served"]), level, place) == right:
        unproved("what was served has the right hash there")
    return checkpoint, [
        f"place {place} of {path} belongs to {base64.encode(right)} in the tree of {checkpoint.size} that was signed",
        "what was served has something else there",
    ]


def hash_at(data: bytes, level: int | None, place: int) -> bytes | None:
    """The hash at a place of a tile, or of the entry there in a bundle."""
    if level is not None:
        return data[place * HASH_SIZE : (place + 1) * HASH_SIZE]
    try:
        return leaf_hash(decode_bundle(data)[place])
    except (BadEntry, IndexError):
        return None


def prove_unshown(log: Audited) -> Fraud:
    """That neither entries nor tiles as they were served lead to the signed root; `log` is what they lead to."""
    edge = log.tree.subtrees(perfect_subtrees(0, log.size), log.size)
    claim = f"what was served does not hash to the tree of {log.size} entries that was signed"
    return Fraud("unshown", "log_not_shown", claim, OBSERVED, {"checkpoint": log.note, "edge": written(edge)})


def check_unshown(code: str, evidence: Evidence, log: Verifier) -> Shown:
    checkpoint, edge = open_checkpoint(evidence["checkpoint"], log), read_hashes(evidence["edge"])
    if code != "log_not_shown" or len(edge) != checkpoint.size.bit_count() or fold_edge(edge) == checkpoint.root:
        unproved("these hashes lead to the root, or are not as many as the tree has")
    return checkpoint, [f"{log.name} signed a tree of {checkpoint.size} entries, to which these hashes do not lead"]
