"""The bytes of a database's files on either engine."""

import os
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url


class Files:
    """Searches the files of a database for bytes."""

    def __init__(self, url: str) -> None:
        self._url = make_url(url)

    def count(self, *needles: bytes) -> int:
        """How many of them are found."""
        data = self._sqlite() if self._url.get_backend_name() == "sqlite" else self._postgresql()
        return sum(any(needle in each for each in data) for needle in needles)

    def _sqlite(self) -> list[bytes]:
        path = Path(self._url.database or "")
        return [each.read_bytes() for each in path.parent.glob(f"{path.name}*")]

    def _postgresql(self) -> list[bytes]:
        """All relations of the database, as they are on the disk once what is in memory was written. Its write-ahead
        log is the server's."""
        server = Path(str(self._url.query["host"]))
        if not os.access(server / "data", os.R_OK | os.X_OK):
            pytest.skip("the files of the PostgreSQL server cannot be read by who runs the tests")
        with psycopg.connect(host=str(server), user="postgres", dbname=self._url.database, autocommit=True) as admin:
            admin.execute("CHECKPOINT")
            row = admin.execute("SELECT oid FROM pg_database WHERE datname = current_database()").fetchone()
        assert row is not None
        return [path.read_bytes() for path in (server / "data" / "base" / str(row[0])).iterdir()]
