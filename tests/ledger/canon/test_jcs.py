"""RFC 8785 by two ways, which give the same bytes."""

from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.canon import jcs
from ledger.errors import BadJSON

NUMBERS = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner) | st.dictionaries(st.text("abcAB_$"), inner),
    max_leaves=20,
)


@settings(max_examples=500)
@given(VALUES)
def test_the_quick_way_writes_what_the_other_does(value: Any) -> None:
    assert jcs.dumps(value) == rfc8785.dumps(value)


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (5.0, b"5"),
        (-0.0, b"0"),
        (4.5, b"4.5"),
        (1e-7, b"1e-7"),
        (0.001, b"0.001"),
        (0.0001, b"0.0001"),
        (1e15, b"1000000000000000"),
        (1e21, b"1e+21"),
        ({"b": 1, "a": [True, None]}, b'{"a":[true,null],"b":1}'),
        # By UTF-16 code units the second name comes first.
        ({"\ufb33": 1, "\U0001f600": 2}, '{"\U0001f600":2,"\ufb33":1}'.encode()),
        ('\x07\x7f\u2028\n"\\/é', '"\\u0007\x7f\u2028\\n\\"\\\\/é"'.encode()),
        ((1, 2), b"[1,2]"),
    ],
)
def test_examples(value: Any, written: bytes) -> None:
    assert jcs.dumps(value) == written


@pytest.mark.parametrize(
    "value", [2**53, -(2**53), float("nan"), float("inf"), "\ud800", {"a": "\ud800"}, {1: 2}, b"x"]
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(BadJSON):
        jcs.dumps(value)


def test_a_python_without_the_c_encoder_writes_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    value = {"b": [1, 4.5, None, True], "a": {"z": "é\n", "y": ""}}
    quick = jcs.dumps(value)
    monkeypatch.setattr(jcs, "_C", None)
    assert jcs.dumps(value) == jcs.dumps_plain(value) == quick
