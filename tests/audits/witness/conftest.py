from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from audits.witness.judge import Witness
from tests.audits.witness.judging import LOG, opened


@pytest.fixture
def witness(tmp_path: Path) -> Iterator[Witness]:
    with closing(opened(tmp_path / "witness")) as made:
        yield made


@pytest.fixture
def at_five(witness: Witness) -> Witness:
    witness.add_checkpoint(LOG.request(0, 5).encode())
    return witness
