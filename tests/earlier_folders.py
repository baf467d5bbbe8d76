"""Folders that earlier versions made, as they were (tests/fixtures), on either engine."""

import json
import tarfile
from contextlib import closing
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import MetaData, insert, select

from ledger.settings import Settings
from ledger.store.engine import Store
from ledger.store.schema import upgrade

FIXTURES = Path(__file__).parent / "fixtures"
MIGRATIONS = Path(__file__).parents[1] / "migrations"


class EarlierFolder:
    """The folder of a ledger whose tables have `revision`, beside files that its guests and hosts kept."""

    def __init__(self, revision: str, where: Path, new_database_url: str) -> None:
        with tarfile.open(FIXTURES / f"revision-{revision}.tar.gz") as archive:
            archive.extractall(where, filter="data")
        self.where = where
        kept = f"sqlite:///{where / 'folder' / 'ledger.db'}"
        if new_database_url.startswith("sqlite"):
            self.settings = Settings.of(where / "folder")
        else:
            self.settings = Settings.of(where / "folder", new_database_url)
            _copy(kept, new_database_url, revision)

    def upgraded(self) -> Settings:
        upgrade(self.settings.database_url)
        return self.settings

    def document(self, name: str) -> Any:
        return json.loads((self.where / name).read_text())


def _copy(source: str, target: str, revision: str) -> None:
    """All rows, into the tables that the migrations made up to `revision`."""
    with closing(Store(source)) as old, closing(Store(target)) as new, new.write() as writing, old.read() as reading:
        config = Config(attributes={"connection": writing})
        config.set_main_option("script_location", str(MIGRATIONS))
        command.upgrade(config, revision)
        tables = MetaData()
        tables.reflect(reading)
        for table in tables.sorted_tables:
            rows = [dict(row._mapping) for row in reading.execute(select(table))]
            if rows and table.name != "alembic_version":
                writing.execute(insert(table), rows)
