"""OpenSTR RFC-005 7.2, the fields of a review."""

import json
from typing import Any

import pytest

from ledger.canon import base64
from ledger.identity.sealing import unseal
from ledger.store.rows import run
from tests.api.hosts_and_guests import (
    feedback_request,
)
from tests.api.site import Person, Site, problem, published
from tests.identities import RATINGS
from tests.interop.rfc005 import CATEGORIES, HOUSE, REQUIRED
from tests.reviewing import DOMAIN, review, unsigned

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
    """7.2 private_feedback: a message to the host, in no answer, no entry and no tile, nor in what anybody else gets
    back, nor readable in the database: sealed to the host's key, who alone can fetch and open it."""
    secret = "The tap in the bathroom drips at night"
    receipt = site.review(guest, host, private_feedback=secret)
    assert receipt["private_feedback"] == "sealed"
    answered = site.response(receipt["review_id"], host)
    shown = published(site.get, [host.did], [receipt["review_id"]])
    assert len(shown) > 20
    assert [path for path, data in shown.items() if b"Quiet." in data]
    for path, data in {**shown, "receipts": json.dumps([receipt, answered]).encode()}.items():
        assert secret.encode() not in data, path
    with site.ledger.store.read() as connection:
        for table in ("entry", "known", "receipt_salt", "record", "feedback"):
            assert secret not in str(run(connection, f"SELECT * FROM {table}"))
    [item] = site.post("/v1/feedback", feedback_request(host)).json()["items"]
    assert item["review_id"] == receipt["review_id"]
    assert unseal(base64.decode(item["sealed"]), host.key) == secret
    assert site.post("/v1/feedback", feedback_request(Person("another host"))).json() == {"items": []}


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
