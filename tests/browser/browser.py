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
# What keys are called, their numbers, and what they write.
KEYS = {"Tab": (9, ""), "Enter": (13, "\r")}


class Browser:
    """One page at a time, and what it did."""

    def __init__(self, driver: Chrome) -> None:
        self._driver = driver

    def show(self, page: Path, width: int = 1200, scheme: str = "light") -> None:
        """Open a file on a screen of this width, for a reader who prefers light or dark."""
        self.open(page.as_uri(), width, scheme)

    def open(self, address: str, width: int = 1200, scheme: str = "light") -> None:
        screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
        self._command("Emulation.setDeviceMetricsOverride", screen)
        self._command("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
        self.messages(), self.requests()
        self._driver.get(address)

    def messages(self) -> list[str]:
        """What the console has said since it was asked last; errors and what a policy kept out are in it."""
        return [entry["message"] for entry in self._log("browser")]

    def requests(self) -> list[str]:
        """The addresses that were asked for since this was asked last."""
        events = [json.loads(entry["message"])["message"] for entry in self._log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def all(self, selector: str) -> list[WebElement]:
        return self._driver.find_elements(By.CSS_SELECTOR, selector)

    def evaluate(self, expression: str, *arguments: Any) -> Any:
        """The value of an expression, in which `arguments` are those given; of a promise, what it comes to."""
        return self._driver.execute_script(f"return {expression}", *arguments)

    def click(self, selector: str) -> None:
        [element] = self.all(selector)
        element.click()

    def type(self, selector: str, text: str) -> None:
        """Key by key, in place of what was there; with a line feed at its end, as Enter does."""
        [element] = self.all(selector)
        element.clear()
        element.send_keys(text)

    def paste(self, selector: str, text: str) -> None:
        """All at once, in place of what was there."""
        [element] = self.all(selector)
        element.clear()
        self.evaluate("arguments[0].focus()", element)
        self._command("Input.insertText", {"text": text})

    def press(self, key: str) -> None:
        """A key by its name, wherever the focus is."""
        number, text = KEYS[key]
        for kind in ("keyDown", "keyUp"):
            self._command(
                "Input.dispatchKeyEvent", {"type": kind, "key": key, "windowsVirtualKeyCode": number, "text": text}
            )

    def drop(self, *files: Path) -> None:
        """Drag files from a file manager onto the middle of the screen."""
        data = {"items": [], "files": [str(file) for file in files], "dragOperationsMask": 1}
        for event in ("dragEnter", "dragOver", "drop"):
            self._command("Input.dispatchDragEvent", {"type": event, "x": 150, "y": 400, "data": data})

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
