"""What was looked up is kept for a while, what could not be for a shorter one; many who ask at once cause one look."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from gc import collect
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import NotAccepted, NotFetched, StaylogError
from ledger.net.lookups import FAILURE_SECONDS, LEAST_SECONDS, MOST_FAILURE_SECONDS, Found, Lookups, lifetime
from tests.running import SetClock

SECONDS = 100


class World:
    """What there is to be found, and how often it was looked for."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self.looks: Counter[str] = Counter()
        self.failure: Exception | None = None
        self.seconds = seconds
        # Whoever looks waits for it.
        self.gate: asyncio.Event | None = None

    async def look(self, key: str) -> Found[str]:
        self.looks[key] += 1
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return Found(f"{key} {self.looks[key]}", self.seconds)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def lookups(world: World, clock: SetClock) -> Lookups[str, str]:
    return Lookups(world.look, clock, most=3)


def refusal(lookups: Lookups[str, str], key: str) -> StaylogError:
    with pytest.raises(StaylogError) as raised:
        asyncio.run(lookups.get(key))
    return raised.value


def test_what_was_found_is_kept_for_its_time(lookups: Lookups[str, str], world: World, clock: SetClock) -> None:
    """In one event loop or in several, one after another."""
    assert asyncio.run(lookups.get("a")) == "a 1"
    clock.forward(seconds=SECONDS - 0.001)
    assert asyncio.run(lookups.get("a")) == "a 1"
    clock.forward(seconds=0.001)
    assert asyncio.run(lookups.get("a")) == "a 2"
    assert world.looks == {"a": 2}


def test_what_is_good_for_no_time_is_looked_up_each_time(clock: SetClock) -> None:
    world = World(seconds=0)
    lookups = Lookups(world.look, clock, most=3)
    assert [asyncio.run(lookups.get("a")) for _ in range(3)] == ["a 1", "a 2", "a 3"]


def test_a_clock_that_is_set_back_makes_nothing_last_longer(
    lookups: Lookups[str, str], world: World, clock: SetClock
) -> None:
    asyncio.run(lookups.get("a"))
    clock.forward(seconds=-0.001)
    assert asyncio.run(lookups.get("a")) == "a 2"
    world.failure = NotFetched("fetch_timeout", "it is slow")
    refusal(lookups, "b")
    clock.forward(days=-1)
    world.failure = None
    assert asyncio.run(lookups.get("b")) == "b 2"
    # What was found while the clock was wrong is good for its time by the clock that is right.
    clock.forward(days=1)
    assert asyncio.run(lookups.get("b")) == "b 3"


@pytest.mark.parametrize(
    ("failure", "seconds"),
    [
        (NotFetched("fetch_timeout", "it is slow"), FAILURE_SECONDS),
        (NotFetched("fetch_status", "it is busy", status=503, retry_after=0), FAILURE_SECONDS),
        (NotFetched("fetch_status", "it is busy", status=503, retry_after=5), FAILURE_SECONDS),
        (NotFetched("fetch_status", "it is busy", status=429, retry_after=120), 120),
        (NotFetched("fetch_status", "it is busy", status=429, retry_after=10**9 - 1), MOST_FAILURE_SECONDS),
        (NotAccepted("address_not_allowed", "it is not asked"), FAILURE_SECONDS),
    ],
    ids=str,
)
def test_a_failure_is_kept_for_its_time_and_then_tried_again(
    lookups: Lookups[str, str], world: World, clock: SetClock, failure: StaylogError, seconds: int
) -> None:
    """As long as its server wishes, within bounds; and then it recovers."""
    world.failure = failure
    told = [refusal(lookups, "a")]
    clock.forward(seconds=10)
    told.append(refusal(lookups, "a"))
    clock.forward(seconds=seconds - 10 - 0.25)
    told.append(refusal(lookups, "a"))
    assert world.looks == {"a": 1}
    for each in told:
        assert (type(each), each.code, each.message) == (type(failure), failure.code, failure.message)
    if isinstance(failure, NotFetched):
        assert {each.status for each in told if isinstance(each, NotFetched)} == {failure.status}
        # When it is worth asking again, never at once.
        assert [each.retry_after for each in told if isinstance(each, NotFetched)] == [seconds, seconds - 10, 1]
    world.failure = None
    clock.forward(seconds=0.25)
    assert asyncio.run(lookups.get("a")) == "a 2"
    clock.forward(seconds=SECONDS - 1)
    assert asyncio.run(lookups.get("a")) == "a 2"


def test_a_value_that_is_no_longer_good_is_not_served_when_nothing_comes(
    lookups: Lookups[str, str], world: World, clock: SetClock
) -> None:
    asyncio.run(lookups.get("a"))
    world.failure = NotFetched("fetch_timeout", "it is slow")
    assert asyncio.run(lookups.get("a")) == "a 1"
    clock.forward(seconds=SECONDS)
    assert refusal(lookups, "a").code == "fetch_timeout"


def test_each_who_is_refused_gets_an_exception_of_their_own(lookups: Lookups[str, str], world: World) -> None:
    """Whoever raises one writes into it: where it came from, and what it came of."""
    for failure in (NotFetched("fetch_timeout", "it is slow"), NotAccepted("address_not_allowed", "it is not asked")):
        world.failure = failure

        async def ask_often(key: str) -> list[BaseException | str]:
            return await asyncio.gather(*(lookups.get(key) for _ in range(5)), return_exceptions=True)

        together = asyncio.run(ask_often(failure.code))
        one_by_one = [refusal(lookups, failure.code) for _ in range(3)]
        raised = {id(each) for each in (*together, *one_by_one, failure)}
        assert len(raised) == 9
        assert {type(each) for each in (*together, *one_by_one)} == {type(failure)}


def ask(count: int, world: World, get: Callable[[str], Awaitable[str]]) -> list[str | BaseException]:
    """So many ask for the same, and all are there before anything is found."""

    async def together() -> list[str | BaseException]:
        world.gate = asyncio.Event()
        asked = [asyncio.ensure_future(get("a")) for _ in range(count)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.looks["a"] == 1
        world.gate.set()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        world.gate = None
        return answers

    return asyncio.run(together())


def test_a_thousand_who_ask_at_once_cause_one_look(lookups: Lookups[str, str], world: World) -> None:
    assert ask(1000, world, lookups.get) == ["a 1"] * 1000
    assert world.looks == {"a": 1}
    assert asyncio.run(lookups.get("a")) == "a 1"


def test_a_thousand_who_ask_at_once_for_what_fails_cause_one_look(lookups: Lookups[str, str], world: World) -> None:
    world.failure = NotFetched("fetch_timeout", "it is slow")
    answers = ask(1000, world, lookups.get)
    assert {each.code for each in answers if isinstance(each, NotFetched)} == {"fetch_timeout"}
    assert len({id(each) for each in answers}) == 1000
    assert world.looks == {"a": 1}


def test_different_keys_do_not_wait_for_each_other(lookups: Lookups[str, str], world: World) -> None:
    async def together() -> None:
        world.gate = asyncio.Event()
        waiting = asyncio.ensure_future(lookups.get("a"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert world.looks == {"a": 1}
        gate, world.gate = world.gate, None
        assert await lookups.get("b") == "b 1"
        assert not waiting.done()
        gate.set()
        assert await waiting == "a 1"

    asyncio.run(together())


@pytest.mark.parametrize("leaving", [[0], [1], [0, 1], [2, 0]])
def test_whoever_goes_away_takes_nothing_from_the_others(
    lookups: Lookups[str, str], world: World, leaving: list[int]
) -> None:
    """The first, too, for whom it is being looked up."""

    async def together() -> list[str | BaseException]:
        world.gate = asyncio.Event()
        asked = [asyncio.ensure_future(lookups.get("a")) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        for number in leaving:
            asked[number].cancel()
        await asyncio.sleep(0)
        world.gate.set()
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = asyncio.run(together())
    for number, answer in enumerate(answers):
        assert isinstance(answer, asyncio.CancelledError) if number in leaving else answer == "a 1"
    assert world.looks == {"a": 1}


def test_what_is_looked_up_for_nobody_any_more_is_found_all_the_same(lookups: Lookups[str, str], world: World) -> None:
    async def leave() -> None:
        world.gate = asyncio.Event()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(lookups.get("a"), 0.001)
        world.gate.set()
        assert await lookups.get("a") == "a 1"

    asyncio.run(leave())
    assert world.looks == {"a": 1}


def test_a_loop_that_ends_in_the_middle_leaves_nothing_behind(lookups: Lookups[str, str], world: World) -> None:
    """The next one looks again, and does not wait for what will never come."""

    async def leave() -> None:
        world.gate = asyncio.Event()
        asked = asyncio.ensure_future(lookups.get("a"))
        await asyncio.sleep(0.001)
        assert not asked.done()

    asyncio.run(leave())
    world.gate = None
    assert asyncio.run(lookups.get("a")) == "a 2"


def test_the_most_that_were_used_last_are_kept(lookups: Lookups[str, str], world: World) -> None:
    for key in ("a", "b", "c", "a", "d"):
        asyncio.run(lookups.get(key))
    # `b` was used longest ago.
    for key in ("a", "c", "d"):
        assert asyncio.run(lookups.get(key)) == f"{key} 1"
    assert asyncio.run(lookups.get("b")) == "b 2"
    assert world.looks == {"a": 1, "b": 2, "c": 1, "d": 1}


@pytest.mark.parametrize("failure", [None, NotFetched("fetch_timeout", "it is slow")], ids=str)
def test_never_more_are_kept_than_the_most(
    lookups: Lookups[str, str], world: World, failure: NotFetched | None
) -> None:
    """Though many ask for many at once; and not of what failed either."""
    world.failure = failure

    async def ask_for(numbers: range) -> int:
        """How many of them had to be looked up."""
        before = world.looks.total()
        await asyncio.gather(*(lookups.get(f"{number}") for number in numbers), return_exceptions=True)
        return world.looks.total() - before

    assert asyncio.run(ask_for(range(100))) == 100
    assert asyncio.run(ask_for(range(97, 100))) == 0
    assert asyncio.run(ask_for(range(97))) == 97


def test_what_is_forgotten_is_looked_up_again(lookups: Lookups[str, str], world: World) -> None:
    assert [asyncio.run(lookups.get(key)) for key in ("a", "b")] == ["a 1", "b 1"]
    lookups.forget("a")
    lookups.forget("never asked for")
    assert [asyncio.run(lookups.get(key)) for key in ("a", "b")] == ["a 2", "b 1"]


class Value:
    """Something that can be seen to be gone."""


def test_what_is_good_no_more_is_gone_from_memory(clock: SetClock) -> None:
    """Soon after, though nobody asks for it again; what is good stays."""
    seen: dict[str, ref[Value]] = {}

    async def look(key: str) -> Found[Value]:
        value = Value()
        seen[key] = ref(value)
        return Found(value, {"short": 10, "long": 1000}.get(key, 0))

    lookups = Lookups(look, clock, most=10)
    for key in ("short", "long"):
        asyncio.run(lookups.get(key))
    clock.forward(seconds=120)
    asyncio.run(lookups.get("other"))
    collect()
    assert seen["short"]() is None
    assert seen["long"]() is not None


def test_what_is_unexpected_is_not_kept(lookups: Lookups[str, str], world: World) -> None:
    """It is raised to all who wait, and the next one looks again."""
    for failure in (RuntimeError("a fault of ours"), StaylogError("internal_error", "another one")):
        world.looks.clear()
        world.failure = failure
        assert ask(3, world, lookups.get) == [failure] * 3
        with pytest.raises(type(failure)):
            asyncio.run(lookups.get("a"))
        assert world.looks == {"a": 2}
    world.failure = None
    assert asyncio.run(lookups.get("a")) == "a 3"


@pytest.mark.parametrize(
    ("max_age", "longest", "seconds"),
    [
        (None, 300, 300),
        (0, 300, LEAST_SECONDS),
        (LEAST_SECONDS - 1, 300, LEAST_SECONDS),
        (LEAST_SECONDS, 300, LEAST_SECONDS),
        (100, 300, 100),
        (300, 300, 300),
        (301, 300, 300),
        (10**9 - 1, 300, 300),
        (10**9 - 1, 3600, 3600),
    ],
)
def test_lifetimes(max_age: int | None, longest: int, seconds: int) -> None:
    assert lifetime(max_age, longest) == seconds


@given(st.none() | st.integers(0, 10**9), st.integers(LEAST_SECONDS, 10**6))
def test_a_lifetime_is_within_its_bounds_and_what_the_server_says_if_that_is(max_age: int | None, longest: int) -> None:
    seconds = lifetime(max_age, longest)
    assert LEAST_SECONDS <= seconds <= longest
    if max_age is not None and LEAST_SECONDS <= max_age <= longest:
        assert seconds == max_age
