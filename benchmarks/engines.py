"""The engines that a ledger runs on: SQLite in the run's directory, and PostgreSQL from its wheel where that exists."""

import shutil
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Protocol

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url

from benchmarks.measure import Step
from ledger.log.mark_file import MarkFile
from ledger.settings import Settings
from tests.engines import PostgresServer, postgres_wheel


class Engine(Protocol):
    name: ClassVar[str]

    @property
    def disk(self) -> Path:
        """A folder on the disk that its commits wait for."""

    def new(self, name: str) -> Settings:
        """Where a ledger can be made."""

    def copy(self, made: Settings, name: str) -> Settings:
        """A copy of a closed ledger, keys and mark included, so that several runs begin with the same rows."""


@dataclass(frozen=True, slots=True)
class Sqlite:
    directory: Path
    name: ClassVar[str] = "SQLite"

    @property
    def disk(self) -> Path:
        return self.directory

    def new(self, name: str) -> Settings:
        return Settings.of(self.directory / f"sqlite-{name}")

    def copy(self, made: Settings, name: str) -> Settings:
        copied = self.new(name)
        shutil.copytree(made.data, copied.data)
        return copied


@dataclass(frozen=True, slots=True)
class Postgres:
    directory: Path
    server: PostgresServer
    name: ClassVar[str] = "PostgreSQL"

    @property
    def disk(self) -> Path:
        return self.server.directory

    def new(self, name: str) -> Settings:
        return Settings.of(self._folder(name), self.server.url(name))

    def copy(self, made: Settings, name: str) -> Settings:
        url = make_url(made.database_url)
        with self._connect("postgres") as admin:
            create = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            admin.execute(create.format(sql.Identifier(name), sql.Identifier(str(url.database))))
        with self._connect(name) as copied:
            # What autovacuum does within a minute, but not while somebody measures.
            copied.execute("VACUUM ANALYZE")
        shutil.copytree(made.data, self._folder(name))
        settings = Settings.of(self._folder(name), url.set(database=name).render_as_string())
        # It is another database than that of the mark: the operator says that it is the right one.
        return replace(settings, accepted=str(MarkFile(settings.mark).read()))

    def _folder(self, name: str) -> Path:
        return self.directory / f"postgresql-{name}"

    def _connect(self, database: str) -> "psycopg.Connection[tuple[object, ...]]":
        return psycopg.connect(host=str(self.server.directory), user="postgres", dbname=database, autocommit=True)


def find_postgres() -> Path | None:
    """The folder of the wheel; None without a server for this platform."""
    try:
        return postgres_wheel()
    except pytest.skip.Exception:
        return None


def start_engines(directory: Path, wheel: Path | None, step: Step, running: ExitStack) -> list[Engine]:
    """SQLite, and PostgreSQL where there is a `wheel`; the server stops when `running` is closed."""
    engines: list[Engine] = [Sqlite(directory)]
    if wheel is not None:
        step("starting PostgreSQL")
        # As in the tests: a socket's path is short, and a server that runs as another user must be able to get there.
        home = running.enter_context(TemporaryDirectory(prefix="staylog-", dir="/tmp"))
        server = PostgresServer(wheel, Path(home))
        running.callback(server.stop)
        engines.append(Postgres(directory, server))
    return engines
