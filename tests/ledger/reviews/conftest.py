from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hosting import Hosted
from tests.network import Neighbourhood
from tests.reviewing import Reviewing


@pytest.fixture
def reviewing(tmp_path: Path, database_url: str) -> Iterator[Reviewing]:
    """A ledger that takes reviews, on each engine."""
    made = Reviewing(tmp_path / "data", database_url)
    yield made
    made.ledger.close()


@pytest.fixture
def connected(tmp_path: Path, database_url: str, neighbourhood: Neighbourhood) -> Iterator[Reviewing]:
    """The same, which can ask the hosts of the neighbourhood."""
    made = Reviewing(tmp_path / "data", database_url, neighbourhood.development)
    yield made
    made.ledger.close()


@pytest.fixture
def hosted(connected: Reviewing, neighbourhood: Neighbourhood) -> Hosted:
    """The same, and a host whose booking endpoint is known."""
    return Hosted(connected, neighbourhood)
