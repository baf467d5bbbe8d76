"""What comes in and what is needed to judge it: the log, the keys, whom to trust, the time.

Whoever works at the desk is a coroutine: one thread serves them all, in which one goes on while others wait for Argon2
or for the log. Threads of their own would take each other the interpreter at every step.
"""

import hmac
import os
from asyncio import get_running_loop, wrap_future
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, TypeVar

from ledger import metrics
from ledger.canon.times import format_time
from ledger.clock import Clock
from ledger.errors import BrokenRule, Done, Outdated, Refused, StaylogError, Uncertain, Unconfirmed, Unreplicated
from ledger.identity import statements
from ledger.identity.guestref import GuestReferences, prefixed
from ledger.identity.issuers import Registries
from ledger.identity.resolution import Resolution
from ledger.identity.status import StatusLists
from ledger.keys import ServiceKeys
from ledger.log.reader import Reader
from ledger.log.sequencer import Integrated, Sequencer
from ledger.net.fetch import Fetcher
from ledger.reviews.listings import Listing, listing
from ledger.reviews.vault import Vault
from ledger.settings import service_did
from ledger.store.engine import Store
from ledger.store.limiter import Limiter
from ledger.store.rows import insert_rows
from ledger.store.tables import known
from ledger.turns import Places

T = TypeVar("T")


@dataclass(slots=True)
class Desk:
    """Where statements are handed in. `domain` is the base URL that they must be made for. `clock` raises Unavailable
    with `clock_unconfirmed` while nothing may be decided by it."""

    store: Store
    reader: Reader
    sequencer: Sequencer
    registries: Registries
    keys: ServiceKeys
    limiter: Limiter
    clock: Clock
    domain: str
    dids: Resolution
    statuses: StatusLists
    fetcher: Fetcher
    # Whether reviews are published whose hosts never answered; the policy says so.
    publishes_unanswered: bool = True
    # How many may wait for what somebody else answers.
    most_asking: int = 1000
    random: Callable[[int], bytes] = os.urandom
    references: GuestReferences = field(init=False)
    vault: Vault = field(init=False)
    _aside: ThreadPoolExecutor = field(init=False)
    _asking: Places = field(init=False)

    def __post_init__(self) -> None:
        self.references = GuestReferences(self.keys.peppers)
        self.vault = Vault(self.keys.booking, lambda size: self.random(size))
        self._asking = Places("an answer of somebody else", self.most_asking)
        # Nine may be with the canonicaliser of graphs; the tenth is told that they are.
        self._aside = ThreadPoolExecutor(10, thread_name_prefix="aside")

    def listing(self, host_did: str, listing_id: str) -> Listing:
        """What is known of a listing."""
        with self.store.read() as connection:
            return listing(connection, host_did, listing_id)

    def key(self, purpose: str, *parts: str | bytes) -> bytes:
        """By what something is known again that is not kept itself."""
        return hmac.digest(self.keys.booking, prefixed(f"staylog/{purpose}/v1", *parts), sha256)

    def person(self, host_did: str, person: tuple[str, str]) -> bytes:
        """Somebody at a host, by the oldest pepper: it never changes, and every process has it."""
        return self.references.persons(host_did, *person)[-1]

    def note(self, keys: tuple[bytes, ...], index: int) -> None:
        """That an entry is known by these, too."""
        with self.store.write() as connection:
            insert_rows(connection, known, [(key, index) for key in keys], on_conflict=" ON CONFLICT DO NOTHING")

    @contextmanager
    def signing_refusals(self, submitted: bytes) -> Iterator[None]:
        """Whoever has shown who they are gets every refusal of what they submitted, in JCS, signed: to turn somebody
        away leaves evidence."""
        try:
            yield
        except (Uncertain, Unconfirmed, Unreplicated):
            raise
        except StaylogError as reason:
            raise Refused(reason, self.refusal(submitted, reason.code)) from reason

    async def aside(self, work: Callable[[], T]) -> T:
        """What takes so long that others need not wait for it."""
        return await get_running_loop().run_in_executor(self._aside, work)

    async def asked(self, question: Awaitable[T]) -> T:
        """What somebody else answers."""
        with self._asking:
            return await question

    def is_host(self, name: str) -> bool:
        """Whether the log knows it as one."""
        return self.reader.record(name, self.reader.published.size) is not None

    async def placed(self, queued: "Future[Integrated]") -> Integrated:
        """The draft in the log; or Uncertain, when it may be there though nobody can say so."""
        try:
            return await wrap_future(queued)
        except (BrokenRule, Done, Outdated):
            raise
        except StaylogError as reason:
            raise Uncertain(reason) from reason

    def refusal(self, submitted: bytes, code: str) -> dict[str, Any]:
        """The ledger's signed word that it refused what was submitted, in JCS."""
        now = self.clock()
        said = {"type": "Refusal", "submission_sha256": sha256(submitted).hexdigest(), "code": code}
        method = f"{service_did(self.domain)}#statements"
        return statements.sign({**said, "at": format_time(now)}, self.keys.statements, method, now=now)


@contextmanager
def counted(kind: str) -> Iterator[None]:
    """Every refusal of a kind of statement in the metrics, by its code."""
    try:
        yield
    except StaylogError as refusal:
        metrics.SUBMISSIONS.labels(kind, refusal.code).inc()
        raise
