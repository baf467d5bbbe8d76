"""HEAD, headers for browsers, and starting and stopping."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import httpx
import pytest

from api.clients import READS as READ_LIMIT
from ledger.clock import utc_now
from tests.api.conftest import Service, make_ledger, serve

READS = (
    "/",
    "/health",
    "/log/checkpoint",
    "/log/tile/0/000",
    "/v1/log/key",
    "/v1/log/entries",
    "/v1/hosts/did:web:cottage.example/reputation",
    "/.well-known/did.json",
    "/schemas/entry.v1.json",
    "/problems",
    "/schema",
    "/schema/openapi.json",
    "/v1/policy",
    "/nope",
    "/v1/log/consistency",
)


@pytest.mark.parametrize("path", READS)
def test_head_is_get_without_the_body(service: Service, path: str) -> None:
    full, head = service.get(path), service.client.head(path)
    assert (head.status_code, head.content) == (full.status_code, b"")
    ignored = {"date"}
    assert {n: v for n, v in head.headers.items() if n not in ignored} == {
        n: v for n, v in full.headers.items() if n not in ignored
    }


@pytest.mark.parametrize("path", READS)
def test_any_page_may_read(service: Service, path: str) -> None:
    response = service.get(path, origin="https://elsewhere.example")
    assert response.headers["access-control-allow-origin"] == "*"
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "server" not in response.headers


def test_a_browser_may_ask_conditionally(service: Service) -> None:
    response = service.client.options(
        "/v1/hosts/did:web:cottage.example/reputation",
        headers={
            "Origin": "https://elsewhere.example",
            "Access-Control-Request-Method": "GET",
            "Access-Control-Request-Headers": "if-none-match",
        },
    )
    assert response.status_code == 204
    assert response.headers["allow"] == "GET, HEAD, OPTIONS"
    assert "If-None-Match" in response.headers["access-control-allow-headers"]
    assert "GET" in response.headers["access-control-allow-methods"]


@pytest.mark.parametrize("request_line", [b"GARBAGE", b"GET /\xff HTTP/1.1", b"FOO / HTTP/1.1"])
def test_what_is_not_http_is_refused_in_the_same_form(service: Service, request_line: bytes) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=10) as connection:
        connection.sendall(request_line + b"\r\nHost: x\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\ncontent-type: application/problem+json\r\n" in head
    assert json.loads(body)["code"] == "bad_request"


def test_the_server_says_where_it_listens_and_stops_in_order(tmp_path: Path) -> None:
    make_ledger(tmp_path).close()
    script = """
import sys
from pathlib import Path
from api.app import create_app
from api.server import run
from ledger.folder import open_ledger
from ledger.settings import Settings
ledger = open_ledger(Settings.of(Path(sys.argv[1]), base_url="https://ledger.example"))
run(create_app(ledger), "127.0.0.1", 0)
print("closed")
"""
    command = [sys.executable, "-c", script, str(tmp_path / "ledger")]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            assert line.startswith("Staylog listens on http://127.0.0.1:")
            with urlopen(line.split()[-1] + "/health", timeout=10) as response:
                assert response.status == 200
                assert response.headers["server"] is None
        finally:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (out, err) == ("closed\n", "")


def test_answers_that_are_kept_are_counted_like_all_others(tmp_path: Path, database_url: str) -> None:
    # A clock that stands still: on a busy machine as many would be allowed again meanwhile.
    now = utc_now()
    server, thread, port = serve(make_ledger(tmp_path, database_url, lambda: now), limits=True)
    path = "/v1/hosts/did:web:cottage.example/reputation"
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
        before = _served(client)
        answers = [client.get(path) for _ in range(READ_LIMIT.burst + 30)]
        after = _served(client)
    server.should_exit = True
    thread.join()
    served = [answer for answer in answers if answer.status_code == 200]
    assert {answer.content for answer in served} == {served[0].content}
    assert {(name, value) for answer in served for name, value in answer.headers.items() if name != "date"} == {
        (name, value) for name, value in served[0].headers.items() if name != "date"
    }
    assert answers[-1].status_code == 429
    assert after - before == len(served)


def _served(client: httpx.Client) -> float:
    """Of this route, by the metrics."""
    metrics = client.get("/metrics").text
    line = 'staylog_http_requests_total{route="/v1/hosts/{did}/reputation",status="200"} '
    return sum(float(found.removeprefix(line)) for found in metrics.splitlines() if found.startswith(line))


def test_what_is_sent_in_is_counted_in_rows_that_never_change(tmp_path: Path, database_url: str) -> None:
    """Old versions of one row would tell which reviews came from one address. Reads change one row."""
    ledger = make_ledger(tmp_path, database_url)
    server, thread, port = serve(ledger, limits=True)
    url, rows = f"http://127.0.0.1:{port}", "SELECT key FROM rate"
    seen = []
    for _ in range(3):
        httpx.post(f"{url}/v1/reviews", json={}, trust_env=False)
        seen.append(len(ledger.limiter._counts.run(rows)))
    for _ in range(3):
        httpx.get(f"{url}/v1/policy", trust_env=False)
    seen.append(len(ledger.limiter._counts.run(rows)))
    server.should_exit = True
    thread.join()
    # A minute may end meanwhile, and with it what a read is called.
    assert seen[:3] == [1, 2, 3]
    assert seen[3] in (4, 5)
