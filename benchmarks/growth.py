"""Row 2: what a hundred times more leaves cost a log that is compared with itself."""

from collections.abc import Callable

from benchmarks import tile_log
from benchmarks.measure import alternate, cpu_per_call, fresh_process
from benchmarks.report import Row, at_most
from benchmarks.workspace import Workspace
from ledger.log.tiles import TileTree

# Flat: another level of tiles and a fuller cache may show, growth with the leaves may not.
FLAT = 1.5
NOTES = (
    "Row 2: CPU per warm inclusion proof; CPU to open for appending (edge) and proving in a fresh process, without "
    "imports; peak resident memory of a process that opens and makes 2,000 random proofs. Flat means at most 1.5x.",
)


def rows(work: Workspace) -> list[Row]:
    small, large = work.plan.small_leaves, work.plan.leaves
    paths = {"peer": work.our_database(small), "ours": work.our_database(large)}

    def compare(what: str, unit: str, sides: dict[str, Callable[[], float]], rounds: int, limit: float) -> Row:
        samples = alternate(rounds, sides, work.step, what)
        return Row(2, f"{what}, {large:,} leaves", f"{small:,} leaves", unit, samples, at_most(limit))

    def process(side: str, what: str, figure: str) -> Callable[[], float]:
        def sample() -> float:
            report = fresh_process("ours", what, str(paths[side]))
            return float(report["memory"] if figure == "memory" else report["open"] + report["first"])

        return sample

    def processes(what: str, figure: str) -> dict[str, Callable[[], float]]:
        return {side: process(side, what, figure) for side in ("ours", "peer")}

    opened = [tile_log.open_tree(paths[side]) for side in ("ours", "peer")]
    warm = {
        side: _warm_proofs(work, tree, size) for side, (_, tree, size) in zip(("ours", "peer"), opened, strict=True)
    }
    found = [
        compare("inclusion proof, warm", "us", warm, work.plan.rounds, 2),
        compare("open in a fresh process", "ms", processes("edge", "cpu"), 3 * work.plan.process_rounds, FLAT),
        compare("peak memory after opening and proving", "MB", processes("memory", "memory"), 3, FLAT),
    ]
    for database, _, _ in opened:
        database.close()
    return found


def _warm_proofs(work: Workspace, tree: TileTree, size: int) -> Callable[[], float]:
    calls = [(index, size) for index in work.draw(work.plan.hot, size, seed=1)]
    cpu_per_call(tree.inclusion, calls)
    return lambda: cpu_per_call(tree.inclusion, calls * 4)
