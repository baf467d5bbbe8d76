"""A full disk: the caller is told, nothing is acknowledged, what is published stays readable, and the same process goes
on when there is space again (spec/tlog.md 3, Mammoth)."""

import os
import pwd
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from sqlalchemy import Connection, event

from ledger.errors import Unavailable
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.log.drafts import Draft
from ledger.settings import Settings
from ledger.store.rows import run
from tests.crash.child import Ack
from tests.crash.harness import examine
from tests.engines import PostgresServer, postgres_wheel
from tests.running import Writer

MEGABYTE = 1 << 20


class Disk:
    """A small file system in memory, that can be filled to the last byte."""

    def __init__(self, path: Path, size: int) -> None:
        self.path = path
        command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "staylog", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            pytest.skip(f"a file system cannot be mounted here: {done.stderr.strip()}")

    def fill(self) -> None:
        with (self.path / "ballast").open("ab", buffering=0) as ballast:
            try:
                while ballast.write(bytes(MEGABYTE)):
                    pass
            except OSError:
                return

    def free(self) -> None:
        (self.path / "ballast").unlink()

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=True)


@contextmanager
def disk(path: Path, size: int) -> Iterator[Disk]:
    path.mkdir(exist_ok=True)
    made = Disk(path, size)
    try:
        yield made
    finally:
        made.unmount()


class Limit:
    """SQLite's own limit on the pages of a file; one that is reached is to it a full disk."""

    def __init__(self, ledger: Ledger) -> None:
        self._pages = 1 << 30
        event.listen(ledger.store._writing, "begin", self._apply)

    def reach(self) -> None:
        # Less than the pages that the file has means as many as it has.
        self._pages = 1

    def lift(self) -> None:
        self._pages = 1 << 30

    def _apply(self, connection: Connection) -> None:
        run(connection, f"PRAGMA max_page_count = {self._pages}")


def long_review(writer: Writer) -> Draft:
    return writer.review(text="All of it. " * 2000)


def go_on_after_full(ledger: Ledger, writer: Writer, fill: Callable[[], None], free: Callable[[], None]) -> None:
    """The sequencer runs all the time; what it acknowledges before, between and after is kept."""
    sequencer = ledger.sequencer
    sequencer.start()
    acks = [Ack.of(sequencer.submit(long_review(writer)).result(30))]
    fill()
    refused = 0
    while refused < 5:
        waiting = [sequencer.submit(long_review(writer)) for _ in range(3)]
        for future in waiting:
            error = future.exception(60)
            if error is None:
                acks.append(Ack.of(future.result()))
            else:
                assert isinstance(error, Unavailable)
                assert error.code == "storage_full"
                refused += 1
        assert len(acks) < 1000
    assert sequencer.halted is None
    reason = ledger.health.reason()
    assert reason is not None
    assert reason.code == "storage_full"
    assert ledger.reader.entries(0, 1 << 20)[acks[-1].index]
    free()
    ledger.probe.probe()
    assert ledger.health.reason() is None
    acks.append(Ack.of(sequencer.submit(long_review(writer)).result(30)))
    assert acks[-1].size == examine(ledger, acks)


def test_sqlite_may_not_grow(tmp_path: Path, writer: Writer) -> None:
    """Where nothing may be mounted, too."""
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    with closing(open_ledger(settings)) as ledger:
        limit = Limit(ledger)
        go_on_after_full(ledger, writer, limit.reach, limit.lift)


def test_others_go_on_while_one_is_full(tmp_path: Path, writer: Writer) -> None:
    """As many entries as those that failed here are added by another: what was in memory is of no use any more."""
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    with closing(open_ledger(settings)) as ledger, closing(open_ledger(settings)) as other:
        limit = Limit(ledger)
        ledger.sequencer.append([long_review(writer)])
        limit.reach()
        with pytest.raises(Unavailable, match="full"):
            ledger.sequencer.append([long_review(writer)])
        [first] = other.sequencer.append([long_review(writer)])
        limit.lift()
        [second] = ledger.sequencer.append([long_review(writer)])
        assert (first.index, second.index) == (4, 6)
        examine(ledger, [Ack.of(first), Ack.of(second)])


def find_full_without_submissions(ledger: Ledger, fill: Callable[[], None], free: Callable[[], None]) -> None:
    """As /health has to; and well again by itself."""
    ledger.probe.probe()
    fill()
    with pytest.raises(Unavailable) as refused:
        ledger.probe.probe()
    assert refused.value.code == "storage_full"
    reason = ledger.health.reason()
    assert reason is not None
    assert reason.code == "storage_full"
    free()
    ledger.probe.probe()
    assert ledger.health.reason() is None


def test_sqlite_on_a_full_disk(tmp_path: Path, writer: Writer) -> None:
    with disk(tmp_path / "disk", 4 * MEGABYTE) as small:
        settings = Settings.of(small.path / "data")
        init_folder(settings)
        with closing(open_ledger(settings)) as ledger:
            find_full_without_submissions(ledger, small.fill, small.free)
            go_on_after_full(ledger, writer, small.fill, small.free)


def test_postgresql_on_a_full_disk(tmp_path: Path, writer: Writer) -> None:
    with (
        TemporaryDirectory(prefix="staylog-", dir="/tmp") as folder,
        disk(Path(folder) / "data", 96 * MEGABYTE) as small,
    ):
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(small.path, nobody.pw_uid, nobody.pw_gid)
        server = PostgresServer(postgres_wheel(), Path(folder))
        try:
            settings = Settings.of(tmp_path / "data", server.url("ledger"))
            init_folder(settings)
            with closing(open_ledger(settings)) as ledger:
                find_full_without_submissions(ledger, small.fill, small.free)
                go_on_after_full(ledger, writer, small.fill, small.free)
        finally:
            server.stop()


def test_the_mark_has_its_space(tmp_path: Path, writer: Writer) -> None:
    """It is written in place, so a disk that fills up under it, with the database elsewhere, stops nothing."""
    with disk(tmp_path / "disk", MEGABYTE) as small:
        settings = Settings.of(small.path / "data", f"sqlite:///{tmp_path}/ledger.db")
        init_folder(settings)
        with closing(open_ledger(settings)) as ledger:
            small.fill()
            acks = [Ack.of(done) for _ in range(3) for done in ledger.sequencer.append([writer.review()])]
            examine(ledger, acks)


def test_a_mark_that_cannot_be_written_is_a_full_disk(tmp_path: Path, writer: Writer) -> None:
    """Nothing is signed without it. What was committed is signed when there is space again."""
    with disk(tmp_path / "disk", MEGABYTE) as small:
        settings = Settings.of(small.path / "data", f"sqlite:///{tmp_path}/ledger.db")
        init_folder(settings)
        with closing(open_ledger(settings)) as ledger:
            settings.mark.unlink()
            small.fill()
            ledger.sequencer.start()
            for _ in range(3):
                refused = ledger.sequencer.submit(writer.review()).exception(30)
                assert isinstance(refused, Unavailable)
                assert refused.code == "storage_full"
                assert ledger.reader.refresh().size == 2
            small.free()
            done = ledger.sequencer.submit(writer.review()).result(30)
            # The first was committed before its mark failed; the others waited for its signature, in vain.
            assert done.index == 4
            assert examine(ledger, [Ack.of(done)]) == 6
