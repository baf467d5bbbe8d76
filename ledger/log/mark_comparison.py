"""Marks and checkpoints of one log from several places, compared with each other and with its database.

Two marks of one size and with two roots are two histories. Marks of different sizes are compared by the tree in the
database, as far as it reaches.
"""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import Connection

from ledger.canon import strict_json
from ledger.errors import Halted, Malformed, Misconfigured
from ledger.log.checkpoint import open_checkpoint
from ledger.log.mark import Mark
from ledger.log.mark_file import MarkFile
from ledger.log.note import Verifier
from ledger.log.shared_mark import SharedMark
from ledger.log.tiles import TileTree
from ledger.store.rows import Rows, newest_published, read_head


@dataclass(frozen=True, slots=True)
class Comparison:
    """`marks` by where they come from, the newest first; `findings` are plain sentences, none when all of it is one
    history that the database has in full."""

    marks: Mapping[str, Mark]
    findings: list[str] = field(default_factory=list)

    @property
    def newest(self) -> str | None:
        return next(iter(self.marks), None)


def read_mark(where: str, origin: str, agent: str) -> Mark:
    """The mark of the log `origin` in a file, a ledger's folder or an etcd. Raises Misconfigured (`file_unreadable`)
    when there is none, Halted (`mark_unreadable`) when it is damaged, Unavailable when it cannot be reached."""
    if where.startswith(("http://", "https://")):
        mark = SharedMark(where, origin, agent).read()
    else:
        path = Path(where)
        mark = MarkFile(path / "last-signed" if path.is_dir() else path).read()
    if mark is None:
        raise Misconfigured("file_unreadable", f"{where} has no mark of {origin}")
    return mark


def read_checkpoint(path: Path, log: Verifier) -> Mark:
    """What `log` signed in a file: a checkpoint, or a receipt or answer with one. Raises Malformed, NotProved, and
    Misconfigured (`file_unreadable`)."""
    try:
        text = path.read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured("file_unreadable", f"{path} cannot be read as text: {error}") from None
    if text.startswith("{"):
        value = strict_json.loads(text)
        places = (value, value.get("proof")) if isinstance(value, dict) else ()
        notes = [each["checkpoint"] for each in places if isinstance(each, dict) and "checkpoint" in each]
        if not notes or not isinstance(notes[0], str):
            raise Malformed("note_malformed", f"{path} has no checkpoint in it")
        text = notes[0]
    checkpoint = open_checkpoint(text, log)
    return Mark(checkpoint.size, checkpoint.root)


def compare(connection: Connection, marks: Mapping[str, Mark]) -> Comparison:
    """`marks` against each other and against what is committed in the database. Raises Halted when there is no log."""
    newest, head = newest_published(connection), read_head(connection)
    if head is None:
        raise Halted("log_behind", "there is no log in this database")
    known = {"the database": Mark(newest.size, newest.root)} if newest is not None else {}
    known |= marks
    result = Comparison(dict(sorted(known.items(), key=lambda each: each[1].size, reverse=True)))
    tree = TileTree(Rows(lambda: nullcontext(connection)))
    roots: dict[int, tuple[str, bytes]] = {}
    for where, mark in result.marks.items():
        other, root = roots.setdefault(mark.size, (where, mark.root))
        if mark.root != root:
            result.findings.append(f"{where} and {other} have two histories of {mark.size} entries: the log has forked")
        if mark.size > head.size:
            ends = f"the database ends at {head.size}: it is an older copy"
            result.findings.append(f"{where} knows of {mark.size} signed entries, {ends}")
        elif tree.root(mark.size) != mark.root:
            result.findings.append(f"{where} has another history of {mark.size} entries than the database")
    return result
