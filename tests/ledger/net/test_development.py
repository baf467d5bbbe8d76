"""Names of the world on a developer's own machine: only there, only to it, and with TLS as everywhere."""

import asyncio
from pathlib import Path

import pytest

from ledger.errors import Misconfigured, NotFetched
from ledger.net.development import CA, HOSTS, NONE, Development, from_environment
from ledger.net.fetch import Fetcher
from ledger.net.profiles import DID
from tests.network import Authority, Neighbourhood

LOCAL = "http://127.0.0.1:8080"


def hosts_of(folder: Path, text: str | bytes) -> Development:
    path = folder / "hosts"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return from_environment({HOSTS: str(path)}, LOCAL)


def refused(environment: dict[str, str], base_url: str = LOCAL) -> str:
    with pytest.raises(Misconfigured) as refusal:
        from_environment(environment, base_url)
    assert refusal.value.code == "development_refused"
    return refusal.value.message


@pytest.mark.parametrize("base_url", [LOCAL, "https://ledger.example"])
@pytest.mark.parametrize("environment", [{}, {"PATH": "/bin"}, {HOSTS: "", CA: ""}], ids=str)
def test_nothing_set_is_nothing(environment: dict[str, str], base_url: str) -> None:
    assert from_environment(environment, base_url) is NONE
    assert (NONE.hosts, NONE.ca, NONE.warning) == ({}, None, None)


def test_hosts_with_comments_and_blank_lines(tmp_path: Path) -> None:
    text = (
        "# the neighbours\n\n  \t\nidv.example 127.0.0.1:8443\nHost.Example\t\t127.1.2.3:1   # in capitals\r\n"
        "   xn--bcher-kva.example [::1]:65535\n#idv.example 127.0.0.1:1\nlast.example 127.0.0.1:443"
    )
    assert hosts_of(tmp_path, text) == Development(
        {
            "idv.example": ("127.0.0.1", 8443),
            "host.example": ("127.1.2.3", 1),
            "xn--bcher-kva.example": ("::1", 65535),
            "last.example": ("127.0.0.1", 443),
        }
    )
    assert hosts_of(tmp_path, "") == Development()


@pytest.mark.parametrize(
    "line",
    [
        # Not an address of this machine.
        *("idv.example 10.0.0.5:443", "idv.example 20.1.1.1:443", "idv.example 0.0.0.0:443"),
        "idv.example 128.0.0.1:443",
        *("idv.example 169.254.169.254:443", "idv.example [::]:443", "idv.example [2600:1f00::1]:443"),
        *("idv.example [::ffff:127.0.0.1]:443", "idv.example localhost:443", "idv.example other.example:443"),
        *("idv.example 127.0.0.1.other.example:443", "idv.example 227.0.0.1:443", "idv.example [fe80::1%lo]:443"),
        # Not an address at all, or not in its one spelling.
        *("idv.example 127.1:443", "idv.example 127.0.0.256:443", "idv.example 127.0.0.01:443", "idv.example 127.:443"),
        *("idv.example 2130706433:443", "idv.example 0x7f.0.0.1:443", "idv.example 127.0.0.1.1:443"),
        "idv.example ::1:443",
        *("idv.example [::1:443", "idv.example 127.0.0.1", "idv.example [::1]", "idv.example 127.0.0.1:"),
        # Not a port.
        *("idv.example 127.0.0.1:0", "idv.example 127.0.0.1:65536", "idv.example 127.0.0.1:99999"),
        *("idv.example 127.0.0.1:0443", "idv.example 127.0.0.1:-1", "idv.example 127.0.0.1:https"),
        *("idv.example 127.0.0.1:443/", "idv.example 127.0.0.1:123456"),
        # Not a name that would be asked.
        *("localhost 127.0.0.1:443", "idv.example. 127.0.0.1:443", "10.0.0.5 127.0.0.1:443", "[::1] 127.0.0.1:443"),
        *("idv.example:443x 127.0.0.1:443", "idv.example:8443 127.0.0.1:443", "*.example 127.0.0.1:443"),
        *("https://idv.example 127.0.0.1:443", "guest@idv.example 127.0.0.1:443", "idv_.example 127.0.0.1:443"),
        # Not one name and one address.
        *("idv.example", "127.0.0.1:443", "127.0.0.1:443 idv.example", "idv.example other.example 127.0.0.1:443"),
        *("idv.example 127.0.0.1:443 127.0.0.1:444", "idv.example=127.0.0.1:443", "idv.example,127.0.0.1:443"),
    ],
)  # fmt: skip
def test_bad_lines_are_named_by_their_number(tmp_path: Path, line: str) -> None:
    path = tmp_path / "hosts"
    path.write_text(f"# 1\nidv.example 127.0.0.1:8443\n\n{line}\nnobody expects this either\n")
    message = refused({HOSTS: str(path)})
    assert message.startswith("hosts, line 4: ")
    assert "idv.example 127.0.0.1:8443" in message


def test_a_hosts_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in refused({HOSTS: str(tmp_path / "missing")})
    assert "cannot be read" in refused({HOSTS: str(tmp_path)})
    (tmp_path / "hosts").write_bytes("bücher.example 127.0.0.1:443".encode())
    assert "cannot be read" in refused({HOSTS: str(tmp_path / "hosts")})


@pytest.mark.parametrize(
    "pem",
    [
        *(b"\n", b"no certificate", b"-----BEGIN CERTIFICATE-----\n", b"\0"),
        "Zertifizierungsstelle für Tests".encode(),
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        b"",
    ],
)  # fmt: skip
def test_a_ca_file_without_a_certificate_is_refused(tmp_path: Path, pem: bytes) -> None:
    """When it is named, not when it is needed."""
    path = tmp_path / "ca.pem"
    path.write_bytes(pem)
    assert refused({CA: str(path)}).startswith("ca.pem ")


def test_a_ca_file_that_cannot_be_read(tmp_path: Path) -> None:
    assert "cannot be read" in refused({CA: str(tmp_path / "missing.pem")})
    assert "cannot be read" in refused({CA: str(tmp_path)})


def test_a_ca_file(tmp_path: Path, authority: Authority) -> None:
    """With one certificate or several, with words around them."""
    path = tmp_path / "ca.pem"
    path.write_bytes(b"The authorities\n" + authority.pem + b"\nand another one\n" + Authority("Other").pem)
    development = from_environment({CA: str(path)}, LOCAL)
    assert development == Development({}, path)
    assert development.warning is not None


@pytest.mark.parametrize(
    "base_url",
    [
        *("https://ledger.example", "https://ledger.example:8443", "http://localhost.ledger.example"),
        "http://10.0.0.5",
        *("http://0.0.0.0:8080", "http://[::]:8080", "http://192.168.1.1", "http://127.0.0.1.ledger.example"),
        *("http://127.0.0.1@ledger.example", "http://localhost@ledger.example", "http://[fe80::1]", "http://128.0.0.1"),
        *("https://ledger.example/127.0.0.1", "https://ledger.example#localhost", "", "127.0.0.1", "http://"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", [HOSTS, CA])
def test_a_ledger_that_the_world_reaches_refuses(neighbourhood: Neighbourhood, name: str, base_url: str) -> None:
    """Either of them is enough; and what is in the files does not matter then."""
    message = refused({name: neighbourhood.environment[name]}, base_url)
    assert "unset" in message
    assert refused({name: "/missing"}, base_url) == message


@pytest.mark.parametrize(
    "base_url",
    ["http://127.0.0.1:8080", "http://localhost:8080", "http://LOCALHOST", "http://[::1]:8080", "https://127.9.9.9/"],
)
def test_a_ledger_that_only_this_machine_reaches(neighbourhood: Neighbourhood, base_url: str) -> None:
    neighbourhood.host("idv.example")
    development = from_environment(neighbourhood.environment, base_url)
    assert development == neighbourhood.development


def test_the_warning_says_what_is_not_true(tmp_path: Path, authority: Authority) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(authority.pem)
    hosts = {"idv.example": ("127.0.0.1", 8443), "host.example": ("127.0.0.1", 8443)}
    for development, count in ((Development(hosts, path), 2), (Development(hosts), 2), (Development({}, path), 0)):
        assert development.warning is not None
        assert development.warning.startswith(f"DEVELOPMENT: {count} names lead to this machine ({HOSTS})")
        assert CA in development.warning


# Of both at once


def test_a_host_of_this_machine_is_reached_under_its_name(neighbourhood: Neighbourhood) -> None:
    """On port 443 of the world, as far as the URL goes."""
    url = "https://idv.example/.well-known/did.json"
    neighbourhood.put(url, {"id": "did:web:idv.example"})
    fetcher = Fetcher("test", from_environment(neighbourhood.environment, LOCAL))
    assert asyncio.run(fetcher.fetch(url, DID)).json() == {"id": "did:web:idv.example"}
    assert neighbourhood.requests == {url: 1}
    assert neighbourhood.asked[0].headers["host"] == "idv.example"


def test_without_its_authority_tls_is_refused(neighbourhood: Neighbourhood, tmp_path: Path) -> None:
    """Names that lead here are verified like all others."""
    url = "https://idv.example/"
    neighbourhood.put(url, {})
    environment = neighbourhood.environment
    other = tmp_path / "other.pem"
    other.write_bytes(Authority().pem)
    for ca in ({}, {CA: str(other)}):
        fetcher = Fetcher("test", from_environment({HOSTS: environment[HOSTS], **ca}, LOCAL))
        with pytest.raises(NotFetched) as refusal:
            asyncio.run(fetcher.fetch(url, DID))
        assert refusal.value.code == "fetch_tls"
    assert neighbourhood.connections == 2
    assert neighbourhood.requests == {}
