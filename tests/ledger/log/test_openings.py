"""What is displayed of a text, and which texts are none."""

import unicodedata

import pytest

from audits import standalone_verify
from ledger.log.openings import WHITE_SPACE, displayed, is_blank

PERSIAN, FAMILY = "می\u200cخواهم", "\U0001f469\u200d\U0001f469\u200d\U0001f467"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\r\n", "two\nlines\n"),
        ("a\u200bb\u202ec\x00d", "abcd"),
        # Layout, and what words and emoji are spelled with.
        ("a\tb\n\tc", "a\tb\n\tc"),
        (PERSIAN, PERSIAN),
        (FAMILY, FAMILY),
        # Marks that turn the direction of reading, and characters that are not seen.
        ("\u061c\u200e\u200f\u202aa\u202e\u2066b\u2069\u200d", "ab\u200d"),
        ("x\U000e0001\U000e0041\U000e007f\u00ad\ufeff\x0b\x85y", "xy"),
        # Format characters since Unicode 15, and unassigned before.
        ("".join(map(chr, range(0x13439, 0x13440))) + "e", "e"),
        # Format characters since long ago, and letters beside them.
        ("\U00013430f\U00013438g\U0001342fh", "fg\U0001342fh"),
    ],
)
def test_displays_without_control_and_format_characters(text: str, shown: str) -> None:
    assert displayed(text) == shown


def test_this_python_knows_them_or_does_not_assign_them() -> None:
    assert {unicodedata.category(chr(point)) for point in standalone_verify.LATER} <= {"Cf", "Cn"}


def test_white_space_is_the_unicode_property() -> None:
    """Python knows the bidirectional types: white space is what separates, but for U+001C to U+001F, or is a control
    that ends a line."""
    letters = set(map(chr, range(0x110000)))
    assert set(WHITE_SPACE) == {letter for letter in letters if letter.isspace()} - set("\x1c\x1d\x1e\x1f")
    assert len(WHITE_SPACE) == 25


@pytest.mark.parametrize("text", ["", " ", "\n\t \r\n", WHITE_SPACE])
def test_white_space_only_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", " a ", "\u200b", "\u200d", "\ufeff", "\x1c", "\u180e", "\u2800"])
def test_other_texts_are_not_blank(text: str) -> None:
    assert not is_blank(text)
