"""did:web (W3C CCG, did:web method): DIDs whose document is fetched, kept for five minutes, and of hosts remembered.

Whoever holds the domain holds the DID. What is signed now needs a key that is in the document now; what was signed at
booking time may have been signed by one that was in it then.
"""

from asyncio import Task, create_task, get_running_loop, shield
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from ledger.canon import did, multikey
from ledger.clock import Clock
from ledger.errors import BadKey, NotAccepted, NotFetched, StaylogError, TooMany, Unavailable
from ledger.identity.archive import KeyArchive, Remembered
from ledger.identity.did import Keys, document_url, is_offline, offline
from ledger.identity.documents import Document, read_document
from ledger.identity.sealing import converted
from ledger.net.fetch import Fetcher
from ledger.net.guard import check_url
from ledger.net.lookups import FAILURE_SECONDS, Found, Lookups, lifetime
from ledger.net.profiles import DID
from ledger.store.limiter import HOUR, Limit, Limiter

LONGEST_SECONDS = 300
MOST_KEPT = 10_000
# A domain may hold any number of DIDs, and a stranger may name them all. Those that were seen before are not counted.
NEW_PER_DOMAIN = Limit("did/domain", 600, HOUR, 600, "fetch_too_often", "one domain is asked for 600 new DIDs an hour")


@dataclass(slots=True)
class Resolved:
    """A document as it was at a time; whether that is in the archive, and who is putting it there."""

    document: Document
    at: datetime
    remembered: bool = False
    remembering: "Task[None] | None" = None


@dataclass(frozen=True, slots=True)
class HostKeys:
    """The keys of a host: those it has now, or why nobody can say, and those it was seen to have."""

    current: Keys | StaylogError
    remembered: Sequence[Remembered] = ()
    # Where the ones of now are from, if they had to be looked up.
    resolved: Resolved | None = None
    # Those of now to which something may be sealed.
    agreements: Keys = field(default_factory=dict)

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

    def shares(self, keys: Iterable[bytes]) -> bool:
        """Whether it has one of these keys, or had it."""
        others = {multikey.encode(key) for key in keys}
        now = () if isinstance(self.current, StaylogError) else self.current.values()
        return not others.isdisjoint([*map(multikey.encode, now), *(each.multikey for each in self.remembered)])

    def sealing(self) -> tuple[str, bytes] | None:
        """To which key private words are sealed, by the name of its method: the first that is there for such, else the
        first by which the host signs, converted. None if there is neither, or nobody can say."""
        if isinstance(self.current, StaylogError):
            return None
        for method, key in self.agreements.items():
            return method, key
        for method, key in self.current.items():
            with suppress(BadKey):
                return method, converted(key)
        return None


class Resolution:
    """Resolves DIDs of every method that is known here. `archive` remembers hosts; without one nobody does."""

    def __init__(
        self, fetcher: Fetcher, clock: Clock, archive: KeyArchive | None = None, limiter: Limiter | None = None
    ) -> None:
        self._fetcher = fetcher
        self._clock = clock
        self._archive = archive
        self._limiter = limiter
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="archive")
        self._documents: Lookups[tuple[str, bool], Resolved] = Lookups(self._look_up, clock, most=MOST_KEPT)

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
            resolved = await self.resolve(name, counted=True)
        except (NotFetched, NotAccepted) as failure:
            message, wait = _unknown(name, failure)
            passing = Unavailable("host_did_unavailable", message, retry_after=wait)
            if failure.code == "fetch_too_often":
                # That we ask too much of its domain is not the host's doing.
                passing = Unavailable("busy", message, retry_after=wait)
            # That somebody may not be asked does not pass.
            return HostKeys(failure if failure.code == "address_not_allowed" else passing, self._recall(name))
        document, now = resolved.document, self._clock()
        return HostKeys(document.keys(now), self._recall(name), resolved, document.agreement_keys(now))

    async def remember(self, keys: HostKeys) -> None:
        """What was seen of a host, once for each time that it was fetched. For who has shown to be one: anybody may
        call a guest a host."""
        resolved = keys.resolved
        if self._archive is None or resolved is None or resolved.remembered:
            return
        if resolved.remembering is None:
            resolved.remembering = create_task(self._remember(self._archive, resolved))
        await shield(resolved.remembering)

    async def _remember(self, archive: KeyArchive, resolved: Resolved) -> None:
        document, at = resolved.document, resolved.at
        work = partial(archive.remember, document.id, document.keys(at), at)
        try:
            # It waits for whoever writes the log.
            await get_running_loop().run_in_executor(self._writer, work)
            resolved.remembered = True
        finally:
            resolved.remembering = None

    async def resolve(self, name: str, *, counted: bool = False) -> Resolved:
        """The document of a did:web, at most five minutes old. What a stranger names is counted; for a guest's DID an
        issuer has vouched."""
        return await self._documents.get((did.check(name), counted))

    async def _look_up(self, question: tuple[str, bool]) -> Found[Resolved]:
        name, counted = question
        target = check_url(document_url(name))
        if counted and self._limiter is not None and not self._recall(name):
            try:
                self._limiter.take(NEW_PER_DOMAIN, target.host)
            except TooMany as refusal:
                raise NotFetched("fetch_too_often", refusal.message, retry_after=refusal.retry_after) from None
        fetched = await self._fetcher.fetch(target.url, DID)
        document = read_document(fetched.json(), name)
        return Found(Resolved(document, self._clock()), lifetime(fetched.max_age, LONGEST_SECONDS))

    def _recall(self, name: str) -> list[Remembered]:
        return self._archive.recall(name) if self._archive is not None else []


def _unknown(name: str, failure: NotFetched | NotAccepted) -> tuple[str, int]:
    """In words, and when to ask again."""
    wait = failure.retry_after if isinstance(failure, NotFetched) else None
    return f"the keys of {name} cannot be looked up now ({failure.code}): {failure.message}", wait or FAILURE_SECONDS
