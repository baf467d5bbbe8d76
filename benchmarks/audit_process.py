"""One audit in a process that has done nothing else: `python -m benchmarks.audit_process FOLDER VKEY`.

The report on stdout is one JSON object: CPU seconds of the audit, of hashing the same leaves, and the peak of memory.
"""

import gc
import json
import sys
import time
from pathlib import Path
from typing import Any

from audits.audit import Audit, Options
from audits.commands import YOUNG_OBJECTS
from audits.reading import Reading
from audits.source import FolderSource
from audits.state import opened
from benchmarks.fresh import peak_memory
from ledger.log.note import Verifier
from ledger.log.tree import leaf_hash


def main(folder: str, vkey: str) -> dict[str, Any]:
    log, source = Verifier.parse(vkey), FolderSource(Path(folder))
    gc.set_threshold(YOUNG_OBJECTS)
    with opened(None, log) as state:
        start = time.process_time()
        result = Audit(source, log, state, Options()).run()
        cpu = time.process_time() - start
        memory = peak_memory()
    hashing = 0.0
    for _, entries in Reading(source, result["size"]).bundles(0):
        start = time.process_time()
        for data in entries:
            leaf_hash(data)
        hashing += time.process_time() - start
    figures = result["figures"]
    return {"cpu": cpu, "hashing": hashing, "memory": memory, "verdict": result["verdict"], "figures": figures}


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
