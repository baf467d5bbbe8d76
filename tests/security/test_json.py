"""JSON that readers differ about."""

import unicodedata

import pytest

from ledger.canon import strict_json
from tests.identities import (
    HOST_CLAIMS,
    PROPERTY,
    credential,
    hear,
    signed,
    statement,
)
from tests.security.verdicts import refused, subject, unheard, unread


def test_too_large() -> None:
    """A credential of more than 64 KiB; bodies are cut off by the service at 256 KiB."""
    listings = [{**PROPERTY, "listing_id": f"l-{number}", "right_to_let_method": "x" * 400} for number in range(120)]
    assert refused({**credential("host"), "credentialSubject": {**HOST_CLAIMS, "properties": listings}}, "host") == (
        "too_large"
    )


def test_nested_too_deeply() -> None:
    assert unread("[" * 17 + "]" * 17) == "too_deep"
    assert strict_json.loads("[" * 16 + "]" * 16)


def test_strings_over_the_limits_of_their_fields() -> None:
    assert refused(signed(subject(credential(), idv_method="x" * 513))) == "schema_invalid"
    assert unheard(statement("ReviewSubmission", review_text="x" * 2001), "ReviewSubmission") == "text_too_long"
    assert unheard(statement("ReviewSubmission", private_feedback="x" * 2001), "ReviewSubmission") == "text_too_long"
    assert unheard(statement("HostResponse", response_text="x" * 501), "HostResponse") == "text_too_long"
    # Code points count, not bytes.
    assert hear(statement("ReviewSubmission", review_text="\U0001f3e0" * 2000), "ReviewSubmission")


@pytest.mark.parametrize("text", ['{"a":1,"a":1}', '[{"a":{"b":1,"c":2,"b":3}}]', '{"a":1,"\\u0061":2}', '{"":0,"":0}'])
def test_duplicate_keys_at_every_level(text: str) -> None:
    assert unread(text) == "duplicate_key"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("NaN", "malformed_json"),
        ("[-Infinity]", "malformed_json"),
        ("1e400", "number_out_of_range"),
        ("9007199254740992", "number_out_of_range"),
        ("-9007199254740992", "number_out_of_range"),
        ("1" * 5000, "number_out_of_range"),
        ('"\\ud800"', "not_utf8"),
        ('{"\\udfff":1}', "not_utf8"),
    ],
)
def test_numbers_and_surrogates_that_readers_differ_about(text: str, code: str) -> None:
    assert unread(text) == code


@pytest.mark.parametrize("opening", ["[", '{"a":'])
def test_a_hundred_thousand_levels(opening: str) -> None:
    assert unread(opening * 100_000) == "too_deep"
    assert unread("[" * 100_000 + "]" * 100_000) == "too_deep"


@pytest.mark.parametrize(
    "data", [b'"\xff"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b"\xef\xbb\xbf{}", "{}".encode("utf-16")]
)
def test_invalid_utf8_and_byte_order_marks(data: bytes) -> None:
    assert unread(data) == "not_utf8"


def test_unicode_is_kept_as_it_was_signed() -> None:
    """NFC and NFD are two texts: a signature over one is none over the other. Identifiers are ASCII."""
    body = statement("HostResponse", response_text=unicodedata.normalize("NFC", "café"))
    assert hear(body, "HostResponse")
    body["response_text"] = unicodedata.normalize("NFD", body["response_text"])
    assert unheard(body, "HostResponse") == "proof_invalid"
    assert unheard(statement("HostResponse", host_did="did:web:café.example"), "HostResponse") == "did_not_canonical"
    assert refused(signed(subject(credential(), id="did:web:café.example"))) == "schema_invalid"
