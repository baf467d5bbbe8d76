"""A ledger in a folder that nobody has opened, and backups of its database."""

from pathlib import Path

import pytest

from ledger.folder import init_folder
from ledger.settings import Settings
from tests.crash.harness import Backups


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    made = Settings.of(tmp_path / "data", database_url)
    init_folder(made)
    return made


@pytest.fixture
def backups(tmp_path: Path, database_url: str, request: pytest.FixtureRequest) -> Backups:
    server = None if database_url.startswith("sqlite:") else request.getfixturevalue("postgres")
    return Backups(database_url, tmp_path / "backups", server)
