"""Work in a process that has done nothing else: `python -m benchmarks.fresh SIDE WORK DATABASE [INDEX]`.

Importing modules is not counted; opening the database is. The report on stdout is one JSON object.
"""

import json
import random
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY_PROOFS = 2_000


def peak_memory() -> int:
    """Bytes. Not ru_maxrss where it can be helped: Linux starts that of a child at its parent's peak."""
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def our_work(work: str, path: Path, index: int) -> Callable[[], list[bytes]]:
    from benchmarks.tile_log import TileDatabase, open_tree
    from ledger.log.tiles import Appender

    def root() -> list[bytes]:
        _, tree, size = open_tree(path)
        return [tree.root(size)]

    def inclusion() -> list[bytes]:
        _, tree, size = open_tree(path)
        return tree.inclusion(index, size)

    def open_all() -> list[bytes]:
        database = TileDatabase(path)
        return [Appender(database, database.size()).root()]

    def memory() -> list[bytes]:
        _, tree, size = open_tree(path)
        draw = random.Random(index)
        return [tree.inclusion(draw.randrange(size), size)[-1] for _ in range(MEMORY_PROOFS)][:1]

    return {"root": root, "inclusion": inclusion, "open": open_all, "memory": memory}[work]


def peer_work(work: str, path: Path, index: int) -> Callable[[], list[bytes]]:
    from benchmarks.peer import open_peer

    def root() -> list[bytes]:
        return [open_peer(path).get_root()]

    def inclusion() -> list[bytes]:
        # The first hash of a pymerkle path is the leaf itself.
        return list(open_peer(path).prove_inclusion(index + 1).path[1:])

    return {"root": root, "inclusion": inclusion}[work]


def main(side: str, work: str, path: str, index: str = "0") -> dict[str, Any]:
    run = {"ours": our_work, "peer": peer_work}[side](work, Path(path), int(index))
    start = time.process_time()
    hashes = run()
    cpu = time.process_time() - start
    return {"cpu": cpu, "memory": peak_memory(), "hashes": [value.hex() for value in hashes]}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
