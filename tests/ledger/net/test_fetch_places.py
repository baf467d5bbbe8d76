"""How many may ask at once."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from threading import Event

import pytest

from ledger.errors import NotFetched
from ledger.net import fetch, profiles
from ledger.net.fetch import MOST_PER_HOST
from tests.ledger.net.visiting import (
    SMALL,
    URL,
    Visitor,
    eventually,
)
from tests.network import Neighbourhood, Request, response


@dataclass
class Busy:
    """Holds whoever asks until it is told to let go."""

    let_go: Event
    here: int = 0
    most: int = 0
    came: int = 0

    async def answer(self, _request: Request, writer: asyncio.StreamWriter) -> None:
        self.came += 1
        self.here += 1
        self.most = max(self.most, self.here)
        while not self.let_go.is_set():
            await asyncio.sleep(0.001)
        # Whoever comes too early would be here by now.
        await asyncio.sleep(0.01)
        self.here -= 1
        writer.write(response(b"{}"))


@pytest.fixture
def busy(neighbourhood: Neighbourhood) -> Iterator[Busy]:
    made = Busy(Event())
    neighbourhood.handle(URL, made.answer)
    yield made
    made.let_go.set()


def test_few_ask_one_host_at_once_and_hold_up_no_other(
    visitor: Visitor, neighbourhood: Neighbourhood, busy: Busy
) -> None:
    neighbourhood.put("https://other.example/", {})

    async def ask() -> None:
        # In either spelling it is one host.
        urls = [URL, "https://IDV.example:443/", "https://idv.example"] * 3
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(url, SMALL)) for url in urls]
        await eventually(lambda: busy.here == MOST_PER_HOST)
        for _ in range(5):
            assert (await visitor.fetcher.fetch("https://other.example/", SMALL)).body == b"{}"
        assert busy.came == MOST_PER_HOST
        busy.let_go.set()
        assert [each.body for each in await asyncio.gather(*asked)] == [b"{}"] * 9

    visitor.run(ask())
    assert (busy.came, busy.most) == (9, MOST_PER_HOST)
    assert neighbourhood.connections == 9 + 5


def test_waiting_for_a_place_is_part_of_the_time(visitor: Visitor, busy: Busy) -> None:
    """And whoever has waited in vain never comes."""

    async def ask() -> None:
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST)]
        await eventually(lambda: busy.here == MOST_PER_HOST)
        with pytest.raises(NotFetched) as refusal:
            await visitor.fetcher.fetch(URL, replace(SMALL, seconds=0.3))
        assert refusal.value.code == "fetch_timeout"
        busy.let_go.set()
        await asyncio.gather(*asked)

    visitor.run(ask())
    assert busy.came == MOST_PER_HOST


def test_one_kind_of_question_holds_up_no_other(visitor: Visitor, neighbourhood: Neighbourhood, busy: Busy) -> None:
    """What strangers may have us ask does not stand in the way of what we have to know."""
    neighbourhood.put("https://idv.example/status", {})

    async def ask() -> None:
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST + 1)]
        await eventually(lambda: busy.here == MOST_PER_HOST)
        assert (await visitor.fetcher.fetch("https://idv.example/status", profiles.STATUS_LIST)).body == b"{}"
        busy.let_go.set()
        await asyncio.gather(*asked)

    visitor.run(ask())


def test_not_too_many_wait(visitor: Visitor, busy: Busy) -> None:
    """Who would be one too many is told at once, and when to come back."""

    async def ask() -> None:
        all_places = fetch.MOST_PER_HOST + fetch.MOST_WAITING
        asked = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(all_places)]
        await eventually(lambda: busy.here == MOST_PER_HOST)
        with pytest.raises(NotFetched) as refusal:
            await visitor.fetcher.fetch(URL, SMALL)
        assert (refusal.value.code, refusal.value.retry_after) == ("fetch_too_often", 1)
        busy.let_go.set()
        assert [each.body for each in await asyncio.gather(*asked)] == [b"{}"] * all_places

    visitor.run(ask())
    assert visitor.get().body == b"{}"


def test_whoever_goes_away_leaves_their_place(visitor: Visitor, busy: Busy) -> None:
    async def ask() -> None:
        first = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST)]
        await eventually(lambda: busy.here == MOST_PER_HOST)
        second = [asyncio.ensure_future(visitor.fetcher.fetch(URL, SMALL)) for _ in range(MOST_PER_HOST + 1)]
        await asyncio.sleep(0)
        second.pop().cancel()
        for each in first:
            each.cancel()
        await eventually(lambda: busy.came == 2 * MOST_PER_HOST)
        busy.let_go.set()
        assert [each.body for each in await asyncio.gather(*second)] == [b"{}"] * MOST_PER_HOST

    visitor.run(ask())
    # The next loop finds all places free.
    for _ in range(MOST_PER_HOST + 1):
        assert visitor.get().body == b"{}"
