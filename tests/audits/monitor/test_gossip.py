"""Gossip: other histories are found, and strangers who send anything at all accuse nobody."""

import json
from pathlib import Path

import pytest

from ledger.log.note import Note, Signature
from tests.audits.convicting import convict_here
from tests.audits.forger import Forger, serving
from tests.audits.monitoring import watching
from tests.audits.views import views
from tests.running import Writer
from tests.world import LOG


@pytest.mark.parametrize(("mine", "theirs"), [(1, 1), (1, 4), (4, 1), (200, 3), (3, 200)])
def test_another_history(mine: int, theirs: int, tmp_path: Path) -> None:
    seen, other = views(mine, theirs)
    with serving(other) as url, watching(seen, tmp_path, gossip=[url]) as watcher:
        assert watcher.codes() == (1, ["inconsistency"])
        [file] = watcher.proofs()
        convict_here(json.loads(file.read_bytes()))


def test_what_was_proved_once_holds_though_nobody_shows_it_any_more(tmp_path: Path) -> None:
    seen, other = views(1, 4)
    with serving(other) as url, watching(seen, tmp_path, gossip=[url]) as watcher:
        assert watcher.codes() == (1, ["inconsistency"])
        seen.head()
        # By other checkpoints it would be another file.
        assert watcher.codes() == (1, [])
        assert len(watcher.proofs()) == 1
    with watching(seen, tmp_path) as watcher:
        seen.head()
        assert watcher.codes() == (1, [])


@pytest.mark.parametrize("status", [0, 200])
def test_tiles_count_only_if_they_lead_to_what_was_signed(status: int, tmp_path: Path) -> None:
    """The larger one is of the same history, and shown with tiles of another one, or none."""
    [mine], [theirs] = views(1), views(3)
    _, other = views(1, 3)
    for path in [f"log/tile/0/000.p/{theirs.size}"]:
        if status:
            theirs.instead[path] = other.get(path) or b""
        else:
            theirs.missing.add(path)
    with serving(theirs) as url, watching(mine, tmp_path, gossip=[url]) as watcher:
        assert watcher.codes() == (0, [])
        mine.clock.forward(minutes=5)
        status, told = watcher.look()
        assert (status, {each["code"] for each in told}) == (2, {"gossip", "behind"})
        assert watcher.proofs() == []


@pytest.mark.parametrize("served", [b"", b"\xff", b"<html>", b"{}", b"x" * 100_000, Forger().sign(bytes(32)).encode()])
def test_garbage(served: bytes, forger: Forger, tmp_path: Path) -> None:
    """The last one is signed: a tree of one entry, which is none of this log's."""
    stranger = Forger()
    stranger.instead["log/checkpoint"] = served
    with serving(stranger) as url, watching(forger, tmp_path, gossip=[url]) as watcher:
        if served.startswith(LOG.name.encode()):
            assert watcher.codes() == (1, ["inconsistency"])
            return
        assert watcher.codes() == (0, [])
        forger.clock.forward(minutes=5)
        status, [alert] = watcher.look()
        assert (status, alert["code"], url in alert["message"]) == (2, "gossip", True)
        stranger.instead["log/checkpoint"] = forger.notes[forger.size].encode()
        assert watcher.codes() == (0, ["recovered gossip"])


def test_files_are_read_again_each_round(forger: Forger, tmp_path: Path) -> None:
    file = tmp_path / "seen.txt"
    file.write_text(forger.notes[4])
    with watching(forger, tmp_path / "state", gossip=[str(file)]) as watcher:
        assert watcher.codes() == (0, [])
        other = Forger.begun(Writer(7))
        file.write_text(json.dumps({"proof": {"checkpoint": other.notes[other.size]}}))
        assert watcher.codes() == (1, ["inconsistency"])


def test_a_checkpoint_that_ends_in_no_map_head(forger: Forger, tmp_path: Path, writer: Writer) -> None:
    """It is of this tree; that it was signed there is the lie."""
    forger.add(writer.review())
    note = forger.sign()
    del forger.notes[forger.size]
    forger.head()
    (tmp_path / "note").write_text(note)
    with watching(forger, tmp_path / "state", gossip=[str(tmp_path / "note")]) as watcher:
        assert watcher.codes() == (0, [])
        status, [alert] = watcher.look()
        assert (status, alert["finding"]) == (1, "map_head_not_last")


def test_what_is_ahead_is_kept_once_whatever_stands_below_it(tmp_path: Path) -> None:
    [mine], [theirs] = views(1), views(3)
    note, file = Note.parse(theirs.notes[theirs.size]), tmp_path / "note"
    file.write_text(str(note))
    with watching(mine, tmp_path, gossip=[str(file)]) as watcher:
        for number in range(3):
            junk = Signature("junk.example/j", bytes(4), bytes([number]) * 64)
            file.write_text(str(Note(note.text, (*note.signatures, junk))))
            assert watcher.codes() == (0, [])
            assert len(watcher.memory.ahead) == 1
