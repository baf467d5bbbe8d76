import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.site import Person, Site, serving
from tests.interop.golang import Go, build


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    program = build(tmp_path_factory.mktemp("go"))
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdin
        assert process.stdout
        yield Go(process.stdin, process.stdout)
    assert process.returncode == 0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One service for all tests of a file that let its clock stand; each has its own hosts and guests."""
    with serving(tmp_path_factory.mktemp("rfc005")) as site:
        yield site


@pytest.fixture
def own(tmp_path: Path, database_url: str) -> Iterator[Site]:
    """A service of one's own on each engine, whose clock may be set."""
    with serving(tmp_path, database_url) as site:
        yield site


@pytest.fixture
def host(request: pytest.FixtureRequest) -> Person:
    return Person(f"host of {request.node.nodeid}")


@pytest.fixture
def guest(request: pytest.FixtureRequest) -> Person:
    return Person(f"guest of {request.node.nodeid}")
