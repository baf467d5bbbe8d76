"""Every code by which a review or a response may be refused, over HTTP: what comes back, what is counted, that nothing
was appended, and that whoever has shown who they are gets the refusal signed."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from pathlib import Path
from threading import Thread
from typing import Any
from unittest.mock import patch

import pytest

from api.codes import CODES
from api.intake import Intake
from ledger.canon import base58, jcs, proofs
from ledger.canon.times import format_time
from ledger.identity import contexts
from ledger.identity.contexts import canonicaliser
from ledger.identity.guestref import GuestReferences
from ledger.identity.issuers import distrust, trust
from ledger.reviews.admission import REVIEWS_PER_PERSON
from ledger.reviews.guests import HOSTS_PER_PERSON
from ledger.reviews.listings import add_listing
from ledger.reviews.responses import RESPONSES_PER_HOST
from ledger.store.rows import run
from tests.api.site import Person, Site, problem, serving, submission_sha256, verify_signed
from tests.identities import (
    IDV,
    NOW,
    RATINGS,
    REVIEW_ID,
    STATUS,
    THIEF,
    Speaker,
    bodies,
    did_document,
    packed,
    signed,
    status_list,
)
from tests.identities import credential as usual_credential
from tests.ledger.canon.test_ed25519 import SMALL, did_jwk
from tests.reviewing import (
    DOMAIN,
    GUEST,
    HOST,
    OTHER_HOST,
    credential,
    encoded,
    resigned,
    response,
    review,
    stay_receipt,
    unsigned,
)
from tests.security.verdicts import subject
from tests.waiting import until

# Section 7 of the design, written out. "The credential rows" are the codes of the attack table in spec/credentials.md.
SECTION_7 = {
    400: "malformed_json duplicate_key too_deep not_utf8 schema_invalid rating_out_of_range text_too_long date_invalid "
    "did_not_canonical credential_by_reference",
    403: "holder_mismatch wrong_domain stale_proof self_review booking_denied booking_cancelled booking_dates_mismatch "
    "booking_evidence_invalid not_the_host response_window_closed",
    404: "review_not_found submission_not_found unknown_size",
    409: "already_reviewed already_responded",
    413: "too_large proof_too_large",
    415: "unsupported_media_type",
    422: "stay_not_over too_late booking_unverifiable",
    429: "rate_limited quota_exceeded",
    503: "issuer_unavailable status_unavailable host_did_unavailable busy",
}
CREDENTIAL_ROWS = {
    400: "schema_invalid number_out_of_range",
    403: "context_not_allowed undefined_term too_complex proof_type_not_supported proof_chain wrong_proof_purpose "
    "proof_value_invalid proof_invalid proof_time_invalid issuer_key_mismatch bad_verification_method "
    "issuer_not_trusted self_issued wrong_credential_type listing_not_covered expired not_yet_valid missing_expiry "
    "missing_status jwt_not_acceptable holder_binding_unavailable holder_mismatch address_not_allowed status_invalid",
}
NOT_HERE = {
    "issuer_unavailable": "keys are pinned, nobody is asked for them: tests/ledger/commands",
    "booking_denied": "hosts are not asked yet",
    "booking_cancelled": "there are no booking notices yet",
    "booking_dates_mismatch": "hosts are not asked yet",
    "submission_not_found": "nothing is pending yet",
    "listing_not_covered": "it is about credentials of hosts, which neither operation takes",
    "too_complex": "a guest's credential of the closed form has no objects without an id inside of each other",
    "unknown_size": "it is about reading: tests/api/test_problems.py",
    "proof_too_large": "it is about reading: tests/api/test_problems.py",
}
# What the OpenAPI document says of the two operations besides; most of it is the operator's trouble.
ALSO_DOCUMENTED = {
    "bad_request": "tests/api/test_edge.py",
    "internal_error": "tests/api/test_problems.py",
    "not_stored": "tests/api/test_problems.py",
    "storage_unavailable": "tests/api/test_outage.py",
    "storage_full": "tests/crash/test_disk_full.py",
    "log_damaged": "tests/crash/test_damage.py",
    "log_behind": "tests/crash/test_restored.py",
    "log_forked": "tests/crash/test_restored.py",
}

BROWN, CURIOUS = Person("Brown"), Person("Curious")
FUTURE = NOW + timedelta(minutes=5, seconds=1)
REFERENCES = (f"B-{number}" for number in count(100))


@dataclass(frozen=True)
class Sent:
    """A request."""

    body: Any
    path: str = "/v1/reviews"
    media_type: str | None = "application/json"


Make = Callable[[Site, ExitStack], Sent]


@dataclass(frozen=True)
class Case:
    """`signed`: the sender has shown who they are. `alone`: on a service of its own, with these options. `others`: what
    is appended meanwhile is not from here. `fields`: the places that `errors` names."""

    code: str
    what: str
    make: Make
    signed: bool = False
    alone: dict[str, Any] | None = None
    others: bool = False
    retry_after: int | None = None
    fields: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.code}: {self.what}"


def raw(data: bytes | Callable[[], bytes], **options: Any) -> Make:
    return lambda site, stack: Sent(data if isinstance(data, bytes) else data(), **options)


def body(make: Callable[[], Any], **options: Any) -> Make:
    """Made when it is needed: most are signed."""
    return lambda site, stack: Sent(make(), **options)


def changed(**changes: Any) -> Make:
    """A review that is signed as it is; a member that is changed to None is left out."""
    return body(lambda: review(BROWN, reference=next(REFERENCES), **changes))


def rated(**ratings: Any) -> Make:
    return changed(ratings={name: value for name, value in (RATINGS | ratings).items() if value is not None})


def shown(document: Callable[[], Any]) -> Make:
    """A review by who holds this credential."""
    return body(lambda: review(BROWN, reference=next(REFERENCES), guest_credential=document()))


def reproved(**proof: Any) -> Make:
    """A review whose own proof was changed after signing."""

    def make() -> Any:
        made = review(BROWN, reference=next(REFERENCES))
        made["proof"] |= proof
        return made

    return body(make)


def with_receipt(make: Callable[[str], Any]) -> Make:
    """A review with this evidence, made for its reference."""

    def made() -> Any:
        reference = next(REFERENCES)
        return review(BROWN, reference=reference, booking_evidence=make(reference))

    return body(made)


def receipt(**changes: Any) -> Make:
    return with_receipt(lambda reference: stay_receipt(**{"guest": BROWN, "reference": reference, **changes}))


def answered(**changes: Any) -> Make:
    """A response to the review that the shared service has."""

    def make(site: Site, stack: ExitStack) -> Sent:
        review_id = first_review(site)
        return Sent(response(review_id, **changes), f"/v1/reviews/{review_id}/response")

    return make


def first_review(site: Site) -> str:
    """The review that every service here has: of GUEST, at HOST, answered by it."""
    history = site.reputation(HOST)["review_history"]
    if not history:
        review_id = site.review()["review_id"]
        site.response(review_id, text="Come again.")
        return str(review_id)
    return str(history[-1]["review_id"])


# Credentials.


def claims(**changes: Any) -> Callable[[], Any]:
    """A credential of a careless issuer: it is signed whatever it says."""
    return lambda: signed(subject(credential(BROWN), **changes))


def issued(**changes: Any) -> Callable[[], Any]:
    """The same of what stands beside the claims; None leaves a member out."""

    def make() -> Any:
        document = {**credential(BROWN), **changes}
        return signed({name: value for name, value in document.items() if value is not None})

    return make


def forged(**proof: Any) -> Callable[[], Any]:
    """A credential whose proof was changed after signing."""

    def make() -> Any:
        document = credential(BROWN)
        document["proof"] |= proof
        return document

    return make


def tampered() -> Any:
    return subject(credential(BROWN), idv_level="payment_verified")


def self_issued() -> Any:
    document = {**credential(BROWN), "issuer": BROWN.did}
    return signed(document, speaker=BROWN)


def for_long() -> Any:
    return signed({**credential(BROWN), "validUntil": format_time(NOW + timedelta(days=81))})


def token() -> str:
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"none"}', b"{}", b""))


def envelope() -> Any:
    """As VC 2.0 has it."""
    return {
        "@context": [contexts.CREDENTIALS_V2],
        "type": "EnvelopedVerifiableCredential",
        "id": f"data:application/vc+jwt,{token()}",
    }


def weak_key() -> Any:
    """A guest chooses their key: one under which a signature binds nothing."""
    name = "z" + base58.encode(b"\xed\x01" + SMALL[0])
    made = review(BROWN, reference=next(REFERENCES), guest_credential=usual_credential(id=f"did:key:{name}"))
    made["proof"]["verificationMethod"] = f"did:key:{name}#{name}"
    return made


def revocable(url: str = STATUS["statusListCredential"], **status: Any) -> Any:
    entry = {**STATUS, "statusListCredential": url, "id": f"{url}#77", **status}
    return signed({**credential(BROWN), "credentialStatus": entry})


def listed(purpose: str = "revocation", **changes: Any) -> Make:
    """A review by the holder of a credential whose status list is marked at its place, or changed otherwise."""

    def make(site: Site, stack: ExitStack) -> Sent:
        url = f"{IDV}/status/{next(REFERENCES)}"
        document = status_list([77], url=url, purpose=purpose)
        site.outside.put(url, signed({**document, **changes}))
        return Sent(review(BROWN, reference=next(REFERENCES), guest_credential=revocable(url, statusPurpose=purpose)))

    return make


def listed_by_a_thief(site: Site, stack: ExitStack) -> Sent:
    url = f"{IDV}/status/stolen"
    forged = signed(status_list([], url=url), speaker=Speaker(4, IDV, "/keys/1"))
    site.outside.put(url, forged)
    return Sent(review(BROWN, reference=next(REFERENCES), guest_credential=revocable(url)))


def short_list(site: Site, stack: ExitStack) -> Sent:
    url = f"{IDV}/status/short"
    document = status_list([], url=url)
    document["credentialSubject"]["encodedList"] = packed(bytes(1024))
    site.outside.put(url, signed(document))
    return Sent(review(BROWN, reference=next(REFERENCES), guest_credential=revocable(url)))


def by_web(site: Site, name: str, *, put: bool = True, **document: Any) -> Sent:
    """A review by a guest with a did:web, whose document is as it should be unless it is changed, or not there."""
    guest = Speaker(5, f"did:web:{name}", "#key-1")
    if put:
        site.outside.put(f"https://{name}/.well-known/did.json", did_document(guest, **document))
    shown = signed(subject(credential(BROWN), id=guest.did))
    receipt = stay_receipt(guest, reference="web")
    return Sent(
        guest.sign(unsigned(guest, HOST, "web", guest_credential=shown, booking_evidence=receipt), domain=DOMAIN)
    )


def by_an_absent_guest(site: Site, stack: ExitStack) -> Sent:
    site.outside.host("absent.example")
    return by_web(site, "absent.example", put=False)


def at_web(site: Site, name: str, *, answers: bool) -> Sent:
    """A review of a host with a did:web, whose document is not to be had unless it answers."""
    host = Speaker(6, f"did:web:{name}", "#key-1")
    if answers:
        site.outside.put(f"https://{name}/.well-known/did.json", did_document(host))
    elif not name[0].isdigit():
        site.outside.host(name)
        site.outside.take_down(name)
    return Sent(review(BROWN, host, next(REFERENCES)))


def by_a_host_that_is_gone(site: Site, stack: ExitStack) -> Sent:
    """It could be asked when it was reviewed."""
    host = Speaker(7, "did:web:gone.example", "#key-1")
    site.outside.put("https://gone.example/.well-known/did.json", did_document(host))
    review_id = site.review(BROWN, host, next(REFERENCES))["review_id"]
    site.outside.take_down("gone.example")
    site.running.clock.forward(minutes=6)
    return Sent(response(review_id, host, now=site.running.clock()), f"/v1/reviews/{review_id}/response")


def stolen() -> Any:
    return resigned(review(BROWN, reference=next(REFERENCES)), THIEF)


def stolen_in_their_name() -> Any:
    return resigned(review(BROWN, reference=next(REFERENCES)), Speaker(4, BROWN.did, f"#{BROWN.multikey}"))


def better_rated() -> Any:
    made = review(BROWN, reference=next(REFERENCES))
    made["ratings"]["overall"] = 5
    return made


def another_review_of_the_booking(site: Site, stack: ExitStack) -> Sent:
    first_review(site)
    return Sent(review(review_text="I have thought about it again."))


def another_did_of_the_person(site: Site, stack: ExitStack) -> Sent:
    """The same person by the word of the issuer, with another key and a receipt for it."""
    first_review(site)
    person = credential(GUEST)["credentialSubject"]["issuer_guest_id"]
    return Sent(review(BROWN, guest_credential=credential(BROWN, person)))


def another_issuer_of_the_did(site: Site, stack: ExitStack) -> Sent:
    """Known by the guest reference alone: found by the sequencer, after Argon2."""
    first_review(site)
    other = Speaker(40)
    draft = trust(site.ledger.issuers(), "guest", other.did, [], None)
    assert draft is not None
    site.add(draft)
    return Sent(review(guest_credential=credential(GUEST, issuer=other)))


def too_many_of_a_person(site: Site, stack: ExitStack) -> Sent:
    guest = Person("Tireless")
    person = [IDV, credential(guest)["credentialSubject"]["issuer_guest_id"]]
    for _ in range(REVIEWS_PER_PERSON.burst):
        site.ledger.limiter.spend(REVIEWS_PER_PERSON, jcs.dumps(person))
    return Sent(review(guest))


def too_many_lookups(site: Site, stack: ExitStack) -> Sent:
    """All of one person, though they are of different domains."""
    for _ in range(HOSTS_PER_PERSON.burst):
        site.ledger.limiter.spend(
            HOSTS_PER_PERSON, jcs.dumps([IDV, credential(CURIOUS)["credentialSubject"]["issuer_guest_id"]])
        )
    return Sent(review(CURIOUS, Speaker(6, "did:web:any.example", "#key-1")))


def too_many_of_a_host(site: Site, stack: ExitStack) -> Sent:
    review_id = first_review(site)
    for _ in range(RESPONSES_PER_HOST.burst - 1):
        site.ledger.limiter.take(RESPONSES_PER_HOST, HOST.did)
    return Sent(response(review_id, text="Once more."), f"/v1/reviews/{review_id}/response")


def too_many_from_an_address(site: Site, stack: ExitStack) -> Sent:
    for _ in range(10):
        problem(site.submit(b"{"), "malformed_json")
    return Sent(b"{")


def distrusted(site: Site, stack: ExitStack) -> Sent:
    site.add(distrust(site.ledger.issuers(), "guest", IDV, None))
    return Sent(review(BROWN))


def distrusted_meanwhile(site: Site, stack: ExitStack) -> Sent:
    """After the credential was looked at, and before the review came to the log."""
    make = GuestReferences.guest_refs

    async def refs(self: GuestReferences, *about: str) -> list[str]:
        site.add(distrust(site.ledger.issuers(), "guest", IDV, None))
        return await make(self, *about)

    stack.enter_context(patch.object(GuestReferences, "guest_refs", refs))
    return Sent(review(BROWN))


def trust_that_never_rests(site: Site, stack: ExitStack) -> Sent:
    sequencer, numbers = site.ledger.sequencer, count(41)
    submit = sequencer.submit

    def unresting(draft: Any) -> Any:
        issuer = trust(site.ledger.issuers(), "guest", Speaker(next(numbers)).did, [], None)
        assert issuer is not None
        submit(issuer).result(timeout=10)
        return submit(draft)

    stack.enter_context(patch.object(sequencer, "submit", unresting))
    return Sent(review(BROWN))


def no_room_for_drafts(site: Site, stack: ExitStack) -> Sent:
    site.ledger.sequencer._max_queue = 0
    return Sent(review(BROWN))


def no_room_for_argon2(site: Site, stack: ExitStack) -> Sent:
    """Everybody who may wait waits already."""

    async def refs(self: GuestReferences, *about: str) -> list[str]:
        with ExitStack() as places:
            while self._places._places.acquire(blocking=False):
                places.callback(self._places._places.release)
            return await original(self, *about)

    original = GuestReferences.guest_refs
    stack.enter_context(patch.object(GuestReferences, "guest_refs", refs))
    return Sent(review(BROWN))


def no_room_for_graphs(site: Site, stack: ExitStack) -> Sent:
    """A credential that has a JSON-LD signature only, while others are looked at."""
    sent = Sent(review(BROWN, guest_credential=credential(BROWN, suites=(proofs.ED25519_2020,))))
    turns = canonicaliser()._turns
    while turns._places.acquire(blocking=False):
        stack.callback(turns._places.release)
    return sent


def no_room_at_the_door(site: Site, stack: ExitStack) -> Sent:
    """The only thread waits for the log, which this test holds."""
    waiting = Thread(target=site.submit, args=(review(),))
    stack.callback(waiting.join)
    stack.enter_context(site.ledger.sequencer._wake)
    waiting.start()
    until(lambda: _intakes[-1]._inside == 1)
    return Sent(review(BROWN))


_intakes: list[Intake] = []


def narrow(**_: Any) -> Intake:
    _intakes.append(Intake(most=1))
    return _intakes[-1]


def after_the_window(site: Site, stack: ExitStack) -> Sent:
    review_id = site.review()["review_id"]
    site.running.clock.forward(days=30, seconds=1)
    return Sent(response(review_id, now=site.running.clock()), f"/v1/reviews/{review_id}/response")


def in_london(site: Site, stack: ExitStack) -> Sent:
    """13 minutes before midnight there, though the day is over further east."""
    with site.ledger.store.write() as connection:
        add_listing(connection, HOST.did, "rose-cottage", "Europe/London", "operator")
    site.running.clock.now = NOW.replace(month=5, day=24, hour=22, minute=47)
    return Sent(review(BROWN, now=site.running.clock()))


CASES = [
    # The body.
    Case("malformed_json", "no JSON", raw(b'{"type": "ReviewSubmission"')),
    Case("malformed_json", "nothing", raw(b"")),
    Case("malformed_json", "NaN", raw(lambda: encoded(unsigned()).replace(b"4.5", b"NaN"))),
    Case("malformed_json", "a response", raw(b"[", path=f"/v1/reviews/{REVIEW_ID}/response")),
    Case("duplicate_key", "two references", raw(b'{"booking_reference": "A", "booking_reference": "B"}')),
    Case("duplicate_key", "further inside", raw(b'{"ratings": {"overall": 1, "overall": 5}}')),
    Case("too_deep", "17 levels", raw(b"[" * 17 + b"]" * 17)),
    Case("not_utf8", "Latin-1", raw('{"review_text": "Très bien"}'.encode("latin-1"))),
    Case("not_utf8", "half of a pair", raw(b'{"review_text": "\\ud83c"}')),
    Case("number_out_of_range", "2^53", raw(b'{"ratings": {"overall": 9007199254740992}}')),
    Case("schema_invalid", "not an object", raw(b"[]")),
    Case("schema_invalid", "no reference", changed(booking_reference=None), fields=("",)),
    Case("schema_invalid", "an unknown member", changed(stars=5), fields=("",)),
    Case("schema_invalid", "an empty reference", changed(booking_reference=""), fields=("booking_reference",)),
    Case("schema_invalid", "a listing with a slash", changed(listing_id="a/b"), fields=("listing_id",)),
    Case("schema_invalid", "a text that is a number", changed(review_text=5), fields=("review_text",)),
    Case("schema_invalid", "a proof with a challenge", reproved(challenge="x"), fields=("proof",)),
    Case(
        "schema_invalid",
        "a receipt without its guest",
        with_receipt(lambda _: {name: value for name, value in stay_receipt(BROWN).items() if name != "guest_did"}),
        fields=("booking_evidence",),
    ),
    Case(
        "schema_invalid",
        "a response to another review than its address",
        body(lambda: response(REVIEW_ID), path=f"/v1/reviews/{REVIEW_ID[:-1]}e/response"),
        fields=("review_id",),
    ),
    Case("schema_invalid", "an empty response", answered(text=""), fields=("response_text",)),
    Case("rating_out_of_range", "6 stars", rated(overall=6), fields=("ratings.overall",)),
    Case("rating_out_of_range", "half a star", rated(value=0.5), fields=("ratings.value",)),
    Case("rating_out_of_range", "4.3 stars", rated(location=4.3), fields=("ratings.location",)),
    Case("text_too_long", "a review", changed(review_text="x" * 2001), fields=("review_text",)),
    Case("text_too_long", "feedback", changed(private_feedback="\U0001f3e0" * 2001), fields=("private_feedback",)),
    Case("text_too_long", "a response", answered(text="x" * 501), fields=("response_text",)),
    Case("date_invalid", "a day that does not exist", changed(check_in="2026-02-30"), fields=("check_in",)),
    Case("date_invalid", "another spelling", changed(check_out="24.05.2026"), fields=("check_out",)),
    Case("date_invalid", "no night", changed(check_in="2026-05-24"), fields=("check_out",)),
    Case("date_invalid", "a proof of no time", reproved(created="2026-06-31T12:00:00Z"), fields=("proof.created",)),
    Case("did_not_canonical", "a host in capitals", changed(host_did="did:web:Cottage.example")),
    Case("did_not_canonical", "a host that is no DID", changed(host_did="https://cottage.example")),
    Case(
        "did_not_canonical",
        "in a receipt",
        with_receipt(lambda _: stay_receipt(BROWN) | {"guest_did": "did:web:guest.example."}),
    ),
    Case(
        "credential_by_reference",
        "its address",
        changed(guest_credential={"credential_uri": f"{IDV}/credentials/1"}),
    ),
    Case("too_large", "a body", raw(b'{"review_text": "%s"}' % (b"x" * 256 * 1024))),
    Case("too_large", "a credential", shown(claims(idv_method="x" * 65536))),
    Case("unsupported_media_type", "text", raw(b"{}", media_type="text/plain")),
    Case("unsupported_media_type", "a form", raw(b"a=b", media_type="application/x-www-form-urlencoded")),
    Case("unsupported_media_type", "none", raw(b"{}", media_type=None)),
    Case("parameter_invalid", "no id", raw(b"{}", path="/v1/reviews/rev-1/response"), fields=("review_id",)),
    # The proof of the body.
    Case("proof_invalid", "changed after signing", body(better_rated)),
    Case("proof_invalid", "a thief in the name of the guest", body(stolen_in_their_name)),
    Case("proof_type_not_supported", "of the body", reproved(cryptosuite="ecdsa-jcs-2019")),
    Case("wrong_proof_purpose", "a login", reproved(proofPurpose="authentication")),
    Case("proof_value_invalid", "of the body", reproved(proofValue="z2")),
    Case("bad_verification_method", "another name of the key", reproved(verificationMethod=f"{BROWN.did}#key-1")),
    Case("wrong_domain", "another ledger", body(lambda: review(BROWN, domain="https://ledger.example"))),
    Case("wrong_domain", "a slash at the end", body(lambda: review(BROWN, domain=f"{DOMAIN}/"))),
    Case("wrong_domain", "a response to another", answered(domain="https://ledger.example")),
    Case("stale_proof", "of six minutes ago", body(lambda: review(BROWN, now=NOW - timedelta(minutes=6)))),
    Case("stale_proof", "from the future", body(lambda: review(BROWN, now=FUTURE))),
    Case("stale_proof", "a response", answered(now=FUTURE)),
    Case("holder_mismatch", "a stolen credential", body(stolen)),
    Case("self_review", "the host as a guest", body(lambda: review(HOST, HOST))),
    Case("self_review", "the host's key by another name", body(lambda: review(Speaker(3, did_jwk(HOST.public), "#0")))),
    # The credential.
    Case("schema_invalid", "a credential that is a list", shown(lambda: [credential(BROWN)])),
    Case("schema_invalid", "a claim in a list", shown(claims(idv_method=["passport"]))),
    Case(
        "context_not_allowed", "one more", shown(issued(**{"@context": [*contexts.ALLOWED[0], "https://evil.example"]}))
    ),
    Case("undefined_term", "one more claim", shown(claims(verified=True))),
    Case("jwt_not_acceptable", "a token", shown(token)),
    Case("jwt_not_acceptable", "a token in an envelope", shown(envelope)),
    Case("wrong_credential_type", "of a host", shown(lambda: usual_credential("host", id=BROWN.did))),
    Case("proof_type_not_supported", "of 2018", shown(forged(type="Ed25519Signature2018"))),
    Case("proof_chain", "a chain", shown(forged(previousProof="urn:uuid:1"))),
    Case("wrong_proof_purpose", "of a credential", shown(forged(proofPurpose="authentication"))),
    Case("proof_value_invalid", "of a credential", shown(forged(proofValue="u" + "A" * 86))),
    Case("proof_invalid", "a claim changed after signing", shown(tampered)),
    Case("proof_invalid", "not the pinned key", shown(lambda: credential(BROWN, issuer=Speaker(9, IDV, "/keys/1")))),
    Case(
        "proof_time_invalid",
        "before the credential holds",
        shown(lambda: signed(credential(BROWN), created=format_time(NOW - timedelta(days=11)))),
    ),
    Case("bad_verification_method", "no address", shown(forged(verificationMethod="/keys/1"))),
    Case("issuer_key_mismatch", "another origin", shown(forged(verificationMethod="https://other.example/keys/1"))),
    Case(
        "issuer_not_trusted",
        "nobody knows it",
        shown(lambda: credential(BROWN, issuer=Speaker(9, "https://other.example", "/keys/1"))),
    ),
    Case("issuer_not_trusted", "not any more", distrusted, alone={}),
    Case("issuer_not_trusted", "not any more, meanwhile", distrusted_meanwhile, signed=True, alone={}, others=True),
    Case("self_issued", "by the guest", shown(self_issued)),
    Case("missing_expiry", "for ever", shown(issued(validUntil=None))),
    Case("expired", "last month", shown(lambda: credential(BROWN, now=NOW - timedelta(days=100)))),
    Case("not_yet_valid", "next month", shown(lambda: credential(BROWN, now=NOW + timedelta(days=30)))),
    Case("missing_status", "91 days without", shown(for_long)),
    Case("holder_binding_unavailable", "not a DID", shown(claims(id="urn:uuid:0b1f3cf4-6d3a-4a3e-9f45-0cbf2f9a6d3c"))),
    Case("holder_binding_unavailable", "nobody", shown(issued(credentialSubject=None))),
    Case("key_not_acceptable", "of small order", body(weak_key)),
    # What others publish.
    Case("address_not_allowed", "a guest at a number", lambda site, _: by_web(site, "127.0.0.1", put=False)),
    Case("address_not_allowed", "a guest at a port", lambda site, _: by_web(site, "a.example%3A8443", put=False)),
    Case(
        "address_not_allowed",
        "a host at a number",
        lambda site, _: at_web(site, "10.0.0.5", answers=False),
        signed=True,
    ),
    Case("did_document_invalid", "another's", lambda site, _: by_web(site, "mixed.example", id="did:web:a.example")),
    Case("bad_verification_method", "not in it", lambda site, _: by_web(site, "keyless.example", assertionMethod=[])),
    Case(
        "guest_did_unavailable",
        "not there",
        by_an_absent_guest,
        retry_after=30,
    ),
    Case(
        "host_did_unavailable",
        "nobody answers",
        lambda site, _: at_web(site, "down.example", answers=False),
        signed=True,
        retry_after=30,
    ),
    Case("host_did_unavailable", "a response", by_a_host_that_is_gone, alone={}, others=True, retry_after=30),
    Case("credential_revoked", "for good", listed()),
    Case("credential_suspended", "for now", listed("suspension")),
    Case("status_invalid", "of another issuer", listed(issuer="https://other.example")),
    Case("status_invalid", "of another address", listed(id=f"{IDV}/status/other")),
    Case("status_invalid", "too short", short_list),
    Case("status_invalid", "not at the issuer's", shown(lambda: revocable("https://other.example/status/1"))),
    Case("status_unavailable", "not there", shown(lambda: revocable(f"{IDV}/status/none")), retry_after=30),
    Case("status_unavailable", "not signed by the issuer", listed_by_a_thief, retry_after=30),
    # The stay.
    Case("stay_not_over", "tomorrow", changed(check_out="2026-06-02")),
    Case("stay_not_over", "today, though not everywhere", changed(check_out="2026-06-01")),
    Case("stay_not_over", "not in its time zone", in_london, alone={}),
    Case("too_late", "366 days ago", changed(check_in="2025-05-29", check_out="2025-05-31")),
    Case("already_reviewed", "another review of the booking", another_review_of_the_booking, signed=True),
    Case("already_reviewed", "another DID of the person", another_did_of_the_person, signed=True),
    Case("already_reviewed", "another issuer of the DID", another_issuer_of_the_did, signed=True, alone={}),
    Case("booking_unverifiable", "no evidence", changed(booking_evidence=None), signed=True),
    Case(
        "booking_unverifiable",
        "evidence of another type",
        with_receipt(lambda _: HOST.sign(bodies()["BookingNotice"][1], domain=DOMAIN)),
        signed=True,
    ),
    Case("booking_unverifiable", "evidence of no type", changed(booking_evidence="B-1"), signed=True),
    *(
        Case("booking_evidence_invalid", what, make, signed=True)
        for what, make in {
            "another reference": receipt(reference="B-other"),
            "another listing": receipt(listing_id="loft-2"),
            "another host": receipt(host=OTHER_HOST),
            "another guest": receipt(guest=GUEST),
            "it began later": receipt(check_in="2026-05-21"),
            "it ended earlier": receipt(check_out="2026-05-23"),
            "signed by another key": with_receipt(
                lambda reference: resigned(stay_receipt(BROWN, reference=reference), THIEF, domain=None)
            ),
            "signed by another key in its name": with_receipt(
                lambda reference: resigned(
                    stay_receipt(BROWN, reference=reference), Speaker(4, HOST.did, f"#{HOST.multikey}"), domain=None
                )
            ),
            "signed by the guest": with_receipt(
                lambda reference: resigned(stay_receipt(BROWN, reference=reference), BROWN, domain=None)
            ),
            "changed after signing": with_receipt(
                lambda reference: (
                    stay_receipt(BROWN, reference=reference, check_out="2026-05-23") | {"check_out": "2026-05-24"}
                )
            ),
            "dated in the future": receipt(now=NOW + timedelta(days=50, minutes=6)),
            "for another ledger": with_receipt(
                lambda reference: resigned(stay_receipt(BROWN, reference=reference), HOST, domain="https://a.example")
            ),
        }.items()
    ),
    # The response.
    Case(
        "review_not_found",
        "no such review",
        body(lambda: response(REVIEW_ID), path=f"/v1/reviews/{REVIEW_ID}/response"),
    ),
    Case("not_the_host", "another host", answered(host=OTHER_HOST)),
    Case(
        "not_the_host",
        "another key",
        lambda site, stack: Sent(
            resigned(response(first_review(site)), THIEF), f"/v1/reviews/{first_review(site)}/response"
        ),
    ),
    Case("already_responded", "another response", answered(text="And another thing."), signed=True),
    Case("response_window_closed", "30 days and a second", after_the_window, signed=True, alone={}, others=True),
    # Limits.
    Case("rate_limited", "an address", too_many_from_an_address, alone={"limits": True}, retry_after=2),
    Case("quota_exceeded", "a person", too_many_of_a_person, signed=True, retry_after=4320),
    Case("quota_exceeded", "domains", too_many_lookups, signed=True, retry_after=60),
    Case("quota_exceeded", "a host", too_many_of_a_host, signed=True, alone={}, retry_after=60),
    Case("busy", "at the door", no_room_at_the_door, alone={}, retry_after=5),
    Case("busy", "graphs", no_room_for_graphs, alone={}, retry_after=5),
    Case("busy", "guest references", no_room_for_argon2, signed=True, alone={}, retry_after=5),
    Case("busy", "drafts", no_room_for_drafts, signed=True, alone={}, retry_after=5),
    Case("busy", "trust", trust_that_never_rests, signed=True, alone={}, others=True, retry_after=5),
]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A service that has one review with its response. Nothing of what is refused here changes it."""
    with serving(tmp_path_factory.mktemp("codes")) as site:
        first_review(site)
        yield site


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_refusal(case: Case, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    with ExitStack() as stack:
        if case.alone is None:
            site: Site = request.getfixturevalue("shared")
        else:
            stack.enter_context(patch("api.app.Intake", narrow if case.make is no_room_at_the_door else Intake))
            site = stack.enter_context(serving(tmp_path, **case.alone))
        check(case, site, case.make(site, stack))


def check(case: Case, site: Site, sent: Sent) -> None:
    counted, size, statements = site.refusals(), site.size, said(site)
    answer = site.post(sent.path, sent.body, sent.media_type)
    refused = problem(answer, case.code)
    # Counted once, and as nothing else.
    assert risen(counted, site.refusals()) == {case.code: 1}
    # Nothing became of it.
    assert said(site) == statements
    assert case.others or site.size == size
    # It says what is wrong where, and when to come again.
    if case.fields is not None:
        assert tuple(error["field"] for error in refused["errors"]) == case.fields
    later = answer.headers.get("retry-after")
    assert (later is not None) == (CODES[case.code].status in (429, 503))
    assert later is None or int(later) == case.retry_after
    # The address of the code explains it.
    explained = site.get(refused["type"].removeprefix(DOMAIN))
    assert explained.status_code == 200
    assert explained.json()["code"] == case.code
    assert explained.json()["explanation"] == CODES[case.code].explanation
    # Signed by the ledger, if it knows who asked.
    assert ("refusal" in refused) == case.signed
    if case.signed:
        assert verify_signed(refused["refusal"], *site.statements_key()) == {
            "type": "Refusal",
            "submission_sha256": submission_sha256(sent.body),
            "code": case.code,
            "at": format_time(site.running.clock()),
        }
        assert refused["refusal"]["proof"]["created"] == format_time(site.running.clock())


def risen(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {code: after[code] - before.get(code, 0) for code in after if after[code] != before.get(code, 0)}


def said(site: Site) -> list[Any]:
    """The entries that guests and hosts caused, and the places of what is known again."""
    entries = [json.loads(entry) for entry in site.get("/v1/log/entries?count=1000").json()["entries"]]
    theirs = [place for place, entry in enumerate(entries) if entry["type"] not in ("genesis", "issuer", "map_head")]
    with site.ledger.store.read() as connection:
        known = [index for (index,) in run(connection, "SELECT idx FROM known ORDER BY idx")]
        salts = [index for (index,) in run(connection, "SELECT idx FROM receipt_salt ORDER BY idx")]
    operators = [place for place, entry in enumerate(entries) if entry["type"] in ("genesis", "issuer")]
    return [theirs, salts, [index for index in known if index not in operators]]


def codes(*tables: dict[int, str]) -> set[str]:
    return {code for table in tables for names in table.values() for code in names.split()}


def test_every_code_of_section_7_has_a_case_or_a_reason() -> None:
    designed = codes(SECTION_7, CREDENTIAL_ROWS)
    tried = {case.code for case in CASES}
    assert NOT_HERE.keys() <= designed
    assert not tried & NOT_HERE.keys()
    assert designed - NOT_HERE.keys() <= tried
    assert tried - designed == {
        "key_not_acceptable",
        "parameter_invalid",
        "credential_revoked",
        "credential_suspended",
        "did_document_invalid",
        "guest_did_unavailable",
    }
    for table in (SECTION_7, CREDENTIAL_ROWS):
        for status, names in table.items():
            for code in names.split():
                assert code in NOT_HERE or CODES[code].status == status, code


def test_the_document_names_the_codes_of_both_operations(shared: Site) -> None:
    paths = shared.get("/schema/openapi.json").json()["paths"]
    operations = paths["/v1/reviews"]["post"], paths["/v1/reviews/{review_id}/response"]["post"]
    documented = {
        code
        for operation in operations
        for status, answer in operation["responses"].items()
        if status >= "400"
        for code in answer["description"].partition(": ")[2].split(", ")
    }
    tried = {case.code for case in CASES}
    assert tried <= documented
    assert documented - tried <= NOT_HERE.keys() | ALSO_DOCUMENTED.keys()


# No statement can be replayed as another.

RIGHT = {"ReviewSubmission": "/v1/reviews", "HostResponse": "/v1/reviews/{}/response"}


@pytest.mark.parametrize("address", RIGHT.values())
@pytest.mark.parametrize("kind", bodies())
def test_a_statement_is_taken_only_for_what_it_is(shared: Site, kind: str, address: str) -> None:
    """Each is rightly signed for this ledger. Where it does not belong it is refused by its form, as it is, with the
    type that is expected there, and without a type."""
    speaker, unsigned_body = bodies()[kind]
    review_id = first_review(shared)
    whole = json.loads(json.dumps(unsigned_body).replace(REVIEW_ID, review_id))
    sent = speaker.sign(whole, domain=DOMAIN, challenge="x" * 16 if kind == "BookingVerification" else None)
    before, path = said(shared), address.format(review_id)
    expected = next(name for name, right in RIGHT.items() if right == address)
    if kind == expected:
        # The credential of this review can be revoked; the response comes second. Both are read as what they are.
        assert shared.post(path, sent).json()["code"] == (
            "status_unavailable" if kind == "ReviewSubmission" else "already_responded"
        )
    else:
        untyped = {name: value for name, value in sent.items() if name != "type"}
        for given in (sent, {**sent, "type": expected}, untyped):
            problem(shared.post(path, given), "schema_invalid")
    assert said(shared) == before


def test_a_statement_in_its_place_is_accepted(shared: Site) -> None:
    """So the refusals above are about what was changed: the review with its type and without, and the response."""
    host = Person("Green")
    first = shared.review(BROWN, host, "G-1")
    second = shared.review(BROWN, host, "G-2", type=None)
    assert [first["status"], second["status"]] == ["accepted", "accepted"]
    assert shared.response(second["review_id"], host)["status"] == "accepted"


def test_a_refused_review_occupies_nothing(shared: Site) -> None:
    """Whoever mends it may come again with the same booking."""
    host = Person("Grey")
    for wrong in (
        review(BROWN, host, "H-1", booking_evidence=None),
        review(BROWN, host, "H-1", booking_evidence=stay_receipt(BROWN, HOST, "H-1")),
        review(BROWN, host, "H-1", guest_credential=revocable()),
    ):
        assert shared.submit(wrong).status_code in (403, 422, 503)
    assert shared.review(BROWN, host, "H-1")["status"] == "accepted"


def test_the_same_again_gets_the_same_receipt(shared: Site) -> None:
    """Byte for byte or not: what is signed is the same."""
    host = Person("White")
    sent = review(BROWN, host, "W-1")
    first = shared.submit(sent)
    again = shared.submit(json.dumps(deepcopy(sent), indent=2, sort_keys=True).encode())
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    answer = response(first.json()["review_id"], host)
    assert [shared.respond(answer).status_code for _ in range(2)] == [201, 200]
