"""The mark survives torn writes, and never goes back."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import Halted
from ledger.log.mark import SLOT, Mark, MarkFile


def mark(size: int) -> Mark:
    return Mark(size, bytes([size % 256]) * 32)


def test_the_newest_is_read_and_never_replaced_by_an_older(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "mark")
    assert file.read() is None
    for size in (2, 5, 3, 9, 9, 1):
        file.write(mark(size))
    assert file.read() == mark(9)
    assert (tmp_path / "mark").stat().st_size == 2 * SLOT
    assert (tmp_path / "mark").stat().st_mode & 0o777 == 0o600


def test_two_histories_of_one_size_do_not_both_get_a_mark(tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "mark")
    file.write(mark(5))
    file.write(mark(5))
    with pytest.raises(Halted) as refused:
        file.write(Mark(5, bytes(32)))
    assert refused.value.code == "log_forked"
    assert file.read() == mark(5)


@given(st.integers(0, SLOT - 1), st.binary(min_size=1, max_size=40))
def test_a_torn_write_leaves_the_mark_before(tmp_path_factory: pytest.TempPathFactory, at: int, noise: bytes) -> None:
    path = tmp_path_factory.mktemp("mark") / "mark"
    file = MarkFile(path)
    for size in (2, 5, 9):
        file.write(mark(size))
    # Slots are written in turn: 2 and 9 in the first, 5 in the second.
    data = bytearray(path.read_bytes())
    before = bytes(data)
    data[at : min(at + len(noise), SLOT)] = noise[: SLOT - at]
    path.write_bytes(data)
    line = len(mark(9).line())
    assert file.read() == (mark(9) if data[:line] == before[:line] else mark(5))


@pytest.mark.parametrize("damage", [b"", b"\0" * SLOT, b"9 AAAA\n", b"-1 " + b"A" * 43 + b"= 00\n"])
def test_what_is_no_mark_is_none(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "mark"
    path.write_bytes(damage)
    assert MarkFile(path).read() is None
    MarkFile(path).write(mark(7))
    assert MarkFile(path).read() == mark(7)
