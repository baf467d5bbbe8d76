"""The world outside, on this machine: hosts under the names of the world, with TLS and certificates of a test authority.

Every connection and every request is real, and counted where it arrives.
"""

import asyncio
import json
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Thread
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from ledger.net.development import Development

JSON = "application/json"
PEM = serialization.Encoding.PEM


@dataclass(frozen=True)
class Request:
    """What was asked of whom: `url` is as the client meant it, on port 443."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes


# Answers in its own way: writes whatever it likes, whenever it likes.
Handler = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]


class Authority:
    """Certifies any name, well or badly."""

    def __init__(self, name: str = "Staylog test authority") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self.certificate = self._sign(self._name, self._key, authority=True)

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(PEM)

    def context(self, name: str, *, expired: bool = False) -> ssl.SSLContext:
        """A server's context with a certificate for `name`."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name[:64])])
        certificate = self._sign(subject, key, names=[name], expired=expired)
        secret = key.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with _file(certificate.public_bytes(PEM) + secret) as path:
            context.load_cert_chain(path)
        return context

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        *,
        names: list[str] | None = None,
        authority: bool = False,
        expired: bool = False,
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        ends = now - timedelta(days=1) if expired else now + timedelta(days=30)
        made = x509.CertificateBuilder(
            self._name, subject, key.public_key(), x509.random_serial_number(), now - timedelta(days=9), ends
        ).add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        if names:
            made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName(name) for name in names]), False)
        return made.sign(self._key, hashes.SHA256())


@contextmanager
def _file(data: bytes) -> Iterator[str]:
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file.name


@dataclass
class Neighbourhood:
    """Hosts that listen at one port of this machine; each name has its own certificate. `development` leads there."""

    folder: Path
    authority: Authority = field(default_factory=Authority)
    # By URL: how often it was asked for.
    requests: Counter[str] = field(default_factory=Counter)
    # All that were asked, in their order.
    asked: list[Request] = field(default_factory=list)
    # TCP connections, whatever became of them.
    connections: int = 0

    def __post_init__(self) -> None:
        self._answers: dict[str, Handler] = {}
        self._houses: dict[str, Handler] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._hosts: dict[str, tuple[str, int]] = {}
        ca = self.folder / "test-authority.pem"
        ca.write_bytes(self.authority.pem)
        self.development = Development(self._hosts, ca)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="neighbourhood", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        self.port: int = self._server.sockets[0].getsockname()[1]

    # What there is

    def host(self, name: str, context: ssl.SSLContext | None = None) -> None:
        """A host of this name, with a right certificate unless it has another one."""
        self._contexts[name] = context or self._contexts.get(name) or self.authority.context(name)
        self._hosts[name] = ("127.0.0.1", self.port)

    def put(
        self, url: str, value: Any, *, status: int = 200, media_type: str = JSON, delay: float = 0, **headers: str
    ) -> None:
        """`value`, as JSON unless it is bytes, at a URL, whose host is there from then on."""
        body = value if isinstance(value, bytes) else json.dumps(value).encode()

        async def answer(request: Request, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(delay)
            writer.write(response(body, status, media_type, **headers))

        self.handle(url, answer)

    def handle(self, url: str, handler: Handler) -> None:
        self.host(url.split("/")[2])
        self._answers[url] = handler

    def house(self, name: str, handler: Handler) -> None:
        """Whatever is asked of a host that has nothing else to say."""
        self.host(name)
        self._houses[name] = handler

    def remove(self, url: str) -> None:
        """404 from now on."""
        del self._answers[url]

    def take_down(self, name: str) -> None:
        """Nobody listens there any more."""
        self._hosts[name] = ("127.0.0.1", 1)

    def bring_back(self, name: str) -> None:
        self._hosts[name] = ("127.0.0.1", self.port)

    def hosts_file(self) -> Path:
        """The development hosts file of what there is now."""
        path = self.folder / "hosts"
        path.write_text("".join(f"{name} {address}:{port}\n" for name, (address, port) in self._hosts.items()))
        return path

    @property
    def environment(self) -> dict[str, str]:
        """For a process of its own."""
        return {"STAYLOG_DEV_HOSTS": str(self.hosts_file()), "STAYLOG_DEV_CA": str(self.development.ca)}

    def close(self) -> None:
        async def stop() -> None:
            self._server.close()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    # How it is served

    async def _start(self) -> asyncio.Server:
        self._tls = self.authority.context("nobody.example")
        self._tls.sni_callback = self._choose
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    def _choose(self, connection: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
        if name is not None and name in self._contexts:
            connection.context = self._contexts[name]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A connection is counted before anybody has said anything; then TLS, and one request."""
        self.connections += 1
        with suppress(OSError, ssl.SSLError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await writer.start_tls(self._tls)
            request = await _read(reader)
            self.requests[request.url] += 1
            self.asked.append(request)
            otherwise = self._houses.get(request.url.split("/")[2], _not_found)
            await self._answers.get(request.url, otherwise)(request, writer)
            await writer.drain()
        with suppress(OSError, ssl.SSLError, RuntimeError):
            writer.close()


async def _not_found(_request: Request, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"{}", 404))


async def _read(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    method, target, _ = head[0].split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, f"https://{headers['host']}{target}", headers, body)


def response(body: bytes, status: int = 200, media_type: str = JSON, **headers: str) -> bytes:
    """The bytes of a whole response."""
    given = {"content-type": media_type, "content-length": str(len(body)), "connection": "close"}
    given |= {name.replace("_", "-"): value for name, value in headers.items()}
    lines = [f"HTTP/1.1 {status} X", *(f"{name}: {value}" for name, value in given.items() if value)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
