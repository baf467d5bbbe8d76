"""Receipts of entries beside what was signed: honest ones of every kind, and those of an operator that made another
entry of it. The operator has the log's key, so signature and inclusion hold in all of them."""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

from ledger.canon import base64, jcs
from ledger.identity import statements
from ledger.log.entries import make_entry, parse_entry
from ledger.log.memory import MemoryLog
from ledger.log.openings import Opening, commitment
from ledger.log.tlog_proof import TlogProof
from tests.attesting import attestation, consent, host_credential
from tests.hosting import BOOKED, claim, evidence, notice
from tests.identities import IDV, NOW, THIEF, Speaker
from tests.reviewing import DOMAIN, GUEST, GUESTS, HOST, OTHER_HOST, response, review, stay_receipt
from tests.world import KEY, ORIGIN

AT = "2026-06-01T12:00:01Z"
REVIEW_ID = "rev-" + "b" * 25 + "a"
ELSEWHERE = "https://other.example"
SALT, TEXT_SALT = bytes(range(32)), bytes(range(32, 64))
WEB_HOST = Speaker(61, "did:web:cottage.example")
WEB_GUEST = Speaker(62, "did:web:ada.example")
OLDER_KEY = Speaker(65, WEB_GUEST.did, f"#{WEB_GUEST.multikey}")
JWK = {"kty": "OKP", "crv": "Ed25519", "x": urlsafe_b64encode(Speaker(63).public).rstrip(b"=").decode()}
JWK_GUEST = Speaker(63, f"did:jwk:{urlsafe_b64encode(jcs.dumps(JWK)).rstrip(b'=').decode()}", "#0")
Members = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Bound:
    """A receipt and what was signed. `differs` is a part of the sentence by which it is refused, None where it is
    honest; `convicts` is False where only the speaker can tell that something is wrong."""

    name: str
    receipt: Members
    signed: Members
    differs: str | None = None
    convicts: bool = True


def entered(signed: Mapping[str, Any], **changes: Any) -> Members:
    """The members that an honest ledger gives the entry of a guest's review, but for its commitments."""
    shown = signed["guest_credential"]
    rests = {"booking": "stay_receipt", "issuer": shown["issuer"], "idv_level": shown["credentialSubject"]["idv_level"]}
    members = {name: signed[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")}
    members |= {"review_id": REVIEW_ID, "level": "guest_verified", "repeat": False, "text": signed.get("review_text")}
    return {**members, "evidence": {**rests, **changes.pop("evidence", {})}, **changes}


def imported(signed: Mapping[str, Any], **changes: Any) -> Members:
    """The same of a review of another platform."""
    shown = signed.get("guest_statement", {}).get("guest_credential")
    rests = {"booking": "attestation", "issuer": None, "idv_level": None}
    if shown is not None:
        rests |= {"issuer": shown["issuer"], "idv_level": shown["credentialSubject"]["idv_level"]}
    members = {name: signed[name] for name in ("host_did", "listing_id", "check_in", "check_out", "ratings")}
    level = "host_attested" if shown is None else "guest_verified"
    members |= {"review_id": REVIEW_ID, "level": level, "repeat": False, "text": signed.get("review_text")}
    return {**members, "evidence": {**rests, **changes.pop("evidence", {})}, **changes}


def receipt(type_: str, members: Members, signed: Members, booking: Members | None = None, **more: Any) -> Members:
    """The receipt of an entry with these members, whose `text` is the text itself, under commitments that open."""
    opening = None if members.get("text") is None else Opening(members["text"], TEXT_SALT)
    if "text" in members:
        members = {**members, "text": opening and commitment(opening.salt, opening.text.encode())}
    own = "statement" if type_ == "response" else "evidence"
    if type_ == "response":
        members["statement"] = commitment(SALT, jcs.dumps(signed))
    else:
        sealed = commitment(SALT, jcs.dumps({"submission": signed, "booking": booking}))
        members["evidence"] = {**members["evidence"], "commitment": sealed}
    log = MemoryLog(ORIGIN, KEY, bytes(32), "2026-01-01T00:00:00Z")
    if type_ != "review":
        about = {"review_id": REVIEW_ID, "host_did": members["host_did"]}
        first = {**entered(review(), level="unconfirmed", text=None, evidence={"booking": "none"}), **about}
        first["evidence"]["commitment"] = base64.encode(bytes(32))
        log.append_batch([make_entry("review", at=AT, **first)], AT)
        members = {**members, "review": 2}
    index = len(log.entries)
    entry = make_entry(type_, at=AT, **members)
    state = log.append_batch([entry, make_entry("policy", policy=base64.encode(bytes(32)), at=AT)], AT)
    level = {"verification_level": members["level"]} if "level" in members else {}
    return {
        "review_id": members["review_id"],
        "status": "accepted",
        **level,
        "index": index,
        "entry": entry.data.decode(),
        "openings": {"text": opening and opening.as_json(), own: {"salt": base64.encode(SALT)}},
        "checkpoint": state.note,
        "tlog_proof": str(TlogProof(index, tuple(log.tree.inclusion(index, state.size)), state.note)),
        **({} if booking is None else {"booking": booking}),
        **more,
    }


def answer(host: Speaker = HOST, **changes: Any) -> Members:
    """What a host signs when it is asked for a booking."""
    body = {
        "type": "BookingVerification",
        "request_id": "bvr-1",
        "booking_reference": "B-1",
        "listing_id": "rose-cottage",
        "known": True,
        "status": "confirmed",
        "guest_matches": True,
        "check_in": "2026-05-20",
        "check_out": "2026-05-24",
        "issued_at": "2026-06-01T12:00:00Z",
        **changes,
    }
    return statements.sign(body, host.key, host.method, now=NOW, domain=DOMAIN, challenge="n-1")


def seen(*speakers: Speaker) -> Members:
    return {"keys_seen": {each.method: each.multikey for each in speakers}}


def lowered(signed: Mapping[str, Any]) -> Members:
    """The members of an entry that rests on no evidence of a booking."""
    return entered(signed, level="unconfirmed", evidence={"booking": "none"})


def bare(**changes: Any) -> Members:
    """A review that holds no stay receipt."""
    return review(booking_evidence=None, **changes)


def _reviews() -> Iterator[Bound]:
    plain = review()
    yield Bound("with a stay receipt", receipt("review", entered(plain), plain), plain)
    for name, changes in (
        ("without a text", {"review_text": None}),
        ("with an empty text", {"review_text": ""}),
        ("with odd letters", {"review_text": "Très bien 👍🏽\u202e\u200d\t\r\n\x7f — 5★ \U000e0041"}),
        ("with private feedback", {"private_feedback": "The tap drips."}),
        ("without its type", {"type": None}),
        ("with whole ratings", {"ratings": {**plain["ratings"], "overall": 5.0, "location": 1}}),
        ("of other evidence", {"booking_evidence": {"type": "Else", "ä": [1e-7, 1e300, 0.1, -0.0, None, True]}}),
    ):
        said = review(**changes)
        level = {"level": "unconfirmed", "evidence": {"booking": "none"}} if name == "of other evidence" else {}
        text = said.get("review_text") or None
        yield Bound(name, receipt("review", entered(said, text=text, **level), said), said)
    for stored in (None, " \n\t\u00a0\u3000\u0085"):
        blank = review(review_text=" \n\t\u00a0\u3000\u0085")
        yield Bound(f"of white space as {stored!r}", receipt("review", entered(blank, text=stored), blank), blank)
    for kind, booking in (
        ("booking_notice", notice(HOST)),
        ("booking_claim", claim(HOST, booking_evidence=stay_receipt(GUEST, now=BOOKED))),
        ("callback", answer()),
        ("callback", notice(HOST)),
    ):
        said, rests = bare(), {"booking": kind}
        yield Bound(f"{kind} {booking['type']}", receipt("review", entered(said, evidence=rests), said, booking), said)
    by_jwk = review(JWK_GUEST)
    yield Bound("by a did:jwk", receipt("review", entered(by_jwk), by_jwk), by_jwk)
    said = bare()
    yield Bound("unconfirmed", receipt("review", lowered(said), said), said)
    for name, host, given in (
        ("of a host with a domain", WEB_HOST, stay_receipt(GUEST, WEB_HOST)),
        ("with a receipt that seems to count", HOST, stay_receipt(GUEST)),
        ("with a receipt for another ledger", HOST, HOST.sign(unsigned(stay_receipt(GUEST)), domain=ELSEWHERE)),
        ("with another guest's receipt", HOST, stay_receipt(GUESTS[1])),
        ("with a forged receipt", HOST, {**stay_receipt(GUEST), "nonce": "another"}),
    ):
        said = review(GUEST, host, booking_evidence=given)
        yield Bound(f"unconfirmed, {name}", receipt("review", lowered(said), said), said)
    redacted = receipt("review", entered(plain), plain)
    redacted["openings"]["text"] = None
    yield Bound("with a text that was redacted", redacted, plain)


def _others() -> Iterator[Bound]:
    said = response(REVIEW_ID)
    members = {"review_id": REVIEW_ID, "host_did": HOST.did, "text": "Thank you."}
    yield Bound("a response", receipt("response", dict(members), said), said)
    said = upgrade_of(stay_receipt(GUEST))
    yield Bound("an upgrade", receipt("upgrade", upgraded(), said), said)
    for name, agreed in (("an import", None), ("an import with consent", consent())):
        said = attestation(guest_statement=agreed)
        yield Bound(name, receipt("review", imported(said), said), said)


def _web() -> Iterator[Bound]:
    """did:web: with the key that the ledger saw, and as earlier versions gave it, without."""
    guest = review(WEB_GUEST, HOST)
    host = review(GUEST, WEB_HOST)
    answered = response(REVIEW_ID, WEB_HOST)
    members = {"review_id": REVIEW_ID, "host_did": WEB_HOST.did, "text": "Thank you."}
    for name, keys in (("seen", (WEB_GUEST, WEB_HOST)), ("of before", ())):
        more = seen(*keys) if keys else {}
        yield Bound(f"a guest with a domain, {name}", receipt("review", entered(guest), guest, **more), guest)
        yield Bound(f"a host with a domain, {name}", receipt("review", entered(host), host, **more), host)
        yield Bound(f"its response, {name}", receipt("response", dict(members), answered, **more), answered)
    said, booking = review(WEB_GUEST, HOST, booking_evidence=None), claim(HOST, OLDER_KEY)
    rests = entered(said, evidence={"booking": "booking_claim"})
    name = "a guest with a domain, on a claim by another key"
    yield Bound(name, receipt("review", rests, said, booking, **seen(WEB_GUEST)), said)


def honest() -> list[Bound]:
    return [*_reviews(), *_others(), *_web()]


def upgrade_of(given: Members, guest: Speaker = GUEST) -> Members:
    return evidence(REVIEW_ID, given, guest, now=NOW)


def upgraded(**changes: Any) -> Members:
    rests = {"booking": "stay_receipt", "issuer": IDV, "idv_level": "identity_verified"}
    return {"review_id": REVIEW_ID, "host_did": HOST.did, "level": "guest_verified", "evidence": rests, **changes}


def unsigned(signed: Mapping[str, Any]) -> Members:
    return {name: value for name, value in signed.items() if name != "proof"}


def stolen() -> Members:
    """A review that a thief signs, with another person's credential."""
    return THIEF.sign(unsigned(review()), domain=DOMAIN)


# Seven ways to lie about what a guest signed: the entry's members, or what it commits to.
SEVEN: tuple[tuple[str, Callable[[Members], tuple[Members, Members]], str], ...] = (
    ("rating", lambda said: (entered(said, ratings={**said["ratings"], "overall": 1}), said), "ratings"),
    ("host", lambda said: (entered(said, host_did=OTHER_HOST.did), said), "host_did is"),
    ("listing", lambda said: (entered(said, listing_id="loft-2"), said), 'listing_id is "loft-2" in the entry'),
    ("dates", lambda said: (entered(said, check_in="2026-05-19"), said), 'check_in is "2026-05-19" in the entry'),
    ("text", lambda said: (entered(said, text="Lovely!"), said), "the text of the entry is another"),
    ("no signature", lambda said: (entered(said), unsigned(said)), "the submission is not signed"),
    ("credential", lambda _: (entered(stolen()), stolen()), "the credential in the submission is that of"),
)


def _altered() -> Iterator[Bound]:
    for name, lie, differs in SEVEN:
        members, said = lie(review())
        yield Bound(f"another {name}", receipt("review", members, said), said, differs)
    plain = review()
    forged = {**plain, "review_text": "Lovely!"}
    yield Bound("after signing", receipt("review", entered(forged), forged), forged, "is not one by the key of")
    login = {**plain, "proof": {**plain["proof"], "proofPurpose": "authentication"}}
    yield Bound("a login", receipt("review", entered(login), login), login, "not signed as a statement")
    for name, members, differs in (
        ("text left out", entered(plain, text=None), "the entry has no text"),
        ("issuer", entered(plain, evidence={"issuer": "did:web:id.example"}), "evidence.issuer"),
        ("idv_level", entered(plain, evidence={"idv_level": "payment_verified"}), "evidence.idv_level"),
        ("check_out", entered(plain, check_out="2026-05-25"), "check_out"),
        ("location", entered(plain, ratings={**plain["ratings"], "location": 5}), "ratings"),
        ("attested", entered(plain, level="host_attested", evidence={"booking": "attestation"}), "host_attested"),
        ("attestation", entered(plain, evidence={"booking": "attestation"}), "rests on"),
    ):
        yield Bound(f"another {name}", receipt("review", members, plain), plain, differs)
    silent = review(review_text=None)
    yield Bound("an invented text", receipt("review", entered(silent, text="Lovely!"), silent), silent, "none was")


def _with_nonce(nonce: object) -> Members:
    given = notice(HOST)
    return {**given, "guest_binding": {**given["guest_binding"], "nonce": nonce}}


def _raised() -> Iterator[Bound]:
    """Levels that rest on nothing, or on something else."""
    said = bare()
    yield Bound("no receipt", receipt("review", entered(said), said), said, "holds none")
    for name, kind, booking, differs in (
        ("no booking", "callback", None, "no booking statement"),
        ("a claim as a notice", "booking_notice", claim(HOST), "BookingClaim"),
        ("a booking too many", "none", notice(HOST), "rests on"),
        ("a booking too many, of no type", "none", {"type": None}, "rests on"),
        ("cancelled", "booking_notice", notice(HOST, status="cancelled"), "does not confirm"),
        ("another guest's notice", "booking_notice", notice(HOST, GUESTS[1]), "does not confirm"),
        ("another guest's claim", "booking_claim", claim(HOST, GUESTS[1]), "another guest's"),
        ("a type that is no text", "callback", {"type": {}}, "rests on"),
        ("a nonce that is no text", "booking_notice", _with_nonce({}), "does not confirm"),
        ("another booking", "booking_notice", notice(HOST, reference="B-2"), "another booking_reference"),
        ("other dates", "booking_notice", notice(HOST, check_in="2026-05-21"), "other dates"),
        ("an unknown booking", "callback", answer(known=False), "does not confirm"),
        ("not asked about the guest", "callback", answer(guest_matches=False), "does not confirm"),
        ("answered by a stranger", "callback", answer(OTHER_HOST), "signed by a key of"),
        (
            "forged by a stranger",
            "booking_notice",
            {**notice(HOST), "status": "confirmed", "extra": 1},
            "is not one by",
        ),
    ):
        level = {"level": "unconfirmed"} if kind == "none" else {}
        members = entered(said, evidence={"booking": kind}, **level)
        yield Bound(name, receipt("review", members, said, booking), said, differs)
    for name, given, differs in (
        ("another guest's receipt", stay_receipt(GUESTS[1]), "does not confirm"),
        ("another host's receipt", stay_receipt(GUEST, OTHER_HOST), "another host_did"),
        ("a forged receipt", {**stay_receipt(GUEST), "nonce": "another"}, "is not one by"),
    ):
        held = review(booking_evidence=given)
        yield Bound(name, receipt("review", entered(held), held), held, differs)


def _others_altered() -> Iterator[Bound]:
    said = response(REVIEW_ID)
    members = {"review_id": REVIEW_ID, "host_did": HOST.did, "text": "Thank you."}
    other = response(REVIEW_ID, OTHER_HOST)
    for name, members_, signed, differs in (
        ("another text", {**members, "text": "Never."}, said, "the text of the entry"),
        ("another review", members, response("rev-" + "c" * 25 + "a"), "review_id is"),
        ("another host's", members, other, "host_did is"),
        ("unsigned", members, unsigned(said), "is not signed"),
        ("of no host", members, {**said, "host_did": {}}, "is signed by a key of"),
        ("a review's", members, review(), "is not made from a"),
    ):
        yield Bound(f"response: {name}", receipt("response", dict(members_), signed), signed, differs)
    for name, signed, differs in (
        ("another review", evidence("rev-" + "c" * 25 + "a", stay_receipt(GUEST), now=NOW), "review_id is"),
        ("by another", upgrade_of(stay_receipt(GUEST), GUESTS[1]), "is signed by a key of"),
        ("of no guest", upgrade_of({**stay_receipt(GUEST), "guest_did": {}}), "is signed by a key of"),
        ("another host", upgrade_of(stay_receipt(GUEST, OTHER_HOST)), "another host_did"),
        ("a forged receipt", upgrade_of({**stay_receipt(GUEST), "nonce": "another"}), "is not one by"),
    ):
        yield Bound(f"upgrade: {name}", receipt("upgrade", upgraded(), signed), signed, differs)
    plain, agreed = attestation(), attestation(guest_statement=consent())
    disagreed = attestation(guest_statement=consent(review_text="Loud."))
    unasked = attestation(guest_statement=unsigned(consent()))
    borrowed = attestation(host_credential=host_credential(OTHER_HOST))
    for name, members_, signed, differs in (
        ("without consent", imported(plain, level="guest_verified"), plain, "attestation"),
        ("with an issuer", imported(plain, evidence={"issuer": IDV}), plain, "names an issuer"),
        ("lowered", imported(agreed, level="host_attested"), agreed, "attestation"),
        ("another rating", imported(plain, ratings={**plain["ratings"], "overall": 1}), plain, "ratings"),
        ("another consent", imported(disagreed), disagreed, "consented to another review_text"),
        ("unsigned consent", imported(unasked), unasked, "the guest's consent is not signed"),
        ("by a stranger", imported(other_hosts()), other_hosts(), "is signed by a key of"),
        ("another host's credential", imported(borrowed), borrowed, "the credential in the attestation is"),
    ):
        yield Bound(f"import: {name}", receipt("review", members_, signed), signed, differs)


def other_hosts() -> Members:
    """An attestation about a host that another one signs."""
    return OTHER_HOST.sign(unsigned(attestation()), domain=DOMAIN)


def _web_altered() -> Iterator[Bound]:
    """What the entry commits to tells even where the keys are on the web; a signature alone does not."""
    said = review(WEB_GUEST, HOST)
    lie = entered(said, ratings={**said["ratings"], "overall": 1})
    yield Bound("a did:web's rating", receipt("review", lie, said), said, "ratings")
    yield Bound("a did:web's unsigned", receipt("review", entered(said), unsigned(said)), unsigned(said), "not signed")
    thief = Speaker(64, JWK_GUEST.did, "#0")
    forged = review(thief)
    yield Bound("a did:jwk's", receipt("review", entered(forged), forged), forged, "is not one by the key of")
    thief = Speaker(64, WEB_GUEST.did, WEB_GUEST.method.removeprefix(WEB_GUEST.did))
    forged = review(thief, HOST)
    yield Bound(
        "a did:web's by another key than was seen",
        receipt("review", entered(forged), forged, **seen(WEB_GUEST)),
        forged,
        "which the receipt names",
        convicts=False,
    )


def lying() -> list[Bound]:
    return [*_altered(), *_raised(), *_others_altered(), *_web_altered()]


ODD: tuple[Any, ...] = (
    *(None, True, 0, 5, 1e300, "", "x", [], {}, [1], {"a": 1}, "StayReceipt", "BookingNotice", "z", "toString"),
    *("did:key:", "did:key:z6Mk", "did:jwk:W10", "did:web:a.example", "9999-99-99", "__proto__"),
)


def bent_case(random: Random) -> Bound:
    """An honest case of which one or two parts of the statement, or of the booking beside it, are left out or others.
    The entry commits to it all the same."""
    case = random.choice(HONEST)
    entry = parse_entry(case.receipt["entry"].encode())
    members = {name: value for name, value in entry.members.items() if name not in ("at", "review", "statement")}
    if "text" in members:
        opened = case.receipt["openings"]["text"]
        members["text"] = opened and opened["text"]
    booking = case.receipt.get("booking")
    if booking is not None and random.random() < 0.5:
        booking = _bent(random, booking)
    signed = _bent(random, case.signed) if booking is case.receipt.get("booking") else case.signed
    more = {name: case.receipt[name] for name in ("keys_seen",) if name in case.receipt}
    return Bound(case.name, receipt(entry.type, members, signed, booking, **more), signed)


def _bent(random: Random, value: Members) -> Members:
    made = deepcopy(value)
    for _ in range(random.choice((0, 1, 1, 2))):
        *way, last = random.choice(list(_places(made)))
        part: Any = made
        for step in way:
            part = part[step]
        if random.random() < 0.3:
            del part[last]
        else:
            part[last] = random.choice(ODD)
    return made


def _places(value: Any) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield (name,)
        yield from ((name, *rest) for rest in _places(inner))


HONEST, LYING = honest(), lying()
