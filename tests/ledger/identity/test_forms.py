"""What is wrong with a document is said in words, with its place and without its value."""

import json
import re
from typing import Any

import pytest

import schemas
from ledger.identity.forms import MAX_ITEMS, faults, listed, told
from tests.identities import credential, statement
from tests.timing import quickest


def wrong(path: str, value: Any, role: str = "host") -> str:
    document = credential(role)
    *way, last = path.split(".")
    target: Any = document
    for step in way:
        target = target[int(step) if isinstance(target, list) else step]
    if value is None:
        del target[last]
    else:
        target[last] = value
    return told(faults("credentials.v1.json", role, document))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("credentialSubject.host_type", "robot", "credentialSubject.host_type: one of individual, business expected"),
        ("credentialSubject.host_type", None, "credentialSubject: the member 'host_type' is missing"),
        ("credentialSubject.phone_verified", "yes", "credentialSubject.phone_verified: boolean expected"),
        ("credentialSubject.colour", "red", "credentialSubject: there is no member 'colour'"),
        ("credentialSubject.issuer_host_id", "", "credentialSubject.issuer_host_id: empty"),
        ("credentialSubject.issuer_host_id", "x" * 513, "credentialSubject.issuer_host_id: more than 512 characters"),
        ("credentialSubject.properties", [], "credentialSubject.properties: fewer than 1 items"),
        ("credentialSubject.properties.0.country", "gb", "properties.0.country: country expected"),
        ("credentialSubject.id", "bob", "credentialSubject.id: absolute uri expected, as https://"),
        ("validFrom", "2026-02-30T00:00:00Z", "validFrom: a time that exists expected"),
        ("credentialSubject.reputation.aggregate_rating", 5.5, "aggregate_rating: more than 5"),
        ("credentialSubject.reputation.aggregate_rating", 4.55, "aggregate_rating: a multiple of 0.1 expected"),
        ("credentialSubject.reputation.rating_count", -1, "rating_count: less than 0"),
        ("credentialSubject.reputation", {}, "credentialSubject.reputation: none of the forms"),
        ("type", ["x"], "type: VerifiableCredential, OpenSTRHostCredential expected"),
        ("issuer", {}, "issuer: the member 'id' is missing"),
    ],
)
def test_faults_are_told(path: str, value: Any, message: str) -> None:
    assert message in wrong(path, value)


def test_two_of_the_same_are_told() -> None:
    document = credential("host")
    places = document["credentialSubject"]["properties"]
    places[1] = places[0]
    [fault] = faults("credentials.v1.json", "host", document)
    assert str(fault) == "credentialSubject.properties: an item appears twice"


def test_of_many_faults_the_first_are_told() -> None:
    found = faults("credentials.v1.json", "host", {**credential("host"), "credentialSubject": {"properties": [{}] * 9}})
    assert len(found) > 20
    assert f"(and {len(found) - 3} more)" in told(found)
    assert len(listed(found)) == 20


@pytest.mark.parametrize(
    "change",
    [
        {"proof": [{}] * 18_000},
        {"credentialStatus": [{}] * 18_000},
        {"credentialSubject": {"properties": [{}] * 18_000}},
        {"credentialSubject": {"properties": [{"property_reputation": [{"verified_stays": {}}] * 201}]}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_long_lists_are_refused_before_their_items_are_looked_at(change: dict[str, Any]) -> None:
    """The validator would take seconds to find all that is wrong with them."""
    document = {**credential("host"), **change}
    assert quickest(lambda: faults("credentials.v1.json", "host", document)) < 0.1
    [fault] = faults("credentials.v1.json", "host", document)
    assert fault.message == f"more than {MAX_ITEMS} items"


def test_the_longest_list_of_wrong_items_takes_no_time_either() -> None:
    wrong = {**credential("host"), "credentialSubject": {"properties": [{"x": {}}] * MAX_ITEMS}}
    assert len(faults("credentials.v1.json", "host", wrong)) > MAX_ITEMS
    assert quickest(lambda: faults("credentials.v1.json", "host", wrong)) < 0.2


def test_no_form_has_a_longer_list() -> None:
    for name in ("credentials.v1.json", "statements.v1.json"):
        lengths = re.findall(r'"maxItems": (\d+)', json.dumps(schemas.load(name)))
        assert all(int(length) <= MAX_ITEMS for length in lengths)


def test_what_stands_beside_is_not_looked_at() -> None:
    body = statement("ReviewSubmission", guest_credential={"x": [1] * 1000}, booking_evidence=5)
    beside = ("guest_credential", "booking_evidence")
    assert faults("statements.v1.json", "ReviewSubmission", body, beside=beside) == []
    del body["guest_credential"]
    [fault] = faults("statements.v1.json", "ReviewSubmission", body, beside=beside)
    assert fault.message == "the member 'guest_credential' is missing"


def test_values_are_not_repeated() -> None:
    """They may be long, or private; whoever sent them knows them."""
    body = statement("ReviewSubmission", booking_reference="SECRET\n" + "x" * 200, review_text="TELL" * 501)
    shown = told(faults("statements.v1.json", "ReviewSubmission", body))
    assert shown
    assert "SECRET" not in shown
    assert "TELL" not in shown


def test_what_is_right_has_no_faults() -> None:
    assert faults("credentials.v1.json", "guest", credential()) == []
    assert faults("statements.v1.json", "FeedbackRequest", statement("FeedbackRequest")) == []
