"""Every error is problem+json with a stable code, whoever raised it."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from litestar import get, post
from litestar.exceptions import HTTPException
from litestar.params import FromPath, JSONBody
from litestar.testing import TestClient
from prometheus_client import REGISTRY
from sqlalchemy import delete

from api.app import create_app
from api.codes import CODES
from api.parameters import InvalidParameters
from ledger.errors import BadDID, BadEntry, BadKey, BadTilePath, Halted, NotProved, NotStored, Unavailable
from ledger.store import tables
from tests.api.conftest import BASE, Service, make_ledger

ROOT = Path(__file__).parents[2]


def problem(response: Any, code: str) -> dict[str, Any]:
    """The body, once it is a well-formed problem of this code."""
    assert response.headers["content-type"] == "application/problem+json"
    assert response.headers["cache-control"] == "no-store"
    body: dict[str, Any] = response.json()
    assert body.keys() == {"type", "title", "status", "detail", "code", "errors"}
    assert (body["code"], body["status"], body["title"]) == (code, CODES[code].status, CODES[code].title)
    assert body["status"] == response.status_code
    assert body["type"] == f"{BASE}/problems/{code}"
    assert body["detail"]
    assert all(error.keys() == {"field", "message"} for error in body["errors"])
    return body


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/nope", "not_found"),
        ("/schema/nope", "not_found"),
        ("/schema/nope.json", "not_found"),
        ("/schemas/nope.json", "not_found"),
        ("/contexts/nope.jsonld", "not_found"),
        ("/problems/nope", "not_found"),
        ("/v1/hosts", "not_found"),
        ("/log/tile", "not_found"),
        ("/log/tile/0/005", "not_found"),
        ("/log/tile/0/5", "tile_path_invalid"),
        ("/v1/hosts/did:web:A.example/reputation", "did_not_canonical"),
        ("/v1/hosts/cottage.example/reputation", "did_not_canonical"),
        ("/v1/hosts/did:web:a.example/reputation?size=3", "unknown_size"),
        ("/v1/hosts/did:web:a.example/reputation?cursor=x", "cursor_invalid"),
        ("/v1/hosts/did:web:cottage.example/reputation?proof=page&from=900000", "page_out_of_range"),
        ("/v1/hosts/did:web:busy.example/reputation?proof=full", "proof_too_large"),
        ("/v1/reviews/rev-aaaaaaaaaaaaaaaaaaaaaaaaaa", "review_not_found"),
        ("/v1/log/inclusion?index=1000000", "index_out_of_range"),
        ("/v1/log/inclusion?review_id=rev-aaaaaaaaaaaaaaaaaaaaaaaaaa", "review_not_found"),
        ("/v1/log/inclusion?index=0&size=1", "unknown_size"),
        ("/v1/log/consistency?first=1&second=1000000", "unknown_size"),
    ],
)
def test_refusals_of_reads(service: Service, path: str, code: str) -> None:
    assert problem(service.get(path), code)["errors"] == []


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/v1/log/checkpoints?count=0", ["count"]),
        ("/v1/log/checkpoints?count=101", ["count"]),
        ("/v1/log/checkpoints?count=", ["count"]),
        ("/v1/log/checkpoints?count=1e1", ["count"]),
        ("/v1/log/checkpoints?count=1.0", ["count"]),
        ("/v1/log/checkpoints?count=%2B1", ["count"]),
        ("/v1/log/checkpoints?count=01", ["count"]),
        ("/v1/log/checkpoints?count=%C2%B2", ["count"]),
        ("/v1/log/checkpoints?count=%FF", ["count"]),
        ("/v1/log/checkpoints?before=null", ["before"]),
        ("/v1/log/checkpoints?before=0", ["before"]),
        ("/v1/log/checkpoints?before=9007199254740992", ["before"]),
        ("/v1/log/checkpoints?before=99999999999999999999999", ["before"]),
        ("/v1/log/checkpoints?count=5&count=6", ["count"]),
        ("/v1/log/checkpoints?Count=5", ["Count"]),
        ("/v1/log/checkpoint?x=1&y=", ["x", "y"]),
        ("/v1/log/consistency", ["first", "second"]),
        ("/v1/log/consistency?second=2", ["first"]),
        ("/v1/log/consistency?first=0&second=0", ["first", "second"]),
        ("/v1/log/consistency?first=5&second=4", ["first"]),
        ("/v1/log/inclusion", ["index"]),
        ("/v1/log/inclusion?index=1&review_id=rev-aaaaaaaaaaaaaaaaaaaaaaaaaa", ["index"]),
        ("/v1/log/inclusion?review_id=rev-x", ["review_id"]),
        ("/v1/log/entries?count=1001", ["count"]),
        ("/v1/log/entries?start=-1", ["start"]),
        ("/v1/reviews/rev-x", ["review_id"]),
        ("/v1/reviews/rev-aaaaaaaaaaaaaaaaaaaaaaaaaa?text=some", ["text"]),
        ("/v1/hosts/did:web:a.example/reputation?proof=yes&limit=101&from=0", ["proof", "limit"]),
        ("/v1/hosts/did:web:a.example/reputation?from=-1", ["from"]),
        ("/v1/hosts/did:web:a.example/reputation?proof=page&count=501", ["count"]),
        ("/v1/hosts/did:web:a.example/reputation?from=0", ["from"]),
        ("/v1/hosts/did:web:a.example/reputation?proof=full&count=5", ["count"]),
        ("/v1/hosts/did:web:a.example/reputation?cursor=", ["cursor"]),
        ("/v1/hosts/did:web:a.example/reputation?start=0", ["start"]),
        ("/metrics?x=1", ["x"]),
    ],
)
def test_parameters_are_refused_by_name(service: Service, path: str, fields: list[str]) -> None:
    body = problem(service.get(path), "parameter_invalid")
    assert sorted(error["field"] for error in body["errors"]) == sorted(fields)
    assert all(field in body["detail"] for field in fields)


def test_a_refused_parameter_says_what_is_expected(service: Service) -> None:
    body = problem(service.get("/v1/hosts/did:web:a.example/reputation?proof=yes&limit=0"), "parameter_invalid")
    assert {error["field"]: error["message"] for error in body["errors"]} == {
        "proof": "expected one of none, full, aggregate, page",
        "limit": "expected a whole number from 1 to 100",
    }
    body = problem(service.get("/v1/log/entries?begin=3"), "parameter_invalid")
    assert body["errors"][0]["message"].endswith("there are: start, count")


def test_another_method_is_refused_with_those_allowed(service: Service) -> None:
    for path in ("/", "/v1/log/key", "/v1/hosts/did:web:a.example/reputation", "/log/tile/0/000"):
        for method in ("POST", "PUT", "DELETE", "PATCH", "TRACE"):
            response = service.client.request(method, path)
            problem(response, "method_not_allowed")
            assert response.headers["allow"] == "GET, HEAD, OPTIONS"


def test_a_request_without_a_proper_host_is_refused_before_routing(service: Service) -> None:
    status, headers, body = service.raw("/v1/log/key", host="a b")
    assert (status, headers["content-type"]) == (400, "application/problem+json")
    assert b'"code":"bad_request"' in body


@pytest.mark.parametrize(
    "target", ["/%", "/%zz", "/%ff", "/%00", "/v1/hosts/%ff%fe/reputation", "/v1/hosts/%/reputation"]
)
def test_malformed_escapes_are_refused_like_everything_else(service: Service, target: str) -> None:
    status, headers, _ = service.raw(target)
    assert status in (400, 404)
    assert headers["content-type"] == "application/problem+json"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient[Any]]:
    """The application with operations of a kind that it does not have yet, and some that fail."""

    @post("/test/body")
    async def body(data: JSONBody[dict[str, int]]) -> dict[str, int]:
        return data

    @get("/test/{kind:str}", sync_to_thread=False)
    def fail(kind: FromPath[str]) -> None:
        raise {
            "fault": RuntimeError("secret"),
            "uncatalogued": BadEntry("entry_malformed", "secret"),
            "unproved": NotProved("root_mismatch", "secret"),
            "server": HTTPException(status_code=500, detail="secret"),
            "odd": HTTPException(status_code=418, detail="a teapot"),
            "media": HTTPException(status_code=415),
            "busy": Unavailable("busy", "later"),
            "halted": Halted("log_forked", "look"),
        }[kind]

    app = create_app(make_ledger(tmp_path), BASE)
    app.register(body)
    app.register(fail)
    with TestClient(app, raise_server_exceptions=False) as client:
        yield client


@pytest.mark.parametrize("kind", ["fault", "uncatalogued", "unproved", "server"])
def test_a_fault_is_logged_and_shows_nothing(
    client: TestClient[Any], log_records: pytest.LogCaptureFixture, kind: str
) -> None:
    response = client.get(f"/test/{kind}")
    problem(response, "internal_error")
    assert "secret" not in response.text
    assert "secret" in log_records.text
    assert "Traceback" in log_records.text


def test_errors_of_the_framework_have_codes(client: TestClient[Any]) -> None:
    problem(client.get("/test/media"), "unsupported_media_type")
    assert problem(client.get("/test/odd"), "bad_request")["detail"] == "a teapot"
    problem(client.post("/test/body", content=b"{" + b" " * 256 * 1024 + b"}"), "too_large")
    problem(client.post("/test/body", content=(b" " * 1000 for _ in range(300))), "too_large")
    problem(client.post("/test/body", content=b"{"), "bad_request")
    assert problem(client.post("/test/body", json={"a": "b"}), "parameter_invalid")["errors"]
    assert client.post("/test/body", json={"a": 1}).json() == {"a": 1}


def test_what_passes_says_when_to_come_back(client: TestClient[Any]) -> None:
    for kind, code, seconds in (("busy", "busy", "5"), ("halted", "log_forked", "300")):
        response = client.get(f"/test/{kind}")
        problem(response, code)
        assert response.headers["retry-after"] == seconds


def test_damaged_storage_is_never_an_answer(fresh: Service, log_records: pytest.LogCaptureFixture) -> None:
    host = fresh.world.log.entries[2].host
    with fresh.ledger.store.write() as connection:
        for table in (tables.tile, tables.page, tables.entry):
            connection.execute(delete(table))
    for path in (
        "/log/tile/0/000.p/2",
        "/log/tile/entries/000.p/2",
        "/v1/log/inclusion?index=0",
        "/v1/log/consistency?first=2&second=6",
        "/v1/log/entries",
        "/v1/log/openings/0",
        f"/v1/hosts/{host}/reputation?proof=full",
    ):
        problem(fresh.get(path), "not_stored")
    assert "not stored" in log_records.text


def test_an_entry_that_is_not_what_was_signed_is_never_proved(fresh: Service) -> None:
    with fresh.ledger.store.write() as connection:
        other = b"sha256:" + b"0" * 64
        connection.execute(tables.entry.update().where(tables.entry.c.idx == 0).values(data=other))
    problem(fresh.get("/v1/log/inclusion?index=0"), "not_stored")


def test_every_refusal_is_counted(service: Service) -> None:
    def count(code: str) -> float:
        return REGISTRY.get_sample_value("staylog_refusals_total", {"code": code}) or 0

    before = count("unknown_size"), count("not_found")
    service.get("/v1/log/inclusion?index=0&size=1")
    service.get("/nope")
    assert (count("unknown_size"), count("not_found")) == (before[0] + 1, before[1] + 1)


def test_every_code_that_can_be_raised_to_a_client_is_in_the_catalogue() -> None:
    raised = re.compile(
        r"\b(?:BadForm|BadJSON|BadRequest|Done|NotAccepted|NotFound|NotYet|Unavailable|Outdated|Halted|StaylogError)"
        r"\(\s*\"(\w+)\""
    )
    found = {"rate_limited", "quota_exceeded"}
    commands = {*ROOT.glob("ledger/commands/*.py"), ROOT / "ledger/reviews/redaction.py"}
    # What a host's own service says to a ledger; the service does not verify what it signs itself.
    of_hosts = {ROOT / "ledger/reviews/hostkit.py", ROOT / "ledger/canon/http_signatures.py"}
    for path in {*ROOT.glob("api/**/*.py"), *ROOT.glob("ledger/**/*.py")} - commands - of_hosts:
        found |= set(raised.findall(path.read_text("utf-8")))
    # These set their code themselves.
    found |= {BadDID("").code, BadKey("").code, BadTilePath("").code, NotStored("").code, InvalidParameters().code}
    assert {"review_not_found", "unknown_size", "cursor_invalid", "proof_too_large"} <= found
    assert found <= CODES.keys()


def test_every_code_is_explained_to_programs_and_people(service: Service) -> None:
    listed = service.get("/problems").json()["problems"]
    assert [known["code"] for known in listed] == list(CODES)
    for name, known in CODES.items():
        explained = service.get(f"/problems/{name}")
        assert explained.headers["content-type"] == "application/json"
        assert explained.json() == {
            "type": f"{BASE}/problems/{name}",
            "code": name,
            "status": known.status,
            "title": known.title,
            "explanation": known.explanation,
        }
    browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
    for path in ("/problems", "/problems/busy"):
        page = service.get(path, accept=browser)
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["vary"] == "Accept"
        assert "Busy" in page.text
