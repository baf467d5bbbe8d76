from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.api.conftest import Service, _fill, run_service
from tests.browser.browser import Browser, started
from tests.browser.verifying import PAGE


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """It takes a second to start: each worker of a parallel run has one."""
    with started(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def verify_page(browser: Browser) -> None:
    """The browser has `/verify` open, as a file."""
    browser.show(PAGE)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    kept = tmp_path / "staylog-verify.html"
    kept.write_bytes(PAGE.read_bytes())
    return kept


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """About 1,300 entries; one host has 1,005 events. Tests only ask it: each worker of a parallel run has one."""
    yield from run_service(tmp_path_factory.mktemp("verified"), None, _fill)
