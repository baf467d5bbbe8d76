"""Displayed text does not depend on whose Unicode tables are newer."""

import unicodedata

import pytest

from audits.standalone_verify import LATER
from ledger.log.openings import displayed


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\r\n", "two\nlines\n"),
        ("a\u200bb\u202ec\x00d", "abcd"),
        # Format characters since Unicode 15, and unassigned before.
        ("".join(map(chr, range(0x13439, 0x13440))) + "e", "e"),
        # Format characters since long ago, and letters beside them.
        ("\U00013430f\U00013438g\U0001342fh", "fg\U0001342fh"),
    ],
)
def test_what_is_displayed(text: str, shown: str) -> None:
    assert displayed(text) == shown


def test_this_python_knows_them_or_does_not_assign_them() -> None:
    assert {unicodedata.category(chr(point)) for point in LATER} <= {"Cf", "Cn"}
