"""A copy of a log that any web server can serve and any auditor can use: what is served, as it is served, in files.

The checkpoint is written last, so that a copy shows a whole log at any time, and one that was broken off goes on. Texts
that the log redacts are taken out of the copy too.
"""

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from audits.answer import parse_answer
from audits.beside import sample, withheld
from audits.contradictions import Placed
from audits.face import verify_plain
from audits.reading import (
    Reading,
    get_texts,
    host_path,
    read_answer,
    read_checkpoints,
    read_texts,
    resource,
)
from audits.replayer import Progress
from audits.source import FolderSource, Source, ahead
from ledger.canon import strict_json
from ledger.errors import Malformed, Misconfigured, NotFetched, NotFound, NotProved, Unavailable
from ledger.log.checkpoint import Checkpoint, open_checkpoint
from ledger.log.note import Verifier
from ledger.log.openings import Opening, commitment
from ledger.log.tiles import WIDTH, Appender, MemoryTiles, parse_tile_path, tile_resources
from ledger.log.tree import HASH_SIZE, leaf_hash

CHECKPOINT, CHECKPOINTS, KEY = "log/checkpoint", "v1/log/checkpoints", "v1/log/key"
OPENINGS, HOSTS = "v1/log/openings", "v1/hosts"
# What a log says about itself.
DOCUMENTS = ("v1/policy", "v1/issuers", ".well-known/did.json")
# As in an audit: a redaction may be on its way while its text is gone already. What is missing counts once it was the
# same so often; while it changes, the copy is begun anew so often in all.
PATIENCE, PAUSE = 3, 1.0
ATTEMPTS = 20


class Mirror:
    """`missed` says what could not be copied; a copy is good without it, but an audit of it will miss the same."""

    def __init__(
        self, source: Source, folder: Path, log: Verifier, progress: Progress, *, hosts: int, pause: float = PAUSE
    ) -> None:
        self._source = source
        self._folder = folder
        self._log = log
        self._progress = progress
        self._hosts = hosts
        self._pause = pause
        self._copy = FolderSource(folder)
        self._texts_served = True
        self._read: Checkpoint | None = None
        # Texts by their entry, and answers by their host, that are not as they must be, and why.
        self._missing: dict[int | str, str] = {}
        self.missed: list[str] = []

    def update(self) -> Checkpoint:
        """Bring the copy up to the newest checkpoint. Nothing is shown that does not lead to it."""
        folder_size, missing, patience = self._size(), set[int | str](), PATIENCE
        for _ in range(ATTEMPTS):
            note = self._source.get(CHECKPOINT).decode(errors="replace")
            checkpoint = open_checkpoint(note, self._log)
            if checkpoint.size < folder_size:
                raise NotProved(
                    "rolled_back", f"the log has {checkpoint.size} entries, the copy {folder_size}: audit it"
                )
            self._resources(checkpoint, folder_size)
            self._missing, self.missed, self._texts_served = {}, [], True
            self._answers(checkpoint, self._texts(checkpoint.size))
            patience = patience - 1 if missing == self._missing.keys() else PATIENCE
            missing = set(self._missing)
            if not missing or not patience:
                break
            time.sleep(self._pause)
        else:
            raise Unavailable("busy", "texts are redacted faster than they can be copied: try again later")
        if texts := sum(isinstance(each, int) for each in missing):
            self.missed.append(f"{texts} texts, which are not served and not redacted")
        self.missed += [why for each, why in self._missing.items() if isinstance(each, str)]
        self._list(checkpoint.size)
        self._key()
        for path in DOCUMENTS:
            self._document(path)
        self._write(CHECKPOINT, note.encode())
        return checkpoint

    def _size(self) -> int:
        try:
            return open_checkpoint(self._copy.get(CHECKPOINT).decode(errors="replace"), self._log).size
        except NotFound:
            return 0

    def _resources(self, checkpoint: Checkpoint, folder_size: int) -> None:
        """All tiles and bundles that are not here yet; full ones never change."""
        if checkpoint == self._read:
            return
        served = Reading(self._source, checkpoint.size)
        wanted = (path for path in tile_resources(checkpoint.size) if not self._path(f"log/{path}").exists())

        def get(path: str) -> bytes:
            level, index, _ = parse_tile_path(path)
            return served.raw(index)[1] if level is None else served.tile(level, index)

        total = 2 * checkpoint.size // WIDTH
        for done, (path, data) in enumerate(ahead(self._source, get, wanted)):
            self._progress("tiles", done, max(total, done))
            self._write(f"log/{path}", data)
        if not self._leads_to(checkpoint):
            # Also what came before the copy was broken off, and was not looked at then.
            for path in set(tile_resources(checkpoint.size)) - set(tile_resources(folder_size)):
                self._path(f"log/{path}").unlink(missing_ok=True)
            raise NotProved(
                "root_mismatch",
                "what is served, or lies in the folder, does not lead to the signed root: what came now was not kept. "
                "`staylog audit` tells what is wrong; if it finds nothing, begin with an empty folder",
            )
        self._read = checkpoint

    def _leads_to(self, checkpoint: Checkpoint) -> bool:
        """Whether the entries that are here hash to the signed root, and the tiles are those of that tree."""
        appender, rows = Appender(MemoryTiles()), dict[int, bytes]()
        try:
            for first, entries in self._local(checkpoint.size):
                self._progress("hashes", first, checkpoint.size)
                appender.extend(map(leaf_hash, entries))
                rows |= appender.take_rows()
                full = [tile for tile, row in rows.items() if len(row) == WIDTH * HASH_SIZE]
                if not all(self._is_tile(tile, rows.pop(tile), checkpoint.size) for tile in full):
                    return False
        except Malformed:
            return False
        right = all(self._is_tile(tile, row, checkpoint.size) for tile, row in rows.items())
        return right and appender.root() == checkpoint.root

    def _is_tile(self, tile: int, row: bytes, size: int) -> bool:
        return self._copy.get(resource(tile & (1 << 48) - 1, size, tile >> 48)) == row

    def _local(self, size: int) -> Iterable[tuple[int, list[bytes]]]:
        return Reading(self._copy, size).bundles(0)

    def _texts(self, size: int) -> Counter[str]:
        """The openings of all bundles, without those that are redacted; and how many entries name each host."""
        events: Counter[str] = Counter()
        redacted: set[tuple[int, str]] = set()
        for first, entries in self._local(size):
            for placed in _placed(first, entries):
                if (host := placed.get("host_did")) is not None:
                    events[host] += 1
                if placed.is_type("redaction"):
                    redacted.add((placed.get("review"), placed.get("part")))
        for first, entries in self._local(size):
            self._progress("texts", first, size)
            expected = {index: text for index, text, part in _committed(first, entries) if part not in redacted}
            self._openings(first, expected, complete=len(entries) == WIDTH)
        return events

    def _openings(self, first: int, expected: Mapping[int, str], *, complete: bool) -> None:
        """Only what opens the commitments in the entries."""
        number, shown = first // WIDTH, None
        with suppress(Malformed, NotFound):
            shown = _opened(self._copy, number, expected)
        if (shown is None or not complete or expected.keys() - shown) and self._texts_served:
            try:
                shown = _opened(self._source, number, expected)
            except NotFound:
                self._texts_served = False
                self.missed.append("texts: the log does not serve its openings in bundles")
            except (Malformed, NotFetched) as error:
                self.missed.append(f"texts of bundle {number}: {error}")
        if shown is not None:
            self._missing |= dict.fromkeys(expected.keys() - shown, "")
            listed = [{"index": index, **opening.as_json()} for index, opening in sorted(shown.items())]
            self._write_json(f"{OPENINGS}/{number}", {"start": first, "openings": listed})

    def _list(self, size: int) -> None:
        """Every checkpoint that was ever signed, in one list."""
        kept: list[str] = []
        with suppress(Malformed, NotFound, NotProved):
            kept = [note for note in read_checkpoints(self._copy, 0) if open_checkpoint(note, self._log).size]
        above = open_checkpoint(kept[0], self._log).size if kept else 0
        try:
            newer = [
                note
                for note in read_checkpoints(self._source, above, size)
                if above < open_checkpoint(note, self._log).size <= size
            ]
        except (Malformed, NotFetched, NotFound, NotProved) as error:
            self.missed.append(f"the list of signed checkpoints: {error}")
            return
        listed = [{"size": open_checkpoint(note, self._log).size, "checkpoint": note} for note in (*newer, *kept)]
        self._write_json(CHECKPOINTS, {"checkpoints": listed, "next": None})

    def _answers(self, checkpoint: Checkpoint, events: Counter[str]) -> None:
        """What was answered about the hosts that an audit of this checkpoint asks for."""
        asked = sample(events, checkpoint.root, self._hosts)
        for done, host in enumerate(asked):
            self._progress("answers", done, len(asked))
            try:
                self._answer(host, checkpoint.size, events[host])
                continue
            except NotProved as error:
                # Or a text has gone between two answers, and what is to be asked of them has changed.
                self._missing[host] = f"the answer about {host}: {error}"
            except (Malformed, Misconfigured, NotFetched, NotFound) as error:
                self.missed.append(f"the answer about {host}: {error}")
            self._forget(host)
        # Those of other hosts are of older checkpoints, and may have texts that are redacted by now.
        for folder in self._path(HOSTS).glob("*"):
            if folder.name not in asked:
                self._forget(folder.name)

    def _answer(self, host: str, size: int, count: int) -> None:
        documents, faces, _ = read_answer(self._source, host, size, count)
        plain = faces[-1]
        missing = withheld(documents, host, self._log)
        shown = [parse_answer(document) for document in documents]
        verify_plain(plain, shown)
        if open_checkpoint(shown[0].checkpoint, self._log).size != size:
            raise NotProved("pages_differ", f"it is not of {size} entries")
        self._missing |= dict.fromkeys(missing.values(), "")
        face, values = strict_json.loads(plain), [strict_json.loads(document) for document in documents]
        whole = values[0] if len(values) == 1 else {**face, "pages": values}
        self._write_json(unquote(host_path(host)), {**whole, "plain": face})

    def _forget(self, host: str) -> None:
        folder = self._path(f"{HOSTS}/{host}")
        self._require_inside(folder)
        shutil.rmtree(folder, ignore_errors=True)

    def _require_inside(self, file: Path) -> None:
        """Nothing is written or deleted by way of a link that somebody has put into the folder."""
        if not file.parent.resolve().is_relative_to(self._folder.resolve()):
            raise Misconfigured("file_unwritable", f"{file.parent} leads out of {self._folder}")

    def _key(self) -> None:
        """The key that the copy is held to, whatever the log says of itself by now."""
        own = {"origin": self._log.name, "vkey": str(self._log)}
        try:
            value = strict_json.loads(self._source.get(KEY))
            if isinstance(value, dict) and value.get("vkey") == own["vkey"]:
                own = value
            else:
                self.missed.append(f"{KEY}: it does not name the key by which the log signs")
        except (Malformed, NotFetched, NotFound) as error:
            self.missed.append(f"{KEY}: {error}")
        self._write_json(KEY, own)

    def _document(self, path: str) -> None:
        try:
            self._write(path, self._source.get(path))
        except (NotFetched, NotFound) as error:
            self.missed.append(str(error))

    def _write_json(self, path: str, value: Any) -> None:
        self._write(path, json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())

    def _path(self, path: str) -> Path:
        return self._folder.joinpath(*path.split("/"))

    def _write(self, path: str, data: bytes) -> Path:
        """Whole or not at all: a copy may be served while it grows."""
        file = self._path(path)
        try:
            self._require_inside(file)
            file.parent.mkdir(parents=True, exist_ok=True)
            beside = file.with_name(f"{file.name}.new")
            beside.unlink(missing_ok=True)
            with beside.open("xb") as new:
                new.write(data)
            os.replace(beside, file)
        except OSError as error:
            raise Misconfigured("file_unwritable", f"{file}: {error.strerror or error}") from None
        return file


def _placed(first: int, entries: Iterable[bytes]) -> Iterable[Placed]:
    return (Placed.read(index, data) for index, data in enumerate(entries, first))


def _committed(first: int, entries: Iterable[bytes]) -> Iterable[tuple[int, str, tuple[int, str]]]:
    """The entries that commit to a text: their index, the commitment, and the review and part that it is."""
    for placed in _placed(first, entries):
        if (text := placed.get("text")) is not None:
            own = placed.is_type("review")
            yield placed.index, text, (placed.index, "text") if own else (placed.get("review"), "response")


def _opened(source: Source, number: int, expected: Mapping[int, str]) -> dict[int, Opening]:
    """The texts of a bundle that open what was committed to."""
    return {
        index: opening
        for index, opening in read_texts(get_texts(source, number)).items()
        if commitment(opening.salt, opening.text.encode()) == expected.get(index)
    }
