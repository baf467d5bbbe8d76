"""What a monitor remembers besides what was replayed: what is wrong and was told, and what nobody has taken yet.

One JSON file beside the state of the audit, written whole or not at all: a restart neither forgets nor repeats.
"""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from audits.terminal import write_text
from ledger.errors import Misconfigured

FILE = "monitor.json"


@dataclass(slots=True)
class Memory:
    """`note` is the newest checkpoint whose tree was read to its end, `at` the time of its map head, `clean` whether
    all of it was looked at and right, `looked` when it was looked at in part. Entries below `told` were looked through
    for watched hosts. `ahead` are checkpoints that the log signed and has not shown yet, with where they were heard
    of; `waiting` are alerts for the webhook."""

    file: Path
    note: str | None = None
    at: str | None = None
    clean: bool = False
    looked: str | None = None
    told: int | None = None
    ahead: list[list[str]] = field(default_factory=list)
    troubles: dict[str, dict[str, Any]] = field(default_factory=dict)
    waiting: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def open(cls, folder: Path) -> "Memory":
        file = folder / FILE
        try:
            kept = json.loads(file.read_text("utf-8")) if file.exists() else {}
            return cls(file, **kept)
        except (OSError, TypeError, ValueError) as error:
            why = f"{file} cannot be read: {error}; without it all alerts that still hold are told once more"
            raise Misconfigured("file_unreadable", why) from None

    def save(self) -> None:
        kept = asdict(self)
        del kept["file"]
        write_text(self.file, json.dumps(kept, indent=1) + "\n")
