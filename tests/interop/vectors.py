"""Golden vectors of the log are part of this project; other public vectors lie beside the checkout."""

import json
from pathlib import Path
from typing import Any

import pytest
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.log.entries import Entry, parse_entry
from ledger.log.memory import MemoryLog
from ledger.log.note import Verifier
from ledger.log.tiles import MemoryTiles, TileTree
from tests.ledger.log.test_tree import stored

GOLDEN = Path(__file__).with_name("golden")
PUBLIC = Path(__file__).parents[3] / "shared" / "vectors"


def golden(name: str) -> Any:
    """A file of the golden vectors of the log."""
    return json.loads((GOLDEN / name).read_text("utf-8"))


def public_folder(name: str) -> Path:
    """A folder of public vectors, or a skip that says what is missing."""
    if not (PUBLIC / name).is_dir():
        pytest.skip(f"the public vectors are not beside this checkout (shared/vectors/{name})")
    return PUBLIC / name


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


LOG = Verifier.parse(golden("checkpoint.json")["vkey"])
KEY = SigningKey(bytes.fromhex(golden("checkpoint.json")["seed"]))


def h(text: str) -> bytes:
    return bytes.fromhex(text)


def refusal(call: Any, *arguments: Any) -> str:
    """The code with which `call` refuses."""
    with pytest.raises(StaylogError) as caught:
        call(*arguments)
    return caught.value.code


def tree_of(leaves: list[bytes]) -> tuple[MemoryTiles, TileTree]:
    tiles = stored(leaves)
    return tiles, TileTree(tiles)
