"""An audit that is broken off, killed or damaged says in the end what it would have said."""

import signal
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from shutil import copytree
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from click.testing import Result as Ran
from hypothesis import given, settings
from hypothesis import strategies as st

from audits.replayer import Replayer
from audits.result import Result
from audits.source import FolderSource, Source
from audits.state import FILE, FORMAT, opened
from ledger.cli import main
from ledger.errors import BrokenRule, NotFound, StaylogError, Unavailable
from ledger.log.note import ED25519, Verifier
from ledger.log.record import ReviewState
from tests.audits.honest import Honest, audited, expected_figures, lay_out
from tests.audits.interrupted import LIES, Breaking, Rewriting, deadly_service, key, lying, staylog
from tests.world import LOG

# Upgraded, answered, one category not rated, and the answer redacted: whatever can be kept of a review.
REVIEW = ReviewState(
    review_id="rev-" + "a" * 26,
    host="did:web:cottage.example",
    at="2026-03-01T09:00:00Z",
    check_in="2026-02-20",
    level="guest_verified",
    repeat=True,
    half_stars=bytes([10, 9, 8, 0, 7, 2]),
    has_text=True,
    issuer="https://idv.example/issuers/1",
    responded=True,
    redacted=frozenset({"response"}),
)
CODES = {
    "none": set(),
    "wrong_head": {"map_root_mismatch"},
    "stranger": {"issuer_untrusted"},
    "backwards": {"time_falls"},
    "nonsense": {"review_unknown"},
}


def run(source: Source, folder: Path | None = None, save_seconds: float = 20) -> Result:
    with opened(folder, LOG) as state:
        return audited(source, state, replayer=Replayer(state, save_seconds=save_seconds)).run()


def codes(result: Result) -> set[str]:
    return {finding["code"] for finding in result["findings"]}


@dataclass(repr=False)
class Known:
    """A log, what an audit says of it, and how often it asks for something."""

    source: FolderSource
    result: Result
    calls: int


class Logs(dict[str, Known]):
    """By the lie in it."""

    def __repr__(self) -> str:
        return "logs"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    made = Logs()
    for lie in LIES:
        source = FolderSource(lay_out(lying(lie), tmp_path_factory.mktemp(lie)))
        counting = Breaking(source, 0, Unavailable("busy", ""))
        result = run(counting)
        assert codes(result) == CODES[lie]
        assert result["unchecked"] == []
        made[lie] = Known(source, result, counting.calls)
    return made


# After how many questions of all, in how many parts of a thousand, by what, and whether it was saved at every map head.
_breaks = st.tuples(st.integers(0, 999), st.sampled_from([KeyboardInterrupt, Unavailable]), st.booleans())


@pytest.mark.parametrize("lie", LIES)
@given(breaks=st.lists(_breaks, min_size=1, max_size=4))
@settings(max_examples=5)
def test_broken_off_anywhere_it_goes_on_to_the_same_verdict(
    logs: Logs, lie: str, breaks: list[tuple[int, type[BaseException], bool]]
) -> None:
    log = logs[lie]
    with TemporaryDirectory() as folder:
        for part, kind, saving in breaks:
            error = kind("ledger_unreachable", "gone")
            source = Breaking(log.source, 1 + log.calls * part // 1000, error)
            with suppress(KeyboardInterrupt, Unavailable):
                result = run(source, Path(folder), 0 if saving else 20)
                if not result["unchecked"]:
                    # One that goes on asks less, and may come to its end.
                    assert result == log.result
                    return
                assert codes(result) <= codes(log.result)
        assert run(log.source, Path(folder)) == log.result


def test_what_a_liar_served_before_it_was_broken_off_does_not_count_against_the_log(logs: Logs) -> None:
    """Some of it was saved, before the root was known to be another one."""
    with TemporaryDirectory() as folder:
        with suppress(Unavailable):
            lied = Rewriting(logs["none"].source, "tile/entries/000", lambda data: data.replace(b"0Z", b"1Z"))
            run(Breaking(lied, 4, Unavailable("ledger_unreachable", "gone")), Path(folder), 0)
        result = run(logs["none"].source, Path(folder))
        assert result["findings"] == []
        assert run(logs["none"].source, Path(folder))["verdict"] == "clean"


def missing(_: bytes) -> bytes:
    raise NotFound("not_found", "it is not there")


@pytest.mark.parametrize("path", ["v1/log/openings/0", "log/tile/0/000", "v1/log/checkpoints"])
def test_what_could_not_be_looked_at_is_not_forgotten(logs: Logs, path: str) -> None:
    """An audit that says clean has seen everything, at some time."""
    source = logs["none"].source

    with TemporaryDirectory() as folder:
        for _ in range(2):
            result = run(Rewriting(source, path, missing), Path(folder))
            assert (result["verdict"], result["findings"]) == ("incomplete", [])
            assert len(result["unchecked"]) == 1
        assert run(source, Path(folder))["verdict"] == "clean"


def test_texts_that_are_read_later_are_counted_once(tmp_path: Path) -> None:
    """Of a bundle some of whose texts were read before, and some after those that could not be."""
    world = Honest(3)
    world.take("issuer", "issuer", "issuer")
    for number, fails in enumerate((False, True, True, False, True, False)):
        world.grow(4, 12)
        source = FolderSource(lay_out(world.log, tmp_path / str(number)))
        refusing = Rewriting(source, "v1/log/openings/0", missing)
        result = run(refusing if fails else source, tmp_path / "state")
        assert (result["verdict"], result["findings"]) == ("incomplete" if fails else "clean", [])
        if not fails:
            assert result["figures"]["texts"] == expected_figures(world.log)["texts"]


# As a process


def test_killed_again_and_again_it_says_what_a_fresh_one_says(tmp_path: Path) -> None:
    random = Random(8)
    with deadly_service(lying("wrong_head", batches=80)) as (url, killer):
        told = ["audit", url, *key(), "--json", "--out", str(tmp_path / "findings"), "--state"]
        fresh = staylog(*told, tmp_path / "fresh")
        expected, trouble = fresh.communicate(timeout=60)
        assert (fresh.returncode, trouble) == (1, b"")
        requests, kills, state = killer.asked, 0, tmp_path / "killed"
        while kills < 4:
            process = staylog(*told, state)
            killer.aim(process, random.randrange(1, requests), random.random() * 0.05)
            said, _ = process.communicate(timeout=60)
            if process.returncode == -signal.SIGKILL:
                kills += 1
                with closing(sqlite3.connect(state / FILE)) as database:
                    assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            else:
                # One that goes on asks less, and may come to its end.
                assert said == expected
                state = tmp_path / f"killed after {kills}"
        process = staylog(*told, state)
        assert process.communicate(timeout=60) == (expected, b"")


def audit(*arguments: str | Path) -> Ran:
    return CliRunner().invoke(main, ["audit", *map(str, arguments)])


def test_two_audits_do_not_share_a_folder(logs: Logs, tmp_path: Path) -> None:
    told = [logs["none"].source.name, *key(), "--state", str(tmp_path)]
    with opened(tmp_path, LOG):
        second = audit(*told)
    assert (second.exit_code, second.stdout) == (2, "")
    assert f"{tmp_path} cannot be used: another audit is at work there" in second.stderr
    assert audit(*told).exit_code == 0


def test_nor_do_two_logs(logs: Logs, tmp_path: Path) -> None:
    other = Verifier("other.example/log", ED25519, LOG.public_key)
    with opened(tmp_path, other) as state:
        state.commit()
    refused = audit(logs["none"].source.name, *key(), "--state", tmp_path)
    assert refused.exit_code == 2
    assert f"is about another log: {other}" in refused.stderr


def test_what_another_version_kept_is_not_read(logs: Logs, tmp_path: Path) -> None:
    told = [logs["none"].source.name, *key(), "--state", str(tmp_path)]
    assert audit(*told).exit_code == 0
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute(f"PRAGMA user_version = {FORMAT - 1}")
    refused = audit(*told)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"{tmp_path} was kept by another version: begin with another folder" in refused.stderr


def test_an_id_that_was_used_before_the_state_was_kept_is_known(tmp_path: Path) -> None:
    with opened(tmp_path, LOG) as state:
        state.reviews.add(2, REVIEW)
        state.commit()
        with pytest.raises(BrokenRule, match="is the id of an earlier review"):
            state.reviews.add(3, REVIEW)
    with opened(tmp_path, LOG) as state:
        assert state.reviews.get(2) == REVIEW
        with pytest.raises(BrokenRule, match="is the id of an earlier review"):
            state.reviews.add(3, REVIEW)


# Damage


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FolderSource]:
    """The folder of an audit, and the log, which has gone on since: with entries about all that was there before."""
    world = Honest(12)
    world.take(*["issuer"] * 3, *["review"] * 90)
    world.publish()
    world.grow(12, 30)
    folder = tmp_path_factory.mktemp("kept")
    run(FolderSource(lay_out(world.log, tmp_path_factory.mktemp("before"))), folder)
    world.take(*["upgrade"] * 20, *["response"] * 20, *["redaction"] * 20)
    world.publish()
    world.grow(5, 10)
    return folder, FolderSource(lay_out(world.log, tmp_path_factory.mktemp("after")))


def go_on(kept: tuple[Path, FolderSource], damaged: Path) -> str:
    """The verdict of the next audit, or the code of its refusal. It never accuses."""
    try:
        result = run(kept[1], damaged)
    except StaylogError as error:
        return error.code
    assert result["findings"] == []
    return str(result["verdict"])


def copied(kept: tuple[Path, FolderSource], folder: Path) -> Path:
    return Path(copytree(kept[0], folder / "state"))


# What can be derived again is, and nobody notices; of the rest it is said that it cannot be used.
DERIVED, SAID = {"clean"}, {"clean", "incomplete", "not_stored"}


@pytest.mark.parametrize(
    ("column", "verdicts"),
    [
        ("host.record", DERIVED),
        ("host.edge", DERIVED),
        ("host.did", DERIVED),
        ("tile.data", SAID),
        ("head.root", SAID),
        ("head.at", SAID),
        ("review.data", SAID),
        ("review.review_id", SAID),
        ("used.review_id", {"not_stored"}),
        ("checkpoint.note", SAID - {"clean"}),
    ],
)
def test_a_flipped_bit_in_what_was_kept_accuses_nobody(
    kept: tuple[Path, FolderSource], tmp_path: Path, column: str, verdicts: set[str]
) -> None:
    table, name = column.split(".")
    damaged, random = copied(kept, tmp_path), Random(column)
    with closing(sqlite3.connect(damaged / FILE)) as database:
        for (value,) in database.execute(f"SELECT DISTINCT {name} FROM {table} ORDER BY 1").fetchall():
            data = bytearray(value if isinstance(value, bytes) else value.encode())
            if data:
                data[random.randrange(len(data))] ^= 1
                changed = bytes(data) if isinstance(value, bytes) else data.decode(errors="replace")
                database.execute(f"UPDATE OR IGNORE {table} SET {name} = ? WHERE {name} = ?", (changed, value))
        database.commit()
    assert go_on(kept, damaged) in verdicts


def test_a_file_that_is_damaged_anywhere_accuses_nobody(kept: tuple[Path, FolderSource], tmp_path: Path) -> None:
    whole, random, verdicts = (kept[0] / FILE).read_bytes(), Random(3), set()
    for number in range(18):
        damaged, data = tmp_path / str(number), bytearray(whole)
        damaged.mkdir()
        if number % 3:
            for _ in range(number):
                data[random.randrange(len(data))] ^= 1 << random.randrange(8)
        else:
            del data[random.randrange(len(data)) :]
        (damaged / FILE).write_bytes(data)
        verdicts.add(go_on(kept, damaged))
    assert verdicts <= {*SAID, "file_unreadable", "file_unwritable", "settings_invalid"}
    assert {"clean", "file_unwritable"} <= verdicts


def test_damage_is_told_without_a_traceback(kept: tuple[Path, FolderSource], tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes((kept[0] / FILE).read_bytes()[:20_000])
    refused = audit(kept[1].name, *key(), "--state", tmp_path)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Traceback" not in refused.stderr
    assert "begin with another folder" in refused.stderr.replace("\n", " ")
