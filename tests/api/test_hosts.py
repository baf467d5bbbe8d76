"""The reputation answer over HTTP: proofs, conditional requests, paging, DIDs in URLs, and what is kept in memory."""

import json
from contextlib import AbstractContextManager
from itertools import count
from threading import current_thread
from typing import Any, cast

import msgspec
import pytest
from litestar.types import HTTPScope
from sqlalchemy import Connection

from api import hosts
from api.caching import OVERHEAD, AnswerCache, Kept, wants_newer_than
from api.reputation_shape import Reputation
from audits.verify import verify_answer, verify_pages
from ledger.reputation import answers
from tests.api.conftest import BUSY, HOSTS, Service

COTTAGE = HOSTS[0]
WITH_PORT = HOSTS[1]


def address(host: str, query: str = "") -> str:
    return f"/v1/hosts/{host.replace('%', '%25')}/reputation{'?' if query else ''}{query}"


@pytest.mark.parametrize("host", [*HOSTS, "did:web:unknown.example"])
@pytest.mark.parametrize("text", ["verified", "all", "none"])
def test_answers_are_proved(service: Service, host: str, text: str) -> None:
    for kind in ("full", "aggregate"):
        response = service.get(address(host, f"proof={kind}&text={text}&limit=100"))
        assert response.headers["content-type"] == "application/json"
        report = verify_answer(response.content, service.ledger.verifier, host, kind=kind, text=text)
        assert report.withheld == []


def test_pages_are_a_full_answer_together(service: Service) -> None:
    size = service.ledger.reader.published.size
    pages = [
        service.get(address(BUSY, f"proof=page&from={start}&count=402&size={size}")).content for start in (0, 402, 804)
    ]
    verify_pages(pages, service.ledger.verifier, BUSY)
    assert service.get(address(BUSY, "proof=page")).json()["proof"]["from"] == 0


def test_an_older_size_is_answered_as_it_was(service: Service) -> None:
    older = service.world.log.published[4].size
    response = service.get(address(COTTAGE, f"proof=full&size={older}"))
    assert verify_answer(response.content, service.ledger.verifier, COTTAGE).size == older


@pytest.mark.parametrize("query", ["", "proof=full", "proof=aggregate", "proof=page", "text=none", "limit=1"])
@pytest.mark.parametrize("host", [COTTAGE, "did:web:unknown.example"])
def test_the_document_describes_the_answer(service: Service, query: str, host: str) -> None:
    """Members that the OpenAPI document does not know are refused here."""
    msgspec.json.decode(service.get(address(host, query)).content, type=Reputation)


def test_reviews_are_listed_page_by_page(service: Service) -> None:
    everything = service.get(address(COTTAGE, "limit=100")).json()
    assert everything["next_cursor"] is None
    listed: list[Any] = []
    query = "limit=3"
    for _ in count():
        page = service.get(address(COTTAGE, query)).json()
        listed += page["review_history"]
        if page["next_cursor"] is None:
            break
        query = f"limit=3&cursor={page['next_cursor']}"
    assert listed == everything["review_history"]
    assert len(listed) == everything["total_reviews"] > 9


def test_a_cursor_stays_on_its_checkpoint(fresh: Service) -> None:
    host = fresh.world.hosts[0]
    fresh.grow(*([lambda: fresh.world.review(host)] * 4))
    first = fresh.get(address(host, "limit=2")).json()
    fresh.grow(lambda: fresh.world.review(host))
    second = fresh.get(address(host, f"limit=2&cursor={first['next_cursor']}")).json()
    indices = [review["index"] for review in first["review_history"] + second["review_history"]]
    assert indices == sorted(indices, reverse=True)
    assert second["total_reviews"] == first["total_reviews"]


def test_the_percent_sign_of_a_did_is_escaped(service: Service) -> None:
    """One segment, decoded once: colons may be escaped too, if all of them are."""
    for segment in ("did:web:host1.example%253A8443", "did%3Aweb%3Ahost1.example%253A8443"):
        status, _, body = service.raw(f"/v1/hosts/{segment}/reputation")
        assert status == 200
        assert json.loads(body)["host_did"] == WITH_PORT
        assert json.loads(body)["total_reviews"] > 0


def test_an_unescaped_percent_sign_is_refused_with_what_to_write(service: Service) -> None:
    for segment, meant in (
        ("did:web:host1.example%3A8443", "did:web:host1.example%253A8443"),
        ("did:web:host1.example%3a8443", "did:web:host1.example%253a8443"),
    ):
        status, _, body = service.raw(f"//v1/hosts//{segment}/reputation")
        assert service.raw(f"/v1/hosts/{segment}/reputation")[2] == body
        problem = json.loads(body)
        assert (status, problem["code"]) == (400, "did_not_canonical")
        assert meant in problem["detail"]


def test_a_did_of_another_spelling_is_refused(service: Service) -> None:
    for did in (
        "did:web:host1.example%25253A8443",
        "did:web:host1.example:",
        "did:web:x%2Fy",
        "did:web:h%20x",
        "x",
        "%20",
    ):
        assert service.raw(f"/v1/hosts/{did}/reputation")[0] in (400, 404), did
    assert service.raw(f"/v1/hosts/did:web:{'a' * 300}/reputation")[0] == 400


def test_conditional_requests(service: Service) -> None:
    for query in ("", "proof=full"):
        first = service.get(address(COTTAGE, query))
        tag = first.headers["etag"]
        assert tag.startswith('"')
        assert tag.endswith('"')
        assert first.headers["cache-control"] == "public, max-age=30, must-revalidate"
        for value in (tag, f"W/{tag}", f'"other", {tag}', f'"a,b" ,W/{tag}', "*"):
            again = service.get(address(COTTAGE, query), if_none_match=value)
            assert (again.status_code, again.content) == (304, b""), value
            assert "content-type" not in again.headers
            for name in ("etag", "cache-control", "access-control-allow-origin"):
                assert again.headers[name] == first.headers[name]
        for value in ('"other"', tag.strip('"'), f'"{tag}', ""):
            assert service.get(address(COTTAGE, query), if_none_match=value).status_code == 200, value
    assert service.get(address(COTTAGE)).headers["etag"] != service.get(address(COTTAGE, "text=none")).headers["etag"]


def test_the_tag_changes_with_the_hosts_events_only(fresh: Service) -> None:
    mine, other = fresh.world.hosts[0], fresh.world.hosts[1]
    fresh.grow(lambda: fresh.world.review(mine))
    plain, proved = fresh.get(address(mine)), fresh.get(address(mine, "proof=full"))
    fresh.grow(lambda: fresh.world.review(other))
    assert fresh.get(address(mine), if_none_match=plain.headers["etag"]).status_code == 304
    assert fresh.get(address(mine, "proof=full")).headers["etag"] != proved.headers["etag"]
    fresh.grow(lambda: fresh.world.review(mine))
    newer = fresh.get(address(mine), if_none_match=plain.headers["etag"])
    assert newer.status_code == 200
    assert newer.json()["total_reviews"] == plain.json()["total_reviews"] + 1


def test_a_warm_repeat_asks_the_database_nothing(fresh: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody but the threads that write, follow and see to what waits reads."""
    readers: list[str] = []
    read = fresh.ledger.store.read

    def noted() -> AbstractContextManager[Connection]:
        if current_thread().name not in ("follower", "sequencer", "worker"):
            readers.append(current_thread().name)
        return read()

    monkeypatch.setattr(fresh.ledger.store, "read", noted)
    target = address(COTTAGE, "proof=full")
    first = fresh.get(target)
    assert readers
    readers.clear()
    assert fresh.get(target).content == first.content
    assert fresh.get(target, if_none_match=first.headers["etag"]).status_code == 304
    assert readers == []
    fresh.grow(fresh.world.review)
    readers.clear()
    fresh.get(target)
    assert readers


def test_a_long_answer_does_not_hold_up_the_others(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """With SQLite a short one is made at once; a long one, or one from a server, in a thread."""
    threads: list[str] = []
    make = answers.reputation

    def noted(*arguments: Any) -> bytes:
        answer = make(*arguments)
        threads.append(current_thread().name)
        return answer

    monkeypatch.setattr(hosts, "reputation", noted)
    for host, proof in ((COTTAGE, "none"), (COTTAGE, "full"), (BUSY, "none"), (BUSY, "page")):
        service.get(address(host, f"proof={proof}&limit=17"))
    in_threads = [name.startswith("answers") for name in threads]
    assert in_threads == ([False, False, True, True] if service.ledger.store.is_sqlite else [True] * 4)


def test_head_has_the_headers_of_get(service: Service) -> None:
    for query in ("", "proof=full"):
        full, head = service.get(address(COTTAGE, query)), service.client.head(address(COTTAGE, query))
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["etag"] == full.headers["etag"]
        assert head.headers["content-length"] == str(len(full.content))


def kept(size: int) -> Kept:
    return Kept.make(bytes(size))


def asking(path: bytes, method: str = "GET") -> HTTPScope:
    scope = {"raw_path": path, "query_string": b"", "method": method, "path_template": "/{path}"}
    return cast("HTTPScope", scope)


def test_the_cache_is_bounded_by_bytes_and_forgets_the_least_used() -> None:
    cache = AnswerCache(limit=3 * (1000 + OVERHEAD) + 100)
    for name in (b"a", b"b", b"c"):
        assert cache.get(asking(name), 5) is None
        cache.put(asking(name), 5, kept(1000))
    assert cache.get(asking(b"a"), 5) is not None
    cache.put(asking(b"d"), 5, kept(1000))
    assert cache.get(asking(b"b"), 5) is None
    assert [cache.get(asking(name), 5) is not None for name in (b"a", b"c", b"d")] == [True] * 3
    assert cache.held <= cache.limit
    cache.put(asking(b"e"), 5, kept(10_000))
    assert cache.get(asking(b"e"), 5) is None
    held = cache.held
    cache.put(asking(b"a"), 5, kept(1000))
    assert cache.held == held


def test_the_cache_is_for_one_published_size() -> None:
    cache = AnswerCache()
    cache.get(asking(b"a"), 5)
    cache.put(asking(b"a"), 5, kept(10))
    assert cache.get(asking(b"a"), 6) is None
    assert cache.held == 0
    # An answer that was made while a checkpoint was published is not kept: it may be of either.
    cache.put(asking(b"a"), 5, kept(10))
    assert cache.get(asking(b"a"), 6) is None


def test_what_is_kept_answers_get_alone_and_names_its_route() -> None:
    cache = AnswerCache()
    cache.get(asking(b"a"), 5)
    cache.put(asking(b"a"), 5, kept(10))
    assert cache.get(asking(b"a", "POST"), 5) is None
    again = asking(b"a")
    again["path_template"] = ""
    assert cache.get(again, 5) is not None
    assert again["path_template"] == "/{path}"


def test_tags_are_compared_weakly() -> None:
    def asked(*values: bytes) -> bool:
        scope: HTTPScope = {"headers": [(b"if-none-match", value) for value in values]}  # type: ignore[typeddict-item]
        return not wants_newer_than(b'"x"', scope)

    assert all(asked(value) for value in (b'"x"', b'W/"x"', b'"a","x"', b'"a" , W/"x"', b"*", b" * "))
    assert asked(b'"a"', b'"x"')
    assert not any(asked(value) for value in (b'"a"', b"x", b"", b'"ax"', b'"x', b'"a", *'))
    assert not asked()
