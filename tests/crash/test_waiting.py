"""Those who wait, and the clock: neither can lose an entry or put one out of order."""

import asyncio
import json
from itertools import pairwise
from random import Random

import pytest

from ledger.log.sequencer import Integrated
from tests.crash.child import Ack, Story
from tests.crash.harness import examine
from tests.running import Running, Writer


def test_the_clock_jumps_back_and_forth(running: Running, writer: Writer) -> None:
    random = Random(5)
    ledger = running.ledger
    ledger.sequencer.start()
    story = Story(writer)
    acks = []
    for _ in range(60):
        running.clock.forward(hours=random.uniform(-30, 31))
        acks.append(Ack.of(story.submit(ledger.sequencer)))
    size = examine(ledger, acks)
    times = [json.loads(entry)["at"] for entry in ledger.reader.entries(0, size)]
    assert all(earlier <= later for earlier, later in pairwise(times))
    assert len(set(times)) > 3
    running.reopen()
    assert examine(running.ledger, acks) == size


def test_a_waiter_that_is_cancelled_leaves_its_draft(running: Running, writer: Writer) -> None:
    """As a web server does when a client goes away; the client's second try gets the same entry."""
    sequencer = running.ledger.sequencer
    stories = [Story(Writer(seed)) for seed in range(20)]

    async def give_up() -> None:
        waiting = [asyncio.wrap_future(sequencer.submit(story.next)) for story in stories]
        listening = asyncio.wrap_future(sequencer.submit(writer.policy()))
        for waiter in waiting:
            assert waiter.cancel()
        for waiter in waiting:
            with pytest.raises(asyncio.CancelledError):
                await waiter
        sequencer.start()
        # Of the same batch, and answered though nobody listens to the others.
        assert (await asyncio.wait_for(listening, 30)).index == 22

    asyncio.run(give_up())
    again = [story.submit(sequencer) for story in stories]
    assert [(done.index, done.repeated) for done in again] == [(index, True) for index in range(2, 22)]
    examine(running.ledger, map(Ack.of, again))


def test_closing_finishes_the_queue(running: Running, writer: Writer) -> None:
    sequencer = running.ledger.sequencer
    sequencer.start()
    futures = [sequencer.submit(writer.review()) for _ in range(700)]
    running.ledger.close()
    done: list[Integrated] = [future.result(0) for future in futures]
    assert len({each.index for each in done}) == 700
    assert examine(running.open(), map(Ack.of, done)) > 702
