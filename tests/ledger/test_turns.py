"""Turns: as many as may at once, some wait, the rest are told to come back."""

from threading import Barrier, Event, Thread

import pytest

from ledger.errors import Unavailable
from ledger.turns import Turns
from tests.waiting import refused_at_once, until


def test_as_many_as_may_go_on_and_some_wait() -> None:
    turns, inside, go_on = Turns("tea", at_once=2, waiting=1), Barrier(3), Event()
    order: list[str] = []

    def work() -> None:
        with turns:
            inside.wait()
            go_on.wait()

    def late() -> None:
        with turns:
            order.append("late")

    threads = [Thread(target=work), Thread(target=work)]
    for thread in threads:
        thread.start()
    inside.wait()
    waiting = Thread(target=late)
    waiting.start()
    until(lambda: turns._places._value == 0)
    refused = refused_at_once(turns.__enter__)
    assert (type(refused), refused.code) == (Unavailable, "busy")
    assert "too many wait for tea already" in refused.message
    assert order == []
    go_on.set()
    for thread in (*threads, waiting):
        thread.join()
    assert order == ["late"]
    with turns, turns:
        pass


def test_a_turn_ends_with_an_error_too() -> None:
    turns = Turns("tea", at_once=1, waiting=0)
    for _ in range(3):
        with pytest.raises(ValueError), turns:
            raise ValueError
    with turns:
        pass
