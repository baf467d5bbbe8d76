"""Where the public vectors are: beside the checkout, and not part of it."""

import json
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.log.entries import Entry, parse_entry
from ledger.log.memory import MemoryLog

VECTORS = Path(__file__).parents[3] / "shared" / "vectors"


def load(name: str) -> Any:
    """The JSON file `name` below the vectors, or a skip that says what is missing."""
    path = VECTORS / name
    if not path.exists():
        pytest.skip(f"the public vectors are not beside this checkout (shared/vectors/{name})", allow_module_level=True)
    return json.loads(path.read_text("utf-8"))


def rebuilt(entries: list[str], key: SigningKey) -> MemoryLog:
    """The ledger of these entries, built batch by batch: each of its map heads closes one."""
    parsed = [parse_entry(text.encode()) for text in entries]
    genesis = parsed[0].members
    log = MemoryLog(genesis["origin"], key, base64.decode(genesis["policy"]), genesis["at"])
    batch: list[Entry] = []
    for entry in parsed[2:]:
        if entry.type == "map_head":
            log.append_batch(batch, entry.members["at"])
            batch = []
        else:
            batch.append(entry)
    return log
