"""Signed requests: each signed part, each parameter, each moment; the signature by an independent Ed25519."""

from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st
from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.canon.http_signatures import (
    MAX_CHARACTERS,
    Signature,
    content_digest,
    read_signature,
    sign_request,
    verify_request,
)
from ledger.errors import BadKey, NotAccepted
from tests.ledger.canon.test_ed25519 import SMALL

KEY = SigningKey(bytes([7] * 32))
PUBLIC = bytes(KEY.verify_key)
NOW = 1790000000
NONCE = "h3Vb0s1kQyq2mTqv"
KEYID = "https://ledger.example/.well-known/did.json#statements"
BODY = b'{"type":"booking_verification_request"}'
REQUEST: dict[str, Any] = {
    "method": "POST",
    "target_uri": "https://cottage.example/openstr/booking/B%2F1/verify",
    "content_type": "application/json",
    "body": BODY,
}
ASKED: dict[str, Any] = {"keyid": KEYID, "created": NOW, "nonce": NONCE}
COVERED = '"@method" "@target-uri" "content-type" "content-digest"'
PARAMETERS = (
    f'({COVERED});created={NOW};expires={NOW + 300};nonce="{NONCE}";keyid="{KEYID}"'
    ';alg="ed25519";tag="openstr-booking-verify"'
)
BASE = (
    '"@method": POST\n'
    '"@target-uri": https://cottage.example/openstr/booking/B%2F1/verify\n'
    '"content-type": application/json\n'
    f'"content-digest": sha-256=:{base64.encode(sha256(BODY).digest())}:\n'
    f'"@signature-params": {PARAMETERS}'
)


def made(**changes: Any) -> dict[str, str]:
    """Headers by their names in lower case, as a host gets them."""
    headers = sign_request(KEY, **{**REQUEST, **ASKED, **changes})
    return {name.lower(): value for name, value in headers.items()}


def forged(parameters: str, base: str = BASE) -> dict[str, str]:
    """Headers with other parameters, and a signature that holds for them."""
    value = KEY.sign(base.replace(PARAMETERS, parameters).encode()).signature
    return {
        **made(),
        "signature-input": f"sig1={parameters}",
        "signature": f"sig1=:{base64.encode(value)}:",
    }


def verify(headers: dict[str, str], now: int = NOW, key: bytes = PUBLIC, **changes: Any) -> Signature:
    signature = read_signature(headers)
    given = {**REQUEST, "digest": headers["content-digest"], **changes}
    verify_request(signature, key=key, now=now, **given)
    return signature


def refusal(headers: dict[str, str], **options: Any) -> str:
    with pytest.raises(NotAccepted) as refused:
        verify(headers, **options)
    return refused.value.code


def test_what_is_signed_and_by_which_algorithm() -> None:
    """The whole text, by an implementation of Ed25519 that is not ours."""
    value = Ed25519PrivateKey.from_private_bytes(bytes(KEY)).sign(BASE.encode())
    assert sign_request(KEY, **REQUEST, **ASKED) == {
        "Content-Type": "application/json",
        "Content-Digest": content_digest(BODY),
        "Signature-Input": f"sig1={PARAMETERS}",
        "Signature": f"sig1=:{base64.encode(value)}:",
    }


def test_a_digest() -> None:
    """The example of RFC 9530, B.1."""
    digest = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:"
    assert content_digest(b'{"hello": "world"}\n') == digest


def test_what_was_signed_is_read_back() -> None:
    signature = verify(made())
    assert signature.components == ("@method", "@target-uri", "content-type", "content-digest")
    assert (signature.created, signature.expires) == (NOW, NOW + 300)
    assert (signature.nonce, signature.keyid) == (NONCE, KEYID)
    assert (signature.alg, signature.tag) == ("ed25519", "openstr-booking-verify")
    assert signature.parameters == PARAMETERS
    assert verify(forged(PARAMETERS)) == signature


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"method": "PUT"}, "signature_invalid"),
        ({"target_uri": "https://cottage.example/openstr/booking/B/1/verify"}, "signature_invalid"),
        ({"target_uri": "https://cottage.example/openstr/booking/B%2f1/verify"}, "signature_invalid"),
        ({"target_uri": "https://elsewhere.example/openstr/booking/B%2F1/verify"}, "signature_invalid"),
        ({"content_type": "application/json; charset=utf-8"}, "signature_invalid"),
        ({"content_type": ""}, "signature_malformed"),
        ({"body": BODY + b" "}, "digest_mismatch"),
        ({"body": b""}, "digest_mismatch"),
        ({"digest": content_digest(BODY + b" ")}, "digest_mismatch"),
        ({"digest": ""}, "digest_mismatch"),
        ({"digest": content_digest(BODY).replace("sha-256", "sha-512")}, "digest_mismatch"),
        ({"digest": content_digest(BODY) + ", sha-512=:AA==:"}, "digest_mismatch"),
        ({"body": BODY + b" ", "digest": content_digest(BODY + b" ")}, "signature_invalid"),
        ({"key": bytes(SigningKey(bytes([8] * 32)).verify_key)}, "signature_invalid"),
    ],
    ids=str,
)
def test_each_part_of_the_request_is_signed(change: dict[str, Any], code: str) -> None:
    assert refusal(made(), **change) == code


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (f"created={NOW}", f"created={NOW + 1}"),
        (f"expires={NOW + 300}", f"expires={NOW + 299}"),
        (NONCE, NONCE[::-1]),
        ("ledger.example", "ledger.other"),
    ],
)
def test_each_parameter_is_signed(old: str, new: str) -> None:
    headers = made()
    changed = {**headers, "signature-input": headers["signature-input"].replace(old, new)}
    assert changed != headers
    assert refusal(changed) == "signature_invalid"


@given(st.data())
def test_a_change_of_any_byte_is_refused(data: st.DataObject) -> None:
    """Of the request or of its headers: one character is another one, is left out, or is new."""
    headers = made()
    texts = {**headers, "method": "POST", "target_uri": REQUEST["target_uri"], "body": BODY.decode()}
    name = data.draw(st.sampled_from(sorted(texts)))
    text = texts[name]
    place = data.draw(st.integers(0, len(text) - 1))
    new = data.draw(st.characters(min_codepoint=0, max_codepoint=255).map(str) | st.just(""))
    changed = text[:place] + new + text[place + data.draw(st.sampled_from((0, 1))) :]
    if changed == text:
        return
    texts[name] = changed
    sent = {each: texts[each] for each in headers}
    given = {"method": texts["method"], "target_uri": texts["target_uri"], "body": texts["body"].encode()}
    code = refusal(sent, content_type=texts["content-type"], **given)
    assert code in ("signature_malformed", "signature_invalid", "signature_expired", "digest_mismatch")


@given(st.integers(0, 2**511), st.sampled_from(("xor", "other")))
def test_no_other_signature_holds(number: int, how: str) -> None:
    right = int.from_bytes(read_signature(made()).value, "big")
    wrong = (right ^ number if how == "xor" else number).to_bytes(64, "big")
    if int.from_bytes(wrong, "big") != right:
        assert refusal({**made(), "signature": f"sig1=:{base64.encode(wrong)}:"}) == "signature_invalid"


def test_the_second_spelling_of_a_signature_is_refused() -> None:
    """S and S + L are the same to a careless verifier."""
    order = 2**252 + 27742317777372353535851937790883648493
    value = read_signature(made()).value
    again = value[:32] + (int.from_bytes(value[32:], "little") + order).to_bytes(32, "little")
    assert refusal({**made(), "signature": f"sig1=:{base64.encode(again)}:"}) == "signature_invalid"


@pytest.mark.parametrize(
    ("now", "code"),
    [
        (NOW - 61, "signature_expired"),
        (NOW - 60, None),
        (NOW + 299, None),
        (NOW + 300, "signature_expired"),
        (NOW + 86400, "signature_expired"),
    ],
)
def test_a_signature_holds_from_one_minute_before_to_its_expiry(now: int, code: str | None) -> None:
    if code is None:
        verify(made(), now)
    else:
        assert refusal(made(), now=now) == code


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param(PARAMETERS.replace(f"expires={NOW + 300}", f"expires={NOW + 301}"), id="longer than 300 s"),
        pytest.param(PARAMETERS.replace(f"expires={NOW + 300}", f"expires={NOW}"), id="no time at all"),
        pytest.param(PARAMETERS.replace(f"expires={NOW + 300}", f"expires={NOW - 1}"), id="ends before it begins"),
        pytest.param(PARAMETERS.replace(f";expires={NOW + 300}", ""), id="without expires"),
        pytest.param(PARAMETERS.replace(f";created={NOW}", ""), id="without created"),
        pytest.param(PARAMETERS.replace(f';nonce="{NONCE}"', ""), id="without nonce"),
        pytest.param(PARAMETERS.replace(f';keyid="{KEYID}"', ""), id="without keyid"),
        pytest.param(PARAMETERS.replace(';alg="ed25519"', ""), id="without alg"),
        pytest.param(PARAMETERS.replace(';tag="openstr-booking-verify"', ""), id="without tag"),
        pytest.param(PARAMETERS.replace("ed25519", "hmac-sha256"), id="another algorithm"),
        pytest.param(PARAMETERS.replace("openstr-booking-verify", "another"), id="another tag"),
        pytest.param(PARAMETERS.replace(NONCE, NONCE[:15]), id="a short nonce"),
        pytest.param(PARAMETERS.replace(NONCE, "n" * 129), id="a long nonce"),
        pytest.param(PARAMETERS.replace(NONCE, NONCE + "+"), id="a nonce of another alphabet"),
        pytest.param(PARAMETERS.replace(KEYID, r"a\"b"), id="an escape"),
        pytest.param(PARAMETERS.replace(KEYID, ""), id="an empty keyid"),
        pytest.param(PARAMETERS.replace(f"created={NOW}", f"created=0{NOW}"), id="a leading zero"),
        pytest.param(PARAMETERS.replace(f"created={NOW}", f"created=+{NOW}"), id="a plus sign"),
        pytest.param(PARAMETERS.replace(f"created={NOW}", f"created={NOW}.0"), id="a decimal"),
        pytest.param(PARAMETERS.replace(f"created={NOW}", f'created="{NOW}"'), id="a string for a number"),
        pytest.param(PARAMETERS + ";more=1", id="a parameter more"),
        pytest.param(PARAMETERS + f";created={NOW}", id="a parameter twice"),
        pytest.param(PARAMETERS.replace(";expires", "; expires"), id="a blank"),
        pytest.param(PARAMETERS + " ", id="a blank at the end"),
        pytest.param(PARAMETERS + "\n", id="a line break at the end"),
        pytest.param(PARAMETERS.replace(COVERED, ""), id="nothing covered"),
        pytest.param(PARAMETERS.replace(' "content-digest"', ""), id="no digest covered"),
        pytest.param(PARAMETERS.replace(' "@target-uri"', ""), id="no address covered"),
        pytest.param(PARAMETERS.replace('"content-digest"', '"content-digest" "date"'), id="more covered"),
        pytest.param(PARAMETERS.replace('"content-digest"', '"content-digest";req'), id="a component's parameter"),
        pytest.param(PARAMETERS.replace('"@method" "@target-uri"', '"@target-uri" "@method"'), id="another order"),
        pytest.param(PARAMETERS.replace('"@method"', '"@method" "@method"'), id="a component twice"),
        pytest.param(PARAMETERS + f", sig2={PARAMETERS}", id="two signatures"),
        pytest.param(PARAMETERS.replace(KEYID, "k" * MAX_CHARACTERS), id="too long"),
    ],
)
def test_what_is_no_signature_of_the_profile_is_refused_though_it_holds(parameters: str) -> None:
    assert parameters != PARAMETERS
    assert refusal(forged(parameters)) == "signature_malformed"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("signature-input", None),
        ("signature-input", ""),
        ("signature-input", PARAMETERS),
        ("signature-input", f"sig2={PARAMETERS}"),
        ("signature", None),
        ("signature", ""),
        ("signature", "sig1="),
        ("signature", "sig1=::"),
        ("signature", "sig1=:" + base64.encode(bytes(63)) + ":"),
        ("signature", "sig1=:" + base64.encode(bytes(65)) + ":"),
        ("signature", "sig1=:" + base64.encode(bytes(64))[:-3] + "B==:"),
        ("signature", "sig1=:" + base64.encode(bytes(64)).rstrip("=") + ":"),
        ("signature", "sig1=:" + "=" * 88 + ":"),
        ("signature", "sig2=:" + base64.encode(bytes(64)) + ":"),
        ("signature", "sig1=" + base64.encode(bytes(64))),
        ("signature", "sig1=:" + base64.encode(bytes(64)) + ":, sig2=:AA==:"),
        ("signature", "sig1=:" + "A" * MAX_CHARACTERS + ":"),
    ],
)
def test_headers_that_are_missing_or_of_another_form_are_refused(name: str, text: str | None) -> None:
    headers = {each: value for each, value in made().items() if each != name}
    assert refusal(headers if text is None else {**headers, name: text}) == "signature_malformed"


@given(st.text(st.sampled_from('sig1=():;"@methodcrnk0 ,\\\n'), max_size=80), st.text(max_size=40))
def test_whatever_comes_is_refused_and_never_an_accident(text: str, value: str) -> None:
    assert refusal({**made(), "signature-input": text, "signature": value}) == "signature_malformed"


@pytest.mark.parametrize(
    "change",
    [
        {"target_uri": 'https://a.example/\n"@method": GET'},
        {"target_uri": "https://é.example/"},
        {"target_uri": ""},
        {"content_type": "application/json\r\n"},
        {"content_type": " application/json"},
        {"method": ""},
        {"nonce": "short"},
        {"nonce": 'a"b' + NONCE},
        {"keyid": 'a";alg="none'},
        {"keyid": "é"},
        {"created": -1},
        {"created": 10**15},
        {"lifetime": 0},
        {"lifetime": 301},
    ],
    ids=str,
)
def test_what_no_host_would_accept_is_not_signed(change: dict[str, Any]) -> None:
    with pytest.raises(NotAccepted) as refused:
        made(**change)
    assert refused.value.code == "signature_malformed"


@pytest.mark.parametrize("key", [*SMALL, b"", PUBLIC[:31], PUBLIC + b"\0"], ids=bytes.hex)
def test_a_key_that_binds_nobody_is_refused(key: bytes) -> None:
    with pytest.raises(BadKey):
        verify(made(), key=key)


@pytest.mark.parametrize("lifetime", [1, 60, 300])
def test_a_shorter_life(lifetime: int) -> None:
    verify(made(lifetime=lifetime), NOW + lifetime - 1)
    assert refusal(made(lifetime=lifetime), now=NOW + lifetime) == "signature_expired"


def test_a_header_without_end_is_not_even_read() -> None:
    many = PARAMETERS.replace(COVERED, " ".join([COVERED] * 40))
    with pytest.raises(NotAccepted, match=f"more than {MAX_CHARACTERS}"):
        read_signature(forged(many))
