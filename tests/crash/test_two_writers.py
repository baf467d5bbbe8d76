"""Two processes write to one log at once: one history, and one entry for what both submit."""

import json
from collections import Counter
from contextlib import closing

from ledger.folder import open_ledger
from ledger.settings import Settings
from tests.crash.child import Work
from tests.crash.harness import Worker, examine, work_together
from tests.running import Writer


def test_two_processes_write_one_history(settings: Settings) -> None:
    first, second = work_together(*(Work(settings, seed, callers=5, entries=20) for seed in range(2)))
    acks = first.acks + second.acks
    assert len({ack.index for ack in acks}) == len(acks) == 200
    with closing(open_ledger(settings)) as ledger:
        assert examine(ledger, acks) > 202
        kinds = Counter(json.loads(entry)["type"] for entry in ledger.reader.entries(0, 1000))
    assert kinds.total() - kinds["map_head"] == 201


def test_neither_waits_for_the_end_of_the_other(settings: Settings) -> None:
    """Both write without pause; each has entries between those of the other."""
    first, second = (Worker(Work(settings, seed, callers=2)) for seed in range(2))
    while not (_between(first, second) and _between(second, first)):
        assert first.follow(10)
        assert second.follow(10)
        assert len(first.acks) < 5000
    for worker in (first, second):
        worker.kill()
        worker.end_killed()
    with closing(open_ledger(settings)) as ledger:
        examine(ledger, first.acks + second.acks)


def _between(one: Worker, other: Worker) -> bool:
    places = [ack.index for ack in other.acks]
    return any(min(places) < ack.index < max(places) for ack in one.acks if places)


def test_what_two_processes_both_submit_is_one_entry(settings: Settings) -> None:
    """The same seed makes the same drafts with the same keys."""
    first, second = work_together(*[Work(settings, 1, callers=4, entries=15)] * 2)
    places = [{(ack.index, ack.digest) for ack in worker.acks} for worker in (first, second)]
    assert places[0] == places[1]
    assert len(places[0]) == 60
    with closing(open_ledger(settings)) as ledger:
        size = examine(ledger, first.acks + second.acks)
        entries = [json.loads(entry) for entry in ledger.reader.entries(0, size)]
    assert sum(entry["type"] not in ("genesis", "map_head") for entry in entries) == 60


def test_each_goes_on_when_the_other_is_killed(settings: Settings) -> None:
    """The survivor finds a committed head that nobody signed, signs it, and goes on."""
    for seed, step in enumerate(("committed", "marked", "signed")):
        survivor = Worker(Work(settings, 2 * seed, callers=3))
        victim = Worker(Work(settings, 2 * seed + 1, callers=3, die_at=step, times=3))
        victim.end_killed()
        # Further than the victim's last batch can reach.
        beyond = max((ack.index for ack in victim.acks), default=2) + 30
        while not survivor.acks or survivor.acks[-1].index < beyond:
            assert survivor.follow(1)
        survivor.kill()
        survivor.end_killed()
        with closing(open_ledger(settings)) as ledger:
            size = examine(ledger, victim.acks + survivor.acks)
            heads = [b'"type":"map_head"' in entry for entry in ledger.reader.entries(0, size)]
            signed = {state.size for state in ledger.reader.checkpoints(None, size)}
        # Every batch by itself, that of the dead too: before anything was added to it.
        assert signed == {index + 1 for index, is_head in enumerate(heads) if is_head}


def test_a_file_is_added_beside_a_service(settings: Settings, writer: Writer) -> None:
    """`staylog log add` holds the lock for one long transaction; the service waits for it."""
    service = Worker(Work(settings, 1, callers=3, entries=20))
    assert service.follow(10)
    with closing(open_ledger(settings)) as ledger:
        done = ledger.sequencer.append([writer.review() for _ in range(600)])
        assert done[-1].index - done[0].index == 599 + 2
        assert service.end() == 0
        examine(ledger, service.acks)
