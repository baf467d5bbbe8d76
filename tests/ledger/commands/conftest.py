from pathlib import Path

import pytest

from tests.ledger.commands.issuer_folder import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
