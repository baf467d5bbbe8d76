"""The files of a database on either engine, as somebody finds them who took the disk, and the rows in them."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from tests.engines import PostgresServer, postgres_wheel


class Sqlite:
    """The files of a database, and its rows."""

    name = "sqlite"

    def __init__(self, folder: Path, _stack: ExitStack) -> None:
        self.path = folder / "ledger.db"
        self.url = f"sqlite:///{self.path}"

    def files(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.path.parent.glob(f"{self.path.name}*")}

    def restart(self) -> None:
        """There is nothing but the files."""

    def query(self, query: str) -> list[tuple[Any, ...]]:
        """Tables in the order of their rows, of all files."""
        with closing(sqlite3.connect(self.path)) as connection:
            connection.execute(f"ATTACH '{self.path}-limits' AS limits")
            connection.execute(f"ATTACH '{self.path}-day-limits' AS day_limits")
            connection.text_factory = bytes
            return connection.execute(query).fetchall()

    def tables(self) -> list[str]:
        query = "SELECT '{0}.' || name FROM {0}.sqlite_master WHERE type = 'table'"
        return [
            name.decode() for file in ("main", "limits", "day_limits") for (name,) in self.query(query.format(file))
        ]

    def execute(self, statement: str, *values: Any) -> None:
        with closing(sqlite3.connect(self.path, isolation_level=None, timeout=30)) as connection:
            connection.execute(statement, values)

    def physical(self, table: str) -> str:
        """What is known by keys has no numbers of rows: it stands in the order of the keys."""
        return table if table in ("known", "rate", "day_rate") else f"{table} ORDER BY rowid"

    def changes(self, folder: Path) -> list[bytes]:
        """The write-ahead log keeps old pages until it is written over: what each commit in it left behind."""
        file = Path(f"{self.path}-day-limits-wal")
        wal = file.read_bytes() if file.exists() else bytes(32)
        frame = 24 + int.from_bytes(wal[8:12])
        old: dict[bytes, int] = {}
        found, copy = [], folder / "copy"
        copyfile(f"{self.path}-day-limits", copy)
        for end in range(32 + frame, len(wal) + 1, frame):
            Path(f"{copy}-shm").unlink(missing_ok=True)
            Path(f"{copy}-wal").write_bytes(wal[:end])
            with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as connection:
                if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'day_rate'").fetchone()[0]:
                    new = dict(connection.execute("SELECT key, paid FROM day_rate"))
                    found += [key for key, paid in new.items() if old.get(key) != paid]
                    old = new
        return found


class Postgresql:
    """A server of one's own: the one that other tests share has their guests in its files."""

    name = "postgresql"

    def __init__(self, _folder: Path, stack: ExitStack) -> None:
        directory = stack.enter_context(TemporaryDirectory(prefix="staylog-", dir="/tmp"))
        self.server = PostgresServer(postgres_wheel(), Path(directory))
        stack.callback(self.server.stop)
        self.url = self.server.url("ledger")
        self._old = self._read()
        self._parameters = make_url(self.url).translate_connect_args() | {"host": directory}

    def files(self) -> dict[str, bytes]:
        """All that are not as they were before anybody said anything: most of them are the server's own."""
        return {name: data for name, data in self._read().items() if data != self._old.get(name)}

    def restart(self) -> None:
        """All that is in memory is written when it stops, also of tables that are not in the write-ahead log."""
        self.server.restart(immediate=False)

    def _read(self) -> dict[str, bytes]:
        if not os.access(self.server.data, os.R_OK | os.X_OK):
            pytest.skip("the files of the PostgreSQL server cannot be read by who runs the tests")
        files = {"log of the server": self.server.log.read_bytes()}
        for path in self.server.data.rglob("*"):
            # It is at work, and some files are gone by now.
            with suppress(FileNotFoundError):
                if path.is_file():
                    files[str(path.relative_to(self.server.data))] = path.read_bytes()
        return files

    def query(self, query: str) -> list[tuple[Any, ...]]:
        with self._connect() as connection:
            return connection.execute(query.encode()).fetchall()

    def tables(self) -> list[str]:
        return [name for (name,) in self.query("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")]

    def execute(self, statement: str, *values: Any) -> None:
        with self._connect() as connection:
            connection.execute(statement.replace("?", "%s").encode(), values)

    def physical(self, table: str) -> str:
        return f"{table} ORDER BY ctid"

    def changes(self, _folder: Path) -> list[bytes]:
        """An update leaves the old tuple where it was until the page is tidied up; each has the number of the
        transaction that made it. Stopping the server writes its pages."""
        [(path,)] = self.query("SELECT pg_relation_filepath('day_rate')")
        self.restart()
        data = (self.server.data / path).read_bytes()
        tuples = []
        for page in range(0, len(data), 8192):
            lower = int.from_bytes(data[page + 12 : page + 14], "little")
            for pointer in range(page + 24, page + lower, 4):
                item = int.from_bytes(data[pointer : pointer + 4], "little")
                offset, length = item & 0x7FFF, item >> 17
                if length:
                    made = data[page + offset : page + offset + length]
                    # The header is as long as its 23rd byte says; a short bytea has its length in one byte.
                    row = made[made[22] :]
                    tuples.append((int.from_bytes(made[:4], "little"), row[1:17]))
        return [key for _, key in sorted(tuples)]

    def _connect(self) -> psycopg.Connection[Any]:
        names = {"database": "dbname", "username": "user"}
        given = {names.get(name, name): value for name, value in self._parameters.items()}
        return psycopg.connect(**given, autocommit=True)


Engine = Sqlite | Postgresql
ENGINES: dict[str, Callable[[Path, ExitStack], Engine]] = {"sqlite": Sqlite, "postgresql": Postgresql}


def rows_by_index(engine: Engine, table: str, column: str) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for index, value in engine.query(f"SELECT idx, {column} FROM {engine.physical(table)}"):
        found.setdefault(index, []).append(bytes(value))
    return found


def dump(engine: Engine, table: str) -> bytes:
    """All values as they are: a server may store long ones compressed."""
    rows = engine.query(f"SELECT * FROM {table}")
    values = [value for row in rows for value in row if value is not None]
    return b"\0".join(bytes(v) if isinstance(v, bytes | memoryview) else str(v).encode() for v in values)
