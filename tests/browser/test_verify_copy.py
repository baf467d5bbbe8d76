"""A copy of `/verify` on a disk: it checks without a network, asks nobody, and says what it cannot do."""

from pathlib import Path

import pytest

from tests.browser.browser import Browser
from tests.browser.by_hand import BY_NAME, COTTAGE, fill, give, shown
from tests.waiting import until


@pytest.mark.parametrize("name", ["own full", "own rating-changed", "own receipt", "own receipt text-changed"])
def test_a_copy_on_disk_checks_without_a_network(browser: Browser, copy: Path, tmp_path: Path, name: str) -> None:
    case = BY_NAME[name]
    browser.show(copy)
    fill(browser, case)
    give(browser, case, "paste", tmp_path)
    assert shown(browser)["verdict"] == ("proved" if case.code is None else "wrong")
    assert browser.requests() == [copy.as_uri()]
    assert browser.messages() == []


def test_a_copy_on_disk_asks_nobody_and_says_so(browser: Browser, copy: Path) -> None:
    browser.show(copy)
    [ask] = browser.all("#ask")
    assert not ask.is_enabled()
    assert "nothing is fetched" in browser.all("#ask-note")[0].text
    assert "asks nobody anything" in browser.all("header .on-disk")[0].text
    browser.type("#host", COTTAGE.host + "\n")
    assert browser.requests() == [copy.as_uri()]
    assert browser.messages() == []


@pytest.mark.parametrize(("gone", "reason"), [("crypto", "https"), ("Ed25519", "newer one")])
def test_a_browser_that_cannot_check_says_what_to_do(browser: Browser, copy: Path, gone: str, reason: str) -> None:
    """The page is given such a browser by a line before its script."""
    break_it = {
        "crypto": "Object.defineProperty(crypto, 'subtle', { value: undefined }); "
        "Object.defineProperty(window, 'isSecureContext', { value: false });",
        "Ed25519": "crypto.subtle.importKey = async () => { throw new DOMException('', 'NotSupportedError'); };",
    }
    text = copy.read_text("utf-8").replace(
        '<script type="module">', f"<script>{break_it[gone]}</script><script type='module'>"
    )
    copy.write_text(text, "utf-8")
    browser.show(copy)
    [notice] = browser.all("#notice")
    until(lambda: bool(notice.text), 5)
    assert reason in notice.text
    assert notice.get_attribute("data-code") == "crypto_missing"
    assert not browser.all("#check")[0].is_enabled()
