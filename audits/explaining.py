"""Why what is served does not lead to what was signed: another history, an older one, or entries of no tree at all."""

from audits import beside
from audits.evidence import Audited
from audits.findings import Findings
from audits.forks import prove_fork, prove_rollback
from audits.reading import Reading
from audits.resources import prove_resource, prove_unshown
from audits.source import Source
from audits.state import State
from ledger.errors import NotFetched, NotFound, NotStored
from ledger.log.checkpoint import Checkpoint
from ledger.log.note import Verifier
from ledger.log.tiles import WIDTH, TileTree


def went_back(
    note: str, checkpoint: Checkpoint, log: Verifier, state: State, source: Source, size: int, findings: Findings
) -> bool:
    """Whether a log that was replayed up to `size`, and is smaller now, was signed beyond this checkpoint."""
    tree = TileTree(state)
    for known, root, seen, where in reversed(state.seen()):
        if not checkpoint.size < known <= size or tree.root(known) != root:
            continue
        if tree.root(checkpoint.size) != checkpoint.root:
            findings.add(prove_fork(note, seen, log, tree))
        elif where == source.name:
            findings.add(prove_rollback(seen, note, log))
        else:
            findings.miss(f"what is newer: {source.name} has {checkpoint.size} entries, {where} had {known}")
        return True
    return False


def explain(
    audited: Audited,
    replayed: int,
    reading: Reading,
    trouble: str,
    log: Verifier,
    state: State,
    findings: Findings,
    *,
    all_now: bool,
) -> bool:
    """Why the entries that were read, `replayed` of them, do not lead to the signed root; `all_now` if all were read
    from this source just now. False if what is served now may be right, and what was read before was not."""
    tree = TileTree(reading)
    try:
        shown = tree.root(audited.size) == audited.checkpoint.root
    except (NotStored, NotFetched) as error:
        shown, trouble = False, f"{trouble}; {error}"
    if shown:
        before, served_tree = len(findings.found), Audited(audited.note, audited.checkpoint, tree, reading.entries)
        for _, _, seen, _ in state.seen():
            beside.hold_against(seen, log, served_tree, findings)
        if len(findings.found) > before:
            return True
        try:
            return _find_bundle(served_tree, reading, findings)
        except NotFound as error:
            findings.miss(f"the entries: {error}")
            return True
    if not all_now:
        return False
    if replayed == audited.size:
        findings.add(prove_unshown(audited))
    else:
        findings.miss(f"the entries: {trouble}")
    return True


def _find_bundle(served_tree: Audited, reading: Reading, findings: Findings) -> bool:
    """Whether there is a bundle that is not what the served tiles, which lead to the root, have there."""
    for number in range(-(-reading.size // WIDTH)):
        path, data = reading.raw(number)
        fraud = prove_resource(served_tree.note, served_tree.checkpoint, served_tree.tree, path, data)
        if fraud is not None:
            findings.add(fraud)
            return True
    return False
