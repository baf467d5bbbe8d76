"""Whoever looks every minute has seen many checkpoints: only those that say something new are read again."""

from pathlib import Path

import pytest

from audits.state import State, opened
from ledger.log.checkpoint import Checkpoint
from tests.audits.forger import Forger
from tests.audits.monitoring import watching
from tests.running import Writer
from tests.world import LOG


def naive(state: State, above: int) -> list[tuple[int, str]]:
    return [(size, note) for size, root, note, _ in state.seen() if size > above or state.root_at(size) != root]


@pytest.mark.parametrize("committed", [False, True])
def test_those_above_and_those_of_another_tree(committed: bool, tmp_path: Path) -> None:
    with opened(tmp_path, LOG) as state:
        for size in range(2, 12):
            for root in (b"a", b"b")[: 1 + (size in (4, 9))]:
                state.see(Checkpoint(LOG.name, size, root * 32), f"{size}{root!r}", "", "")
            if size != 5:
                state.keep_head(size, "2026-06-01T12:00:00Z", (b"b" if size == 6 else b"a") * 32)
        if committed:
            state.commit()
        for above in (0, 3, 7, 11, 20):
            assert state.seen_apart(above) == naive(state, above)
            assert state.count_seen(above) == len([1 for size, *_ in state.seen() if size <= above])
        assert [size for size, _ in state.seen_apart(20)] == [4, 5, 6, 9]


def test_a_monitor_reads_none_that_it_has_compared(
    forger: Forger, tmp_path: Path, writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[list[tuple[int, str]]] = []
    found = State.seen_apart

    def note(state: State, above: int) -> list[tuple[int, str]]:
        read.append(found(state, above))
        return read[-1]

    monkeypatch.setattr(State, "seen_apart", note)
    with watching(forger, tmp_path) as watcher:
        for _ in range(4):
            forger.add(writer.review())
            forger.head()
            assert watcher.codes() == (0, [])
            assert [size for size, _ in read[-1]] == [forger.size]
        # Three that were seen and compared before, and the one that the list has beyond them.
        assert watcher.replay.state.get("audit")["figures"]["checkpoints"] == 4
