"""Row 12: guest references, which are Argon2id, on one thread and on two."""

import time
from concurrent.futures import ThreadPoolExecutor

from benchmarks.measure import alternate, require
from benchmarks.report import Row, times_less
from benchmarks.workspace import Workspace
from ledger.identity.guestref import MEMORY_KIB, PASSES, guest_ref

NOTES = (
    f"Row 12: Argon2id with {MEMORY_KIB} KiB and {PASSES} passes: wall time per reference while one thread makes them, "
    "and while two do. On a machine with one core two gain nothing.",
)
PEPPER = bytes(range(32))
HOST = "did:web:cottage.example"


def rows(work: Workspace) -> list[Row]:
    require(_reference(1) == _reference(1) != _reference(2), "references that tell guests apart")
    count = 4 if work.plan.rounds < 5 else 8
    sides = {"ours": lambda: _wall(2, count), "peer": lambda: _wall(1, count)}
    what = "guest reference on 2 threads, wall"
    samples = alternate(work.plan.rounds, sides, work.step, what)
    return [Row(12, what, "1 thread", "ms", samples, times_less(1.5), gates=False)]


def _wall(threads: int, count: int) -> float:
    """Seconds of one reference."""
    with ThreadPoolExecutor(threads) as pool:
        began = time.perf_counter()
        list(pool.map(_reference, range(count)))
        return (time.perf_counter() - began) / count


def _reference(number: int) -> str:
    return guest_ref("p1", PEPPER, HOST, f"did:web:guest-{number}.example")
