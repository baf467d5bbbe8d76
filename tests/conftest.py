"""Tests are deterministic: hypothesis replays the same examples unless STAYLOG_EXPLORE asks for new ones."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.engines import database_url, new_database_url, postgres, tables  # noqa: F401 (fixtures)
from tests.etcd import etcd  # noqa: F401 (fixture)
from tests.network import Authority, Neighbourhood
from tests.running import running, writer  # noqa: F401 (fixtures)

settings.register_profile(
    "replay", derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("explore" if os.environ.get("STAYLOG_EXPLORE") else "replay")

# A shell that runs the tests in the background has them ignore Ctrl-C, and whatever they start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def neighbourhood(tmp_path: Path, authority: Authority) -> Iterator[Neighbourhood]:
    """Hosts of the world outside, none at first."""
    made = Neighbourhood(tmp_path, authority)
    yield made
    made.close()
