"""The host's handler on a real socket, alone and mounted in other applications: who is answered, what, and who is not."""

import asyncio
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any
from urllib.parse import quote

import httpx
import pytest
import uvicorn
from litestar import Litestar, asgi
from litestar.types import Receive, Scope, Send
from starlette.applications import Starlette
from starlette.routing import Mount

from ledger.canon import http_signatures
from ledger.errors import BadDID, BadForm, BadKey, Misconfigured
from ledger.identity import statements
from ledger.identity.did import offline
from ledger.reviews import hostkit
from ledger.reviews.guest_binding import bind
from ledger.reviews.hostkit import MAX_BYTES, Booking, BookingVerifier
from tests.identities import GUEST, HOST, LEDGER, NOW, THIEF, Speaker
from tests.waiting import until

ENDPOINT = "https://cottage.example/openstr/booking"
ASKER = Speaker(21)
OTHER = "https://other.example"
OTHER_ASKER = Speaker(22)
LEDGERS = {LEDGER: ASKER.multikey, OTHER: OTHER_ASKER.multikey}
NONCE = "h3Vb0s1kQyq2mTqv"
REFERENCE = "B-1042"
ODD = "Ä/b %2F?c"
BOOKED = Booking(
    listing_id="rose-cottage",
    guest_did=GUEST.did,
    check_in="2026-05-20",
    check_out="2026-05-24",
    status="confirmed",
    confirmed_at="2026-04-01T09:00:00Z",
)
BOOKS = {REFERENCE: BOOKED, ODD: BOOKED}


class Watch:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now


class Calls:
    """An ASGI application under test without a server, for what no server sends."""

    def __init__(self, app: Any) -> None:
        self.app = app

    def __call__(self, scope: dict[str, Any], *messages: dict[str, Any]) -> list[dict[str, Any]]:
        waiting, sent = list(messages), []

        async def receive() -> dict[str, Any]:
            return waiting.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        asyncio.run(self.app(scope, receive, send))
        return sent


@contextmanager
def serving(app: Any, **options: Any) -> Iterator[httpx.Client]:
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", **options))
    thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    until(lambda: server.started, 20)
    try:
        port = listener.getsockname()[1]
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()


def verifier(**changes: Any) -> BookingVerifier:
    usual: dict[str, Any] = {
        "endpoint": ENDPOINT,
        "host_did": HOST.did,
        "method": HOST.method,
        "key": HOST.key,
        "find": BOOKS.get,
        "ledgers": LEDGERS,
        "clock": lambda: NOW,
    }
    return BookingVerifier(**{**usual, **changes})


@pytest.fixture(scope="module")
def client() -> Iterator[httpx.Client]:
    """Every test that asks here uses a nonce of its own."""
    with serving(verifier()) as client:
        yield client


def question(**changes: Any) -> dict[str, Any]:
    """What a ledger asks; a member that is None is left out."""
    usual = {
        "type": "booking_verification_request",
        "openstr_version": "0.2",
        "request_id": "bvr-1",
        "index": LEDGER,
        "booking_reference": REFERENCE,
        "listing_id": "rose-cottage",
        "host_did": HOST.did,
        "check_in": "2026-05-20",
        "check_out": "2026-05-24",
        "guest_binding": {"alg": "sha-256", **bind(NONCE, GUEST.did)},
    }
    return {name: value for name, value in {**usual, **changes}.items() if value is not None}


def signed(
    body: bytes, nonce: str, *, spelled: str = REFERENCE, asker: Speaker = ASKER, base: str = LEDGER, **changes: Any
) -> dict[str, str]:
    """The headers by which a ledger at `base` asks with this body."""
    usual: dict[str, Any] = {
        "method": "POST",
        "target_uri": f"{ENDPOINT}/{spelled}/verify",
        "content_type": "application/json",
        "keyid": f"{base}/.well-known/did.json#statements",
        "created": int(NOW.timestamp()),
    }
    return http_signatures.sign_request(asker.key, body=body, nonce=nonce, **{**usual, **changes})


def encoded(body: Any) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


def ask(
    client: httpx.Client,
    nonce: str,
    body: Any = None,
    *,
    prefix: str = "",
    spelled: str = REFERENCE,
    headers: dict[str, str] | None = None,
    **options: Any,
) -> httpx.Response:
    """One signed question. `nonce` is filled up: a name is enough."""
    data = encoded(question() if body is None else body)
    given = signed(data, nonce.ljust(16, "-"), spelled=spelled, **options)
    return client.post(f"{prefix}/{spelled}/verify", content=data, headers={**given, **(headers or {})})


def heard(answer: httpx.Response, nonce: str, domain: str = LEDGER, now: datetime = NOW) -> dict[str, Any]:
    """The answer, if it is one to this question by the host; without its proof."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["cache-control"] == "no-store"
    body = answer.json()
    statements.verify(
        body,
        "BookingVerification",
        domain=domain,
        now=now,
        resolve=offline,
        speaker=HOST.did,
        challenge=nonce.ljust(16, "-"),
    )
    assert body["proof"]["domain"] == domain
    return {name: value for name, value in body.items() if name != "proof"}


def refused(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem.keys() == {"title", "status", "detail", "code"}
    assert problem["status"] == status
    assert problem["detail"]
    return str(problem["code"])


KNOWN = {
    "type": "BookingVerification",
    "request_id": "bvr-1",
    "booking_reference": REFERENCE,
    "listing_id": "rose-cottage",
    "known": True,
    "status": "confirmed",
    "check_in": "2026-05-20",
    "check_out": "2026-05-24",
    "guest_matches": True,
    "confirmed_at": "2026-04-01T09:00:00Z",
    "cancelled_at": None,
    "issued_at": "2026-06-01T12:00:00Z",
}
UNKNOWN = {
    name: KNOWN[name] for name in ("type", "request_id", "booking_reference", "listing_id", "known", "issued_at")
} | {"known": False}


def test_a_booking_that_is_known(client: httpx.Client) -> None:
    assert heard(ask(client, "known"), "known") == KNOWN


def test_a_booking_that_is_not(client: httpx.Client) -> None:
    answer = ask(client, "unknown", question(booking_reference="B-9"), spelled="B-9")
    assert heard(answer, "unknown") == {**UNKNOWN, "booking_reference": "B-9"}


def test_a_booking_of_another_listing_is_not_known(client: httpx.Client) -> None:
    answer = ask(client, "listing", question(listing_id="loft-2"))
    assert heard(answer, "listing") == {**UNKNOWN, "listing_id": "loft-2"}


def test_a_booking_of_another_guest(client: httpx.Client) -> None:
    body = question(guest_binding={"alg": "sha-256", **bind(NONCE, THIEF.did)})
    assert heard(ask(client, "guest", body), "guest") == {**KNOWN, "guest_matches": False}


def test_the_dates_are_those_of_the_books(client: httpx.Client) -> None:
    body = question(check_in="2026-05-21", check_out="2026-05-22")
    assert heard(ask(client, "dates", body), "dates") == KNOWN


def test_an_answer_is_for_who_asked(client: httpx.Client) -> None:
    answer = ask(client, "domain", question(index=OTHER), asker=OTHER_ASKER, base=OTHER)
    assert heard(answer, "domain", OTHER) == KNOWN


@pytest.mark.parametrize("status", ["confirmed", "cancelled", "declined", "expired", "pending"])
def test_every_status(status: str) -> None:
    booking = Booking("rose-cottage", GUEST.did, "2026-05-20", "2026-05-24", status, None, "2026-05-01T10:00:00+02:00")
    with serving(verifier(find=lambda reference: booking)) as client:
        changed = {"status": status, "confirmed_at": None, "cancelled_at": "2026-05-01T10:00:00+02:00"}
        assert heard(ask(client, "status"), "status") == {**KNOWN, **changed}


def test_books_may_be_looked_into_by_a_coroutine() -> None:
    async def find(reference: str) -> Booking | None:
        await asyncio.sleep(0)
        return BOOKS.get(reference)

    with serving(verifier(find=find)) as client:
        assert heard(ask(client, "coroutine"), "coroutine") == KNOWN
        assert not heard(ask(client, "none", question(booking_reference="x"), spelled="x"), "none")["known"]


def test_books_that_are_slow_keep_nobody_else_waiting() -> None:
    """A look into the books that blocks does so in a thread: the next question is answered meanwhile."""
    first, second = Event(), Event()

    def find(reference: str) -> Booking | None:
        if reference == REFERENCE:
            first.set()
            assert second.wait(20)
        else:
            second.set()
        return BOOKED

    with serving(verifier(find=find)) as client:
        answers: list[httpx.Response] = []
        slow = Thread(target=lambda: answers.append(ask(client, "slow")))
        slow.start()
        assert first.wait(20)
        assert heard(ask(client, "fast", question(booking_reference="x"), spelled="x"), "fast")["known"]
        slow.join()
        assert heard(answers[0], "slow") == KNOWN


@pytest.mark.parametrize("spelled", [quote(ODD, safe=""), quote(ODD, safe="").replace("%C3", "%c3")])
def test_a_reference_is_decoded_once(client: httpx.Client, spelled: str) -> None:
    nonce = f"odd{'c3' in spelled}"
    answer = ask(client, nonce, question(booking_reference=ODD), spelled=spelled)
    assert heard(answer, nonce) == {**KNOWN, "booking_reference": ODD}


async def _litestar_mount(scope: Scope, receive: Receive, send: Send) -> None:
    await scope["app"].state.verifier(scope, receive, send)


def _in_starlette() -> Any:
    return Starlette(routes=[Mount("/openstr/booking", verifier())])


def _in_litestar() -> Any:
    app = Litestar([asgi("/openstr/booking", is_mount=True, copy_scope=True)(_litestar_mount)], openapi_config=None)
    app.state.verifier = verifier()
    return app


@pytest.mark.parametrize(
    ("app", "prefix", "root_path"),
    [
        pytest.param(verifier, "", "", id="alone, behind a proxy that takes the path away"),
        pytest.param(verifier, "/openstr/booking", "", id="alone"),
        pytest.param(verifier, "", "/openstr/booking", id="alone, with a root path"),
        pytest.param(_in_starlette, "/openstr/booking", "", id="Starlette"),
        pytest.param(_in_litestar, "/openstr/booking", "", id="Litestar"),
    ],
)
@pytest.mark.parametrize("http", ["h11", "httptools"])
def test_wherever_it_is_mounted(app: Any, prefix: str, root_path: str, http: Any) -> None:
    with serving(app(), root_path=root_path, http=http) as client:
        assert heard(ask(client, "plain", prefix=prefix), "plain") == KNOWN
        odd = ask(client, "odd", question(booking_reference=ODD), spelled=quote(ODD, safe=""), prefix=prefix)
        assert heard(odd, "odd") == {**KNOWN, "booking_reference": ODD}
        assert client.get(f"{prefix}/{REFERENCE}/verify").status_code == 405


@pytest.mark.parametrize(
    "path",
    ["/", "/verify", "//verify", f"/{REFERENCE}", f"/{REFERENCE}/verify/", f"/{REFERENCE}/status", f"/{REFERENCE}/Verify", "/%FF/verify"],
)  # fmt: skip
def test_other_paths(client: httpx.Client, path: str) -> None:
    for method in ("GET", "POST"):
        assert refused(client.request(method, path), 404) == "not_found"


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods(client: httpx.Client, method: str) -> None:
    answer = client.request(method, f"/{REFERENCE}/verify")
    assert refused(answer, 405) == "method_not_allowed"
    assert answer.headers["allow"] == "POST"


def test_a_long_body(client: httpx.Client) -> None:
    long = encoded(question()) + b" " * MAX_BYTES
    assert refused(ask(client, "long", long), 413) == "too_large"
    fits = long[:MAX_BYTES]
    assert heard(ask(client, "fits", fits), "fits") == KNOWN
    # In pieces, without a word of how long it is; only the last one is too much.
    pieces = (long[start : start + 5000] for start in range(0, len(long), 5000))
    given = signed(long, "pieces----------")
    assert refused(client.post(f"/{REFERENCE}/verify", content=pieces, headers=given), 413) == "too_large"


def test_a_body_in_pieces(client: httpx.Client) -> None:
    data = encoded(question())
    answer = client.post(
        f"/{REFERENCE}/verify", content=iter([data[:10], data[10:11], data[11:]]), headers=signed(data, NONCE)
    )
    assert heard(answer, NONCE) == KNOWN


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "malformed_json"),
        (b"{", "malformed_json"),
        (b"\xff", "not_utf8"),
        (b'{"type": 1, "type": 1}', "duplicate_key"),
        ([], "schema_invalid"),
        (question(more="x"), "schema_invalid"),
        (question(rating="5"), "schema_invalid"),
        *((question(**{name: None}), "schema_invalid") for name in question()),
        *((question(**{name: 1}), "schema_invalid") for name in question()),
        *((question(**{name: ""}), "schema_invalid") for name in question()),
        (question(type="BookingVerification"), "schema_invalid"),
        (question(openstr_version="0.3"), "schema_invalid"),
        (question(openstr_version="0x2"), "schema_invalid"),
        (question(request_id="r" * 129), "schema_invalid"),
        (question(request_id="a\nb"), "schema_invalid"),
        (question(booking_reference="B-9"), "schema_invalid"),
        (question(host_did=THIEF.did), "schema_invalid"),
        (question(index=OTHER), "schema_invalid"),
        (question(listing_id="rose cottage"), "schema_invalid"),
        (question(check_in="2026-02-30"), "date_invalid"),
        (question(check_in="20260220"), "schema_invalid"),
        (question(check_out="2026-05-20"), "date_invalid"),
        (question(guest_binding={**bind(NONCE, GUEST.did)}), "schema_invalid"),
        (question(guest_binding={"alg": "md5", **bind(NONCE, GUEST.did)}), "schema_invalid"),
        (question(guest_binding={"alg": "sha-256", **bind("short", GUEST.did)}), "schema_invalid"),
        (question(guest_binding={"alg": "sha-256", "nonce": NONCE, "value": "v" * 43}), "schema_invalid"),
        (question(guest_binding={"alg": "sha-256", "did": GUEST.did, **bind(NONCE, GUEST.did)}), "schema_invalid"),
    ],
)
def test_what_is_no_question(body: Any, code: str) -> None:
    """Though a known ledger signed it."""
    data = encoded(body)
    headers = [(name.lower().encode(), value.encode()) for name, value in signed(data, NONCE).items()]
    start, sent = Calls(verifier())(scope(headers), {"type": "http.request", "body": data})
    assert (start["status"], json.loads(sent["body"])["code"]) == (400, code)


def scope(headers: list[tuple[bytes, bytes]], **changes: Any) -> dict[str, Any]:
    path = f"/{REFERENCE}/verify"
    usual = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    made = {**usual, "headers": headers, **changes}
    return {name: value for name, value in made.items() if value is not None}


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"headers": {"Signature": ""}}, "signature_malformed"),
        ({"headers": {"Signature-Input": "sig1=()"}}, "signature_malformed"),
        ({"headers": {"Content-Digest": "sha-256=:AAAA:"}}, "digest_mismatch"),
        ({"headers": {"Content-Type": "text/plain"}}, "signature_invalid"),
        ({"asker": THIEF}, "signature_invalid"),
        ({"asker": OTHER_ASKER}, "signature_invalid"),
        ({"method": "PUT"}, "signature_invalid"),
        ({"target_uri": f"{ENDPOINT}/B-9/verify"}, "signature_invalid"),
        ({"target_uri": f"https://elsewhere.example/{REFERENCE}/verify"}, "signature_invalid"),
        ({"target_uri": f"{ENDPOINT}/{REFERENCE}/verify?x=1"}, "signature_invalid"),
        ({"created": int(NOW.timestamp()) - 300}, "signature_expired"),
        ({"created": int(NOW.timestamp()) + 61}, "signature_expired"),
    ],
)
def test_a_signature_that_does_not_hold(client: httpx.Client, options: dict[str, Any], code: str) -> None:
    assert refused(ask(client, "bad", **options), 401) == code


def test_without_a_signature(client: httpx.Client) -> None:
    assert refused(client.post(f"/{REFERENCE}/verify", json=question()), 401) == "signature_malformed"


@pytest.mark.parametrize("name", ["Content-Type", "Content-Digest", "Signature-Input", "Signature"])
def test_a_header_that_is_missing_or_sent_twice(client: httpx.Client, name: str) -> None:
    data = encoded(question())
    given = signed(data, "headers---------")
    without = {each: value for each, value in given.items() if each != name}
    twice = [*given.items(), (name, given[name])]
    for headers in (without, twice):
        refused(client.post(f"/{REFERENCE}/verify", content=data, headers=headers), 401)


def test_a_query_is_part_of_the_address(client: httpx.Client) -> None:
    data = encoded(question())
    given = signed(data, "query-----------")
    answer = client.post(f"/{REFERENCE}/verify?x=1", content=data, headers=given)
    assert refused(answer, 401) == "signature_invalid"


@pytest.mark.parametrize("base", ["https://ledger.example.evil", "https://LEDGER.example", "http://ledger.example"])
def test_a_ledger_that_is_not_known(client: httpx.Client, base: str) -> None:
    assert refused(ask(client, "stranger", question(index=base), base=base), 403) == "ledger_unknown"


def test_a_question_is_answered_once() -> None:
    watch = Watch()
    with serving(verifier(clock=watch)) as client:
        heard(ask(client, "once"), "once")
        assert refused(ask(client, "once"), 409) == "nonce_repeated"
        # Another ledger cannot know that somebody else has used it.
        heard(ask(client, "once", question(index=OTHER), asker=OTHER_ASKER, base=OTHER), "once", OTHER)
        watch.now = NOW + timedelta(seconds=299)
        assert refused(ask(client, "once"), 409) == "nonce_repeated"
        watch.now = NOW + timedelta(seconds=300)
        assert refused(ask(client, "once"), 401) == "signature_expired"
        later = ask(client, "once", created=int(watch.now.timestamp()))
        heard(later, "once", now=watch.now)


def test_a_signature_that_does_not_hold_uses_up_no_nonce(client: httpx.Client) -> None:
    assert refused(ask(client, "mine", asker=THIEF), 401) == "signature_invalid"
    heard(ask(client, "mine"), "mine")


def test_nonces_are_not_kept_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no more can be kept nobody is answered; what has expired makes room."""
    monkeypatch.setattr(hostkit, "MAX_NONCES", 2)
    watch = Watch()
    app = verifier(clock=watch)
    with serving(app) as client:
        heard(ask(client, "1"), "1")
        heard(ask(client, "2"), "2")
        full = ask(client, "3")
        assert refused(full, 503) == "busy"
        assert full.headers["retry-after"] == "300"
        watch.now = NOW + timedelta(seconds=300)
        heard(ask(client, "3", created=int(watch.now.timestamp())), "3", now=watch.now)
        assert len(app._nonces) == 1


def test_without_a_raw_path() -> None:
    """ASGI servers may leave it out; then it is as a ledger would have written it."""
    for reference in (REFERENCE, "Ä b%2F?c"):
        data = encoded(question(booking_reference=reference))
        given = signed(data, NONCE, spelled=quote(reference, safe=""))
        headers = [(name.lower().encode(), value.encode()) for name, value in given.items()]
        for path in (f"/{reference}/verify", f"/openstr/booking/{reference}/verify"):
            asked = scope(headers, path=path, raw_path=None, root_path="/openstr/booking")
            start, _ = Calls(verifier(find=lambda reference: BOOKED))(asked, {"type": "http.request", "body": data})
            assert start["status"] == 200


def test_the_raw_path_is_believed_and_not_the_path() -> None:
    data = encoded(question())
    headers = [(name.lower().encode(), value.encode()) for name, value in signed(data, NONCE).items()]
    start, _ = Calls(verifier())(scope(headers, path="/else/verify"), {"type": "http.request", "body": data})
    assert start["status"] == 200
    for raw_path in (b"/else/verify", b"/B-1042%20/verify", "/é/verify".encode()):
        start, _ = Calls(verifier())(scope(headers, raw_path=raw_path), {"type": "http.request", "body": data})
        assert start["status"] in (401, 404)


@pytest.mark.parametrize("said", [b"16385", b"9" * 5000, b"-1", b"x", b""])
def test_a_length_that_cannot_be_is_refused_before_anything_is_read(said: bytes) -> None:
    start, sent = Calls(verifier())(scope([(b"content-length", said)]))
    assert (start["status"], json.loads(sent["body"])["code"]) == (413, "too_large")


def test_who_hangs_up_gets_no_answer_and_uses_up_no_nonce() -> None:
    data = encoded(question())
    headers = [(name.lower().encode(), value.encode()) for name, value in signed(data, NONCE).items()]
    calls = Calls(verifier())
    half = {"type": "http.request", "body": data[:10], "more_body": True}
    assert calls(scope(headers), half, {"type": "http.disconnect"}) == []
    start, _ = calls(scope(headers), half, {"type": "http.request", "body": data[10:]})
    assert start["status"] == 200


def test_other_protocols_are_not_spoken() -> None:
    for kind in ("lifespan", "websocket"):
        with pytest.raises(ValueError, match=kind):
            Calls(verifier())({"type": kind})


def test_books_in_disorder_are_the_hosts_fault_and_nothing_is_signed() -> None:
    """The server tells it to the host's log, and the ledger only that it was a fault: never a denial."""
    wrong = Booking("rose-cottage", GUEST.did, "2026-05-20", "2026-05-24", "paid")
    with serving(verifier(find=lambda reference: wrong)) as client:
        assert ask(client, "wrong").status_code == 500
    data = encoded(question())
    headers = [(name.lower().encode(), value.encode()) for name, value in signed(data, NONCE).items()]
    with pytest.raises(BadForm, match="status"):
        Calls(verifier(find=lambda reference: wrong))(scope(headers), {"type": "http.request", "body": data})


def test_what_cannot_work_is_refused_at_once() -> None:
    with pytest.raises(Misconfigured) as misconfigured:
        verifier(method=THIEF.method)
    assert misconfigured.value.code == "settings_invalid"
    with pytest.raises(BadDID):
        verifier(host_did="cottage.example", method="cottage.example#1")
    with pytest.raises(BadKey):
        verifier(ledgers={LEDGER: "z6Mk"})
