"""Hosts of a developer's own machine, under the names of the world: for development, tests and the demo.

`STAYLOG_DEV_HOSTS` is a file with a line `name 127.0.0.1:port` for each; such a name leads there, as https on port 443.
`STAYLOG_DEV_CA` is a PEM file with a certificate authority that is believed besides the system's: TLS is verified as it
always is. A ledger that the world reaches refuses to run so.
"""

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from ledger.errors import Misconfigured, NotAccepted
from ledger.net.guard import check_url
from ledger.settings import is_loopback

HOSTS, CA = "STAYLOG_DEV_HOSTS", "STAYLOG_DEV_CA"

_LINE = re.compile(r"(?P<name>\S+)\s+(?P<address>127\.[0-9.]+|\[::1\]):(?P<port>[1-9][0-9]{0,4})")


@dataclass(frozen=True, slots=True)
class Development:
    """Where names lead that are this machine's, and who else may certify names."""

    hosts: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    ca: Path | None = None

    @property
    def warning(self) -> str | None:
        """What has to be said loudly, if anything is."""
        if self.ca is None and not self.hosts:
            return None
        return (
            f"DEVELOPMENT: {len(self.hosts)} names lead to this machine ({HOSTS}), and certificates are believed that "
            f"nobody else believes ({CA}). Nothing that is verified so is true for anybody else."
        )


NONE = Development()


def from_environment(environment: Mapping[str, str], base_url: str) -> Development:
    """What the environment says, if the ledger is one that only this machine reaches."""
    hosts, ca = environment.get(HOSTS), environment.get(CA)
    if not hosts and not ca:
        return NONE
    if not is_loopback(base_url):
        raise Misconfigured(
            "development_refused",
            f"{HOSTS} and {CA} are for a developer's own machine, and {base_url} is not: unset them",
        )
    return Development(_read_hosts(Path(hosts)) if hosts else {}, _check_ca(Path(ca)) if ca else None)


def _read_hosts(path: Path) -> dict[str, tuple[str, int]]:
    hosts: dict[str, tuple[str, int]] = {}
    for number, line in enumerate(_text(path).splitlines(), 1):
        stated = line.partition("#")[0].strip()
        if not stated:
            continue
        match = _LINE.fullmatch(stated)
        try:
            if match is None or int(match["port"]) > 65535:
                raise ValueError
            hosts[check_url(f"https://{match['name']}/").host] = _address(match["address"]), int(match["port"])
        except (ValueError, NotAccepted):
            raise Misconfigured(
                "development_refused",
                f"{path.name}, line {number}: a name and an address of this machine expected, as "
                "idv.example 127.0.0.1:8443",
            ) from None
    return hosts


def _address(text: str) -> str:
    return str(ip_address(text.strip("[]")))


def _check_ca(path: Path) -> Path:
    try:
        # Where there is nothing in the file, something that is no certificate.
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=_text(path) or " ")
    except ssl.SSLError:
        raise Misconfigured("development_refused", f"{path.name} has no certificate in PEM") from None
    return path


def _text(path: Path) -> str:
    try:
        return path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured("development_refused", f"{path.name} cannot be read: {error}") from None
