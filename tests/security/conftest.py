from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.hosting import Hosted
from tests.network import Neighbourhood
from tests.reviewing import Reviewing
from tests.security.database_files import ENGINES
from tests.security.private_story import play
from tests.security.private_world import Scene, Service


@pytest.fixture
def hosted(tmp_path: Path, database_url: str, neighbourhood: Neighbourhood) -> Iterator[Hosted]:
    """A ledger on each engine, and a host with a domain and a booking endpoint."""
    made = Reviewing(tmp_path / "data", database_url, neighbourhood.development)
    yield Hosted(made, neighbourhood)
    made.ledger.close()


@pytest.fixture(scope="session", params=ENGINES)
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """What a service has left behind, on each engine; played once."""
    folder = tmp_path_factory.mktemp("privacy")
    with ExitStack() as stack:
        engine = ENGINES[request.param](folder, stack)
        service = Service(folder, engine.url, stack)
        yield play(service, engine, folder)
