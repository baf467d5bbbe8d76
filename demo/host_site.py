"""Hosts that have domains: their DID documents and their booking endpoints, over TLS.

The domains are made up. In this demo their names lead to this machine, and an authority of its own certifies them: what
is verified so is true for nobody else. All else is as in the world: the ledger resolves, connects, verifies and signs.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from demo.actors import Host, Stay
from demo.listener import Listener
from demo.service import HOST
from ledger.canon.times import format_time
from ledger.net.development import CA, HOSTS, Development
from ledger.reviews.hostkit import Booking, BookingVerifier, Message, Receive, Scope, Send

PEM = serialization.Encoding.PEM
_DAYS = timedelta(days=30)


class HostSite:
    """One server for the domains of several hosts: not started yet, and ended by `close`. `asked` has the bodies of all
    questions about bookings, by domain. A host whose endpoint was not opened does not answer there."""

    def __init__(self, folder: Path, hosts: Sequence[Host]) -> None:
        self.asked: dict[str, list[bytes]] = defaultdict(list)
        self._documents = {host.domain: host.document() for host in hosts}
        self._endpoints: dict[str, BookingVerifier] = {}
        self._listener = Listener()
        self._folder, self._names, self._authority = folder, folder / "names", folder / "authority.pem"
        self.development = Development(dict.fromkeys(self._documents, (HOST, self._listener.port)), self._authority)

    def start(self) -> None:
        self._folder.mkdir()
        self._names.write_text("".join(f"{name} {HOST}:{self._listener.port}\n" for name in self._documents))
        certificate = self._folder / "certificate.pem"
        _certify(self._documents, self._authority, certificate)
        self._listener.start(self, certificate=certificate)

    @property
    def environment(self) -> dict[str, str]:
        """For a ledger in a process of its own."""
        return {HOSTS: str(self._names), CA: str(self._authority)}

    def open(self, host: Host, stays: Sequence[Stay], ledger: str, ledger_key: str) -> None:
        """Mount the kit for hosts, over the host's books: these stays, and no other."""
        books = {stay.reference: _booking(stay) for stay in stays}
        self._endpoints[host.domain] = BookingVerifier(
            host.booking_endpoint, host.did, host.method, host.key, books.get, {ledger: ledger_key}
        )

    def close(self) -> None:
        self._listener.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        domain = dict(scope["headers"])[b"host"].decode()
        if scope["path"] == "/.well-known/did.json":
            await _send(send, 200, self._documents[domain])
            return
        body = await _body(receive)
        self.asked[domain].append(body)
        if domain not in self._endpoints:
            await _send(send, 503, {})
            return

        async def again() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        await self._endpoints[domain](scope, again, send)


def _booking(stay: Stay) -> Booking:
    days = (stay.members["check_in"], stay.members["check_out"])
    return Booking(stay.host.listing, stay.guest.did, *days, "confirmed", format_time(stay.booked))


async def _body(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    return body


async def _send(send: Send, status: int, body: Mapping[str, Any]) -> None:
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})


def _certify(names: Iterable[str], authority: Path, certificate: Path) -> None:
    """A new authority, and a certificate by it for all the names, with its key."""
    signer, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    root = _certificate("Authority of the demo", signer.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=None), critical=True
    )
    site = _certificate("Hosts of the demo", key.public_key()).add_extension(
        x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), critical=False
    )
    authority.write_bytes(root.sign(signer, hashes.SHA256()).public_bytes(PEM))
    secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    certificate.touch(0o600)
    certificate.write_bytes(site.sign(signer, hashes.SHA256()).public_bytes(PEM) + secret)


def _certificate(name: str, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    subject, issuer = (
        x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, each)]) for each in (name, "Authority of the demo")
    )
    return x509.CertificateBuilder(issuer, subject, key, x509.random_serial_number(), now - _DAYS, now + _DAYS)
