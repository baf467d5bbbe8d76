"""Guest bindings, against the definition: base64url without padding of SHA-256(nonce, full stop, DID)."""

from base64 import urlsafe_b64decode
from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from ledger.identity import statements
from ledger.reviews.guest_binding import bind, matches
from tests.identities import GUEST, THIEF, statement

NONCE = "h3Vb0s1kQyq2mTqv"


@given(st.text(st.sampled_from("abzAZ09_-"), min_size=16, max_size=128))
def test_the_value_is_the_salted_hash(nonce: str) -> None:
    made = bind(nonce, GUEST.did)
    assert made.keys() == {"nonce", "value"}
    assert made["nonce"] == nonce
    assert len(made["value"]) == 43
    assert urlsafe_b64decode(made["value"] + "=") == sha256(f"{nonce}.{GUEST.did}".encode()).digest()


def test_a_binding_is_of_one_guest_and_one_nonce() -> None:
    made = bind(NONCE, GUEST.did)
    assert matches(made, GUEST.did)
    assert not matches(made, THIEF.did)
    assert not matches({**made, "nonce": "another-nonce-of-16"}, GUEST.did)
    assert bind("another-nonce-of-16", GUEST.did)["value"] != made["value"]


def test_a_value_that_is_no_hash_matches_nobody() -> None:
    for value in ("", "é", bind(NONCE, GUEST.did)["value"] + "=", bind(NONCE, GUEST.did)["value"][:-1]):
        assert not matches({"nonce": NONCE, "value": value}, GUEST.did)


def test_a_notice_takes_it_as_it_is() -> None:
    statements.check(statement("BookingNotice", guest_binding=bind(NONCE, GUEST.did)), "BookingNotice")
