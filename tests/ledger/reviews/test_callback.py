"""The signed callback: what a host is asked, and what each of its answers means (the decision table of the design)."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from ledger.canon.http_signatures import content_digest, read_signature, verify_request
from ledger.identity.resolution import HostKeys
from ledger.reviews import callback
from ledger.reviews.callback import CALLBACKS_PER_TARGET, CONFIRMED, DENIED, OTHER_DATES, UNKNOWN, Answer, judge
from ledger.reviews.guest_binding import matches
from tests.hosting import Hosted
from tests.identities import NOW, Speaker
from tests.network import Authority, Request, response
from tests.reviewing import DOMAIN, GUEST, GUESTS, STAY

LONDON = ZoneInfo("Europe/London")
KNOWN = {"known": True, "guest_matches": True, "status": "confirmed", **STAY}
Answering = Callable[[Hosted, Request], bytes]


# What a signed answer means


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ({}, CONFIRMED),
        ({"check_in": "2026-05-01", "check_out": "2026-06-30"}, CONFIRMED),
        ({"known": False}, DENIED),
        ({"guest_matches": False}, DENIED),
        ({"status": "declined"}, DENIED),
        ({"status": "expired"}, DENIED),
        ({"status": "pending"}, UNKNOWN),
        ({"check_in": "2026-05-21"}, OTHER_DATES),
        ({"check_out": "2026-05-23"}, OTHER_DATES),
        ({"check_in": "2026-07-20", "check_out": "2026-07-24"}, OTHER_DATES),
        # Whose booking it is comes before its days, and a denial before both.
        ({"guest_matches": False, "check_in": "2026-05-21"}, DENIED),
        ({"status": "declined", "check_in": "2026-05-21"}, DENIED),
        ({"status": "pending", "check_in": "2026-05-21"}, UNKNOWN),
    ],
)
def test_what_an_answer_means(said: dict[str, Any], outcome: str) -> None:
    found = judge({**KNOWN, **said}, STAY, LONDON)
    assert (found.outcome, found.asked) == (outcome, True)
    # What decides something is kept as evidence of it.
    assert (found.statement is None) == (outcome == UNKNOWN)


@pytest.mark.parametrize(
    ("zone", "last", "first"),
    [
        ("Europe/London", "2026-05-19T22:59:59Z", "2026-05-19T23:00:00Z"),
        ("Europe/London", "2026-05-19T23:59:59+01:00", "2026-05-20T00:00:00+01:00"),
        ("Pacific/Honolulu", "2026-05-20T09:59:59Z", "2026-05-20T10:00:00Z"),
        # Where nobody knows, the day begins when it first begins on Earth.
        (None, "2026-05-19T09:59:59Z", "2026-05-19T10:00:00Z"),
    ],
)
def test_a_booking_is_cancelled_in_time_or_it_is_no_answer(zone: str | None, last: str, first: str) -> None:
    def outcome(at: str | None, **moved: str) -> str:
        answer = {**KNOWN, "status": "cancelled", "cancelled_at": at, **moved}
        return judge(answer, STAY, ZoneInfo(zone) if zone else None).outcome

    assert (outcome(last), outcome(first), outcome(None)) == (DENIED, UNKNOWN, UNKNOWN)
    # A host that moves the day of check-in makes no denial of it, in either direction: it gains what it would by
    # confirming other days. And whoever names days before the booked ones makes no silence of its answer.
    assert outcome(first, check_in="2026-05-23") == OTHER_DATES
    assert outcome(last, check_in="2026-05-01") == UNKNOWN


def test_a_cancellation_without_a_time_is_no_answer() -> None:
    assert judge({**KNOWN, "status": "cancelled"}, STAY, LONDON).outcome == UNKNOWN


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-30"])
@pytest.mark.parametrize("zone", [None, LONDON])
def test_days_beyond_the_calendar_break_nothing(day: str, zone: ZoneInfo | None) -> None:
    said = {"status": "cancelled", "cancelled_at": "2026-05-01T00:00:00Z", "check_in": day, "check_out": "9999-12-31"}
    assert judge({**KNOWN, **said}, STAY, zone).outcome in (DENIED, UNKNOWN, OTHER_DATES)


# What comes back


def keys_of(hosted: Hosted) -> HostKeys:
    return asyncio.run(hosted.desk.dids.host(hosted.site.speaker.did))


def ask(hosted: Hosted, reference: str = "B-1", host: HostKeys | None = None) -> Answer:
    site = hosted.site
    stay = {"host_did": site.speaker.did, "booking_reference": reference, **STAY}
    keys = host or keys_of(hosted)
    return asyncio.run(callback.ask(hosted.desk, stay, GUEST.did, site.endpoint, LONDON, keys))


def answering(hosted: Hosted, answer: Answering) -> None:
    """From now on the host answers like this."""

    async def write(request: Request, writer: asyncio.StreamWriter) -> None:
        hosted.site.asked.append(request.url)
        writer.write(answer(hosted, request))

    hosted.outside.house(hosted.site.name, write)


def said(
    hosted: Hosted, request: Request, signer: Speaker | None = None, changes: dict[str, Any] | None = None, **proof: Any
) -> dict[str, Any]:
    """A signed answer that confirms, but for these changes of it or its proof."""
    question = json.loads(request.body)
    same = {name: question[name] for name in ("request_id", "booking_reference", "listing_id")}
    body = {"type": "BookingVerification", **same, **KNOWN, "issued_at": "2026-06-01T12:00:00Z", **(changes or {})}
    usual = {"domain": DOMAIN, "challenge": question["guest_binding"]["nonce"], "now": hosted.clock()}
    return (signer or hosted.site.speaker).sign(body, **{**usual, **proof})


def sending(signer: Speaker | None = None, /, **changes: Any) -> Answering:
    return lambda hosted, request: response(json.dumps(said(hosted, request, signer, changes)).encode())


def proved(**proof: Any) -> Answering:
    return lambda hosted, request: response(json.dumps(said(hosted, request, **proof)).encode())


def tampered(**changes: Any) -> Answering:
    """Changed after it was signed; a member that is None is left out."""

    def answer(hosted: Hosted, request: Request) -> bytes:
        body = {**said(hosted, request), **changes}
        return response(json.dumps({name: value for name, value in body.items() if value is not None}).encode())

    return answer


def plain(data: bytes, status: int = 200, media_type: str = "application/json", **headers: str) -> Answering:
    return lambda hosted, request: response(data, status, media_type, **headers)


COTTAGE = "did:web:cottage.example"
THIEF = Speaker(99, COTTAGE)
UNKNOWNS: dict[str, Answering] = {
    "no proof": tampered(proof=None),
    "changed after it was signed": tampered(guest_matches=False),
    "by a key that the host does not have": sending(THIEF),
    "by another's key under the name of the host's": lambda hosted, request: sending(
        Speaker(99, COTTAGE, "#" + hosted.site.speaker.multikey)
    )(hosted, request),
    "by somebody else": sending(Speaker(99)),
    "to another question": proved(challenge="another-nonce-of-before"),
    "to no question": proved(challenge=None),
    "for another ledger": proved(domain="https://other.example"),
    "for no ledger": proved(domain=None),
    "made too long ago": proved(now=NOW - timedelta(minutes=5, seconds=1)),
    "made in the future": proved(now=NOW + timedelta(minutes=5, seconds=1)),
    "another request": sending(request_id="bvr-another"),
    "another reference": sending(booking_reference="B-2"),
    "another listing": sending(listing_id="loft"),
    "another type": sending(type="StayReceipt"),
    "a member too many": sending(rating=1),
    "known and no more": lambda hosted, request: response(
        json.dumps({**said(hosted, request), "status": None}).encode()
    ),
    "a day that there is not": sending(check_in="2026-02-30"),
    "days the wrong way round": sending(check_in="2026-05-25"),
    "a time that there is not": sending(status="cancelled", cancelled_at="2026-05-01T25:00:00Z"),
    "a time before time": sending(status="cancelled", cancelled_at="0001-01-01T00:00:00+14:00"),
    "pending": sending(status="pending"),
    "a page": plain(b"<html>", media_type="text/html"),
    "no JSON": plain(b"{"),
    "nothing": plain(b""),
    "a list": plain(b"[]"),
    "too deep": plain(b"[" * 5000 + b"]" * 5000),
    "too much": plain(b'{"a":"' + b"a" * 70_000 + b'"}'),
    "no HTTP": lambda hosted, request: b"yes",
    "no word": lambda hosted, request: b"",
    **{str(status): plain(b"{}", status) for status in (204, 400, 401, 403, 404, 410, 429, 500, 503)},
}


def redirected(hosted: Hosted, request: Request) -> bytes:
    """To where it would be confirmed."""
    hosted.outside.put("https://cottage.example/there", said(hosted, request))
    return response(b"", 307, location="https://cottage.example/there")


# Nothing of it is kept: one engine is enough.
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize("what", [*UNKNOWNS, "leads elsewhere"])
def test_anything_else_is_neither_yes_nor_no(hosted: Hosted, what: str) -> None:
    answering(hosted, UNKNOWNS.get(what, redirected))
    found = ask(hosted)
    assert (found.outcome, found.statement, found.asked) == (UNKNOWN, None, True)
    assert len(hosted.site.asked) == 1
    # It was for this alone: the same host can be heard.
    answering(hosted, sending())
    assert ask(hosted).outcome == CONFIRMED


def test_a_key_that_the_host_has_no_more_answers_nothing(hosted: Hosted) -> None:
    """Though it is remembered, and what it signed at booking time counts."""
    old, new = hosted.site.speaker, Speaker(98, COTTAGE)
    hosted.site.book()
    assert ask(hosted).outcome == CONFIRMED
    asyncio.run(hosted.desk.dids.remember(keys_of(hosted)))
    hosted.site.publish(new)
    hosted.clock.forward(minutes=6)
    host = keys_of(hosted)
    assert host.at(old.method, NOW) == [old.public]
    answering(hosted, sending(old))
    assert ask(hosted, host=host).outcome == UNKNOWN
    answering(hosted, sending(new))
    assert ask(hosted, host=host).outcome == CONFIRMED


def test_a_host_that_never_answers(hosted: Hosted) -> None:
    async def wait(_request: Request, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    hosted.outside.house(hosted.site.name, wait)
    found = ask(hosted)
    assert found.outcome == UNKNOWN
    assert found.asked
    assert "did not answer within 5 seconds" in found.heard


@pytest.mark.parametrize("how", ["down", "of another authority", "expired"])
def test_a_host_that_cannot_be_reached(hosted: Hosted, how: str) -> None:
    host, name = keys_of(hosted), hosted.site.name
    if how == "down":
        hosted.outside.take_down(name)
    else:
        authority = Authority("Another") if how == "of another authority" else hosted.outside.authority
        hosted.outside.host(name, authority.context(name, expired=how == "expired"))
    found = ask(hosted, host=host)
    assert (found.outcome, found.asked) == (UNKNOWN, True)
    assert found.heard.startswith("fetch_unreachable" if how == "down" else "fetch_tls")


def test_a_host_whose_document_is_gone_is_not_asked(hosted: Hosted) -> None:
    """Its answer could not be verified. That is its own doing: it counts as asked."""
    hosted.site.book()
    hosted.outside.put(f"https://{hosted.site.name}/.well-known/did.json", {}, status=404)
    found = ask(hosted)
    assert (found.outcome, found.asked, hosted.site.asked) == (UNKNOWN, True, [])


def test_one_target_is_asked_sixty_times_in_an_hour(hosted: Hosted) -> None:
    """By whichever process. That it was not is nobody's silence."""
    hosted.site.book()
    for _ in range(59):
        hosted.desk.limiter.spend(CALLBACKS_PER_TARGET, hosted.site.name)
    assert ask(hosted).outcome == CONFIRMED
    found = ask(hosted)
    assert (found.outcome, found.asked) == (UNKNOWN, False)
    assert found.heard.startswith("quota_exceeded")
    assert hosted.site.asked == ["B-1"]
    hosted.clock.forward(minutes=1)
    assert ask(hosted).outcome == CONFIRMED


# What goes out


def test_the_question_as_the_host_sees_it(hosted: Hosted) -> None:
    """Signed, and without a word of the review; of the guest only what a host that has the booking can recognise."""
    hosted.site.book()
    body = hosted.review(review_text="Damp.", private_feedback="The tap drips.")
    hosted.take(body)
    [asked] = [each for each in hosted.outside.asked if each.method == "POST"]
    assert asked.url == "https://cottage.example/openstr/booking/B-1/verify"
    signature = read_signature(asked.headers)
    verify_request(
        signature,
        method="POST",
        target_uri=asked.url,
        content_type=asked.headers["content-type"],
        body=asked.body,
        digest=asked.headers["content-digest"],
        key=bytes(hosted.reviewing.ledger.keys.statements.verify_key),
        now=int(hosted.clock().timestamp()),
    )
    assert asked.headers["content-digest"] == content_digest(asked.body)
    assert signature.keyid == f"{DOMAIN}/.well-known/did.json#statements"
    question = json.loads(asked.body)
    binding = question.pop("guest_binding")
    assert question.pop("request_id").startswith("bvr-")
    assert question == {
        "type": "booking_verification_request",
        "openstr_version": "0.2",
        "index": DOMAIN,
        "host_did": COTTAGE,
        "booking_reference": "B-1",
        **STAY,
    }
    assert binding.keys() == {"alg", "nonce", "value"}
    assert matches(binding, GUEST.did)
    assert not matches(binding, GUESTS[1].did)
    assert signature.nonce == binding["nonce"]
    seen = f"{asked.url} {asked.headers} {asked.body.decode()}"
    for secret in (GUEST.did, GUEST.multikey, "Damp", "drips", "overall", "4.5", "person-of", "passport", "idv"):
        assert secret not in seen


def test_no_two_questions_can_be_linked(hosted: Hosted) -> None:
    hosted.site.book()
    ask(hosted)
    ask(hosted)
    one, two = (json.loads(each.body) for each in hosted.outside.asked if each.method == "POST")
    assert one["request_id"] != two["request_id"]
    assert one["guest_binding"]["nonce"] != two["guest_binding"]["nonce"]
    assert one["guest_binding"]["value"] != two["guest_binding"]["value"]


STRANGE = (
    *("a/b", "/", "//", "../B-1", "a/../b", "...", ".hidden", "~", "verify", "?", "a?b=c", "a#b", "a b", " ", "+"),
    *("%", "%2F", "%2e%2e", "100%", "a&b;c=d", "'\"<>\\^`{|}", "\N{LATIN SMALL LETTER E WITH ACUTE}", "e\u0301"),
    *("\u65e5\u672c-1", "\U0001f3e1" * 128, "\u202e1-B", "\xa0", "x" * 128),
)


def test_strange_references_arrive_as_they_are(hosted: Hosted) -> None:
    for reference in STRANGE:
        hosted.site.book(reference=reference)
        found = ask(hosted, reference)
        assert (reference, found.outcome) == (reference, CONFIRMED), found.heard
    assert hosted.site.asked == list(STRANGE)


@pytest.mark.parametrize("reference", [".", ".."])
def test_references_that_would_lead_elsewhere_are_not_asked(reference: str) -> None:
    assert not callback.can_ask(reference)
    assert callback.can_ask(f"{reference}a")
