"""The witness over real sockets: the specification's example byte by byte, forks at the same time, and bad manners."""

import re
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from threading import Barrier, Event, Semaphore, Thread, Timer
from urllib.parse import urlsplit

import pytest

from audits.witness.folder import CHECKPOINTS, LOGS, init
from audits.witness.http import MAX_CONNECTIONS, MAX_PER_ADDRESS, TEXT, Answer, BoundedServer
from audits.witness.requests import MAX_BYTES, MAX_LINE, MAX_THROWN_AWAY, RequestHandler
from ledger.canon import base64
from ledger.log.add_checkpoint import SIZE_TYPE, AddCheckpoint, monitoring_path, parse_size
from ledger.log.cosignature import cosignatures
from ledger.log.note import Note
from ledger.log.policy import Policy
from ledger.net.addresses import parse_proxies
from tests.audits.witnessing import NOW, Log, Running, witness_running
from tests.ledger.log.worked_example import EXAMPLE, LEAVES, LOG_KEY, TREE, WITNESS, WITNESS_KEY
from tests.ledger.log.worked_example import LOG as EXAMPLE_LOG
from tests.waiting import until

LOG = Log("log.example/a")
FORKED = Log("log.example/a", history="other", fork=2)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with witness_running(tmp_path / "witness", logs=[LOG.verifier], clock=lambda: NOW) as made:
        yield made


def status(running: Running, request: str) -> int:
    return running.post(request)[0]


def connect(running: Running, source: str | None = None) -> socket.socket:
    address = urlsplit(running.url)
    return socket.create_connection((address.hostname, address.port), 10, (source, 0) if source else None)


def said(connection: socket.socket) -> str:
    """All that comes until the other side closes."""
    with connection, connection.makefile("rb") as file:
        return file.read().decode()


def test_the_worked_example(tmp_path: Path) -> None:
    """spec/tlog.md 2.10: from 3 to 5, cosigned at 1771147800."""
    init(tmp_path, WITNESS.name, WITNESS_KEY)
    *_, checkpoint = EXAMPLE.partition("\n\n")
    log_line, witness_line = (f"— {line}" for line in checkpoint.split("— ")[1:])
    note = checkpoint.replace(witness_line, "")
    proof = [LEAVES[2], LEAVES[3], TREE.root(2), LEAVES[4]]
    request = "old 3\n" + "".join(f"{base64.encode(each)}\n" for each in proof) + f"\n{note}"
    assert request.startswith("old 3\n9Ok6F8Zv")
    first = Note(f"{EXAMPLE_LOG.name}\n3\n{base64.encode(TREE.root(3))}\n", ())
    signature = Log(EXAMPLE_LOG.name)
    signature.key, signature.verifier = LOG_KEY, EXAMPLE_LOG
    with witness_running(tmp_path, logs=[EXAMPLE_LOG], clock=lambda: 1771147800) as running:
        assert running.vkey == "witness.example/w1+aa4a09d1+BOpKbGPinFIKvvVQexMuxfmVR3auvr57kkIe6mkURtIs"
        path = f"/{monitoring_path(EXAMPLE_LOG.name)}"
        assert running.get(path)[0] == 404
        assert running.post(request) == (409, "text/x.tlog.size", "0\n")
        assert status(running, f"old 0\n\n{signature.sign(first.text)}") == 200
        assert running.post(request) == (200, TEXT, witness_line)
        assert running.get(path) == (200, TEXT, f"{note}{witness_line}")
        assert running.post(request) == (409, "text/x.tlog.size", "5\n")
    assert log_line in note


def test_every_refusal_has_its_status_its_words_and_its_count(running: Running) -> None:
    stranger = Log("log.example/b")
    forged = LOG.note(5).replace("\n5\n", "\n6\n")
    cases = [
        (400, "request_malformed", "old x\n\n"),
        (400, "note_malformed", "old 0\n\nnothing\n"),
        (400, "checkpoint_malformed", f"old 0\n\n{LOG.sign('log.example/a' + chr(10))}"),
        (404, "log_unknown", stranger.request(0, 3)),
        (403, "signature_invalid", f"old 0\n\n{forged}"),
        (403, "signer_unknown", f"old 0\n\n{LOG.note(5).replace('— log.example/a', '— log.example/b')}"),
        (400, "old_too_large", f"old 6\n\n{LOG.note(5)}"),
        (422, "proof_length", f"old 0\n{base64.encode(bytes(32))}\n\n{LOG.note(5)}"),
        (
            422,
            "root_mismatch",
            f"old 0\n\n{LOG.sign(f'{LOG.origin}{chr(10)}0{chr(10)}{base64.encode(bytes(32))}{chr(10)}')}",
        ),
    ]
    for expected, code, request in cases:
        answer = running.post(request)
        assert answer[:2] == (expected, TEXT), request
        assert re.fullmatch(rf"{code}: .+\n", answer[2])
    assert running.post(LOG.request(3, 5)) == (409, SIZE_TYPE, "0\n")
    assert status(running, LOG.request(0, 5)) == 200
    figures = running.get("/metrics")[2]
    for _, code, _ in cases:
        assert f'staylog_witness_answers_total{{code="{code}"}} 1\n' in figures
    for line in ('answers_total{code="old_size_mismatch"} 1', 'answers_total{code="cosigned"} 1'):
        assert f"staylog_witness_{line}\n" in figures
    assert f'staylog_witness_log_size{{origin="{LOG.origin}"}} 5\n' in figures
    assert f'staylog_witness_log_cosigned_seconds{{origin="{LOG.origin}"}} {NOW}\n' in figures


def test_the_page_has_a_line_for_a_policy(running: Running) -> None:
    assert "nothing yet" in running.get("/")[2]
    status(running, LOG.request(0, 5))
    answer, media_type, page = running.get("/?lang=en")
    assert (answer, media_type) == (200, TEXT)
    assert f"{LOG.origin}: 5 entries, cosigned 2026-02-15T09:30:00Z" in page
    line = next(each.strip() for each in page.splitlines() if each.startswith("    witness "))
    policy = Policy.parse(f"{line}\nquorum w1\n")
    assert policy.witnesses["w1"].verifier == running.verifier
    assert policy.witnesses["w1"].url == running.url


def test_other_paths_and_methods(running: Running) -> None:
    connection = HTTPConnection(urlsplit(running.url).netloc, timeout=10)
    monitored = f"/{monitoring_path(LOG.origin)}"
    table = [
        ("/add-checkpoint", "POST", ("GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH")),
        *((path, "GET", ("POST", "HEAD", "PUT")) for path in ("/", "/metrics", monitored)),
    ]
    for path, allowed, others in table:
        for method in others:
            connection.request(method, path, b"x")
            answer = connection.getresponse()
            body = answer.read()
            assert (answer.status, answer.headers["Allow"]) == (405, allowed), (method, path)
            assert body == (b"" if method == "HEAD" else f"method_not_allowed: use {allowed}\n".encode())
    for path in ("/nothing", "/add-checkpoint/", monitored.upper(), f"{monitored}/", f"/..{monitored}", "/checkpoint"):
        connection.request("GET", path)
        answer = connection.getresponse()
        assert (answer.status, answer.read()[:10]) == (404, b"not_found:")
    for method in ("BREW", "CONNECT", "TRACE"):
        connection.request(method, "/")
        answer = connection.getresponse()
        assert (answer.status, answer.headers["Allow"]) == (405, "GET, POST")
        answer.read()
    connection.close()


def test_a_connection_is_used_again(running: Running) -> None:
    connection = HTTPConnection(urlsplit(running.url).netloc, timeout=10)
    connection.connect()
    first = connection.sock
    for old, size in ((0, 3), (3, 5), (3, 5), (5, 9)):
        connection.request("POST", "/add-checkpoint", LOG.request(old, size).encode())
        connection.getresponse().read()
    assert connection.sock is first
    connection.close()


def test_bodies_have_a_length_and_a_limit(running: Running) -> None:
    post = b"POST /add-checkpoint HTTP/1.1\r\nHost: w\r\n"
    good = LOG.request(0, 3).encode()
    length = b"Content-Length: %d\r\n" % len(good)
    cases = [
        (b"\r\n", "411", "length_required"),
        (b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "411", "length_required"),
        (b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", "411", "length_required"),
        *(
            (b"Content-Length: %b\r\n\r\nx" % bad, "400", "request_malformed")
            for bad in (b"-1", b"x", b"1_0", b"+1", b"")
        ),
        (length * 2 + b"\r\n" + good, "400", "request_malformed"),
        (b"Content-Length: %d\r\n\r\n" % (MAX_BYTES + 1) + bytes(MAX_BYTES + 1), "413", "too_large"),
        (b"Content-Length: 999999999999999\r\n\r\n" + bytes(100), "413", "too_large"),
        (b"Content-Length: %d\r\n\r\n" % MAX_BYTES + bytes(MAX_BYTES), "400", "request_malformed"),
        (b"Content-Length: 100\r\n\r\nx", "400", "request_malformed"),
    ]
    for rest, expected, code in cases:
        connection = connect(running)
        connection.sendall(post + rest)
        connection.shutdown(socket.SHUT_WR)
        answer = said(connection)
        assert answer.startswith(f"HTTP/1.1 {expected} "), rest[:60]
        assert f"\r\n\r\n{code}: " in answer
        assert answer.count("HTTP/1.1") == 1
    for nonsense in (
        b"\x16\x03\x01\x02\r\n\r\n",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /\xff HTTP/x\r\n\r\n",
    ):
        connection = connect(running)
        connection.sendall(nonsense)
        assert "request_malformed: " in said(connection)
    long_line = connect(running)
    long_line.sendall(b"GET /" + b"a" * 70000 + b" HTTP/1.1\r\n\r\n")
    assert said(long_line).startswith("HTTP/1.1 414 ")
    assert status(running, LOG.request(0, 3)) == 200


def test_takes_a_note_with_sixteen_long_signatures(running: Running) -> None:
    """c2sp.org/signed-note: up to 16, of up to nearly 5 kB. Signatures by other keys are not kept."""
    others = "".join(f"— witness.example/{n} {base64.encode(bytes([n]) * 5000)}\n" for n in range(15))
    request = str(AddCheckpoint(0, LOG.proof(0, 3), LOG.note(3) + others))
    assert len(request) > 96 * 1024
    assert status(running, request) == 200


def test_who_sends_too_much_gets_to_read_so(running: Running) -> None:
    """Though it sends all of it first."""
    body = bytes(MAX_THROWN_AWAY)
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
        connection.settimeout(10)
        connection.connect(running.server.server_address)
        connection.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        assert said(connection).startswith("HTTP/1.1 413 ")


def test_refuses_a_length_beyond_the_limit_without_waiting_for_the_body(running: Running) -> None:
    running.server.seconds = 600
    with connect(running) as connection:
        connection.settimeout(60)
        connection.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 900000\r\n\r\nold")
        assert said(connection).startswith("HTTP/1.1 413 ")


def test_a_client_that_waits_to_be_told_to_go_on(running: Running) -> None:
    body = LOG.request(0, 3).encode()
    with connect(running) as connection:
        head = f"POST /add-checkpoint HTTP/1.1\r\nExpect: 100-continue\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode())
        assert connection.recv(1000).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert said(connection).startswith("HTTP/1.1 200 ")


def test_slow_clients_are_left_behind(running: Running) -> None:
    """Whether nothing comes or a byte now and then, a request is here within its seconds."""
    running.server.seconds = 0.4
    began = time.monotonic()
    silent, half, trickling = (connect(running) for _ in range(3))
    half.sendall(b"GET / HT")
    trickling.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 100\r\n\r\n")

    def trickle() -> None:
        try:
            for _ in range(95):
                trickling.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            pass

    thread = Thread(target=trickle)
    thread.start()
    assert said(silent) == said(half) == ""
    answer = trickling.recv(10_000).decode()
    assert 0.3 < time.monotonic() - began < 4
    assert answer.startswith("HTTP/1.1 408 ")
    assert "request_timeout: " in answer
    thread.join()
    trickling.close()


def test_refuses_when_all_connections_are_being_answered(tmp_path: Path) -> None:
    reached, go_on = Semaphore(0), Event()

    def wait(step: str) -> None:
        if step == "written":
            reached.release()
            go_on.wait(10)

    logs = [Log(f"log.example/{number}") for number in range(2)]
    with witness_running(tmp_path, logs=[each.verifier for each in logs], on_step=wait, connections=2) as running:
        asking = [Thread(target=status, args=(running, each.request(0, 3))) for each in logs]
        for each in asking:
            each.start()
        assert all(reached.acquire(timeout=10) for _ in asking)
        answer = said(connect(running))
        go_on.set()
        for each in asking:
            each.join()
        assert answer.startswith("HTTP/1.1 503 ")
        assert "Retry-After: 5" in answer
        assert "\r\n\r\nbusy: " in answer
        until(lambda: len(running.server._bounds) == 0)
        figures = running.get("/metrics")[2]
    assert 'answers_total{code="busy"} 1\n' in figures
    assert 'connections_refused_total{reason="too_many_connections"} 1\n' in figures


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"])
def test_connections_that_wait_for_their_client_keep_none_out(running: Running, sent: bytes) -> None:
    """More of them than there is room for; the oldest are ended."""
    crowd = []
    for _ in range(3 * MAX_PER_ADDRESS):
        crowd.append(connect(running))
        crowd[-1].sendall(sent)
    assert status(running, LOG.request(0, 3)) == 200
    assert crowd[0].recv(100) == b""
    figures = running.get("/metrics")[2]
    assert running.server.refused()["evicted"] >= 2 * MAX_PER_ADDRESS
    assert 'connections_refused_total{reason="evicted"} ' in figures
    for each in crowd:
        each.close()


def test_an_address_does_not_end_the_connections_of_another(running: Running) -> None:
    mine = connect(running)
    crowd = [connect(running, "127.0.0.9") for _ in range(3 * MAX_PER_ADDRESS)]
    until(lambda: running.server.refused().get("evicted", 0) == 2 * MAX_PER_ADDRESS)
    mine.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
    assert said(mine).startswith("HTTP/1.1 200 ")
    for each in crowd:
        each.close()


def test_a_trusted_proxy_may_have_all_connections(tmp_path: Path) -> None:
    with witness_running(tmp_path, proxies=parse_proxies("::ffff:127.0.0.0/104")) as running:
        crowd = [connect(running) for _ in range(MAX_CONNECTIONS)]
        until(lambda: len(running.server._bounds) == MAX_CONNECTIONS)
        assert running.server.refused() == {}
        for each in crowd:
            each.close()


def test_bounds_the_head_of_a_request(running: Running) -> None:
    lines = b"".join(b"x-%d: %b\r\n" % (number, b"a" * 1000) for number in range(40))
    cases = [
        (b"GET /" + b"a" * MAX_LINE + b" HTTP/1.1\r\n\r\n", "414", "url_too_long"),
        (b"GET / HTTP/1.1\r\n" + lines + b"\r\n", "431", "head_too_large"),
        (b"GET / HTTP/1.1\r\nx: " + b"a" * 10**6, "431", "head_too_large"),
        (b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 101 + b"\r\n", "431", "head_too_large"),
    ]
    for sent, expected, code in cases:
        connection = connect(running)
        connection.sendall(sent)
        answer = said(connection)
        assert answer.startswith(f"HTTP/1.1 {expected} ")
        assert f"\r\n\r\n{code}: " in answer
    assert running.server.refused() == {"url_too_long": 1, "head_too_large": 3}
    assert status(running, LOG.request(0, 3)) == 200


def test_a_thread_that_cannot_be_had_keeps_no_place(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("socketserver.threading.Thread.start", start)
        for _ in range(MAX_CONNECTIONS + 1):
            assert said(connect(running)).startswith("HTTP/1.1 503 ")
    assert len(running.server._bounds) == 0
    assert status(running, LOG.request(0, 3)) == 200


def test_what_breaks_inside_is_told_to_the_operator_only(
    running: Running, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoints = tmp_path / "witness" / CHECKPOINTS
    assert status(running, LOG.request(0, 3)) == 200
    checkpoints.rename(tmp_path / "away")
    answer = running.post(LOG.request(3, 5))
    assert answer[0] == 503
    assert answer[2].startswith("storage_unavailable: nothing was cosigned; ask again later")
    assert str(tmp_path) not in answer[2]
    # What was cosigned is still shown.
    assert running.get(f"/{monitoring_path(LOG.origin)}")[2].startswith(f"{LOG.origin}\n3\n")
    (tmp_path / "away").rename(checkpoints)
    assert status(running, LOG.request(3, 5)) == 200
    (tmp_path / "witness" / LOGS).write_text("x")
    for path in ("/", "/metrics"):
        assert running.get(path)[::2] == (503, f"policy_malformed: {answer[2].partition(': ')[2]}")
    monkeypatch.setattr(running.witness, "logs", lambda: 1 // 0)
    assert running.get("/")[::2] == (500, "internal_error: this is an error of the witness, and not yours\n")
    # Somebody hangs up in the middle.
    with connect(running) as connection:
        connection.sendall(b"POST /add-checkpoint HTTP/1.1\r\nContent-Length: 100\r\n\r\nx")
    told = capfd.readouterr().err
    assert "storage_unavailable: [Errno 2]" in told
    assert "ZeroDivisionError" in told
    assert "127.0.0.1" not in told


def test_requests_under_way_are_finished(tmp_path: Path) -> None:
    """The rest of the connections is closed at once."""
    reached, go_on = Event(), Event()

    def wait(step: str) -> None:
        if step == "written":
            reached.set()
            go_on.wait(10)

    answers = []
    with witness_running(tmp_path, logs=[LOG.verifier], on_step=wait) as running:
        idle = connect(running)
        asking = Thread(target=lambda: answers.append(status(running, LOG.request(0, 3))))
        asking.start()
        assert reached.wait(10)
        Timer(0.2, go_on.set).start()
        began = time.monotonic()
    asking.join()
    assert answers == [200]
    assert time.monotonic() - began < 5
    assert said(idle) == ""
    with witness_running(tmp_path) as running:
        assert running.post(LOG.request(0, 3)) == (409, SIZE_TYPE, "3\n")


def test_forks_at_the_same_time(tmp_path: Path) -> None:
    """Two logs, each with three histories whose submitters know nothing of each other: of each log one history wins."""
    origins = ("log.example/a", "log.example/b")
    histories = [Log(origin, 40, name, 3) for origin in origins for name in ("", "x", "y")]
    submitters = 12
    barrier = Barrier(submitters)
    watched = [Log(each).verifier for each in origins]
    with witness_running(tmp_path, logs=watched, clock=lambda: NOW, per_address=None) as running:

        def submit(number: int) -> list[tuple[Log, int]]:
            """What was cosigned for this submitter, who grows its history as it is told to."""
            log, random, old, mine = histories[number % len(histories)], Random(number), 0, []
            connection = HTTPConnection(urlsplit(running.url).netloc, timeout=30)
            barrier.wait()
            for _ in range(25):
                size = random.randint(old, min(old + 3, 40))
                request = log.request(old, size)
                connection.request("POST", "/add-checkpoint", request.encode())
                answer = connection.getresponse()
                text = answer.read().decode()
                assert answer.status in (200, 409, 422)
                if answer.status == 200:
                    note = AddCheckpoint.parse(request).note
                    assert len(cosignatures(Note.parse(note + text), [running.verifier])) == 1
                    mine.append((log, size))
                old = size if answer.status == 200 else parse_size(text) if answer.status == 409 else old
            connection.close()
            return mine

        with ThreadPoolExecutor(submitters) as pool:
            done = [each for some in pool.map(submit, range(submitters)) for each in some]
        figures = running.get("/metrics")[2]
    for origin in origins:
        mine = sorted(((log, size) for log, size in done if log.origin == origin), key=lambda each: each[1])
        roots: dict[int, bytes] = {}
        for log, size in mine:
            assert roots.setdefault(size, log.tree.root(size)) == log.tree.root(size)
        # One history has all of it.
        largest, top = mine[-1]
        assert all(largest.tree.root(size) == root for size, root in roots.items())
        assert f'log_size{{origin="{origin}"}} {top}\n' in figures
    answered = {code: int(n) for code, n in re.findall(r'answers_total\{code="(\w+)"\} (\d+)', figures)}
    assert answered["cosigned"] == len(done)
    assert answered["old_size_mismatch"] > 0
    assert answered["root_mismatch"] > 0


def test_it_listens_where_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on IPv6; and nobody is asked what this machine is called."""
    monkeypatch.setattr(socket, "getfqdn", lambda *_: pytest.fail("a name was looked up"))
    with witness_running(tmp_path) as running:
        assert running.server.listens_on == running.url
        if socket.has_ipv6:
            try:
                with BoundedServer("::1", 0, lambda *_: Answer(200, "ok", ""), RequestHandler) as server:
                    assert server.listens_on.startswith("http://[::1]:")
            except OSError:
                pytest.skip("this machine has no IPv6")
