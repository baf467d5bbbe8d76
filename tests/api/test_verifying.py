"""The page `/verify` as it is served: the bytes of the file, and a policy under which nothing else can run."""

import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from api import verifying
from api.verifying import PAGE, policy
from tests.api.conftest import Service


def test_it_is_the_file_byte_for_byte(service: Service) -> None:
    answer = service.get("/verify")
    assert answer.status_code == 200
    assert answer.content == Path(verifying.__file__).with_name("verify.html").read_bytes()
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "public, max-age=300"
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_nothing_runs_but_what_is_in_it(service: Service) -> None:
    given = service.get("/verify").headers["content-security-policy"]
    directives = dict(part.split(" ", 1) for part in given.split("; "))
    script, style = (
        re.search(rb"<%b[^>]*>(.*?)</%b>" % (name, name), PAGE, re.DOTALL) for name in (b"script", b"style")
    )
    assert script
    assert style
    assert directives == {
        "default-src": "'none'",
        "script-src": f"'sha256-{b64encode(sha256(script[1]).digest()).decode()}'",
        "style-src": f"'sha256-{b64encode(sha256(style[1]).digest()).decode()}'",
        "connect-src": "'self'",
        "img-src": "data:",
        "frame-ancestors": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_it_is_for_people_and_not_in_the_document(service: Service) -> None:
    assert "/verify" not in service.get("/schema/openapi.json").json()["paths"]


def test_a_second_script_is_noticed() -> None:
    with pytest.raises(ValueError, match="unpack"):
        policy(PAGE.replace(b"</body>", b"<script>more()</script></body>"))


class Outside(HTMLParser):
    """Whatever a page would fetch or run beside its own script and style."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (
                name in ("src", "srcset", "action", "style")
                or name.startswith("on")
                or (name, value) == ("href", "http")
            ):
                self.found.append((tag, name, value))


def test_it_needs_nothing_from_elsewhere() -> None:
    text = PAGE.decode()
    outside = Outside()
    outside.feed(text)
    assert outside.found == []
    assert re.findall(r"https?://[^\s\"'`<>]*", text.replace(r"https:\/\/", "")) == []
    # Text never becomes markup or code.
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|import\(|@import", text
    )
