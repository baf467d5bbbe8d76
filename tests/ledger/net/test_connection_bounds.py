"""Which connections are taken, refused and given up."""

from ledger.net.addresses import parse_proxies
from ledger.net.connection_bounds import ADDRESSES_OF_A_SITE, ConnectionBounds, Full


def test_gives_up_the_connection_that_waited_longest() -> None:
    bounds: ConnectionBounds[str] = ConnectionBounds(3, None)
    for name in ("a", "b", "c"):
        assert bounds.enter(name, "192.0.2.1") == (None, None)
    bounds.work("a")
    bounds.wait("b")
    assert bounds.enter("d", "192.0.2.1") == (None, "c")
    assert bounds.enter("e", "192.0.2.1") == (None, "b")
    bounds.wait("a")
    assert bounds.enter("f", "192.0.2.1") == (None, "d")
    assert len(bounds) == 3


def test_refuses_when_all_are_being_answered() -> None:
    bounds: ConnectionBounds[int] = ConnectionBounds(2, None)
    for number in range(2):
        bounds.enter(number, "192.0.2.1")
        bounds.work(number)
    assert bounds.refusal("192.0.2.1") is Full.ALL
    assert bounds.enter(2, "192.0.2.1") == (Full.ALL, None)
    bounds.leave(0)
    assert bounds.refusal("192.0.2.1") is None
    assert bounds.enter(2, "192.0.2.1") == (None, None)


def test_an_address_has_its_own_bound_and_gives_up_its_own() -> None:
    bounds: ConnectionBounds[str] = ConnectionBounds(10, 2)
    bounds.enter("other", "192.0.2.2")
    bounds.enter("first", "192.0.2.1")
    # The same address, as an IPv6 socket shows it.
    bounds.enter("second", "::ffff:192.0.2.1")
    assert bounds.enter("third", "192.0.2.1") == (None, "first")
    bounds.work("second")
    bounds.work("third")
    assert bounds.enter("fourth", "192.0.2.1") == (Full.ADDRESS, None)
    assert bounds.enter("another", "192.0.2.3") == (None, None)


def test_a_64_counts_as_one_address_and_a_48_has_a_bound() -> None:
    bounds: ConnectionBounds[int] = ConnectionBounds(100, 1)
    assert bounds.enter(0, "2001:db8:0:1::1") == (None, None)
    assert bounds.enter(1, "2001:db8:0:1::2") == (None, 0)
    for number in range(2, ADDRESSES_OF_A_SITE + 1):
        assert bounds.enter(number, f"2001:db8:0:{number}::1") == (None, None)
    bounds.work(1)
    assert bounds.enter(50, "2001:db8:0:ff::1") == (None, 2)
    for number in (3, 4, 50):
        bounds.work(number)
    assert bounds.enter(51, "2001:db8:0:fe::1") == (Full.NETWORK, None)
    assert bounds.enter(52, "2001:db8:1::1") == (None, None)


def test_trusted_proxies_have_no_bound_of_their_own() -> None:
    bounds: ConnectionBounds[int] = ConnectionBounds(5, 1, parse_proxies("::ffff:10.0.0.0/104"))
    for number in range(5):
        assert bounds.enter(number, "10.1.2.3" if number % 2 else "::ffff:10.1.2.3") == (None, None)
    assert bounds.enter(5, "10.1.2.3") == (None, 0)


def test_an_unreadable_address_counts_as_one() -> None:
    bounds: ConnectionBounds[int] = ConnectionBounds(5, 1)
    assert bounds.enter(0, "") == (None, None)
    assert bounds.enter(1, "/run/socket") == (None, 0)


def test_forgets_connections_that_have_left() -> None:
    bounds: ConnectionBounds[int] = ConnectionBounds(2, 1)
    for number in range(100):
        bounds.enter(number, f"2001:db8:{number:x}::1")
    for number in range(100):
        bounds.leave(number)
        bounds.wait(number)
        bounds.work(number)
    assert len(bounds) == 0
    assert not bounds._groups
    assert not bounds._members
    assert not bounds._all.waiting
