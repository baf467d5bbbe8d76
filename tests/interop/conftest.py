import subprocess
from collections.abc import Iterator

import pytest

from tests.interop.golang import Go, build


@pytest.fixture(scope="session")
def go(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Go]:
    program = build(tmp_path_factory.mktemp("go"))
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8") as process:
        assert process.stdin
        assert process.stdout
        yield Go(process.stdin, process.stdout)
    assert process.returncode == 0
