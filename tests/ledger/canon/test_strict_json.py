import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.canon import jcs, strict_json
from ledger.errors import BadJSON

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda f: not 2**53 <= abs(f) < 1e21),
    st.text(st.characters(codec="utf-8")),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)),
)


@given(VALUES)
def test_what_json_writes_is_read_back(value: object) -> None:
    assert strict_json.loads(json.dumps(value)) == value
    assert strict_json.loads(json.dumps(value, ensure_ascii=False).encode()) == value


@given(VALUES)
def test_the_canonical_form_is_a_fixed_point(value: object) -> None:
    canonical = jcs.dumps(value)
    assert jcs.dumps(strict_json.loads(canonical)) == canonical


REFUSED = [
    ("", "malformed_json"),
    ("{", "malformed_json"),
    ("[1,]", "malformed_json"),
    ("{} {}", "malformed_json"),
    ("'a'", "malformed_json"),
    ("NaN", "malformed_json"),
    ("-Infinity", "malformed_json"),
    ('"\t"', "malformed_json"),
    ('{"a":1,"a":1}', "duplicate_key"),
    ('{"a":{"b":1,"\\u0062":2}}', "duplicate_key"),
    ('[{"a":1,"a":1},]', "malformed_json"),
    ("[9007199254740992,]", "malformed_json"),
    ("[9007199254740992,NaN]", "malformed_json"),
    ("[9007199254740992," + "[" * 100_000, "number_out_of_range"),
    ("[" * 17 + "]" * 17, "too_deep"),
    ('{"a":' * 100_000, "too_deep"),
    ('["' + "]" * 40 + '",' + "[" * 16 + "]" * 17, "too_deep"),
    ('{"a":[' + '{"b":' * 15 + "1" + "}" * 15 + "]}", "too_deep"),
    ("9007199254740992", "number_out_of_range"),
    ("-9007199254740992", "number_out_of_range"),
    ("1" * 5000, "number_out_of_range"),
    ("1e400", "number_out_of_range"),
    ("9007199254740992.0", "number_out_of_range"),
    ("-1e20", "number_out_of_range"),
    ('"\\ud800"', "not_utf8"),
    ('{"\\udfff":1}', "not_utf8"),
    ('[["\\ud800x"]]', "not_utf8"),
    ("\ufeff{}", "not_utf8"),
    ("\ud800", "not_utf8"),
    (b'"\xff"', "not_utf8"),
    (b"\xef\xbb\xbf{}", "not_utf8"),
]


@pytest.mark.parametrize(("text", "code"), REFUSED, ids=[f"{i} {code}" for i, (_, code) in enumerate(REFUSED)])
def test_refused(text: str | bytes, code: str) -> None:
    with pytest.raises(BadJSON) as refusal:
        strict_json.loads(text)
    assert refusal.value.code == code


def test_brackets_inside_strings_are_not_depth() -> None:
    assert strict_json.loads(json.dumps(["[" * 50 + '\\"{'])) == ["[" * 50 + '\\"{']
    assert strict_json.loads("[" * 16 + "]" * 16)
    assert strict_json.loads('{"a":[' + '{"b":' * 14 + "1" + "}" * 14 + "]}")
    assert strict_json.loads('"' + "[" * 50 + '"') == "[" * 50


def test_a_surrogate_pair_is_one_character() -> None:
    assert strict_json.loads('"\\ud83d\\ude00"') == "😀"


@pytest.mark.parametrize("value", [float("nan"), 2**53, "\ud800", object()])
def test_some_values_have_no_canonical_form(value: object) -> None:
    with pytest.raises(BadJSON):
        jcs.dumps(value)


def test_recursion_has_an_end() -> None:
    deep: list[object] = []
    for _ in range(10_000):
        deep = [deep]
    with pytest.raises(BadJSON):
        jcs.dumps(deep)
