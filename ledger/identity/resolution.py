"""did:web (W3C CCG, did:web method): DIDs whose document is fetched, kept for five minutes, and of hosts remembered.

Whoever holds the domain holds the DID. What is signed now needs a key that is in the document now; what was signed at
booking time may have been signed by one that was in it then.
"""

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from ledger.canon import did
from ledger.clock import Clock
from ledger.errors import NotAccepted, NotFetched, StaylogError, TooMany, Unavailable
from ledger.identity.archive import KeyArchive, Remembered
from ledger.identity.did import Keys, document_url, is_offline, offline
from ledger.identity.documents import Document, read_document
from ledger.net.fetch import DID, Fetcher
from ledger.net.guard import check_url
from ledger.net.lookups import FAILURE_SECONDS, Found, Lookups, lifetime
from ledger.store.limiter import Limit, Limiter

LONGEST_SECONDS = 300
MOST_KEPT = 10_000
# A domain may hold any number of DIDs, and a stranger may name them all.
PER_DOMAIN = Limit("did/domain", 600, 3600, 600, "fetch_too_often", "one domain is asked for 600 DIDs in an hour")


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The keys of a host: those it has now, or why nobody can say, and those it was seen to have."""

    current: Keys | StaylogError
    remembered: Sequence[Remembered] = ()

    def now(self) -> Keys:
        """For what is said now."""
        if isinstance(self.current, StaylogError):
            raise self.current
        return self.current

    def at(self, method: str, created: datetime) -> list[bytes]:
        """For what was said then: the key that has the name `method` now, and those that had it around that time."""
        now = {} if isinstance(self.current, StaylogError) else self.current
        then = [each.key for each in self.remembered if each.method == method and each.covers(created)]
        return [*([now[method]] if method in now else []), *then]

    def all(self) -> set[bytes]:
        """Whenever it had them."""
        now = set() if isinstance(self.current, StaylogError) else {*self.current.values()}
        return now | {each.key for each in self.remembered}


@dataclass(slots=True)
class Resolved:
    """A document as it was at a time; whether that is in the archive."""

    document: Document
    at: datetime
    remembered: bool = False


class Resolution:
    """Resolves DIDs of every method that is known here. `archive` remembers hosts; without one nobody does."""

    def __init__(
        self, fetcher: Fetcher, clock: Clock, archive: KeyArchive | None = None, limiter: Limiter | None = None
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._archive = archive
        self._limiter = limiter
        self._documents: Lookups[str, Resolved] = Lookups(self._look_up, clock, most=MOST_KEPT)

    async def guest(self, name: str) -> Keys:
        """The keys by which a guest may say something now. They are not remembered, nor is the guest."""
        if is_offline(name):
            return offline(name)
        try:
            return (await self.resolve(name)).document.keys(self._clock())
        except NotFetched as failure:
            message, wait = _unknown(name, failure)
            raise Unavailable("guest_did_unavailable", message, retry_after=wait) from failure

    async def host(self, name: str) -> HostKeys:
        """The keys of a host, now and before. One that publishes nonsense fares no better than one that is down: both
        leave what is remembered."""
        if is_offline(name):
            return HostKeys(offline(name))
        try:
            resolved = await self.resolve(name)
        except (NotFetched, NotAccepted) as failure:
            message, wait = _unknown(name, failure)
            passing = Unavailable("host_did_unavailable", message, retry_after=wait)
            # That somebody may not be asked does not pass.
            return HostKeys(failure if failure.code == "address_not_allowed" else passing, self._recall(name))
        await self._remember(resolved)
        return HostKeys(resolved.document.keys(self._clock()), self._recall(name))

    async def resolve(self, name: str) -> Resolved:
        """The document of a did:web, at most five minutes old."""
        return await self._documents.get(did.check(name))

    async def _look_up(self, name: str) -> Found[Resolved]:
        target = check_url(document_url(name))
        if self._limiter is not None:
            try:
                self._limiter.spend(PER_DOMAIN, target.host)
            except TooMany as refusal:
                raise NotFetched("fetch_too_often", refusal.message, retry_after=refusal.retry_after) from None
        fetched = await self._fetcher.fetch(target.url, DID)
        document = read_document(fetched.json(), name)
        return Found(Resolved(document, self._clock()), lifetime(fetched.max_age, LONGEST_SECONDS))

    async def _remember(self, resolved: Resolved) -> None:
        if self._archive is not None and not resolved.remembered:
            document, at = resolved.document, resolved.at
            # It waits for whoever writes the log.
            await to_thread(self._archive.remember, document.id, document.keys(at), at)
            resolved.remembered = True

    def _recall(self, name: str) -> list[Remembered]:
        return self._archive.recall(name) if self._archive is not None else []


def _unknown(name: str, failure: NotFetched | NotAccepted) -> tuple[str, int]:
    """In words, and when to ask again."""
    wait = failure.retry_after if isinstance(failure, NotFetched) else None
    return f"the keys of {name} cannot be looked up now ({failure.code}): {failure.message}", wait or FAILURE_SECONDS
