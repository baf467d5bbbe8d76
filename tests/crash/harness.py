"""What all crash tests share: processes that can be killed, databases that can be put back, and the one examination
that every ledger must pass afterwards."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import sha256
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path
from signal import SIGKILL
from tempfile import TemporaryDirectory
from time import sleep
from typing import Any

import psycopg
from psycopg import sql
from sqlalchemy import make_url, text

from ledger.canon import base64
from ledger.folder import Ledger
from ledger.log.checkpoint import open_checkpoint
from ledger.log.fsck import fsck
from ledger.log.mark import SLOT
from ledger.log.mark_file import MarkFile
from ledger.log.proofs import verify_consistency
from ledger.settings import Settings
from ledger.store.engine import Store
from ledger.store.rows import newest_published, read_head
from tests.crash.child import READY, Ack, Work, work
from tests.engines import PostgresServer

# A server of its own forks the processes, from a memory that has everything imported and nothing opened.
_processes = get_context("forkserver")
_processes.set_forkserver_preload(["tests.crash.child"])


class Child:
    """A process that runs `target(*arguments, channel)`."""

    def __init__(self, target: Callable[..., None], *arguments: Any) -> None:
        self.channel, theirs = _processes.Pipe()
        self.process = _processes.Process(target=target, args=(*arguments, theirs), daemon=True)
        self.process.start()
        theirs.close()

    def kill(self) -> None:
        self.process.kill()

    def wait(self) -> int:
        """How it ended: 0, or minus the signal."""
        self.process.join(60)
        self.channel.close()
        assert self.process.exitcode is not None, "a child process does not end"
        return self.process.exitcode


class Worker(Child):
    """Does its work and tells of every acknowledged entry. With `wait` it begins when `go` says so, and not as soon as
    its ledger is open."""

    def __init__(self, job: Work, *, wait: bool = False) -> None:
        super().__init__(work, job)
        self.acks: list[Ack] = []
        self._lines = open(self.channel.fileno(), "rb", closefd=False)  # noqa: SIM115 (closed by `end`)
        if not wait:
            self.go()

    def go(self) -> None:
        with suppress(BrokenPipeError):
            os.write(self.channel.fileno(), b"!")

    def follow(self, count: int) -> bool:
        """Read what is told of `count` more entries, or until the process has ended; whether all came."""
        for _ in range(count):
            line = self._line()
            if not line:
                return False
            self.acks.append(Ack.parse(line))
        return True

    def end(self) -> int:
        """Read what is left until the process ends, by itself or not."""
        self.follow(1 << 62)
        self._lines.close()
        return self.wait()

    def end_killed(self) -> None:
        assert self.end() == -SIGKILL

    def ready(self) -> None:
        assert self._lines.readline() == READY

    def _line(self) -> bytes:
        """The next entry told of; nothing at the end."""
        with suppress(ConnectionResetError):
            while (line := self._lines.readline()) == READY:
                pass
            assert not line or line.endswith(b"\n")
            return line
        return b""


def work_together(*jobs: Work) -> list[Worker]:
    """Processes that begin at the same time, when all are done."""
    workers = [Worker(job, wait=True) for job in jobs]
    for worker in workers:
        worker.ready()
    for worker in workers:
        worker.go()
    for worker in workers:
        assert worker.end() == 0
    return workers


def state_of(settings: Settings) -> tuple[int, int]:
    """The committed and the published size after a crash, without repairing anything: SQLite is looked at in a copy."""
    with _undisturbed(settings) as store, store.read() as connection:
        if not store.is_sqlite:
            _wait_for_the_dead(connection)
        head, newest = read_head(connection), newest_published(connection)
    assert head is not None
    return head.size, newest.size if newest else 0


@contextmanager
def _undisturbed(settings: Settings) -> Iterator[Store]:
    url = make_url(settings.database_url)
    with TemporaryDirectory() as folder:
        if url.database and url.get_backend_name() == "sqlite":
            for path in _files(Path(url.database)):
                shutil.copy(path, folder)
            url = url.set(database=str(Path(folder) / Path(url.database).name))
        store = Store(url.render_as_string(hide_password=False))
        try:
            yield store
        finally:
            store.close()


def _wait_for_the_dead(connection: Any) -> None:
    """PostgreSQL finishes what a killed client had asked for; then its backend finds nobody to answer."""
    others = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    for _ in range(3000):
        if not connection.execute(text(others)).scalar_one():
            return
        sleep(0.01)
    raise AssertionError("backends of killed clients stay")


def examine(ledger: Ledger, acks: Iterable[Ack] = ()) -> int:
    """The size of the log, after everything that was ever promised is found kept.

    Checkpoints are all signed, grow, and are consistent with each other; every acknowledged entry stands where it was
    said to, under the checkpoint that was shown; everything stored follows from the entries.
    """
    reader = ledger.reader
    newest = reader.refresh()
    entries = reader.entries(0, newest.size)
    assert len(entries) == newest.size
    states = reader.checkpoints(None, 1 << 31)[::-1]
    roots: dict[int, str] = {}
    for state in states:
        signed = open_checkpoint(state.note, ledger.verifier)
        assert (signed.size, signed.root) == (state.size, state.root)
        roots[state.size] = base64.encode(state.root)
    for older, newer in pairwise(states):
        proof = reader.tree.consistency(older.size, newer.size)
        verify_consistency(older.size, newer.size, older.root, newer.root, proof)
    for ack in acks:
        assert ack.index < ack.size
        assert roots[ack.size] == ack.root, f"the checkpoint of size {ack.size} is not the one that was shown"
        assert sha256(entries[ack.index]).hexdigest() == ack.digest, f"entry {ack.index} is not the acknowledged one"
    assert findings(ledger) == []
    with ledger.store.read() as connection:
        head = read_head(connection)
    assert head is not None
    assert (head.size, head.root) == (newest.size, newest.root)
    return newest.size


def findings(ledger: Ledger) -> list[str]:
    with ledger.store.snapshot() as connection:
        mark = MarkFile(ledger.settings.mark).read()
        return fsck(connection, ledger.verifier, mark, lambda *_: None).findings


def forget_database(mark: Path) -> None:
    """What an earlier version would have written: the next start takes the database that it finds."""
    newest = MarkFile(mark).read()
    assert newest is not None
    mark.write_bytes(newest.line().ljust(2 * SLOT, b"\0"))


class Backups:
    """Copies of a database as an operator makes them: of SQLite's files, or by PostgreSQL. Nobody may be connected while
    one is made."""

    def __init__(self, database_url: str, folder: Path, server: PostgresServer | None) -> None:
        self._folder = folder
        self._server = server
        self._name = make_url(database_url).database or ""

    def save(self, name: str) -> None:
        if self._server:
            self._copy_database(self._name, name)
        else:
            self._folder.mkdir(exist_ok=True)
            _copy_files(Path(self._name), self._folder / name)

    def restore(self, name: str) -> None:
        if self._server:
            self._copy_database(name, self._name)
        else:
            _copy_files(self._folder / name, Path(self._name))

    def restore_under(self, name: str) -> None:
        """While others are connected: PostgreSQL throws them out, SQLite changes the file that they have open."""
        if self._server:
            self.restore(name)
            return
        with closing(sqlite3.connect(self._folder / name)) as source, closing(sqlite3.connect(self._name)) as target:
            source.backup(target)

    def _copy_database(self, source: str, target: str) -> None:
        assert self._server
        self._server.drop(target)
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(sql.Identifier(target), sql.Identifier(source))
        host = str(self._server.directory)
        with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as admin:
            admin.execute(statement)


def _copy_files(source: Path, target: Path) -> None:
    for path in _files(target):
        path.unlink()
    for path in _files(source):
        shutil.copy(path, target.with_name(path.name.replace(source.name, target.name)))


def _files(database: Path) -> list[Path]:
    """The SQLite file, with what was written ahead of it."""
    return sorted(database.parent.glob(f"{database.name}*"))
