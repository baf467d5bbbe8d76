"""What hosts are told of us, and what they are not."""

import re
import socket
from pathlib import Path

import pytest

from ledger.net import fetch
from ledger.net.profiles import LISTING
from tests.ledger.net.visiting import AGENT, SMALL, URL, Trap, Visitor
from tests.network import Neighbourhood


def test_what_is_said_of_ourselves(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """And nothing else."""
    neighbourhood.put(URL, {})
    visitor.get()
    [asked] = neighbourhood.asked
    assert (asked.method, asked.body) == ("GET", b"")
    assert asked.headers.pop("accept").startswith("application/json")
    assert {name: value for name, value in asked.headers.items() if name != "connection"} == {
        "host": "idv.example",
        "user-agent": AGENT,
        "accept-encoding": "identity",
    }


def test_a_body_is_posted(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put(URL, {"taken": True})
    body = b'{"a":"\xc3\xa9"}'
    assert visitor.get(body=body).json() == {"taken": True}
    assert visitor.get(body=b"").json() == {"taken": True}
    one, none = neighbourhood.asked
    assert (one.method, one.body, one.headers["content-type"]) == ("POST", body, "application/json")
    assert one.headers["content-length"] == str(len(body))
    assert (none.method, none.body) == ("POST", b"")


def test_a_body_has_headers_of_its_own(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """What goes with a signed body, exactly; who only asks for something sends none."""
    neighbourhood.put(URL, {})
    own = {
        "Content-Type": "application/jose+json",
        "Signature-Input": 'sig1=("@method");created=1;nonce="a-b_c"',
        "Signature": "sig1=:AA==:",
    }
    visitor.run(visitor.fetcher.fetch(URL, SMALL, b"{}", own))
    visitor.run(visitor.fetcher.fetch(URL, SMALL, None, own))
    posted, asked = neighbourhood.asked
    assert posted.method == "POST"
    assert {name: posted.headers[name.lower()] for name in own} == own
    assert posted.headers["user-agent"] == AGENT
    assert asked.method == "GET"
    assert not {name.lower() for name in own} & asked.headers.keys()


def test_a_body_is_not_posted_elsewhere(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    neighbourhood.put("https://other.example/", {})
    neighbourhood.put(URL, b"", status=307, location="https://other.example/")
    assert visitor.refused(body=b"{}").code == "fetch_redirected"
    assert neighbourhood.requests == {URL: 1}


def test_how_a_ledger_calls_itself() -> None:
    assert re.fullmatch(r"staylog/[0-9][0-9a-z.]* \(\+https://l\.example\)", fetch.user_agent("https://l.example"))


def test_a_trap_counts() -> None:
    with Trap() as trap:
        assert trap.connections == 0
        for _ in range(3):
            socket.create_connection((trap.address, trap.port)).close()
        assert trap.connections == 3


def test_the_environments_proxies_are_not_asked(
    visitor: Visitor, neighbourhood: Neighbourhood, monkeypatch: pytest.MonkeyPatch
) -> None:
    neighbourhood.put(URL, {})
    with Trap() as trap:
        for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "WSS_PROXY"):
            for each in (name, name.lower()):
                monkeypatch.setenv(each, f"http://guest:secret@127.0.0.1:{trap.port}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        assert visitor.get().body == b"{}"
        assert trap.connections == 0
    assert neighbourhood.requests == {URL: 1}
    assert not any("proxy" in name for name in neighbourhood.asked[0].headers)


def test_passwords_of_the_environment_are_not_told(
    visitor: Visitor, neighbourhood: Neighbourhood, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text("machine idv.example login guest password secret\ndefault login guest password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    monkeypatch.setenv("HOME", str(tmp_path))
    neighbourhood.put(URL, {}, status=401, www_authenticate='Basic realm="a"')
    assert visitor.code() == "fetch_status"
    [asked] = neighbourhood.asked
    assert "authorization" not in asked.headers


def test_cookies_are_forgotten(visitor: Visitor, neighbourhood: Neighbourhood) -> None:
    """Between two questions, and from one redirect to the next."""
    cookie = "session=secret; Path=/; Secure; Max-Age=9999"
    neighbourhood.put(URL, {}, set_cookie=cookie)
    neighbourhood.put("https://idv.example/start", b"", status=302, location="/", set_cookie=cookie)

    async def ask() -> None:
        for url in (URL, URL, "https://idv.example/start"):
            await visitor.fetcher.fetch(url, LISTING)

    visitor.run(ask())
    assert len(neighbourhood.asked) == 4
    assert not any("cookie" in asked.headers for asked in neighbourhood.asked)
