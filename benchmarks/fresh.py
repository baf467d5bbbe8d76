"""Work in a process that has done nothing else: `python -m benchmarks.fresh SIDE WORK DATABASE [INDEX]`.

Importing modules is not counted; opening the database and the first answer are, each by itself. The report on stdout
is one JSON object.
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


def our_work(work: str, path: Path, index: int) -> tuple[Callable[[], Any], Callable[[Any], list[bytes]]]:
    """How to open, and what to do first with what was opened."""
    from benchmarks.tile_log import open_tree
    from ledger.log.tiles import Appender

    def root(opened: Any) -> list[bytes]:
        _, tree, size = opened
        return [tree.root(size)]

    def inclusion(opened: Any) -> list[bytes]:
        _, tree, size = opened
        return list(tree.inclusion(index, size))

    def edge(opened: Any) -> list[bytes]:
        database, _, size = opened
        return [Appender(database, size).root()]

    def memory(opened: Any) -> list[bytes]:
        _, tree, size = opened
        draw = random.Random(index)
        return [tree.inclusion(draw.randrange(size), size)[-1] for _ in range(MEMORY_PROOFS)][:1]

    works = {"root": root, "inclusion": inclusion, "edge": edge, "memory": memory}
    return lambda: open_tree(path), works[work]


def peer_work(work: str, path: Path, index: int) -> tuple[Callable[[], Any], Callable[[Any], list[bytes]]]:
    from benchmarks.peer import open_peer

    def root(tree: Any) -> list[bytes]:
        return [tree.get_root()]

    def inclusion(tree: Any) -> list[bytes]:
        # The first hash of a pymerkle path is the leaf itself.
        return list(tree.prove_inclusion(index + 1).path[1:])

    return lambda: open_peer(path), {"root": root, "inclusion": inclusion}[work]


def main(side: str, work: str, path: str, index: str = "0") -> dict[str, Any]:
    open_, first = {"ours": our_work, "peer": peer_work}[side](work, Path(path), int(index))
    start = time.process_time()
    opened = open_()
    ready = time.process_time()
    hashes = first(opened)
    done = time.process_time()
    return {
        "open": ready - start,
        "first": done - ready,
        "memory": peak_memory(),
        "hashes": [value.hex() for value in hashes],
    }


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
