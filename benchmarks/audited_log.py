"""A log for row 9 in a folder as a mirror has it: `python -m benchmarks.audited_log FOLDER EVENTS PER_HEAD HOSTS`.

Honest in all its rules: reviews by a trusted issuer, responses in their time, redactions, booking checks. Some hosts
have many reviews, and many have few. Prints the log's key.
"""

import gc
import json
import random
import sys
from base64 import b32encode
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from nacl.signing import SigningKey

from audits.beside import sample
from benchmarks.sample_log import some_text
from ledger.canon import base64, jcs, strict_json
from ledger.canon.times import format_time
from ledger.log import answers
from ledger.log.checkpoint import Checkpoint, sign_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.face import Event, summary
from ledger.log.hostmap import map_key
from ledger.log.members import CATEGORIES
from ledger.log.note import ED25519, Verifier
from ledger.log.openings import Opening, commitment
from ledger.log.replay import Replay
from ledger.log.tiles import (
    WIDTH,
    Appender,
    MemoryTiles,
    TileTree,
    encode_bundle,
    parse_tile_path,
    tile_id,
    tile_resources,
)
from ledger.log.tree import HASH_SIZE

ORIGIN = "log.stays.example"
ISSUER = "did:web:issuer.example"
SAMPLE = 20
_START = datetime(2026, 1, 1, tzinfo=UTC)
# A million events take three years.
_STEP = timedelta(seconds=95)
# Reviews that may still be named; the oldest of these is some days old.
_OPEN = 5_000


class AuditedLog:
    def __init__(self, hosts: int, seed: int = 9) -> None:
        self._random = random.Random(seed)
        self._key = SigningKey(self._random.randbytes(32))
        self._hosts = hosts
        self._now = _START
        self._texts = [some_text(self._random) for _ in range(500)]
        self._replay = Replay()
        self._appender, self.tiles = Appender(MemoryTiles()), MemoryTiles()
        self._open: list[tuple[int, dict[str, Any]]] = []
        self.entries: list[bytes] = []
        self.openings: dict[int, Opening] = {}
        self.checkpoints: list[tuple[int, str]] = []
        self._add("genesis", origin=ORIGIN, policy=self._hash(), previous=None)
        self.close_batch()
        self._add(
            "issuer", role="guest", issuer=ISSUER, action="trusted", keys=self._hash(), max_idv_level=None, since=None
        )
        self.close_batch()

    @property
    def verifier(self) -> Verifier:
        return Verifier(ORIGIN, ED25519, bytes(self._key.verify_key))

    def grow(self) -> None:
        """One more event."""
        self._now += _STEP
        kind = self._random.random()
        if kind < 0.72 or not self._open:
            self._review()
        elif kind < 0.94:
            self._about("response", text=self._committed(), statement=self._hash())
        elif kind < 0.96:
            index = self._about("redaction", part="text", basis="gdpr_17", decision=self._hash())
            self.openings.pop(index)
        else:
            self._add("booking_check", host_did=self._host(), outcome="unanswered", booking=self._hash())

    def close_batch(self) -> None:
        root = base64.encode(self._replay.map_root())
        self._add("map_head", size=len(self.entries), root=root)
        self.tiles.update(self._appender.take_rows())
        checkpoint = Checkpoint(ORIGIN, self._appender.size, self._appender.root())
        self.checkpoints.append((checkpoint.size, sign_checkpoint(checkpoint, self._key)))

    def _review(self) -> None:
        check_in = self._now.date() - timedelta(days=self._random.randrange(5, 40))
        rating = self._random.choice((3, 4, 4.5, 5))
        members = {
            "review_id": "rev-" + b32encode(self._random.randbytes(16)).decode().rstrip("=").lower(),
            "host_did": self._host(),
            "listing_id": f"flat-{self._random.randrange(3)}",
            "check_in": check_in.isoformat(),
            "check_out": (check_in + timedelta(days=self._random.randrange(1, 5))).isoformat(),
            "ratings": dict.fromkeys(CATEGORIES, rating),
            "level": "guest_verified",
            "evidence": {
                "booking": "stay_receipt",
                "commitment": self._hash(),
                "idv_level": "identity_verified",
                "issuer": ISSUER,
            },
            "repeat": self._random.random() < 0.1,
            "text": self._committed(),
        }
        self._open.append((len(self.entries), members))
        if len(self._open) > _OPEN:
            del self._open[: _OPEN // 10]
        self._add("review", **members)

    def _about(self, kind: str, **members: Any) -> int:
        """An entry about some review, whose index it gives."""
        index, review = self._take()
        named = {name: review[name] for name in ("review_id", "host_did")}
        self._add(kind, review=index, **named, **members)
        return index

    def _take(self) -> tuple[int, dict[str, Any]]:
        """A review that nothing has happened to."""
        place = self._random.randrange(len(self._open))
        self._open[place], last = self._open[-1], self._open[place]
        self._open.pop()
        return last

    def _host(self) -> str:
        """By Zipf's law: the second has half as many events as the first, the third a third."""
        return f"did:web:stays.example:hosts:{int(self._hosts ** self._random.random())}"

    def _committed(self) -> str:
        opening = Opening(self._random.choice(self._texts), self._random.randbytes(32))
        self.openings[len(self.entries)] = opening
        return commitment(opening.salt, opening.text.encode())

    def _add(self, kind: str, **members: Any) -> None:
        data = jcs.dumps_plain({"type": kind, "v": 1, "at": format_time(self._now), **members})
        self._appender.append(self._replay.add(data).leaf_hash)
        self.entries.append(data)

    def _hash(self) -> str:
        return base64.encode(self._random.randbytes(32))

    def resources(self) -> Iterator[tuple[str, bytes]]:
        """Everything that an audit reads."""
        size, note = self.checkpoints[-1]
        yield "log/checkpoint", note.encode()
        for path in tile_resources(size):
            level, index, width = parse_tile_path(path)
            if level is None:
                yield f"log/{path}", encode_bundle(self.entries[index * WIDTH : index * WIDTH + width])
            else:
                yield f"log/{path}", self.tiles[tile_id(level, index)][: width * HASH_SIZE]
        listed = [{"size": size, "checkpoint": note} for size, note in reversed(self.checkpoints)]
        yield "v1/log/checkpoints", json.dumps({"checkpoints": listed, "next": None}).encode()
        for number in range(-(-size // WIDTH)):
            row = range(number * WIDTH, min((number + 1) * WIDTH, size))
            openings = [{"index": index, **self.openings[index].as_json()} for index in row if index in self.openings]
            yield (
                f"v1/log/openings/{number}",
                json.dumps({"start": row[0], "openings": openings}, ensure_ascii=False).encode(),
            )
        yield from self._answers(size, note)

    def _answers(self, size: int, note: str) -> Iterator[tuple[str, bytes]]:
        asked = sample(self._replay.hosts, self._appender.root(), SAMPLE)
        events: dict[str, list[Event]] = {host: [] for host in asked}
        for index, data in enumerate(self.entries):
            entry = parse_entry(data) if any(host.encode() in data for host in asked) else None
            if entry is not None and entry.host in events:
                events[entry.host].append(Event(index, entry, self.openings.get(index)))
        tree = TileTree(self.tiles)
        for host in asked:
            record, path = self._replay.hosts[host].record(), self._replay.map.prove(map_key(host))
            view = answers.View(host, note, size, self.entries[-1].decode(), path, record)
            answer = {**summary(host, strict_json.loads(record)), **answers.full(view, tree, events[host])}
            yield f"v1/hosts/{host}/reputation", json.dumps(answer, ensure_ascii=False).encode()


def main(folder: str, events: str, per_head: str, hosts: str) -> None:
    # Nothing here is garbage.
    gc.disable()
    log = AuditedLog(int(hosts))
    for number in range(1, int(events) + 1):
        log.grow()
        if number % int(per_head) == 0 or number == int(events):
            log.close_batch()
    for path, data in log.resources():
        file = Path(folder, path)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    print(log.verifier)


if __name__ == "__main__":
    main(*sys.argv[1:])
