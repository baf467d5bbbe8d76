"""Row 1: tree and tiles against pymerkle 7 SqliteTree. Same leaves, same batches, one durable commit per batch."""

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks import peer, tile_log
from benchmarks.measure import alternate, fresh_process, require
from benchmarks.proofs import proof_rows
from benchmarks.report import Bar, Row, times_less
from benchmarks.workspace import Workspace

NOTES = (
    "Row 1: CPU per leaf or call. Append: each batch of 256 is one durable commit on both sides. Ours hashes the tree "
    "up to the root and writes tiles, with or without a row per entry; pymerkle writes a row with entry and leaf hash.",
    "Row 1, fresh process: the first answer after opening, without imports, files in the page cache. Warm: leaves "
    "asked for before (128, after 800 others, in a full run); pymerkle caches subtrees from 128 leaves, its default.",
)


def rows(work: Workspace) -> list[Row]:
    found = [*append_rows(work), *fresh_rows(work, "root"), *fresh_rows(work, "inclusion")]
    size = work.plan.leaves
    database, ours, stored = tile_log.open_tree(work.path("ours", size))
    theirs = peer.open_peer(work.path("peer", size))
    require(stored == size == theirs.get_size(), "that both sides hold all leaves")
    require(database.entry(size - 1) == theirs.get_entry(size), "that both sides store the entries")
    found += proof_rows(work, ours, theirs)
    theirs.close()
    database.close()
    return found


def append_rows(work: Workspace) -> list[Row]:
    size = work.plan.leaves
    entries = work.entries(size)

    def ours(*, store_entries: bool = True) -> float:
        database = tile_log.TileDatabase.create(work.clear("ours", size))
        start = time.process_time()
        tile_log.append_all(database, entries, store_entries=store_entries)
        cpu = time.process_time() - start
        database.close()
        return cpu / size

    def theirs(*, wal: bool = False) -> float:
        database = peer.create(work.clear("peer", size), wal=wal)
        start = time.process_time()
        peer.append_all(database, entries)
        cpu = time.process_time() - start
        database.close()
        return cpu / size

    what = f"append {size:,} leaves, batch {tile_log.BATCH}"
    sides: dict[str, Callable[[], float]] = {
        "tiles": partial(ours, store_entries=False),
        "wal": partial(theirs, wal=True),
        "ours": ours,
        "peer": theirs,
    }
    samples = alternate(work.plan.append_rounds, sides, work.step, what)

    def row(mine: str, theirs: str, what: str, name: str, bar: Bar | None) -> Row:
        return Row(1, what, name, "us", {"ours": samples[mine], "peer": samples[theirs]}, bar)

    return [
        row("tiles", "wal", f"{what}: tree + tiles", peer.NAME_IN_WAL, times_less(1.5)),
        row("ours", "peer", f"{what}: with entry rows", peer.NAME, times_less(1.5)),
        row("ours", "wal", f"{what}: with entry rows", peer.NAME_IN_WAL, None),
    ]


def fresh_rows(work: Workspace, what: str) -> list[Row]:
    size = work.plan.leaves
    reports: dict[str, list[dict[str, Any]]] = {"ours": [], "peer": []}

    def in_process(side: str) -> float:
        reports[side].append(fresh_process(side, what, str(work.path(side, size)), str(size // 3)))
        return float(reports[side][-1]["first"])

    sides = {side: partial(in_process, side) for side in reports}
    first = alternate(work.plan.process_rounds, sides, work.step, f"first {what} in a fresh process")
    require(reports["ours"][0]["hashes"] == reports["peer"][0]["hashes"], f"that both sides have the same {what}")
    opened = {side: [each["open"] + each["first"] for each in found] for side, found in reports.items()}
    return [
        Row(1, f"first {what}, fresh process", peer.NAME, "ms", first, times_less(1000)),
        Row(1, "the same, with opening", peer.NAME, "ms", opened, None),
    ]
