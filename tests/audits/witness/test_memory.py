"""The witness's memory: it goes on where it was, whatever fails or is damaged, and never with two histories."""

import os
from contextlib import closing
from errno import EIO, ENOSPC
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.witness.folder import CHECKPOINTS, KEY, init
from audits.witness.judge import NotCosigned, Witness
from audits.witness.memory import Cosigned, last_cosigned, log_id
from ledger.errors import Misconfigured, NotStored
from tests.audits.witness.judging import FORKED, LOG, STRANGER, UNKNOWN, cosigned, opened, refused
from tests.audits.witnessing import NAME, Log, make_witness
from tests.bits import flip

STEPS = ("judged", "cosigned", "written", "renamed", "durable", "kept")


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    for old, size in ((0, 3), (3, 5), (5, 5), (5, 33)):
        with closing(opened(tmp_path)) as witness:
            cosigned(witness, LOG.request(old, size))
    with closing(opened(tmp_path)) as witness:
        assert refused(witness, FORKED.request(33, 40)) == (422, "root_mismatch")
        assert refused(witness, LOG.request(5, 33)) == (409, "old_size_mismatch")
    verifier, [(origin, latest)] = last_cosigned(tmp_path)
    assert (verifier, origin) == (witness.verifier, LOG.origin)
    assert latest is not None
    assert latest.checkpoint == LOG.checkpoint(33)


@pytest.mark.parametrize("number", [ENOSPC, EIO])
@pytest.mark.parametrize("step", STEPS[2:5])
def test_a_write_that_fails_hands_nothing_out(tmp_path: Path, step: str, number: int) -> None:
    """Failed, though it may have been done: nobody knows until the file is read again."""
    failures: list[OSError] = []

    def fail(reached: str) -> None:
        if reached == step and failures:
            raise failures.pop()

    with closing(opened(tmp_path, on_step=fail)) as witness:
        cosigned(witness, LOG.request(0, 3))
        failures.append(OSError(number, os.strerror(number)))
        code = "storage_full" if number == ENOSPC else "storage_unavailable"
        assert refused(witness, LOG.request(3, 5)) == (503, code)
        done = step != "written"
        if done:
            with pytest.raises(NotCosigned) as refusal:
                witness.add_checkpoint(LOG.request(3, 5).encode())
            assert (refusal.value.status, refusal.value.size) == (409, 5)
        # Another history is refused, though the first one may not have been handed out.
        assert refused(witness, FORKED.request(5 if done else 3, 8)) == (422, "root_mismatch")
        assert witness.logs() == last_cosigned(tmp_path)[1]
        cosigned(witness, LOG.request(5 if done else 3, 8))


def test_a_folder_that_is_taken_away_is_no_fresh_start(at_five: Witness, tmp_path: Path) -> None:
    kept = tmp_path / "witness" / CHECKPOINTS / log_id(LOG.origin)
    away = kept.parent.rename(tmp_path / "away")
    for _ in range(2):
        status, code = refused(at_five, LOG.request(5, 8))
        assert (status, code) in ((503, "storage_unavailable"), (503, "not_stored"))
    # It comes back empty: what it had is still known to be missing.
    kept.parent.mkdir()
    assert refused(at_five, LOG.request(5, 8)) == (503, "not_stored")
    (away / kept.name).rename(kept)
    cosigned(at_five, LOG.request(5, 8))


def test_a_damaged_file_keeps_it_from_starting(tmp_path: Path) -> None:
    with closing(opened(tmp_path)) as witness:
        cosigned(witness, LOG.request(0, 5))
        verifier = witness.verifier
    path = tmp_path / CHECKPOINTS / log_id(LOG.origin)
    good = path.read_bytes()
    signature_at = good.index("—".encode())
    harmless, told = 0, set[str]()
    for at in range(len(good)):
        path.write_bytes(flip(good, at * 8 + at % 8))
        try:
            Witness(tmp_path).close()
        except NotStored as error:
            told.add(error.message.partition("Bring back")[2])
        else:
            # Another name or key ID in the log's line: the line of somebody whom nobody knows.
            assert at >= signature_at
            assert Cosigned.open(path.read_text(), verifier).checkpoint == LOG.checkpoint(5)
            harmless += 1
    assert 0 < harmless < 30
    assert len(told) == 1
    assert "Never delete it" in told.pop()
    for damage in (b"", good[:-1], good[: len(good) // 2], good + b"x", bytes(len(good))):
        path.write_bytes(damage)
        with pytest.raises(NotStored):
            Witness(tmp_path)
    path.write_bytes(good)
    # As it is, but of another log, or cosigned by another key.
    other = path.with_name(log_id(UNKNOWN.origin))
    path.rename(other)
    with pytest.raises(NotStored, match="another log"):
        Witness(tmp_path)
    other.rename(path)
    (tmp_path / KEY).unlink()
    with pytest.raises(Misconfigured, match="bring that key back"):
        init(tmp_path, NAME, STRANGER)
    path.rename(tmp_path / "kept")
    init(tmp_path, NAME, STRANGER)
    (tmp_path / "kept").rename(path)
    with pytest.raises(NotStored):
        Witness(tmp_path)


def test_what_lies_beside_is_left_alone(tmp_path: Path) -> None:
    """A write that was broken off, and files of others."""
    make_witness(tmp_path, logs=[LOG.verifier])
    for name in (f"{log_id(LOG.origin)}.new", "README", log_id(LOG.origin).upper()):
        (tmp_path / CHECKPOINTS / name).write_text("torn")
    with closing(opened(tmp_path)) as witness:
        cosigned(witness, LOG.request(0, 3))
    with closing(opened(tmp_path)) as witness:
        cosigned(witness, LOG.request(3, 5))


# What a log may show: its history, or one that differs from some entry on.
HISTORIES = [Log(LOG.origin, 12), *(Log(LOG.origin, 12, f"fork{at}-", at) for at in (0, 1, 4, 9))]
SUBMISSIONS = st.tuples(st.sampled_from(range(len(HISTORIES))), st.none() | st.integers(0, 12), st.integers(0, 12))


@settings(max_examples=150)
@given(st.lists(st.none() | SUBMISSIONS, min_size=4, max_size=14))
def test_all_that_is_cosigned_is_one_history(story: list[tuple[int, int | None, int] | None]) -> None:
    """Against the naive model: the leaves themselves are remembered. None is a restart; without an old size the right one
    is sent."""
    with TemporaryDirectory() as name:
        folder, latest = Path(name), list[bytes]()
        witness = opened(folder)
        for told in story:
            if told is None:
                witness.close()
                witness = opened(folder)
                continue
            history, old, size = HISTORIES[told[0]], len(latest) if told[1] is None else told[1], told[2]
            leaves = list(history.tree.leaves[:size])
            extends = leaves[: len(latest)] == latest
            expected = 400 if old > size else 409 if old != len(latest) else 200 if extends else 422
            try:
                witness.add_checkpoint(history.request(old, size).encode())
                status = 200
            except NotCosigned as refusal:
                status = refusal.status
            assert status == expected
            if status == 200:
                latest = leaves
        witness.close()
        _, [(_, kept)] = last_cosigned(folder)
        assert (kept.checkpoint.size if kept else 0) == len(latest)
