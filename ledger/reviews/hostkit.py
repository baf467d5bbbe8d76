"""The host's side of booking verification: an ASGI application that tells a ledger whether a stay is booked.

It needs no database and no web framework. A host mounts it at the booking endpoint that it has told the ledger:

    # verify.py, for `uvicorn verify:app`
    from pathlib import Path
    from ledger.keys import read_key
    from ledger.reviews.hostkit import Booking, BookingVerifier

    def find(reference: str) -> Booking | None:
        return bookings.get(reference)  # your own; it runs in a thread, and may be a coroutine function instead

    key = read_key(Path("host.key"))
    me, ledgers = "did:web:cottage.example", {"https://ledger.example": "z6Mk..."}
    app = BookingVerifier("https://cottage.example/openstr/booking", me, f"{me}#z6Mk...", key, find, ledgers)

or, in a larger application, `Mount("/openstr/booking", app)`. The key of each ledger is the one named `#statements` in
its /.well-known/did.json. Nobody else is answered: a booking is between host and guest.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from inspect import isawaitable
from typing import Any
from urllib.parse import quote, unquote_to_bytes

from nacl.signing import SigningKey

from ledger.canon import did, http_signatures, multikey
from ledger.canon.http_signatures import Signature
from ledger.canon.times import format_time
from ledger.clock import Clock, utc_now
from ledger.errors import BadForm, BadRequest, Done, Misconfigured, NotAccepted, NotFound, StaylogError, Unavailable
from ledger.identity import statements
from ledger.reviews import guest_binding, questions

KIND = "BookingVerification"
MAX_BYTES = 16 * 1024
# Of ledgers that are known, within six minutes.
MAX_NONCES = 10_000

_STATUS = {
    "signature_malformed": 401,
    "signature_expired": 401,
    "signature_invalid": 401,
    "digest_mismatch": 401,
    "ledger_unknown": 403,
    "not_found": 404,
    "method_not_allowed": 405,
    "nonce_repeated": 409,
    "too_large": 413,
    "busy": 503,
}

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Booking:
    """A booking as the host's own books have it. `status` is confirmed, cancelled, declined, expired or pending."""

    listing_id: str
    guest_did: str
    check_in: str
    check_out: str
    status: str
    confirmed_at: str | None = None
    cancelled_at: str | None = None


Find = Callable[[str], Booking | Awaitable[Booking | None] | None]


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question that a known ledger has signed: which ledger, its question, and the nonce to answer with."""

    ledger: str
    question: Mapping[str, Any]
    nonce: str


class _Gone(Exception):
    """Who asked has hung up."""


class BookingVerifier:
    """`endpoint` is the booking endpoint as the ledger knows it: what was signed is an address below it, whatever a
    proxy has made of the path. `method` is the verification method of `key` in the host's DID document. `ledgers` has
    the multikey of each ledger that is answered, by base URL."""

    def __init__(
        self,
        endpoint: str,
        host_did: str,
        method: str,
        key: SigningKey,
        find: Find,
        ledgers: Mapping[str, str],
        *,
        clock: Clock = utc_now,
    ) -> None:
        if method.partition("#")[0] != did.check(host_did):
            raise Misconfigured("settings_invalid", f"{method} is not the name of a key of {host_did}")
        self._endpoint = endpoint
        self._host_did = host_did
        self._method = method
        self._key = key
        self._find = find
        self._ledgers = {
            f"{base}/.well-known/did.json#statements": (base, multikey.decode(text)) for base, text in ledgers.items()
        }
        self._clock = clock
        self._nonces: dict[tuple[str, str], int] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"only HTTP is answered here, not {scope['type']}")
        now = self._clock()
        try:
            asked = await self._asked(scope, receive, now)
        except _Gone:
            return
        except StaylogError as refusal:
            await _refuse(send, refusal)
            return
        # What is wrong from here on is wrong at the host, and for its own log.
        booking = await self._booking(asked.question)
        await _send(send, 200, "application/json", self._answer(asked, booking, now))

    async def _asked(self, scope: Scope, receive: Receive, now: datetime) -> _Asked:
        """The cheapest check first. No byte of the body is looked at before it is known who signed it."""
        spelled = _spelled_reference(scope)
        reference = _reference(spelled)
        if scope["method"] != "POST":
            raise BadRequest("method_not_allowed", "a question is asked with POST")
        headers = _headers(scope)
        body = await _body(headers, receive)
        signature = http_signatures.read_signature(headers)
        if signature.keyid not in self._ledgers:
            raise NotAccepted("ledger_unknown", f"{signature.keyid} is not a key of a ledger that is answered here")
        ledger, key = self._ledgers[signature.keyid]
        query = f"?{scope['query_string'].decode('latin-1')}" if scope.get("query_string") else ""
        http_signatures.verify_request(
            signature,
            method=scope["method"],
            target_uri=f"{self._endpoint}/{spelled}/verify{query}",
            content_type=headers.get("content-type", ""),
            body=body,
            digest=headers.get("content-digest", ""),
            key=key,
            now=int(now.timestamp()),
        )
        self._use(signature, int(now.timestamp()))
        question = questions.read(body)
        for name, expected in (("booking_reference", reference), ("host_did", self._host_did), ("index", ledger)):
            if question[name] != expected:
                raise BadForm("schema_invalid", f"{name}: {expected[:300]!r} expected, as the request says elsewhere")
        return _Asked(ledger, question, signature.nonce)

    def _use(self, signature: Signature, now: int) -> None:
        """Remembers a nonce for as long as its signature holds. Rather than to forget one, nobody is answered."""
        used = (signature.keyid, signature.nonce)
        if self._nonces.get(used, 0) > now:
            raise Done("nonce_repeated", "this question was asked before: ask again with another nonce")
        if len(self._nonces) >= MAX_NONCES:
            self._nonces = {each: expires for each, expires in self._nonces.items() if expires > now}
        if len(self._nonces) >= MAX_NONCES:
            raise Unavailable("busy", "too many questions in the last minutes", retry_after=http_signatures.LONGEST)
        self._nonces[used] = signature.expires

    async def _booking(self, question: Mapping[str, Any]) -> Booking | None:
        """The booking that is asked about. One of another listing is as unknown as one that there is not."""
        found = await asyncio.to_thread(self._find, question["booking_reference"])
        booking = await found if isawaitable(found) else found
        return booking if booking is not None and booking.listing_id == question["listing_id"] else None

    def _answer(self, asked: _Asked, booking: Booking | None, now: datetime) -> dict[str, Any]:
        question = asked.question
        known: dict[str, Any] = {"known": False}
        if booking is not None:
            known = {
                "known": True,
                "status": booking.status,
                "check_in": booking.check_in,
                "check_out": booking.check_out,
                "guest_matches": guest_binding.matches(question["guest_binding"], booking.guest_did),
                "confirmed_at": booking.confirmed_at,
                "cancelled_at": booking.cancelled_at,
            }
        same = {name: question[name] for name in ("request_id", "booking_reference", "listing_id")}
        body = {"type": KIND, **same, **known, "issued_at": format_time(now)}
        answer = statements.sign(body, self._key, self._method, now=now, domain=asked.ledger, challenge=asked.nonce)
        statements.check(answer, KIND)
        return answer


def _spelled_reference(scope: Scope) -> str:
    """The reference as it stands in the address: before /verify, whatever this is mounted under. It may have an escaped
    slash, which only the raw path can tell from a real one."""
    path: bytes = scope.get("raw_path") or quote(scope["path"]).encode("ascii")
    above, _, last = path.rpartition(b"/")
    reference = above.rpartition(b"/")[2]
    if last != b"verify" or not reference or not reference.isascii():
        raise NotFound("not_found", "nothing is served here but {booking_endpoint}/{booking_reference}/verify")
    return reference.decode("ascii")


def _reference(spelled: str) -> str:
    """Decoded once: a reference may have a percent sign of its own."""
    try:
        return unquote_to_bytes(spelled).decode("utf-8")
    except UnicodeDecodeError:
        raise NotFound("not_found", "no booking reference is spelled like this: it is not UTF-8") from None


def _headers(scope: Scope) -> dict[str, str]:
    """A header that was sent twice is one with two values, as HTTP has it: no signature is made over such."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1").strip(" \t")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


async def _body(headers: Mapping[str, str], receive: Receive) -> bytes:
    """By what it says of its length before any of it is read, and by what comes."""
    said = headers.get("content-length", "0")
    _check_length(int(said) if said.isdecimal() and len(said) < 10 else MAX_BYTES + 1)
    body, more = b"", True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise _Gone
        body, more = body + message.get("body", b""), message.get("more_body", False)
        _check_length(len(body))
    return body


def _check_length(length: int) -> None:
    if length > MAX_BYTES:
        raise BadForm("too_large", f"a question has at most {MAX_BYTES // 1024} KiB")


async def _refuse(send: Send, refusal: StaylogError) -> None:
    status = _STATUS.get(refusal.code, 400)
    headers = []
    if isinstance(refusal, BadRequest):
        headers.append((b"allow", b"POST"))
    if isinstance(refusal, Unavailable):
        headers.append((b"retry-after", str(refusal.retry_after).encode()))
    phrase = HTTPStatus(status).phrase
    problem = {"title": phrase, "status": status, "detail": refusal.message, "code": refusal.code}
    await _send(send, status, "application/problem+json", problem, headers)


async def _send(
    send: Send, status: int, media_type: str, body: Mapping[str, Any], headers: list[tuple[bytes, bytes]] | None = None
) -> None:
    data = json.dumps(body, ensure_ascii=False).encode()
    usual = [
        (b"content-type", media_type.encode()),
        (b"content-length", str(len(data)).encode()),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": status, "headers": [*usual, *(headers or [])]})
    await send({"type": "http.response.body", "body": data})
