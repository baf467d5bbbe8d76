"""Debian's chromium without a window, and its driver: both are found on this machine, or the tests skip."""

import json
import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

ARGUMENTS = (
    # As root, and with the little shared memory that containers have.
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    # It asks nobody anything by itself, and finds nobody but this machine.
    *("--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update"),
    *("--disable-sync", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
)


class Browser:
    """One page at a time, and what it did."""

    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    def show(self, page: Path, width: int = 1200, scheme: str = "light") -> None:
        """Open a file on a screen of this width, for a reader who prefers light or dark."""
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", screen)
        self._command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.messages(), self.requests()
        self._driver.get(page.as_uri())

    def messages(self) -> list[str]:
        """What the console has said since it was asked last; errors and what a policy kept out are in it."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since this was asked last."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def all(self, selector: str) -> list[WebElement]:
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def evaluate(self, expression: str) -> Any:
        return self._driver.execute_script(f"return {expression}")

    def screenshot(self) -> bytes:
        """The whole page as PNG, also what is below the screen."""
        taken = self._command("Page.captureScreenshot", {"captureBeyondViewport": True})
        return b64decode(taken["data"])

    def _command(self, name: str, parameters: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._driver.execute_cdp_cmd(name, parameters)
        return answer

    def _log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self._driver.get_log(kind)  # type: ignore[no-untyped-call]
        return entries


@contextmanager
def started(folder: Path) -> Iterator[Browser]:
    """A browser with a profile of its own in `folder`."""
    options = ChromeOptions()
    options.binary_location = shutil.which("chromium") or absent("chromium")
    driver = shutil.which("chromedriver") or absent("chromium-driver")
    for argument in (*ARGUMENTS, f"--user-data-dir={folder}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    # With its path given, selenium looks for no other driver, and fetches none.
    chrome = Chrome(options, Service(executable_path=driver))
    try:
        yield Browser(chrome)
    finally:
        chrome.quit()


def absent(package: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(f"{package} is missing, and under CI these tests must run")
    pytest.skip(f"{package} is missing (Debian: apt-get install chromium chromium-driver)")
