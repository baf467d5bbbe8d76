"""The one fetcher against real servers with TLS on this machine: what comes, and what goes wrong."""

import asyncio
import socket
from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from prometheus_client import REGISTRY

from ledger.errors import NotFetched
from ledger.net import profiles
from ledger.net.fetch import Fetched, Fetcher
from ledger.net.profiles import DID, LISTING, Profile
from tests.ledger.net.visiting import (
    AGENT,
    BRIEF,
    SMALL,
    URL,
    Visitor,
    chunked,
    raw,
)
from tests.network import Neighbourhood, Request, response

# What comes


def test_a_good_answer(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    url = "https://idv.example/a/b?c=d&e=%C3%A9"
    neighbourhood.put(url, {"id": "é"})
    fetched = visitor.get(url)
    assert fetched == Fetched(url, b'{"id": "\\u00e9"}', None)
    assert fetched.json() == {"id": "é"}
    assert neighbourhood.requests == {url: 1}
    assert neighbourhood.connections == 1


def test_a_url_in_another_spelling_is_asked_in_one(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put("https://idv.example/A?b", {})
    assert visitor.get("https://IDV.example:443/A?b").url == "https://idv.example/A?b"
    neighbourhood.put("https://idv.example/x/../y//z/%2e%2E", {})
    assert visitor.get("https://idv.example/x/../y//z/%2e%2E").body == b"{}"


@pytest.mark.parametrize(
    ("name", "max_bytes", "seconds", "redirects"),
    [
        ("listing", 256 * 1024, 10, 3),
        ("manifest", 2 * 1024 * 1024, 10, 3),
        ("credential", 64 * 1024, 3, 0),
        ("did", 64 * 1024, 3, 0),
        ("jwks", 64 * 1024, 3, 0),
        ("discovery", 64 * 1024, 3, 0),
        ("status_list", 1024 * 1024, 3, 0),
        ("offer", 64 * 1024, 5, 0),
        ("hint", 64 * 1024, 3, 0),
        ("callback", 64 * 1024, 5, 0),
    ],
)
def test_profiles_have_the_limits_of_the_design(name: str, max_bytes: int, seconds: int, redirects: int) -> None:
    """And there are no others."""
    [profile] = [profile for profile in profiles.PROFILES if profile.name == name]
    assert replace(profile, trusted=False) == Profile(name, max_bytes, seconds, redirects)
    assert getattr(profiles, name.upper()) is profile
    assert len(profiles.PROFILES) == 10


def test_how_long_an_answer_may_be_kept(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for said, max_age in {
        "": None,
        "max-age=60": 60,
        "public, max-age=5": 5,
        'MAX-AGE="7", must-revalidate': 7,
        "max-age=0": 0,
        "max-age=99999999999999": 999999999,
        "no-store": 0,
        "no-cache, max-age=60": 0,
        "max-age=60, NO-STORE": 0,
        "s-maxage=9": None,
        "max-age=-1": None,
        "max-age=soon": None,
        "public": None,
    }.items():
        neighbourhood.put(URL, {}, cache_control=said)
        assert visitor.get().max_age == max_age, said


def test_how_long_an_answer_may_be_kept_may_be_said_in_two_lines(
    visitor: Visitor, neighbourhood: Neighbourhood
) -> None:
    """They are one (RFC 9110, 5.3)."""
    neighbourhood.put(URL, {}, cache_control="public\r\ncache-control: no-store")
    assert visitor.get().max_age == 0


def test_json_under_all_its_names(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for media_type in (
        *("application/json", "application/json; charset=utf-8", "application/json;charset=utf-8", "Application/JSON"),
        *("application/did+json", "application/did+ld+json", "application/vc", "application/ld+json"),
        *("application/vc+ld+json", "application/vc+ld+json; profile=x", "application/problem+json"),
    ):
        neighbourhood.put(URL, {}, media_type=media_type)
        assert visitor.get().json() == {}, media_type


def test_what_is_not_json(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for media_type in (
        *("", "text/html", "text/plain", "text/json", "application/octet-stream", "application/jsonp", "json"),
        *("application/json, text/html", "application/xml+json+html", "application/+json", "application/vcx", ";"),
        *("application/xjson", "application/vc+jwt", "multipart/form-data; boundary=application/json", "é/json"),
    ):
        neighbourhood.put(URL, {}, media_type=media_type)
        assert visitor.code() == "fetch_not_json", media_type


def test_what_says_it_is_json_and_is_not(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for body in (b"", b"<html>", b'{"a":1,"a":2}', b"\xff", b"NaN", b"{}{}", b"[" * 4000):
        neighbourhood.put(URL, body)
        fetched = visitor.get()
        with pytest.raises(NotFetched) as refusal:
            fetched.json()
        assert refusal.value.code == "fetch_not_json"
        assert URL in refusal.value.message


def test_compressed_answers_are_refused(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Unread: what is small on the way may be large at home."""
    for coding in ("gzip", "br", "deflate", "zstd", "x-gzip", "GZIP", "identity, gzip", "compress"):
        neighbourhood.put(URL, {}, content_encoding=coding)
        assert visitor.code() == "fetch_encoded", coding
    for coding in ("identity", "Identity", ""):
        neighbourhood.put(URL, {}, content_encoding=coding)
        assert visitor.get().body == b"{}", coding


def test_statuses(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for status in (101, 201, 202, 203, 204, 205, 206, 400, 401, 403, 404, 407, 410, 418, 500, 502, 599):
        neighbourhood.handle(URL, raw(response(b"" if status in (101, 204, 205) else b"{}", status)))
        refusal = visitor.refused()
        assert isinstance(refusal, NotFetched)
        assert (refusal.code, refusal.status, refusal.retry_after) == ("fetch_status", status, None)
        assert str(status) in refusal.message


@pytest.mark.parametrize("status", [429, 503])
def test_when_to_ask_again(visitor: Visitor, neighbourhood: Neighbourhood, status: int) -> None:
    for said, seconds in {
        "120": 120,
        "0": 0,
        "": None,
        "-1": None,
        "1.5": None,
        "soon": None,
        "٣": None,
        "1e9": None,
        "999999999": 999999999,
        "9999999999": None,
        "Fri, 31 Dec 2027 23:59:59 GMT": None,
    }.items():
        neighbourhood.put(URL, {}, status=status, retry_after=said)
        refusal = visitor.refused()
        assert isinstance(refusal, NotFetched)
        assert (refusal.code, refusal.status, refusal.retry_after) == ("fetch_status", status, seconds), said


# What goes wrong


def test_nobody_listens(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, {})
    neighbourhood.take_down("idv.example")
    assert visitor.code() == "fetch_unreachable"
    neighbourhood.bring_back("idv.example")
    assert visitor.get().body == b"{}"


def test_a_name_that_is_not_known(visitor: Visitor) -> None:
    for error in (socket.EAI_NONAME, socket.EAI_AGAIN, socket.EAI_FAIL, socket.EAI_NODATA):

        async def lookup(_host: str, error: int = error) -> list[str]:
            raise socket.gaierror(error, "there is no such name")

        refusal = replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup)).refused()
        assert (refusal.code, refusal.message) == ("fetch_unresolved", "the name idv.example is not known")


def test_a_name_without_an_address(visitor: Visitor) -> None:
    async def lookup(_host: str) -> list[str]:
        return []

    assert replace(visitor, fetcher=Fetcher(AGENT, lookup=lookup)).code() == "fetch_unresolved"


BROKEN = {
    "nothing": [b""],
    "no HTTP": [b"nonsense\r\n\r\n"],
    "half a line": [b"HTTP/1.1 2"],
    "half a head": [b"HTTP/1.1 200 X\r\ncontent-type: appl"],
    "another version": [b"HTTP/2 200\r\n\r\n"],
    "no status": [b"HTTP/1.1 20x X\r\n\r\n"],
    "no length": [response(b"{}", content_length="x")],
    "a negative length": [response(b"{}", content_length="-2")],
    "two lengths": [response(b"{}", content_length="2\r\ncontent-length: 3")],
    "cut short": [response(b"{}", content_length="5")],
    "cut short in parts": [response(b"", content_length="5"), b"{}"],
    "a chunk is missing": [chunked(b"{}")[:-5]],
    "an end is missing": [chunked(b"{}")[:-2]],
    "no chunk": [chunked(b"{}").replace(b"\r\n2\r\n", b"\r\nzz\r\n")],
    "a length and chunks": [response(b"{}", transfer_encoding="chunked")],
    "a header without a name": [b"HTTP/1.1 200 X\r\n: y\r\n\r\n"],
    "a header with NUL": [b"HTTP/1.1 200 X\r\nx\0: y\r\n\r\n"],
    "TLS inside": [b"\x16\x03\x01\x00\x05hello"],
}


def test_broken_http(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    for kind, parts in BROKEN.items():
        neighbourhood.handle(URL, raw(*parts))
        assert visitor.code() == "fetch_unreachable", kind
        assert neighbourhood.requests.pop(URL) == 1, f"{kind}: asked again"


def test_broken_chunks_make_no_whole_answer(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Though what came before them would be one. aiohttp leaves some of them to the time."""
    for broken in (b"zz\r\n\r\n", b"-2\r\n{}\r\n", b"0\r\nx\r\n\r\n"):
        neighbourhood.handle(URL, raw(chunked(b"")[:-5], b"2\r\n{}\r\n", broken, b"0\r\n\r\n"))
        assert visitor.code(profile=BRIEF) in ("fetch_unreachable", "fetch_timeout")


def test_whatever_comes_is_an_answer_or_a_refusal(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Answers with random damage, whole and in parts: never another error, and never more than was allowed."""
    good = [
        response(b'{"a": 1}', cache_control="max-age=5", set_cookie='a="b"; path=/; max-age=1'),
        chunked(b'{"a": 1, "b": 2}', 5),
        response(b"{}", content_length=""),
        b"HTTP/1.1 100 X\r\n\r\nHTTP/1.1 103 Y\r\nlink: </a>; rel=x\r\n\r\n" + response(b"{}", set_cookie="a=\\777"),
        response(b"", 101, content_length="", upgrade="websocket", connection="upgrade"),
        response(b"{}", 503, retry_after="5"),
        response(b"{}", 304, location="/"),
    ]
    inserted = (b"\r\n", b"\n", b"\0", b":", b"\xff", b"-", b"\r\n\r\n", b"chunked", b"a" * 9000, b";" * 9, b"9" * 30)
    random, parts = Random(1), [b""]

    async def answer(_request: Request, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await writer.drain()

    async def ask_often() -> Counter[str]:
        outcomes: Counter[str] = Counter()
        for _ in range(250):
            data = random.choice(good)
            for _ in range(random.randrange(4)):
                place = random.randrange(len(data) + 1)
                data = random.choice(
                    [
                        data[:place] + random.choice(inserted) + data[place:],
                        data[:place] + random.randbytes(1) + data[place + 1 :],
                        data[:place] + data[place + random.randrange(9) :],
                        data[:place],
                    ]
                )
            cut = random.randrange(len(data) + 1)
            parts[:] = random.choice([[data], [data[:cut], data[cut:]]])
            try:
                fetched = await visitor.fetcher.fetch(URL, SMALL)
                assert len(fetched.body) <= SMALL.max_bytes
                outcomes["fetched"] += 1
            except NotFetched as refusal:
                outcomes[refusal.code] += 1
        return outcomes

    neighbourhood.handle(URL, answer)
    outcomes = visitor.run(ask_often())
    assert outcomes.keys() >= {"fetched", "fetch_unreachable", "fetch_status", "fetch_not_json"}


# What is counted


def test_every_outcome_is_counted(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    def counted(profile: str, outcome: str) -> float:
        return REGISTRY.get_sample_value("staylog_fetches_total", {"profile": profile, "outcome": outcome}) or 0

    neighbourhood.put(URL, {})
    neighbourhood.put("https://idv.example/gone", {}, status=410)
    neighbourhood.put("https://idv.example/html", b"<html>", media_type="text/html")
    neighbourhood.put("https://idv.example/elsewhere", b"", status=302, location="https://other.example/")
    expected = [
        (DID, URL, "fetched"),
        (LISTING, URL, "fetched"),
        (DID, "https://idv.example/gone", "fetch_status"),
        (DID, "https://idv.example/html", "fetch_not_json"),
        (LISTING, "https://idv.example/elsewhere", "fetch_redirected"),
        (LISTING, "https://127.0.0.1/", "address_not_allowed"),
    ]
    for profile, url, outcome in expected:
        before = {(name.name, code): counted(name.name, code) for name in (DID, LISTING) for _, _, code in expected}
        if outcome == "fetched":
            visitor.get(url, profile)
        else:
            assert visitor.code(url, profile) == outcome
        after = {key: counted(*key) for key in before}
        assert {key for key in before if after[key] != before[key]} == {(profile.name, outcome)}
        assert after[profile.name, outcome] == before[profile.name, outcome] + 1
