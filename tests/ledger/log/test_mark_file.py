"""The mark survives torn writes, and never goes back."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.errors import Halted
from ledger.log.mark import SLOT, Database, Mark
from ledger.log.mark_file import MarkFile

PRIMARY = Database(7658765432109876543, 1, 16384, "2026-11-19T06:00:00Z")


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
    assert MarkFile(path).read() == (mark(9) if data[:line] == before[:line] else mark(5))


@pytest.mark.parametrize("damage", [b"", b"\0" * SLOT, b"9 AAAA\n", b"-1 " + b"A" * 43 + b"= 00\n"])
def test_rejects_a_file_without_an_undamaged_mark(tmp_path: Path, damage: bytes) -> None:
    """It tells that something was signed, and not what: it does not count as no mark."""
    path = tmp_path / "mark"
    path.write_bytes(damage)
    for use in (MarkFile(path).read, lambda: MarkFile(path).write(mark(7))):
        with pytest.raises(Halted, match="damaged") as refused:
            use()
        assert refused.value.code == "mark_unreadable"
    assert path.read_bytes() == damage
    MarkFile(path).replace(mark(7))
    assert MarkFile(path).read() == mark(7)


def test_rejects_a_folder_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "mark").mkdir()
    with pytest.raises(Halted) as refused:
        MarkFile(tmp_path / "mark").read()
    assert refused.value.code == "mark_unreadable"


def test_a_file_of_an_earlier_version_is_read_and_goes_on(tmp_path: Path) -> None:
    """Its slots have one line; an earlier version reads the new ones as well."""
    path = tmp_path / "mark"
    path.write_bytes(mark(5).line().ljust(SLOT, b"\0") + mark(9).line().ljust(SLOT, b"\0"))
    file = MarkFile(path)
    assert (file.read(), file.database()) == (mark(9), None)
    file.write_database(PRIMARY)
    file.write(mark(11))
    again = MarkFile(path)
    assert (again.read(), again.database()) == (mark(11), PRIMARY)
    assert [Mark.parse(path.read_bytes()[at:][:SLOT]) for at in (0, SLOT)] == [mark(9), mark(11)]
    # It writes once more, and drops what it does not know.
    data = path.read_bytes()
    path.write_bytes(mark(13).line().ljust(SLOT, b"\0") + data[SLOT:])
    assert (MarkFile(path).read(), MarkFile(path).database()) == (mark(13), PRIMARY)


def test_keeps_which_database_it_is_and_when_a_standby_was_synchronous(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    file = MarkFile(path)
    file.write(mark(5))
    promoted = replace(PRIMARY, timeline=2, synchronous_at=None)
    for database in (PRIMARY, promoted, PRIMARY):
        file.write_database(database)
        assert MarkFile(path).database() == file.database() == database
        assert MarkFile(path).read() == mark(5)
    assert not PRIMARY.is_same(promoted)
    assert PRIMARY.is_same(replace(PRIMARY, synchronous_at=None))


def test_remembers_a_file_that_is_deleted_or_replaced_by_an_older_one(tmp_path: Path) -> None:
    path = tmp_path / "mark"
    file = MarkFile(path)
    file.write(mark(5))
    older = path.read_bytes()
    file.write(mark(9))
    path.unlink()
    assert file.read() == mark(9)
    path.write_bytes(older)
    assert file.read() == mark(9)
    path.unlink()
    file.write(mark(11))
    assert MarkFile(path).read() == mark(11)


def test_reads_a_mark_as_the_refusal_writes_it() -> None:
    assert Mark.of(str(mark(7))) == mark(7)
    for wrong in ("", "7", "7:", "07:" + str(mark(7))[2:], f"{mark(7)} ", "7:AAAA", "0:" + str(mark(7))[2:]):
        with pytest.raises(ValueError):
            Mark.of(wrong)
