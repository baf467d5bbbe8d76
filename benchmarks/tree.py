"""Row 1: tree and tiles against pymerkle 7 SqliteTree. Same leaves, same batches, one durable commit per batch."""

import time
from collections.abc import Callable

from benchmarks import peer, tile_log
from benchmarks.measure import alternate, fresh_process, require
from benchmarks.proofs import proof_rows
from benchmarks.report import Row, times_less
from benchmarks.workspace import Workspace

NOTES = (
    "Row 1: CPU per leaf or call. Append: each batch of 256 is one commit with fdatasync on both sides (WAL, FULL) and "
    "stores the entries; ours also hashes the tree up to the root, pymerkle stores leaf hashes.",
    "Row 1, fresh process: opening and the first answer without imports, files in the page cache. Warm: leaves asked "
    "for before (128, after 800 others, in a full run); pymerkle caches subtrees from 128 leaves, its default.",
)


def rows(work: Workspace) -> list[Row]:
    found = [append_row(work), fresh_row(work, "root"), fresh_row(work, "inclusion")]
    size = work.plan.leaves
    database, ours, stored = tile_log.open_tree(work.path("ours", size))
    theirs = peer.open_peer(work.path("peer", size))
    require(stored == size == theirs.get_size(), "that both sides hold all leaves")
    require(database.entry(size - 1) == theirs.get_entry(size), "that both sides store the entries")
    found += proof_rows(work, ours, theirs)
    theirs.close()
    database.close()
    return found


def append_row(work: Workspace) -> Row:
    size = work.plan.leaves
    entries = work.entries(size)

    def ours() -> float:
        database = tile_log.TileDatabase.create(work.clear("ours", size))
        start = time.process_time()
        tile_log.append_all(database, entries)
        cpu = time.process_time() - start
        database.close()
        return cpu / size

    def theirs() -> float:
        database = peer.create(work.clear("peer", size))
        start = time.process_time()
        peer.append_all(database, entries)
        cpu = time.process_time() - start
        database.close()
        return cpu / size

    what = f"append {size:,} leaves, batch {tile_log.BATCH}"
    samples = alternate(work.plan.append_rounds, {"ours": ours, "peer": theirs}, work.step, what)
    return Row(1, what, peer.NAME, "us", samples, times_less(1.5))


def fresh_row(work: Workspace, what: str) -> Row:
    size = work.plan.leaves
    hashes: dict[str, list[str]] = {}

    def in_process(side: str) -> Callable[[], float]:
        def run() -> float:
            report = fresh_process(side, what, str(work.path(side, size)), str(size // 3))
            hashes[side] = report["hashes"]
            return float(report["cpu"])

        return run

    sides = {side: in_process(side) for side in ("ours", "peer")}
    samples = alternate(work.plan.process_rounds, sides, work.step, f"first {what} in a fresh process")
    require(hashes["ours"] == hashes["peer"], f"that both sides have the same {what}")
    return Row(1, f"open + first {what}, fresh process", peer.NAME, "ms", samples, times_less(1000))
