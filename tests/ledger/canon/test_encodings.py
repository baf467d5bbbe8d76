"""base64, base58btc, DIDs and times: one spelling per value."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canon import base58, base64, did, multikey
from ledger.canon.times import check_date, check_time, format_time, parse_time, seconds
from ledger.errors import BadBase64, BadDID, BadKey, Malformed


@given(st.binary(max_size=100))
def test_base64_is_read_back(data: bytes) -> None:
    assert base64.decode(base64.encode(data)) == data


@given(st.text(st.sampled_from("AQgwZz+/=-_ \n"), max_size=12))
def test_base64_has_one_spelling(text: str) -> None:
    try:
        data = base64.decode(text)
    except BadBase64:
        return
    assert base64.encode(data) == text


@pytest.mark.parametrize("text", ["AA", "AB==", "A===", "AA==\n", " AA==", "A-==", "AA=A", "é", "AA==AA=="])
def test_loose_base64_is_refused(text: str) -> None:
    with pytest.raises(BadBase64):
        base64.decode(text)


def test_a_hash_has_32_bytes() -> None:
    assert base64.decode_hash(base64.encode(bytes(32))) == bytes(32)
    for length in (0, 31, 33):
        with pytest.raises(BadBase64) as refusal:
            base64.decode_hash(base64.encode(bytes(length)))
        assert refusal.value.code == "hash_length"


@given(st.binary(min_size=1, max_size=60))
def test_base58_is_read_back(data: bytes) -> None:
    assert base58.decode(base58.encode(data)) == data


@given(st.text(st.sampled_from(base58._ALPHABET), min_size=1, max_size=60))
def test_base58_has_one_spelling(text: str) -> None:
    assert base58.encode(base58.decode(text)) == text


@pytest.mark.parametrize("text", ["", "0", "O", "I", "l", "é", "a b", "1" * 257])
def test_other_base58_is_refused(text: str) -> None:
    with pytest.raises(Malformed) as refusal:
        base58.decode(text)
    assert refusal.value.code == "base58_invalid"


def test_the_multikey_of_an_x25519_key() -> None:
    """The example of the did:key specification (W3C CCG, did:key v0.9), and back."""
    text = "z6LSeu9HkTHSfLLeUs2nnzUSNedgDUevfNQgQjQC23ZCit6F"
    key = multikey.decode_agreement(text)
    assert len(key) == 32
    assert "z" + base58.encode(b"\xec\x01" + key) == text


@pytest.mark.parametrize(
    "data",
    [b"\xec\x01", b"\xec\x01" + bytes(31), b"\xec\x01" + bytes(33), b"\xec\x02" + bytes(32), b"\xed\x01" + bytes(32),
     b"\x82\x26" + bytes(range(32)), b"\0\xec\x01" + bytes(32), b"\0\xec\x01" + bytes(31)],
)  # fmt: skip
def test_no_multikey_of_an_x25519_key(data: bytes) -> None:
    text = "z" + base58.encode(data)
    with pytest.raises(BadKey) as refusal:
        multikey.decode_agreement(text)
    # It may have been a secret.
    assert text not in refusal.value.message
    with pytest.raises(BadKey):
        multikey.decode_agreement("m" + text[1:])


@pytest.mark.parametrize(
    "value",
    ["did:web:a.example", "did:web:localhost%3A8080", "did:web:a.example:hosts:Ada%20L", "did:web:1.example",
     "did:key:z6MkehRgf7yJbgaGfYsdoAsKdBPE3dj2CYhowQdcjqSJgvVd", "did:jwk:eyJrdHkiOiJPS1AifQ"],
)  # fmt: skip
def test_canonical_dids(value: str) -> None:
    assert did.check(value) == value


@pytest.mark.parametrize(
    "value",
    [None, 1, "", "did", "did:", "did:web", "did:web:", "did:key:", "did:jwk:", "did:jwk:a=b", "did:plc:abc", "did:web:a..example",
     "did:web:-a.example", "did:web:a.example-", "did:web:a.example%3A0", "did:web:a.example%3A080", "did:web:a.example%3A65536",
     "did:web:a.example%3A443", "did:web:a.example%3A", "did:web:a.example::b", "did:web:a.example:%41", "did:web:a.example:%2d",
     "did:web:a.example:%5F", "did:web:a.example:%7E%7a", "did:web:a%2Eexample", "did:web:a.example:a b", "did:web:a_b.example",
     "did:web:a.example?x", "did:web:a.example/x", "did:web:a.example#x", "did:key:zl", "did:key:u6Mk", "did:web:é.example", "did:web:" + "a" * 249],
)  # fmt: skip
def test_other_dids_are_refused(value: object) -> None:
    with pytest.raises(BadDID) as refusal:
        did.check(value)
    assert refusal.value.code == "did_not_canonical"


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=st.timezones()))
def test_times_are_read_back_to_the_second(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)
    # In UTC: Python calls a local time that a clock change skips or repeats unequal to that of any other zone.
    assert parse_time(format_time(whole)) == whole.astimezone(UTC)


@pytest.mark.parametrize(
    "value", ["2026-02-29", "2026-1-01", "20260101", "2026-01-01T", "٢٠٢٦-01-01", "0000-01-01", None, 20260101]
)
def test_unreal_dates(value: object) -> None:
    with pytest.raises(ValueError):
        check_date(value)


@pytest.mark.parametrize(
    "value",
    ["2026-01-01T24:00:00Z", "2026-01-01T00:00:60Z", "2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00", "2026-01-01t00:00:00z",
     "2026-01-01T00:00:00.0Z", "2026-01-01 00:00:00Z", "2026-13-01T00:00:00Z", "2026-01-01T00:00:00Z\n", None],
)  # fmt: skip
def test_unreal_times(value: object) -> None:
    with pytest.raises(ValueError):
        check_time(value)


def test_seconds() -> None:
    assert seconds("1970-01-02T00:00:01Z") == 86_401
