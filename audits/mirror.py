"""Offline verification of a whole log as it is served: checkpoint, tiles and entry bundles (protocol.md 3, 4, 7)."""

from collections.abc import Mapping

from audits.report import REAL_STAYS, Report
from ledger.errors import NotProved
from ledger.log.checkpoint import open_checkpoint
from ledger.log.note import Verifier
from ledger.log.replay import Replay
from ledger.log.tiles import Appender, MemoryTiles, decode_bundle, parse_tile_path, tile_id, tile_resources
from ledger.log.tree import HASH_SIZE


def verify_mirror(note: str, resources: Mapping[str, bytes], log: Verifier) -> Report:
    """Check a copy of a log: `resources` has its tiles and bundles by path (`tile/0/000.p/5`, `tile/entries/000.p/5`).

    Every entry is replayed, so this proves more than any answer can: that all map heads are honest.
    """
    checkpoint = open_checkpoint(note, log)
    replay, appender = Replay(), Appender(MemoryTiles())
    paths = tile_resources(checkpoint.size)
    missing = [path for path in paths if path not in resources]
    if missing:
        raise NotProved("mirror_incomplete", f"{len(missing)} of {len(paths)} resources are missing: {missing[0]}")
    for path in paths:
        level, _, width = parse_tile_path(path)
        if level is None:
            entries = decode_bundle(resources[path])
            if len(entries) != width:
                raise NotProved("bundle_mismatch", f"{path} has {len(entries)} entries, not {width}")
            appender.extend([replay.add(data).leaf_hash for data in entries])
    if appender.root() != checkpoint.root:
        raise NotProved("root_mismatch", "the entries do not lead to the root of the checkpoint")
    replay.require_head()
    if replay.origin != log.name:
        raise NotProved("origin_mismatch", f"the genesis is of {replay.origin}, the key of {log.name}")
    _verify_tiles(paths, resources, appender.take_rows())
    report = Report(f"mirror of {log.name}", checkpoint.size)
    report.proved += [
        f"the {checkpoint.size} entries are those of the tree that {log.name} signed, and the tiles are that tree's",
        f"no entry breaks a rule, and every map head follows from the entries: {len(replay.hosts)} hosts",
    ]
    report.not_proved.append(REAL_STAYS)
    return report


def _verify_tiles(paths: list[str], resources: Mapping[str, bytes], rows: Mapping[int, bytes]) -> None:
    for path in paths:
        level, index, width = parse_tile_path(path)
        if level is not None and resources[path] != rows[tile_id(level, index)][: width * HASH_SIZE]:
            raise NotProved("tile_mismatch", f"{path} is not the tile that the entries give")
