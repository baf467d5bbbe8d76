"""Where an answer leads, and to which addresses nobody is led."""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pytest
from aiohttp import ClientConnectorError

from ledger.errors import NotAccepted
from ledger.net import profiles, wire
from ledger.net.development import Development
from ledger.net.fetch import Fetched, Fetcher
from ledger.net.guard import check_url
from ledger.net.profiles import DID, LISTING
from tests.ledger.net.visiting import (
    AGENT,
    FOLLOWING,
    SMALL,
    URL,
    Trap,
    Visitor,
    raw,
)
from tests.network import Neighbourhood, response

# Where it leads


ELSEWHERE = (
    *("https://other.example/", "//other.example/", "https://sub.idv.example/", "https://idv.example.other.example/"),
    *("http://idv.example/", "http://other.example/", "https://127.0.0.1:{port}/", "https://127.0.0.1/"),
    *("https://2130706433/", "https://[::1]/", "https://localhost:{port}/", "https://idv.example:{port}/"),
    *("https://idv.example@127.0.0.1:{port}/", "https://guest@idv.example/", "\\\\127.0.0.1\\", "file:///etc/passwd"),
    *("https://idv.example/\u00e9", "https://idv.example/" + "a" * 3000),
    # What no reader of URLs can read.
    *("https://[", "//[::1", "https://idv.example]/", "https://a\u2100b.example/", "//[x]/"),
)


def test_nobody_is_followed_elsewhere(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Neither to another host, nor to another scheme or port, nor inside."""
    for name in ("other.example", "sub.idv.example", "idv.example.other.example"):
        neighbourhood.put(f"https://{name}/", {})
    for number, location in enumerate(ELSEWHERE):
        for status in (301, 302, 303, 307, 308):
            neighbourhood.put(URL, b"", status=status, location=location.format(port=neighbourhood.port))
            profile = (SMALL, FOLLOWING)[(number + status) % 2]
            assert visitor.code(profile=profile) == "fetch_redirected", location
    assert neighbourhood.requests == {URL: 5 * len(ELSEWHERE)}
    assert neighbourhood.connections == 5 * len(ELSEWHERE)


def chain(neighbourhood: Neighbourhood, length: int, status: int = 302) -> list[str]:
    """So many redirects and an answer, all of one host."""
    urls = [f"https://idv.example/{number}" for number in range(length + 1)]
    spellings = ("/{}", "https://idv.example/{}", "{}", "https://IDV.example:443/{}", "//idv.example/{}")
    for number, url in enumerate(urls[:-1]):
        location = spellings[number % len(spellings)].format(number + 1)
        neighbourhood.put(url, b"", status=status, location=location)
    neighbourhood.put(urls[-1], {"found": True})
    return urls


@pytest.mark.parametrize("length", [1, 2, 3])
def test_listings_are_followed_within_their_origin(visitor: Visitor, neighbourhood: Neighbourhood, length: int) -> None:
    for status in (301, 302, 303, 307, 308):
        neighbourhood.requests.clear()
        urls = chain(neighbourhood, length, status)
        assert visitor.get(urls[0], LISTING) == Fetched(urls[-1], b'{"found": true}', None)
        assert neighbourhood.requests == dict.fromkeys(urls, 1)


def test_listings_are_followed_three_times_at_most(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    urls = chain(neighbourhood, 4)
    assert visitor.code(urls[0], LISTING) == "fetch_redirected"
    assert neighbourhood.requests == dict.fromkeys(urls[:4], 1)


def test_a_chain_that_leaves_its_origin_is_left_there(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    urls = chain(neighbourhood, 2)
    neighbourhood.put("https://other.example/", {})
    neighbourhood.put(urls[1], b"", status=302, location="https://other.example/")
    assert visitor.code(urls[0], LISTING) == "fetch_redirected"
    assert neighbourhood.requests == dict.fromkeys(urls[:2], 1)


def test_loops_end(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, b"", status=302, location="/")
    assert visitor.code(profile=LISTING) == "fetch_redirected"
    assert neighbourhood.requests == {URL: 4}


def test_the_others_are_never_followed(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    urls = chain(neighbourhood, 1)
    others = [profile for profile in profiles.PROFILES if profile not in (LISTING, profiles.MANIFEST)]
    for profile in others:
        assert visitor.code(urls[0], profile) == "fetch_redirected", profile.name
    assert neighbourhood.requests == {urls[0]: len(others)}


@pytest.mark.parametrize("status", [300, 302, 304])
def test_a_redirect_to_nowhere_is_not_asked_again(visitor: Visitor, neighbourhood: Neighbourhood, status: int) -> None:
    neighbourhood.handle(URL, raw(response(b"", status)))
    for profile in (DID, LISTING):
        neighbourhood.requests.clear()
        assert visitor.code(profile=profile) in ("fetch_redirected", "fetch_status")
        assert neighbourhood.requests == {URL: 1}


# Which addresses


INSIDE = (
    *(["127.0.0.1"], ["::1"], ["10.0.0.5"], ["169.254.169.254"], ["0.0.0.0"], ["::"], ["fe80::1%lo"], ["224.0.0.1"]),
    *(["::ffff:20.1.1.1"], ["64:ff9b::1401:101"], ["localhost"], ["20.1.1.1 "], ["idv.example"], [""]),
    *(["20.1.1.1", "10.0.0.5"], ["10.0.0.5", "20.1.1.1"], ["20.1.1.1", "2600:1f00::1", "::1"], ["20.1.1.1", ""]),
)


def test_names_that_lead_inside_are_not_asked(visitor: Visitor) -> None:
    """Nor if only one of their addresses does. Which one is not told."""
    answers, looked = list(INSIDE), Counter[str]()

    async def lookup(host: str) -> list[str]:
        looked[host] += 1
        return answers[0]

    asking = replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup))
    while answers:
        refusal = asking.refused()
        assert isinstance(refusal, NotAccepted)
        assert refusal.code == "address_not_allowed"
        assert not any(address in refusal.message for address in answers[0] if address not in ("", "idv.example"))
        answers.pop(0)
    assert looked == {"idv.example": len(INSIDE)}


def test_a_name_that_leads_to_a_trap_on_this_machine_springs_none(
    visitor: Visitor, neighbourhood: Neighbourhood
) -> None:
    """On the port that would be asked; alone, with a public address, and beside the hosts of a developer."""
    # A worker's own address, so that another one's trap is not in the way.
    address = f"127.{64 + os.getpid() % 64}.{os.getpid() // 64 % 256}.{os.getpid() // 64 // 256 % 254 + 1}"
    try:
        trap = Trap(address, wire.PORT)
    except PermissionError:
        pytest.skip("not permitted to listen on port 443 here")
    neighbourhood.put("https://known.example/", {})
    for addresses in ([address], ["20.1.1.1", address], [address, "20.1.1.1"], [f"::ffff:{address}"]):

        async def lookup(_host: str, given: Sequence[str] = addresses) -> list[str]:
            return list(given)

        for development in (Development(), neighbourhood.development):
            asking = replace(visitor, fetcher=Fetcher(AGENT, development, lookup))
            assert asking.code() == "address_not_allowed"
    with trap:
        assert trap.connections == 0


def test_literals_are_not_even_looked_up(visitor: Visitor) -> None:
    async def lookup(host: str) -> list[str]:
        raise AssertionError(f"{host} was looked up")

    asking = replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup))
    with Trap() as trap:
        for host in ("127.0.0.1", "2130706433", "0x7f.1", "0177.1", "[::1]", "[::ffff:127.0.0.1]", "localhost"):
            assert asking.code(f"https://{host}/") == "address_not_allowed"
            assert asking.code(f"https://{host}:{trap.port}/") == "address_not_allowed"
        assert trap.connections == 0


def test_no_socket_is_made_for_an_address_that_is_not_public(neighbourhood: Neighbourhood) -> None:
    """Whoever says that it should be connected: what was looked up is not the only way."""
    neighbourhood.host("idv.example")
    for fetcher in (Fetcher(AGENT), Fetcher(AGENT, neighbourhood.development)):
        for address in ("127.0.0.1", "10.0.0.5", "169.254.169.254", "0.0.0.0", "224.0.0.1"):
            for port in (443, 80, 1):
                with pytest.raises(PermissionError):
                    fetcher._socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)))
        for address in ("::1", "::ffff:20.1.1.1", "fe80::1", "64:ff9b::1401:101", "::"):
            with pytest.raises(PermissionError):
                fetcher._socket((socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, 443, 0, 0)))
        # Made, not connected.
        fetcher._socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", ("20.1.1.1", 443))).close()
    here = (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", neighbourhood.port))
    fetcher._socket(here).close()
    with pytest.raises(PermissionError):
        Fetcher(AGENT)._socket(here)


def test_a_session_connects_to_no_literal_either(visitor: Visitor) -> None:
    """aiohttp does not look up what is an address already; the socket is refused all the same."""

    async def ask(url: str) -> None:
        async with asyncio.timeout(5), visitor.fetcher._session(check_url(URL), SMALL) as session:
            with pytest.raises(ClientConnectorError):
                await session.get(url)

    with Trap() as trap:
        visitor.run(ask(f"https://127.0.0.1:{trap.port}/"))
        visitor.run(ask(f"http://127.0.0.1:{trap.port}/"))
        visitor.run(ask(f"http://[::ffff:127.0.0.1]:{trap.port}/"))
        assert trap.connections == 0
