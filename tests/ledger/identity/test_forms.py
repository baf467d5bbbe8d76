"""What is wrong with a document is said in words, with its place and without its value."""

from typing import Any

import pytest

from ledger.identity.forms import MOST_FAULTS, faults, told
from tests.identities import credential, statement


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
        ("credentialSubject.properties.0.country", "gb", "of another form than the schema says"),
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


def test_many_faults_are_cut_off() -> None:
    found = faults("credentials.v1.json", "host", {**credential("host"), "credentialSubject": {"properties": [{}] * 9}})
    assert len(found) <= MOST_FAULTS
    assert "more)" in told(found)


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
