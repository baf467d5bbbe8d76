from collections.abc import Iterator

import pytest

from tests.browser.browser import Browser, started


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """It takes a second to start: each worker of a parallel run has one."""
    with started(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser
