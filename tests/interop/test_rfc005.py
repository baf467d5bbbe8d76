"""OpenSTR RFC-005 (0.1.0-draft), sections 7.1 to 7.5, 9.2 and 10.2, rule by rule over HTTP.

Each test names the section of its rule first. Where this ledger departs from the text, the test says how: a review is
signed by the guest (7.1 asks for it, 7.2 has no field), and a booking is shown by a receipt that the host signed (7.3.2
asks the host afterwards, who could then keep silent).
"""

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from audits.receipts import verify_receipt
from audits.verify import verify_answer
from ledger.canon import base64
from ledger.identity.issuers import distrust
from ledger.log.checkpoint import open_checkpoint
from ledger.log.entries import parse_entry
from ledger.log.proofs import verify_consistency, verify_inclusion
from ledger.log.tlog_proof import TlogProof
from ledger.store.rows import run
from tests.api.site import Person, Site, problem, published, serving
from tests.identities import IDV, NOW, RATINGS, THIEF, Speaker, signed
from tests.reviewing import DOMAIN, credential, resigned, response, review, stay_receipt, unsigned
from tests.running import Writer
from tests.security.verdicts import subject

CATEGORIES = ("overall", "accuracy", "cleanliness", "communication", "location", "value")
REQUIRED = ("booking_reference", "listing_id", "host_did", "guest_credential", "check_in", "check_out", "ratings")
HOUSE = "\U0001f3e0"
# The record of section 7.4, as the RFC has it.
EXAMPLE = json.loads("""{
  "host_did": "did:example:host-norfolk-001",
  "host_since": "2023-06-01",
  "total_reviews": 24,
  "verified_reviews": 24,
  "average_ratings": {
    "overall": 4.8, "accuracy": 4.9, "cleanliness": 4.7, "communication": 5.0, "location": 4.6, "value": 4.8
  },
  "review_history": [
    {
      "review_id": "rev-abc123",
      "listing_id": "host-norfolk-beachcottage-001",
      "check_in": "2026-02-10",
      "check_out": "2026-02-14",
      "ratings": {"overall": 5.0, "accuracy": 5.0, "cleanliness": 5.0, "communication": 5.0, "value": 5.0},
      "review_text": "Wonderful cottage. Exactly as described.",
      "submitted_at": "2026-02-15T09:00:00Z",
      "guest_credential_issuer": "verified-identity.example.com",
      "host_response": null
    }
  ]
}""")
RULES = {
    *("7.1 portability", "7.1 verifiability", "7.1 immutability"),
    *("7.2 fields", "7.2 types", "7.2 review_text", "7.2 private_feedback", "7.2 ratings"),
    *("7.3.1", "7.3.2", "7.3.3", "7.3.4", "7.3 structured errors"),
    *("7.4 the record", "7.4 averages", "7.4 host_response", "7.4 review_history"),
    *("7.5 30 days", "7.5 500 characters", "7.5 once", "7.5 the host", "7.5 returned"),
    *("9.2 one-way", "9.2 history"),
    *(
        "10.2 a verified GuestCredential",
        "10.2 one review per booking",
        "10.2 booking confirmation",
        "10.2 immutability",
    ),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One service for all tests that let its clock stand; each has its own hosts and guests."""
    with serving(tmp_path_factory.mktemp("rfc005")) as site:
        yield site


@pytest.fixture
def own(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A service of one's own on each engine, whose clock may be set."""
    with serving(tmp_path, database_url) as site:
        yield site


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Person:
    return Person(f"host of {request.node.nodeid}")


@pytest.fixture
def guest(request: pytest.FixtureRequest) -> Person:
    return Person(f"guest of {request.node.nodeid}")


def left_on(day: str, guest: Speaker, host: Speaker, reference: str = "B-1", **options: Any) -> dict[str, Any]:
    """A review of a stay that ended on that day, with a receipt for it."""
    dates: dict[str, Any] = {"check_in": "2025-01-01", "check_out": day}
    receipt = stay_receipt(guest, host, reference, **dates)
    return review(guest, host, reference, booking_evidence=receipt, **dates, **options)


# 7.1 Design principles


def test_portability_one_record_for_all_listings(site: Site, host: Person, guest: Person) -> None:
    """7.1 portability: reputation is the DID's, and not the listing's or a platform's; nobody had to register."""
    assert site.reputation(host)["total_reviews"] == 0
    for number, listing in enumerate(("beach-cottage", "loft-2")):
        receipt = stay_receipt(guest, host, f"B-{number}", listing_id=listing)
        site.review(guest, host, f"B-{number}", listing_id=listing, booking_evidence=receipt)
    record = site.reputation(host)
    assert record["host_did"] == host.did
    assert (record["total_reviews"], record["verified_reviews"]) == (2, 2)
    assert {listed["listing_id"] for listed in record["review_history"]} == {"beach-cottage", "loft-2"}


def test_portability_a_listing_name_is_nobodys(site: Site, host: Person, guest: Person) -> None:
    """7.1 portability: two hosts whose listings have the same id have two records."""
    other = Person(f"other {host.did}")
    site.review(guest, host)
    assert site.reputation(host)["total_reviews"] == 1
    assert site.reputation(other)["total_reviews"] == 0


def test_portability_the_answer_travels(site: Site, host: Person, guest: Person) -> None:
    """7.1 portability: whoever has the answer and the log's key can check it, without this service."""
    site.review(guest, host)
    answer = site.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    assert verify_answer(answer, site.ledger.verifier, host.did).withheld == []


def anonymous() -> dict[str, dict[str, Any]]:
    """Reviews that nobody stands for."""
    guest, host = Person("nobody in particular"), Person("host of nobody")
    whole = review(guest, host)
    nameless = credential(guest)
    del nameless["credentialSubject"]["id"]
    return {
        "without a signature": unsigned(guest, host),
        "without a credential": guest.sign(unsigned(guest, host, guest_credential=None), domain=DOMAIN),
        "with null for a credential": review(guest, host) | {"guest_credential": None},
        "a credential of nobody": review(guest, host, guest_credential=signed(nameless)),
        "a credential about a name without a key": review(
            guest, host, guest_credential=signed(subject(credential(guest), id="urn:uuid:1"))
        ),
        "an unsigned credential": review(
            guest, host, guest_credential={name: part for name, part in credential(guest).items() if name != "proof"}
        ),
        "signed by somebody else": resigned(whole, THIEF),
        "signed by somebody else in the guest's name": resigned(whole, Speaker(4, guest.did, f"#{guest.multikey}")),
        "changed after signing": whole | {"review_text": "Awful."},
        "an address for a credential": review(guest, host, guest_credential={"credential_uri": f"{IDV}/1"}),
        "a token for a credential": review(guest, host, guest_credential="e30.e30."),
    }


@pytest.mark.parametrize("which", anonymous())
def test_verifiability(site: Site, which: str) -> None:
    """7.1 verifiability: every review is signed by a guest with a verified credential; others are not accepted."""
    size = site.size
    answer = site.submit(anonymous()[which])
    assert answer.status_code in (400, 403)
    problem(answer, answer.json()["code"])
    assert site.size == size


def test_verifiability_of_what_was_accepted(site: Site, host: Person, guest: Person) -> None:
    """7.1 verifiability: the guest can prove that a review is theirs, by what they signed and the salt they got."""
    sent = review(guest, host)
    receipt = site.submit(sent)
    report = verify_receipt(receipt.content, site.ledger.verifier, submission=json.dumps(sent).encode())
    assert not any("whose review" in line for line in report.not_proved)


@pytest.mark.parametrize("method", ["DELETE", "PUT", "PATCH"])
def test_immutability_no_method_changes_anything(site: Site, host: Person, guest: Person, method: str) -> None:
    """7.1 immutability: there is no way to take a review, a response or an entry back, for nobody."""
    review_id = site.review(guest, host)["review_id"]
    site.response(review_id, host)
    size, entries = site.size, site.get("/v1/log/entries?count=1000").content
    for path in (
        "/v1/reviews",
        f"/v1/reviews/{review_id}",
        f"/v1/reviews/{review_id}/response",
        f"/v1/hosts/{host.did}/reputation",
        "/v1/log/entries",
    ):
        answer = site.client.request(method, path, content=b"{}", headers={"content-type": "application/json"})
        problem(answer, "method_not_allowed")
        assert method not in answer.headers["allow"]
    assert (site.size, site.get("/v1/log/entries?count=1000").content) == (size, entries)


def test_immutability_in_the_document(site: Site) -> None:
    """7.1 immutability: no operation of the whole service deletes or replaces."""
    paths = site.get("/schema/openapi.json").json()["paths"]
    assert {method for operations in paths.values() for method in operations} == {"get", "post"}
    writing = {path for path, operations in paths.items() if "post" in operations}
    assert writing == {"/v1/reviews", "/v1/reviews/{review_id}/response"}


def test_immutability_the_log_only_grows(site: Site, host: Person, guest: Person) -> None:
    """7.1 immutability: after a response the review is there byte for byte, and every newer checkpoint extends every
    older one."""
    receipt = site.review(guest, host)
    response_ = site.response(receipt["review_id"], host)
    site.review(guest, host, "B-2")
    assert response_["index"] > receipt["index"]
    shown = site.get(f"/v1/reviews/{receipt['review_id']}").json()["entries"]
    assert [entry["type"] for entry in shown] == ["review", "response"]
    assert [entry["entry"] for entry in shown] == [receipt["entry"], response_["entry"]]
    newest = open_checkpoint(site.get("/log/checkpoint").text, site.ledger.verifier)
    for note in (receipt["checkpoint"], response_["checkpoint"]):
        older = open_checkpoint(note, site.ledger.verifier)
        proof = site.get(f"/v1/log/consistency?first={older.size}&second={newest.size}").json()["proof"]
        path = [base64.decode_hash(node) for node in proof]
        verify_consistency(older.size, newest.size, older.root, newest.root, path)
    for made in (receipt, response_):
        leaf = parse_entry(made["entry"].encode()).leaf_hash
        TlogProof.parse(made["tlog_proof"]).verify(leaf, site.ledger.verifier)
        now = site.get(f"/v1/log/inclusion?index={made['index']}&size={newest.size}").json()
        nodes = [base64.decode_hash(node) for node in now["proof"]]
        verify_inclusion(leaf, made["index"], newest.size, nodes, newest.root)


# 7.2 Review event submission


@pytest.mark.parametrize("name", REQUIRED)
def test_required_fields(site: Site, host: Person, guest: Person, name: str) -> None:
    """7.2 fields: without any of the seven a review is refused, and the answer names what is missing."""
    body = guest.sign({field: value for field, value in unsigned(guest, host).items() if field != name}, domain=DOMAIN)
    refused = problem(site.submit(body), "schema_invalid")
    assert f"'{name}'" in refused["errors"][0]["message"]


@pytest.mark.parametrize("name", ["review_text", "private_feedback"])
def test_optional_fields(site: Site, host: Person, guest: Person, name: str) -> None:
    """7.2 fields: the two others may be left out, or be empty."""
    site.review(guest, host, "B-1", **{name: None})
    site.review(guest, host, "B-2", **{name: ""})
    texts = [listed["review_text"] for listed in site.reputation(host)["review_history"]]
    assert texts == ([None, None] if name == "review_text" else ["Quiet.\nDry."] * 2)


def test_the_fields_of_the_rfc_are_enough(site: Site, host: Person, guest: Person) -> None:
    """7.2 fields: besides those of the table there are the signature and the receipt only; `type` may be left out."""
    body = review(guest, host, type=None, private_feedback="The tap drips.")
    assert body.keys() - {"proof", "booking_evidence"} == {*REQUIRED, "review_text", "private_feedback"}
    answer = site.submit(body)
    assert answer.status_code == 201
    assert answer.headers["location"] == f"/v1/reviews/{answer.json()['review_id']}"


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        *((name, 5, "schema_invalid") for name in ("booking_reference", "listing_id", "review_text")),
        ("booking_reference", "", "schema_invalid"),
        ("booking_reference", "x" * 129, "schema_invalid"),
        ("booking_reference", ["B-1"], "schema_invalid"),
        ("listing_id", "", "schema_invalid"),
        ("listing_id", "Rose cottage", "schema_invalid"),
        ("listing_id", "x" * 129, "schema_invalid"),
        ("host_did", 5, "schema_invalid"),
        ("host_did", "cottage.example", "did_not_canonical"),
        ("host_did", "did:web:Cottage.example", "did_not_canonical"),
        ("guest_credential", [], "schema_invalid"),
        ("guest_credential", 5, "schema_invalid"),
        ("check_in", 20260520, "schema_invalid"),
        ("check_in", "2026-5-20", "date_invalid"),
        ("check_in", "2026-05-20T15:00:00Z", "date_invalid"),
        ("check_out", "2026-05-32", "date_invalid"),
        ("check_out", "2026-05-20", "date_invalid"),
        ("check_out", "2026-05-19", "date_invalid"),
        ("ratings", [4, 4, 4, 4, 4], "schema_invalid"),
        ("ratings", 4.5, "schema_invalid"),
        ("review_text", ["Quiet."], "schema_invalid"),
        ("private_feedback", {"text": "Quiet."}, "schema_invalid"),
    ],
)
def test_types_of_fields(site: Site, host: Person, guest: Person, name: str, value: Any, code: str) -> None:
    """7.2 types: each field is what the table says, a date is a date, a stay ends after it began."""
    body = guest.sign({**unsigned(guest, host), name: value}, domain=DOMAIN)
    refused = problem(site.submit(body), code)
    if code != "did_not_canonical" and name != "guest_credential":
        assert [error["field"] for error in refused["errors"]] == [name]


@pytest.mark.parametrize("media_type", ["application/json", "application/json; charset=utf-8", "Application/JSON"])
def test_the_media_type(site: Site, host: Person, guest: Person, media_type: str) -> None:
    """7.2 fields: Content-Type is application/json, and nothing else."""
    assert site.submit(review(guest, host), media_type=media_type).status_code == 201
    problem(site.submit(review(guest, host), media_type="application/ld+json"), "unsupported_media_type")


@pytest.mark.parametrize("name", ["review_text", "private_feedback"])
@pytest.mark.parametrize("character", ["x", "é", HOUSE, "e\u0301"[1]], ids=["ASCII", "Latin", "astral", "combining"])
def test_2000_characters(site: Site, host: Person, guest: Person, name: str, character: str) -> None:
    """7.2 review_text: at most 2000 characters, which are code points: neither bytes nor halves of pairs; and nothing
    is cut off. 7.2 private_feedback: the same."""
    text: Any = character * 2000
    receipt = site.review(guest, host, **{name: text})
    if name == "review_text":
        assert receipt["openings"]["text"]["text"] == text
        assert site.reputation(host)["review_history"][0]["review_text"] == text
    refused = problem(site.submit(review(guest, host, "B-2", **{name: text + character})), "text_too_long")
    assert [error["field"] for error in refused["errors"]] == [name]


def test_characters_that_are_escaped_in_pairs(site: Site, host: Person, guest: Person) -> None:
    """7.2 review_text: as most writers of JSON spell it, a house is twelve characters of ASCII. It is one."""
    data = json.dumps(review(guest, host, review_text=HOUSE * 2000)).encode()
    assert data.count(b"\\ud83c\\udfe0") == 2000
    assert site.submit(data).status_code == 201
    data = json.dumps(review(guest, host, "B-2", review_text=HOUSE * 2001)).encode()
    problem(site.submit(data), "text_too_long")


def test_private_feedback_is_not_published(site: Site, host: Person, guest: Person) -> None:
    """7.2 private_feedback: in no answer, no entry and no tile, nor in what anybody else gets back; and as nobody can
    fetch it yet, the guest is told that it was not kept."""
    secret = "The tap in the bathroom drips at night"
    receipt = site.review(guest, host, private_feedback=secret)
    assert receipt["private_feedback"] == "undeliverable"
    answered = site.response(receipt["review_id"], host)
    shown = published(site.get, [host.did], [receipt["review_id"]])
    assert len(shown) > 20
    assert [path for path, data in shown.items() if b"Quiet." in data]
    for path, data in {**shown, "receipts": json.dumps([receipt, answered]).encode()}.items():
        assert secret.encode() not in data, path
    with site.ledger.store.read() as connection:
        for table in ("entry", "known", "receipt_salt", "record"):
            assert secret not in str(run(connection, f"SELECT * FROM {table}"))


@pytest.mark.parametrize("category", CATEGORIES)
def test_each_rating(site: Site, host: Person, guest: Person, category: str) -> None:
    """7.2 ratings: each is a number from 1.0 to 5.0; all are required, but for location."""
    for number, stars in enumerate((1, 5.0)):
        site.review(guest, host, f"B-{number}", ratings=RATINGS | {category: stars})
    listed = site.reputation(host)["review_history"]
    assert [each["ratings"][category] for each in listed] == [5, 1]
    for wrong in (0.5, 0.9, 5.5, 5.1, 0, 6, -1, 10, 50, "5", True, None, [5]):
        refused = site.submit(
            guest.sign({**unsigned(guest, host, "B-3"), "ratings": RATINGS | {category: wrong}}, domain=DOMAIN)
        )
        assert problem(refused, "rating_out_of_range")["errors"][0]["field"] == f"ratings.{category}"
    without = {name: stars for name, stars in RATINGS.items() if name != category}
    answer = site.submit(review(guest, host, "B-4", ratings=without))
    if category == "location":
        assert answer.status_code == 201
        assert "location" not in site.reputation(host)["review_history"][0]["ratings"]
    else:
        assert f"'{category}'" in problem(answer, "schema_invalid")["errors"][0]["message"]


def test_half_stars(site: Site, host: Person, guest: Person) -> None:
    """7.2 ratings: one decimal place, in steps of 0.5: these nine, and none between them."""
    steps = [half / 2 for half in range(2, 11)]
    for number, stars in enumerate(steps):
        site.review(guest, host, f"B-{number}", ratings=dict.fromkeys(CATEGORIES, stars))
    assert [each["ratings"]["value"] for each in site.reputation(host)["review_history"]] == steps[::-1]
    assert site.reputation(host)["statistics"]["histogram"] == [1] * 9
    for between in (1.1, 1.25, 2.4999, 3.3, 4.75, 4.9, 4.500000001):
        body = review(guest, host, "B-9", ratings=RATINGS | {"overall": between})
        problem(site.submit(body), "rating_out_of_range")


def test_other_ratings(site: Site, host: Person, guest: Person) -> None:
    """7.2 ratings: there are no others than these six."""
    body = review(guest, host, ratings=RATINGS | {"charm": 5})
    assert problem(site.submit(body), "schema_invalid")["errors"][0]["field"] == "ratings"


# 7.3 Review validation


@pytest.mark.parametrize("stars", [5.0, 5, 4.5])
def test_a_valid_credential_of_a_trusted_provider(site: Site, host: Person, guest: Person, stars: float) -> None:
    """7.3.1 the guest_credential is valid, and issued by a trusted credential provider. 5 and 5.0 are one number."""
    receipt = site.review(guest, host, ratings=dict.fromkeys(CATEGORIES, stars))
    entry = json.loads(receipt["entry"])
    assert (entry["level"], entry["evidence"]["issuer"]) == ("guest_verified", IDV)
    assert entry["evidence"]["idv_level"] == "identity_verified"


@pytest.mark.parametrize("code", ["issuer_not_trusted", "expired", "not_yet_valid", "proof_invalid", "holder_mismatch"])
def test_a_credential_that_does_not_count(site: Site, host: Person, guest: Person, code: str) -> None:
    """7.3.1 a credential of an unknown provider, out of its time, forged, or somebody else's, is none."""
    shown: dict[str, Callable[[], Any]] = {
        "issuer_not_trusted": lambda: credential(guest, issuer=Speaker(9, "https://other.example", "/keys/1")),
        "expired": lambda: credential(guest, now=NOW - timedelta(days=71)),
        "not_yet_valid": lambda: credential(guest, now=NOW + timedelta(days=11)),
        "proof_invalid": lambda: subject(credential(guest), idv_level="payment_verified"),
        "holder_mismatch": lambda: credential(Person("somebody else")),
    }
    problem(site.submit(review(guest, host, guest_credential=shown[code]())), code)
    assert site.reputation(host)["total_reviews"] == 0


def test_a_provider_that_is_not_trusted_any_more(own: Site, host: Person, guest: Person) -> None:
    """7.3.1 trust is as it is now: what counted before stands, and is marked; what comes later does not count."""
    own.review(guest, host)
    own.add(distrust(own.ledger.issuers(), "guest", IDV, None))
    problem(own.submit(review(guest, host, "B-2")), "issuer_not_trusted")
    record = own.reputation(host)
    assert record["verified_reviews"] == 1
    assert record["review_history"][0]["issuer_status"] == "removed"
    assert record["issuers"] == [{"issuer": IDV, "status": "removed", "reviews": 1}]


def test_the_booking_is_the_hosts_word(site: Site, host: Person, guest: Person) -> None:
    """7.3.2 the booking_reference is of a booking that the host confirms: by its signature under a receipt."""
    receipt = site.review(guest, host)
    assert json.loads(receipt["entry"])["evidence"]["booking"] == "stay_receipt"


@pytest.mark.parametrize(
    "which",
    ["nothing", "another reference", "another listing", "another host", "another guest", "earlier", "later", "forged"],
)
def test_a_booking_that_the_host_does_not_confirm(site: Site, host: Person, guest: Person, which: str) -> None:
    """7.3.2 without the host's word for this very stay there is no review; and dates are those that were booked."""
    evidence: dict[str, Callable[[], Any]] = {
        "nothing": lambda: None,
        "another reference": lambda: stay_receipt(guest, host, "B-2"),
        "another listing": lambda: stay_receipt(guest, host, listing_id="loft-2"),
        "another host": lambda: stay_receipt(guest, Person("another host")),
        "another guest": lambda: stay_receipt(Person("another guest"), host),
        "earlier": lambda: stay_receipt(guest, host, check_out="2026-05-23"),
        "later": lambda: stay_receipt(guest, host, check_in="2026-05-21"),
        "forged": lambda: resigned(stay_receipt(guest, host), guest, domain=None),
    }
    code = "booking_unverifiable" if which == "nothing" else "booking_evidence_invalid"
    refused = problem(site.submit(review(guest, host, booking_evidence=evidence[which]())), code)
    assert refused["refusal"]["code"] == code
    assert site.reputation(host)["total_reviews"] == 0


def test_actual_dates_inside_of_the_booked_ones(site: Site, host: Person, guest: Person) -> None:
    """7.3.2 who came later or left earlier than booked has stayed nevertheless: 7.2 asks for the actual dates."""
    receipt = stay_receipt(guest, host, check_in="2026-05-01", check_out="2026-05-31")
    site.review(guest, host, booking_evidence=receipt)
    assert site.reputation(host)["review_history"][0]["check_in"] == "2026-05-20"


def test_the_check_out_date_has_passed(own: Site, host: Person, guest: Person) -> None:
    """7.3.3 the day of check-out is over: where no time zone is known, everywhere on Earth (12:00 UTC of the day after).
    What was refused the second before is taken then, signed anew."""
    clock = own.running.clock
    clock.now = NOW - timedelta(seconds=1)
    problem(own.submit(left_on("2026-05-31", guest, host, now=clock())), "stay_not_over")
    clock.now = NOW
    assert own.submit(left_on("2026-05-31", guest, host, now=clock())).status_code == 201
    problem(own.submit(left_on("2026-06-01", guest, host, "B-2")), "stay_not_over")
    problem(own.submit(left_on("2026-06-20", guest, host, "B-2")), "stay_not_over")


def test_a_stay_of_long_ago(site: Site, host: Person, guest: Person) -> None:
    """7.3.3 a check-out 365 days ago has passed; of more this ledger has no evidence worth keeping."""
    assert site.submit(left_on("2025-06-01", guest, host)).status_code == 201
    problem(site.submit(left_on("2025-05-31", guest, host, "B-2")), "too_late")


def test_one_review_per_booking(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 a guest may not submit more than one review per booking reference."""
    first = own.review(guest, host)
    for again in (
        review(guest, host, review_text="On second thoughts."),
        review(guest, host, ratings=dict.fromkeys(CATEGORIES, 1)),
        review(guest, host, now=NOW + timedelta(seconds=1)),
    ):
        problem(own.submit(again), "already_reviewed")
    record = own.reputation(host)
    assert [listed["review_id"] for listed in record["review_history"]] == [first["review_id"]]
    # Another booking is another review; and the same guest is known to have been here.
    own.review(guest, host, "B-2")
    assert [listed["repeat"] for listed in own.reputation(host)["review_history"]] == [True, False]


def test_one_review_per_booking_and_person(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 another key does not make another guest: the provider says who it is."""
    own.review(guest, host)
    second = Person(f"second key of {guest.did}")
    same = credential(second, credential(guest)["credentialSubject"]["issuer_guest_id"])
    problem(own.submit(review(second, host, guest_credential=same)), "already_reviewed")


def test_the_rule_is_about_the_guest(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 nobody can take another's turn: two guests of one booking both may, and the record shows that they did; the
    reference of a booking at another host is another booking."""
    other, elsewhere = Person(f"other {guest.did}"), Person(f"elsewhere {host.did}")
    own.review(guest, host)
    own.review(other, host)
    own.review(guest, elsewhere)
    assert own.reputation(host)["verified_reviews"] == 2
    assert own.reputation(host)["statistics"]["checks"]["conflict"] == 1
    assert own.reputation(elsewhere)["statistics"]["checks"]["conflict"] == 0


def test_the_same_submission_again(own: Site, host: Person, guest: Person) -> None:
    """7.3.4 a review that is sent twice is one review: the guest gets the first receipt again, also after hours."""
    sent = review(guest, host)
    first, second = own.submit(sent), own.submit(sent)
    own.running.clock.forward(hours=3)
    third = own.submit(sent)
    assert [answer.status_code for answer in (first, second, third)] == [201, 200, 200]
    assert first.json() == second.json() == third.json()
    assert own.reputation(host)["total_reviews"] == 1


def test_refusals_are_structured(site: Site, host: Person, guest: Person) -> None:
    """7.3 structured errors: RFC 9457, with a code for programs, words for people, and each field that is wrong."""
    body = guest.sign(
        {**unsigned(guest, host), "listing_id": "a b", "review_text": 5, "booking_reference": ""}, domain=DOMAIN
    )
    refused = problem(site.submit(body), "schema_invalid")
    assert {error["field"] for error in refused["errors"]} == {"listing_id", "review_text", "booking_reference"}
    explained = site.get(refused["type"].removeprefix(DOMAIN)).json()
    assert (explained["code"], explained["status"]) == ("schema_invalid", 400)


# 7.4 Reputation record structure


def test_every_member_of_the_example_is_there(site: Site, host: Person, guest: Person) -> None:
    """7.4 the record: each member of the RFC's example, of the same JSON type, and with the meaning that it has there."""
    stays = [("B-1", "2026-03-01", "2026-03-04"), ("B-2", "2026-02-10", "2026-02-14")]
    receipts = []
    for reference, check_in, check_out in stays:
        dates: dict[str, Any] = {"check_in": check_in, "check_out": check_out}
        evidence = stay_receipt(guest, host, reference, **dates)
        receipts.append(site.review(guest, host, reference, booking_evidence=evidence, **dates))
    record = site.reputation(host)
    assert same_form(EXAMPLE, record) == []
    assert record["host_did"] == host.did
    # Since when there are verified stays: not since when somebody says so.
    assert record["host_since"] == "2026-02-10"
    assert (record["total_reviews"], record["verified_reviews"]) == (2, 2)
    assert record["average_ratings"] == {name: float(stars) for name, stars in RATINGS.items()}
    assert {
        name: value for name, value in record["review_history"][0].items() if name in EXAMPLE["review_history"][0]
    } == {
        "review_id": receipts[1]["review_id"],
        "listing_id": "rose-cottage",
        "check_in": "2026-02-10",
        "check_out": "2026-02-14",
        "ratings": RATINGS,
        "review_text": "Quiet.\nDry.",
        "submitted_at": "2026-06-01T12:00:00Z",
        "guest_credential_issuer": "idv.example",
        "host_response": None,
    }


def same_form(example: Any, found: Any, where: str = "record") -> list[str]:
    """Where `found` has not the form of the example; null for a number or text is the RFC's way to say that there is
    none, and more members are allowed."""
    if isinstance(example, dict):
        if not isinstance(found, dict):
            return [where]
        return [
            wrong
            for name, inner in example.items()
            for wrong in (same_form(inner, found[name], f"{where}.{name}") if name in found else [f"{where}.{name}"])
        ]
    if isinstance(example, list):
        return (
            [where]
            if not isinstance(found, list)
            else [wrong for item in found for wrong in same_form(example[0], item, where)]
        )
    if isinstance(example, bool) or example is None:
        return [] if found is example else [where]
    if isinstance(example, int | float):
        return [] if type(found) in (int, float) else [where]
    for form in (r"\d{4}-\d\d-\d\d", r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"):
        if re.fullmatch(form, example):
            return [] if isinstance(found, str) and re.fullmatch(form, found) else [where]
    return [] if isinstance(found, str) else [where]


def test_a_host_without_reviews(site: Site, host: Person) -> None:
    """7.4 the record: of a host that nobody has reviewed it has zeros and nulls, and can be proved."""
    record = site.reputation(host)
    assert {name: record[name] for name in EXAMPLE} == {
        "host_did": host.did,
        "host_since": None,
        "total_reviews": 0,
        "verified_reviews": 0,
        "average_ratings": dict.fromkeys(CATEGORIES),
        "review_history": [],
    }
    answer = site.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    verify_answer(answer, site.ledger.verifier, host.did)


def half_up(stars: list[float]) -> float:
    mean = sum(map(Decimal, map(str, stars)), Decimal(0)) / len(stars)
    return float(mean.quantize(Decimal("0.1"), ROUND_HALF_UP))


# For each category the ratings of some reviews: means that lie on a half, next to it, or that binary fractions miss.
COLUMNS: list[dict[str, list[float]]] = [
    {
        "overall": [4.5, 4.0],
        "accuracy": [1.0, 1.5],
        "cleanliness": [5.0, 4.5],
        "communication": [2.0, 2.5],
        "location": [3.5, 3.0],
        "value": [5.0, 1.0],
    },
    {
        "overall": [5.0, 5.0, 4.5],
        "accuracy": [1.0, 1.0, 1.5],
        "cleanliness": [4.5, 4.5, 5.0],
        "communication": [3.0, 3.5, 3.5],
        "location": [1.0, 5.0, 4.5],
        "value": [2.0, 2.0, 2.0],
    },
    {
        # 4.35, 3.05, 1.15, 4.95, 2.05 and 1.05: each but one is a little less as a binary fraction.
        "overall": [4.5] * 7 + [4.0] * 3,
        "accuracy": [3.0] * 9 + [3.5],
        "cleanliness": [1.0] * 7 + [1.5] * 3,
        "communication": [5.0] * 9 + [4.5],
        "location": [2.0] * 9 + [2.5],
        "value": [1.0] * 9 + [1.5],
    },
]


@pytest.mark.parametrize("columns", COLUMNS, ids=lambda columns: f"{len(columns['overall'])} reviews")
def test_averages_are_exact(site: Site, host: Person, guest: Person, columns: dict[str, list[float]]) -> None:
    """7.4 averages: the mean of the verified reviews to one decimal; exactly in between is rounded up."""
    for number in range(len(columns["overall"])):
        ratings = {category: stars[number] for category, stars in columns.items()}
        site.review(guest, host, f"B-{number}", ratings=ratings)
    expected = {category: half_up(stars) for category, stars in columns.items()}
    assert site.reputation(host)["average_ratings"] == expected
    if len(columns["overall"]) == 2:
        assert (expected["overall"], expected["accuracy"], expected["cleanliness"]) == (4.3, 1.3, 4.8)
    if len(columns["overall"]) == 10:
        assert (expected["overall"], expected["cleanliness"]) == (4.4, 1.2)


def test_the_average_of_what_not_all_rate(site: Site, host: Person, guest: Person) -> None:
    """7.4 averages: location is the mean over those who rated it, and null while nobody has."""
    without = {name: stars for name, stars in RATINGS.items() if name != "location"}
    site.review(guest, host, "B-1", ratings=without)
    assert site.reputation(host)["average_ratings"]["location"] is None
    site.review(guest, host, "B-2", ratings=without | {"location": 4.5})
    site.review(guest, host, "B-3", ratings=without)
    site.review(guest, host, "B-4", ratings=without | {"location": 4})
    record = site.reputation(host)
    assert record["average_ratings"]["location"] == half_up([4.5, 4]) == 4.3
    assert record["statistics"]["ratings"]["guest_verified"]["location"] == [2, 17]


def test_levels_are_never_mixed(own: Site, host: Person, guest: Person) -> None:
    """7.4 averages: over verified reviews alone. What only the host attests (7.6), or nobody, is counted beside."""
    writer = Writer(seed=5)
    stars = {"guest_verified": [4.5, 4.0], "host_attested": [5.0, 5.0, 5.0], "unconfirmed": [1.0]}
    for level in ("host_attested", "unconfirmed"):
        for number, each in enumerate(stars[level]):
            own.add(writer.review(host.did, level, ratings=dict.fromkeys(CATEGORIES, each)))
            if number < 2 and level == "host_attested":
                ratings = dict.fromkeys(CATEGORIES, stars["guest_verified"][number])
                own.review(guest, host, f"B-{number}", ratings=ratings)
    record = own.reputation(host, "limit=100")
    assert (record["total_reviews"], record["verified_reviews"]) == (6, 2)
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES, 4.3)
    statistics = record["statistics"]
    assert statistics["reviews"] == {level: len(given) for level, given in stars.items()}
    assert statistics["average_ratings"] == {
        level: dict.fromkeys(CATEGORIES, half_up(given)) for level, given in stars.items()
    }
    assert sum(statistics["histogram"]) == 2
    # The writer's stays are older; what only the host attests gives no seniority.
    assert record["host_since"] == "2026-05-20"
    levels = [listed["verification_level"] for listed in record["review_history"]]
    assert sorted(levels) == sorted(level for level, given in stars.items() for _ in given)
    answer = own.get(f"/v1/hosts/{host.did}/reputation?proof=full").content
    verify_answer(answer, own.ledger.verifier, host.did)


def test_only_other_levels(site: Site, host: Person) -> None:
    """7.4 averages: null without a verified review, however many others there are."""
    site.add(Writer(seed=6).review(host.did, "host_attested"))
    record = site.reputation(host)
    assert (record["total_reviews"], record["verified_reviews"], record["host_since"]) == (1, 0, None)
    assert record["average_ratings"] == dict.fromkeys(CATEGORIES)


def test_host_response_is_null_or_an_object(site: Site, host: Person, guest: Person) -> None:
    """7.4 host_response: null, or what the host said and when."""
    first, second = site.review(guest, host), site.review(guest, host, "B-2")
    site.response(first["review_id"], host, "Thank you; the tap is new.")
    responses = {listed["review_id"]: listed["host_response"] for listed in site.reputation(host)["review_history"]}
    assert responses == {
        second["review_id"]: None,
        first["review_id"]: {"response_text": "Thank you; the tap is new.", "submitted_at": "2026-06-01T12:00:00Z"},
    }


def test_the_newest_review_is_first(own: Site, host: Person, guest: Person) -> None:
    """7.4 review_history: by when a review came, the newest first; whole, if all pages are read."""
    made = []
    for number in range(5):
        own.running.clock.forward(minutes=1)
        made.append(own.review(guest, host, f"B-{number}")["review_id"])
    own.response(made[0], host)
    listed, cursor = [], ""
    while cursor is not None:
        page = own.reputation(host, f"limit=2{cursor and f'&cursor={cursor}'}")
        listed += page["review_history"]
        cursor = page["next_cursor"]
    assert [each["review_id"] for each in listed] == made[::-1]
    times = [datetime.fromisoformat(each["submitted_at"]) for each in listed]
    assert times == sorted(times, reverse=True)


# 7.5 Host response


def test_a_response_within_30_days(own: Site, host: Person, guest: Person) -> None:
    """7.5 30 days: to the second, from the review's submission."""
    made = [own.review(guest, host, reference)["review_id"] for reference in ("B-1", "B-2")]
    own.running.clock.forward(days=30)
    own.response(made[0], host)
    own.running.clock.forward(seconds=1)
    late = response(made[1], host, now=own.running.clock())
    problem(own.respond(late), "response_window_closed")
    assert own.reputation(host)["review_history"][0]["host_response"] is None


@pytest.mark.parametrize("character", ["x", "é", HOUSE], ids=["ASCII", "Latin", "astral"])
def test_500_characters(site: Site, host: Person, guest: Person, character: str) -> None:
    """7.5 500 characters: code points, and at least one."""
    review_id = site.review(guest, host)["review_id"]
    problem(site.respond(response(review_id, host, character * 501)), "text_too_long")
    problem(site.respond(response(review_id, host, "")), "schema_invalid")
    site.response(review_id, host, character * 500)
    assert site.reputation(host)["review_history"][0]["host_response"]["response_text"] == character * 500


def test_one_response(own: Site, host: Person, guest: Person) -> None:
    """7.5 once: "a public response", which stays as it is. The same again gets the same receipt."""
    review_id = own.review(guest, host)["review_id"]
    sent = response(review_id, host)
    first = own.respond(sent)
    problem(own.respond(response(review_id, host, "Thanks, all of you.")), "already_responded")
    again = own.respond(sent)
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert own.reputation(host)["review_history"][0]["host_response"]["response_text"] == "Thank you."
    assert own.reputation(host)["statistics"]["responses"] == 1


def test_only_the_host_responds(site: Site, host: Person, guest: Person) -> None:
    """7.5 the host: who is reviewed, by the key of its DID: no other host, no guest, nobody in its name."""
    review_id = site.review(guest, host)["review_id"]
    in_its_name = resigned(response(review_id, host), Speaker(4, host.did, f"#{host.multikey}"))
    for sent, code in (
        (response(review_id, Person("another host")), "not_the_host"),
        (response(review_id, guest), "not_the_host"),
        (resigned(response(review_id, host), guest), "not_the_host"),
        (in_its_name, "proof_invalid"),
        (response(review_id, host) | {"response_text": "Liar."}, "proof_invalid"),
        ({name: value for name, value in response(review_id, host).items() if name != "proof"}, "schema_invalid"),
    ):
        problem(site.respond(sent), code)
    assert site.reputation(host)["review_history"][0]["host_response"] is None
    problem(site.respond(response("rev-" + "a" * 26, host)), "review_not_found")


def test_responses_are_returned_to_agents(site: Site, host: Person, guest: Person) -> None:
    """7.5 returned: with the review, in the record and by itself, whoever asks."""
    review_id = site.review(guest, host)["review_id"]
    receipt = site.response(review_id, host, "We are sorry about the tap.")
    for query in ("", "proof=full"):
        [listed] = site.reputation(host, query)["review_history"]
        assert listed["host_response"]["response_text"] == "We are sorry about the tap."
    shown = site.get(f"/v1/reviews/{review_id}").json()["entries"][1]
    assert (shown["index"], shown["opening"]["text"]) == (receipt["index"], "We are sorry about the tap.")


# 9.2 Guest data


def test_guests_are_not_stored(own: Site, host: Person, guest: Person) -> None:
    """9.2 one-way: of the guest there is a keyed hash per host, and nothing that leads back. The search for anything
    else, in files and in every encoding, is tests/security/test_privacy.py."""
    own.review(guest, host)
    with own.ledger.store.read() as connection:
        known = [bytes(key) for (key,) in run(connection, "SELECT key FROM known")]
        everything = b"".join(bytes(data) for (data,) in run(connection, "SELECT data FROM entry"))
    [reference] = [key for key in known if key.startswith(b"gr1:")]
    assert re.fullmatch(rb"gr1:p1:[0-9a-f]{64}", reference)
    # It is no hash that somebody without the ledger's secret could make.
    for guess in (guest.did, guest.multikey, f"{host.did}{guest.did}", f"{guest.did}{host.did}"):
        assert sha256(guess.encode()).hexdigest().encode() not in reference
    for value in (guest.did, guest.multikey, guest.public.hex(), base64.encode(guest.public)):
        assert value.encode() not in everything
        assert not any(value.encode() in key for key in known)


def test_a_history_cannot_be_put_together(own: Site, host: Person, guest: Person) -> None:
    """9.2 history: what is kept of one guest at two hosts has nothing in common. That nobody with the database pairs
    reviews better than by chance is shown in tests/security/test_privacy.py."""
    hosts, kept = (host, Person(f"other {host.did}")), []
    for each in hosts:
        receipt = own.review(guest, each, "B-1")
        with own.ledger.store.read() as connection:
            rows = run(connection, "SELECT key FROM known WHERE idx = ?", (receipt["index"],))
        kept.append({bytes(key) for (key,) in rows})
        assert json.loads(receipt["entry"])["repeat"] is False
    assert len(kept[0]) == len(kept[1]) == 6
    assert not kept[0] & kept[1]


# 10.2 Review manipulation


def test_mitigation_a_verified_guest_credential(site: Site, host: Person, guest: Person) -> None:
    """10.2 a verified GuestCredential: a host that invents a guest has no provider that says who it is."""
    forger = Speaker(9, "https://other.example", "/keys/1")
    problem(site.submit(review(guest, host, guest_credential=credential(guest, issuer=forger))), "issuer_not_trusted")
    problem(site.submit(review(host, host)), "self_review")


def test_mitigation_one_review_per_booking(site: Site, host: Person, guest: Person) -> None:
    """10.2 one review per booking: a guest with one stay has one voice."""
    site.review(guest, host)
    for stars in (1, 2, 3):
        body = review(guest, host, ratings=dict.fromkeys(CATEGORIES, stars))
        problem(site.submit(body), "already_reviewed")
    assert site.reputation(host)["statistics"]["reviews"]["guest_verified"] == 1


def test_mitigation_booking_confirmation(site: Site, host: Person, guest: Person) -> None:
    """10.2 booking confirmation: a stranger who was never booked has none; a receipt is for one guest and one stay."""
    stranger = Person("a stranger")
    evidence = stay_receipt(guest, host)
    problem(site.submit(review(stranger, host, booking_evidence=evidence)), "booking_evidence_invalid")
    problem(site.submit(review(stranger, host, booking_evidence=None)), "booking_unverifiable")


def test_mitigation_immutability(own: Site, host: Person, guest: Person) -> None:
    """10.2 immutability: an operator who takes a review out of the database is found out by who has its receipt."""
    receipt = own.review(guest, host)
    own.review(guest, host, "B-2")
    checkpoint = open_checkpoint(receipt["checkpoint"], own.ledger.verifier)
    leaf = parse_entry(receipt["entry"].encode()).leaf_hash
    before = own.get(f"/v1/log/inclusion?index={receipt['index']}").json()
    assert base64.decode_hash(before["leaf_hash"]) == leaf
    assert TlogProof.parse(receipt["tlog_proof"]).verify(leaf, own.ledger.verifier) == checkpoint
    with own.ledger.store.write() as connection:
        run(connection, "UPDATE entry SET data = ? WHERE idx = ?", (b"sha256:" + b"0" * 64, receipt["index"]))
    assert own.get(f"/v1/log/inclusion?index={receipt['index']}").status_code == 500
    # The receipt needs nobody.
    verify_receipt(json.dumps(receipt).encode(), own.ledger.verifier)


def test_every_rule_is_named() -> None:
    """Every rule has a test whose docstring begins with it."""
    told = " ".join(made.__doc__ or "" for name, made in globals().items() if name.startswith("test_"))
    assert {rule for rule in RULES if rule not in told} == set()
