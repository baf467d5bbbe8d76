"""What is named on a command line: files with checkpoints, marks and policies."""

from pathlib import Path

from ledger.canon import strict_json
from ledger.errors import BadJSON, Halted, Malformed, Misconfigured
from ledger.log.mark import SLOT, Mark, newest_kept
from ledger.log.policy import Policy


def read_note(path: Path) -> str:
    """The checkpoint in a file: a note, or a receipt or answer that has one."""
    text = _text(path)
    if not text.startswith("{"):
        return text
    value = strict_json.loads(text)
    places = (value, value.get("proof")) if isinstance(value, dict) else ()
    note = next((each["checkpoint"] for each in places if isinstance(each, dict) and "checkpoint" in each), None)
    if not isinstance(note, str):
        raise Malformed("note_malformed", f"{path} has no checkpoint in it")
    return note


def read_mark(path: Path) -> Mark:
    """The mark of a service, in its file `last-signed` or in its folder. Raises Misconfigured (`file_unreadable`) when
    it cannot be read, Halted (`mark_unreadable`) when it is damaged."""
    file = path / "last-signed" if path.is_dir() else path
    try:
        with file.open("rb") as opened:
            newest = newest_kept(opened.read(2 * SLOT))
    except OSError as error:
        raise Misconfigured("file_unreadable", f"{file} cannot be read: {error.strerror}") from None
    if newest is None:
        raise Halted("mark_unreadable", f"{file} is damaged, or no mark of a service")
    return newest.mark


def read_policy(path: Path | None) -> Policy | None:
    return Policy.parse(_text(path)) if path is not None else None


def _text(path: Path) -> str:
    try:
        # As the bytes are: where line feeds are read out of carriage returns, other programs read other lines.
        return path.read_bytes().decode()
    except UnicodeDecodeError:
        raise BadJSON("not_utf8", f"{path} is not UTF-8 text") from None
