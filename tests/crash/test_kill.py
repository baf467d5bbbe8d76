"""kill -9 at seeded random points and at every step of a batch (quality.md, Reliability): nothing that was acknowledged
is lost or changed, what was committed is signed first, and the log goes on."""

from collections.abc import Callable
from contextlib import closing
from random import Random
from time import sleep

import pytest

from ledger.errors import Unavailable
from ledger.folder import open_ledger
from ledger.settings import Settings
from tests.crash.child import Ack, Story, Work
from tests.crash.harness import Worker, examine, state_of
from tests.running import Writer

STEPS = ("committed", "marked", "signed", "stored")


def reopen(settings: Settings, acks: list[Ack], writer: Writer) -> bool:
    """Open after a crash, examine, go on. Whether the crash was inside a commit: after it and before its signature."""
    committed, published = state_of(settings)
    with closing(open_ledger(settings)) as ledger:
        assert examine(ledger, acks) == committed
        [done] = ledger.sequencer.append([writer.review()])
        assert done.index == committed
        acks.append(Ack.of(done))
    return committed != published


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_every_step_of_a_batch(settings: Settings, step: str, writer: Writer) -> None:
    acks: list[Ack] = []
    for seed, times in enumerate((1, 5)):
        child = Worker(Work(settings, seed, die_at=step, times=times))
        child.end_killed()
        acks += child.acks
        assert reopen(settings, acks, writer) == (step != "stored")
    assert len(acks) > 2


def test_killed_again_while_a_crash_is_repaired(settings: Settings, writer: Writer) -> None:
    """Each process dies one step further than the one before, all of them over the same batch."""
    acks: list[Ack] = []
    sizes = set()
    for seed, (step, times) in enumerate(zip(STEPS, (4, 1, 1, 1), strict=True)):
        child = Worker(Work(settings, seed, die_at=step, times=times))
        child.end_killed()
        acks += child.acks
        sizes.add(state_of(settings)[0])
    assert len(sizes) == 1
    assert not reopen(settings, acks, writer)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_that_fails_is_not_acknowledged_and_not_lost(settings: Settings, step: str) -> None:
    """Done, and then reported as failed, as after a lost connection: who tries again gets the entry of the first try."""
    failures = [Unavailable("storage_unavailable", "the connection was lost")]

    def fail(reached: str) -> None:
        if reached == step and failures:
            raise failures.pop()

    with closing(open_ledger(settings, on_step=fail)) as ledger:
        ledger.sequencer.start()
        story = Story(Writer(3))
        with pytest.raises(Unavailable):
            story.submit(ledger.sequencer)
        done = story.submit(ledger.sequencer)
        assert (done.index, done.repeated) == (2, True)
        assert examine(ledger, [Ack.of(done), Ack.of(story.submit(ledger.sequencer))]) == 6


def test_killed_at_random_points(
    settings: Settings, writer: Writer, record_property: Callable[[str, object], None]
) -> None:
    random = Random(7)
    acks: list[Ack] = []
    rounds, inside = 6, 0
    for seed in range(rounds):
        child = Worker(Work(settings, seed))
        assert child.follow(random.randrange(1, 60))
        sleep(random.uniform(0, 0.02))
        child.kill()
        child.end_killed()
        acks += child.acks
        inside += reopen(settings, acks, writer)
    record_property("kills_inside_a_commit", inside)
    print(f"{rounds} kills at random points, {inside} inside a commit; all {len(acks)} entries are kept")  # noqa: T201
