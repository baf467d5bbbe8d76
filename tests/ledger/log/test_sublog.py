"""The proofs of pages are right at every size, and what they cost does not grow with the host."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from audits.verify import verify_answer
from ledger.log import reader as reader_module
from ledger.log import sublog, tree
from ledger.log.answers import Leaves
from ledger.log.hostmap import map_key
from ledger.log.record import sublog_leaf
from ledger.log.tree import HASH_SIZE, leaf_hash, multiproof_subtrees
from ledger.reputation.answers import Query, reputation
from ledger.store.rows import read_host_entries, run
from tests.running import HOST, OTHER, Running, Writer


def leaves(running: Running, size: int) -> Leaves:
    with running.ledger.store.read() as connection:
        found = read_host_entries(connection, map_key(HOST), size)
    return Leaves(sublog_leaf(index, leaf_hash(data)) for index, data in found)


def grow(running: Running, writer: Writer, batches: Sequence[int]) -> list[int]:
    """Batches with so many events of the host each, among others; the sizes after them."""
    sizes = []
    for count in batches:
        running.add(writer.review(OTHER), *(writer.review(text=None) for _ in range(count)), writer.policy())
        sizes.append(running.ledger.reader.published.size)
    return sizes


@pytest.mark.parametrize("batches", [[1] * 40, [3, 1, 40, 2, 2, 17, 1, 64, 5], [130], [0, 1, 0, 2]], ids=str)
def test_the_hashes_are_those_of_all_leaves(running: Running, writer: Writer, batches: list[int]) -> None:
    reader = running.ledger.reader
    for size in grow(running, writer, batches)[-4:]:
        expected, record = leaves(running, size), reader.record(HOST, size)
        if record is None:
            continue
        for start in range(len(expected)):
            for count in (1, 2, len(expected) - start):
                stop = min(start + count, len(expected))
                found = reader.sublog(HOST, size, len(expected), record.edge)
                wanted = multiproof_subtrees(range(start, stop), len(expected))
                assert found.subtrees(wanted) == expected.subtrees(wanted)
                assert found.place(start) < found.place(stop)


def test_a_page_of_every_place_verifies(running: Running, writer: Writer) -> None:
    grow(running, writer, [2, 3, 120, 1, 1, 9])
    for start in range(0, 136, 9):
        page = running.answer(proof="page", start=start, count=5, text="all")
        assert len(json.loads(page)["proof"]["events"]) == min(5, 136 - start)


def work_of(running: Running, monkeypatch: pytest.MonkeyPatch, query: Query) -> dict[str, int]:
    """Rows that come from the database, and hashes of tree nodes, for a page in a service that was started anew."""
    ledger = running.reopen()
    while ledger.census._count():
        pass
    work = {"rows": 0, "bytes": 0, "hashes": 0}

    def counted_run(*asked: Any) -> list[Any]:
        rows = run(*asked)
        work["rows"] += len(rows)
        work["bytes"] += sum(len(value) for row in rows for value in row if isinstance(value, bytes | str))
        return rows

    def counted(hashes: Callable[..., bytes]) -> Callable[..., bytes]:
        def count(*given: Any) -> bytes:
            found = hashes(*given)
            work["hashes"] += len(found) // HASH_SIZE
            return found

        return count

    with monkeypatch.context() as patch:
        patch.setattr(reader_module, "run", counted_run)
        patch.setattr("ledger.store.rows.run", counted_run)
        patch.setattr(tree, "node_hash", counted(tree.node_hash))
        patch.setattr(tree, "parents", counted(tree.parents))
        patch.setattr(sublog, "sublog_leaf", counted(sublog_leaf))
        answer = reputation(ledger.reader, ledger.registries, HOST, query)
    verify_answer(answer, ledger.verifier, HOST, kind="page")
    return work


def test_a_page_takes_no_three_times_the_work_with_a_hundred_times_the_events(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = []
    for events in (100, 10_000):
        data = tmp_path_factory.mktemp("log") / "data"
        running, writer = Running(data, f"sqlite:///{data}/ledger.db"), Writer()
        for _ in range(events // 25):
            running.add(*(writer.check() for _ in range(24)), writer.review(text=None), writer.check(OTHER))
        starts = [events * part // 10 for part in (0, 3, 9)]
        works.append([work_of(running, monkeypatch, Query("page", start=start, count=1)) for start in starts])
        running.ledger.close()
    for small, large in zip(*works, strict=True):
        assert large["bytes"] <= 3 * small["bytes"], (small, large)
        assert large["rows"] + large["hashes"] <= 3 * (small["rows"] + small["hashes"]), (small, large)
