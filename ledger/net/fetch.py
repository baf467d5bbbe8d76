"""The one fetcher (design: one guarded fetcher): https, JSON, bounded in time and size, at addresses that were checked.

The address that is checked is the one that is connected: what the resolver said is looked at, and each socket is made
for an address that is looked at again, so that no second answer of the resolver comes between. There are no proxies, no
cookies, no `.netrc`.

A thread of its own does it for the whole process: strangers may send what takes long to read, and nobody who takes in
reviews should wait for that.
"""

import re
import socket
import ssl
from asyncio import Semaphore, run_coroutine_threadsafe, timeout, wrap_future
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import cached_property, partial
from importlib.metadata import version
from threading import Event
from typing import Any, NamedTuple
from urllib.parse import urljoin

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector, TraceConfig
from aiohttp.client_exceptions import ClientConnectorDNSError
from yarl import URL

from ledger import metrics
from ledger.canon import strict_json
from ledger.errors import BadJSON, NotAccepted, NotFetched
from ledger.net.development import NONE, Development
from ledger.net.guard import Target, check_url, is_public, require_public
from ledger.net.profiles import KIB, Profile
from ledger.net.wire import CountedSocket, Resolver, hang_up, net_loop, system_lookup

# Of one kind to one host at once, whoever asks, and how many more may wait: nobody is to be flooded by way of us, and
# what strangers name does not hold up what is asked of an issuer.
MOST_PER_HOST, MOST_WAITING = 4, 64
# Documents have many types that are JSON; what came is looked at in any case.
ACCEPT = "application/json, */*;q=0.1"

_JSON = re.compile(r"application/(?:[a-z0-9.-]+\+)*json|application/vc", re.IGNORECASE)
_MAX_AGE = re.compile(r"max-age=\"?([0-9]{1,9})")
_SECONDS = re.compile(r"[0-9]{1,9}")

# The addresses of a name.
Lookup = Callable[[str], Awaitable[list[str]]]


def user_agent(base_url: str) -> str:
    """How a ledger calls itself, with where to learn more of it."""
    return f"staylog/{version('staylog')} (+{base_url})"


class Question(NamedTuple):
    """What is posted, if anything, and the headers that go with it."""

    body: bytes | None
    headers: Mapping[str, str]


class Fetched(NamedTuple):
    """What came: its bytes, where they came from in the end, and for how long they may be kept, if that was said."""

    url: str
    body: bytes
    max_age: int | None

    def json(self) -> Any:
        try:
            return strict_json.loads(self.body)
        except BadJSON as error:
            raise NotFetched("fetch_not_json", f"{self.url} cannot be read ({error.code}): {error.message}") from None


class Fetcher:
    """Asks others, for whichever event loop. `agent` is how it calls itself."""

    def __init__(self, agent: str, development: Development = NONE, lookup: Lookup | None = None) -> None:
        self._agent = agent
        self.development = development
        self._lookup = lookup
        self._hosts: dict[tuple[str, str], tuple[Semaphore, int]] = {}

    async def fetch(
        self, url: str, profile: Profile, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Fetched:
        """What is at `url`; `body`, which is JSON, is posted there, with `headers` of its own. NotAccepted when it may
        not be asked, NotFetched when nothing came that is of use."""
        try:
            work = self._fetch(check_url(url), profile, Question(body, headers or {}))
            fetched = await wrap_future(run_coroutine_threadsafe(work, net_loop()))
        except (NotAccepted, NotFetched) as refusal:
            metrics.FETCHES.labels(profile.name, refusal.code).inc()
            raise
        metrics.FETCHES.labels(profile.name, "fetched").inc()
        return fetched

    async def _fetch(self, target: Target, profile: Profile, question: Question) -> Fetched:
        asked = target.url
        try:
            async with timeout(profile.seconds), self._place(target.host, profile):
                for _ in range(profile.redirects + 1):
                    answer = await self._ask(target, profile, question)
                    if isinstance(answer, Fetched):
                        return answer
                    if answer is None:
                        break
                    target = answer
                raise NotFetched("fetch_redirected", f"{asked} leads elsewhere, and is not followed there")
        except TimeoutError:
            message = f"{asked} did not answer within {profile.seconds:g} seconds"
            raise NotFetched("fetch_timeout", message) from None
        except ClientConnectorDNSError:
            raise NotFetched("fetch_unresolved", f"the name {target.host} is not known") from None
        except (ssl.SSLError, ssl.CertificateError) as error:
            raise NotFetched(
                "fetch_tls", f"{target.host} does not show that it is {target.host}: {_why(error)}"
            ) from None
        except (ClientError, OSError) as error:
            raise NotFetched("fetch_unreachable", f"{asked} could not be asked: {_why_not(error)}") from None

    async def _ask(self, target: Target, profile: Profile, question: Question) -> Fetched | Target | None:
        """The answer, or where it leads within its origin; None when that is elsewhere."""
        body = question.body
        headers = {"User-Agent": self._agent, "Accept": ACCEPT, "Accept-Encoding": "identity"}
        if body is not None:
            headers |= {"Content-Type": "application/json", **question.headers}
        async with self._session(target, profile) as session:
            # As it was checked: nothing in it is spelled in another way on the way out.
            url = URL(target.url, encoded=True)
            method = "GET" if body is None else "POST"
            async with session.request(method, url, data=body, headers=headers, allow_redirects=False) as response:
                if 300 <= response.status < 400:
                    return _redirected(target, response)
                if response.status != 200:
                    raise NotFetched(
                        "fetch_status",
                        f"{target.url} answered {response.status}",
                        status=response.status,
                        retry_after=_seconds(response),
                    )
                _check_head(target, response, profile)
                return Fetched(target.url, await _read(target, response, profile), _max_age(response))

    @asynccontextmanager
    async def _session(self, target: Target, profile: Profile) -> AsyncIterator[ClientSession]:
        """One for each question: nothing is left over from the last one."""
        made: list[CountedSocket] = []
        asked = Event()

        async def ask(*_: Any) -> None:
            asked.set()

        def make(info: Any) -> socket.socket:
            # aiohttp would ask again on another connection when one breaks off.
            if asked.is_set():
                raise PermissionError("a host is asked once")
            made.append(self._socket(info))
            made[-1].left = profile.most_received
            return made[-1]

        connector = TCPConnector(
            ssl=self._tls,
            resolver=Resolver(partial(self._addresses, profile)),
            use_dns_cache=False,
            force_close=True,
            socket_factory=make,
        )
        trace = TraceConfig()
        trace.on_request_headers_sent.append(ask)
        try:
            async with ClientSession(
                connector=connector,
                trace_configs=[trace],
                cookie_jar=DummyCookieJar(),
                timeout=ClientTimeout(total=None),
                auto_decompress=False,
                trust_env=False,
            ) as session:
                yield session
        except (ClientError, OSError):
            if any(each.left < 0 for each in made):
                raise _too_large(target, profile) from None
            raise
        finally:
            await hang_up(made)

    @asynccontextmanager
    async def _place(self, host: str, profile: Profile) -> AsyncIterator[None]:
        """One of the few that may ask a host at once."""
        key = host, profile.name
        places, users = self._hosts.get(key) or (Semaphore(MOST_PER_HOST), 0)
        if users >= MOST_PER_HOST + MOST_WAITING:
            raise NotFetched("fetch_too_often", f"too many wait for {host} already", retry_after=1)
        self._hosts[key] = places, users + 1
        try:
            async with places:
                yield
        finally:
            places, users = self._hosts.pop(key)
            if users > 1:
                self._hosts[key] = places, users - 1

    async def _addresses(self, profile: Profile, host: str, port: int) -> list[tuple[str, int]]:
        if host in self.development.hosts:
            return [self.development.hosts[host]]
        addresses = await (self._lookup(host) if self._lookup else system_lookup(host, profile))
        if not addresses:
            raise NotFetched("fetch_unresolved", f"the name {host} has no address")
        require_public(host, addresses)
        return [(address, port) for address in addresses]

    def _socket(self, info: Any) -> CountedSocket:
        """A socket for an address, whoever says that it should be connected."""
        family, kind, protocol, _, address = info
        if not is_public(address[0]) and address[:2] not in self.development.hosts.values():
            raise PermissionError("not an address of the public internet")
        return CountedSocket(family, kind, protocol)

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        if self.development.ca is not None:
            context.load_verify_locations(self.development.ca)
        return context


def _redirected(target: Target, response: ClientResponse) -> Target | None:
    try:
        there = check_url(urljoin(target.url, response.headers["Location"]))
    except (KeyError, NotAccepted, ValueError):
        return None
    return there if there.origin == target.origin else None


def _check_head(target: Target, response: ClientResponse, profile: Profile) -> None:
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        raise NotFetched("fetch_encoded", f"{target.url} answered in a coding that was not asked for")
    kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
    if not _JSON.fullmatch(kind):
        raise NotFetched("fetch_not_json", f"{target.url} is {kind[:60] or 'of no type'!r}, not JSON")
    if (response.content_length or 0) > profile.max_bytes:
        raise _too_large(target, profile)


async def _read(target: Target, response: ClientResponse, profile: Profile) -> bytes:
    parts, size = [], 0
    async for part in response.content.iter_any():
        size += len(part)
        if size > profile.max_bytes:
            raise _too_large(target, profile)
        parts.append(part)
    return b"".join(parts)


def _too_large(target: Target, profile: Profile) -> NotFetched:
    return NotFetched("fetch_too_large", f"{target.url} has more than {profile.max_bytes // KIB} KiB")


def _max_age(response: ClientResponse) -> int | None:
    said = ", ".join(response.headers.getall("Cache-Control", ())).lower()
    if "no-store" in said or "no-cache" in said:
        return 0
    match = _MAX_AGE.search(said)
    return int(match[1]) if match else None


def _why_not(error: Exception) -> str:
    """What the system said, where it did; aiohttp's own words repeat addresses."""
    return getattr(getattr(error, "os_error", error), "strerror", None) or "the connection broke off"


def _why(error: Exception) -> str:
    """What TLS itself said, which aiohttp wraps."""
    cause = getattr(error, "certificate_error", None) or getattr(error, "os_error", error)
    return getattr(cause, "verify_message", "") or getattr(cause, "reason", "") or "TLS failed"


def _seconds(response: ClientResponse) -> int | None:
    said = response.headers.get("Retry-After", "")
    return int(said) if _SECONDS.fullmatch(said) else None
