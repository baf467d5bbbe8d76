"""The desk: every refusal is signed, unless what was refused may be in the log all the same."""

from collections.abc import Callable
from hashlib import sha256

import pytest

from audits.receipts import verify_refusal
from ledger.errors import Halted, NotAccepted, Refused, StaylogError, Uncertain
from ledger.store.refusals import unconfirmed, unreplicated
from tests.reviewing import Reviewing, encoded


def test_a_refusal_is_signed_evidence(reviewing: Reviewing) -> None:
    desk = reviewing.desk
    with pytest.raises(Refused) as refused, desk.signing_refusals(b'{"a":1}'):
        raise NotAccepted("booking_denied", "the host does not know this booking")
    assert (refused.value.code, refused.value.reason.code) == ("booking_denied", "booking_denied")
    said = refused.value.refusal
    assert (said["submission_sha256"], said["code"]) == (sha256(b'{"a":1}').hexdigest(), "booking_denied")
    report = verify_refusal(encoded(said), bytes(desk.keys.statements.verify_key), submission=b'{"a": 1}')
    assert "it is this submission that was refused" in report.proved


def test_nobody_signs_that_something_was_refused_which_may_be_there(reviewing: Reviewing) -> None:
    with pytest.raises(Uncertain), reviewing.desk.signing_refusals(b"{}"):
        raise Uncertain(Halted("log_behind", "a test"))


@pytest.mark.parametrize("unknown", [unconfirmed, unreplicated])
def test_does_not_sign_a_refusal_when_a_commit_may_have_happened(
    reviewing: Reviewing, unknown: Callable[[], StaylogError]
) -> None:
    error = unknown()
    with pytest.raises(type(error)), reviewing.desk.signing_refusals(b"{}"):
        raise error


def test_keys_of_different_purposes_have_nothing_in_common(reviewing: Reviewing) -> None:
    """Nor do parts that are cut elsewhere."""
    key = reviewing.desk.key
    made = {key("a", "b", "c"), key("a", "bc"), key("ab", "c"), key("a", "b", b"c", ""), key("a", "", "b", "c")}
    assert len(made) == 5
    assert key("a", "b") == key("a", b"b")


def test_a_person_is_known_again_when_there_is_a_new_pepper(reviewing: Reviewing) -> None:
    """By the oldest one: who waits is not counted anew because the secrets were changed meanwhile."""
    desk = reviewing.desk
    person = desk.person("did:web:cottage.example", ("https://idv.example", "ig-1"))
    assert person == desk.references.persons("did:web:cottage.example", "https://idv.example", "ig-1")[-1]
    assert person != desk.person("did:web:harbour.example", ("https://idv.example", "ig-1"))
    assert person != desk.person("did:web:cottage.example", ("https://idv.example", "ig-2"))


def test_an_entry_is_known_by_what_was_first_said_of_it(reviewing: Reviewing) -> None:
    reviewing.desk.note((b"a", b"b"), 1)
    reviewing.desk.note((b"b", b"c"), 2)
    known = reviewing.ledger.reader.known
    assert (known(b"a"), known(b"b"), known(b"c"), known(b"d")) == (1, 1, 2, None)
