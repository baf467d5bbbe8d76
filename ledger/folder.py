"""A ledger's folder: the keys, the mark and, unless another one is named, the database."""

import os
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from nacl.signing import SigningKey

from ledger import policy
from ledger.canon.times import format_time
from ledger.clock import Clock, elapsed_seconds, utc_now
from ledger.errors import Halted, Malformed, Misconfigured, NotStored, Unavailable
from ledger.health import Health
from ledger.identity.archive import KeyArchive
from ledger.identity.issuers import Registries, Registry
from ledger.identity.resolution import Resolution
from ledger.identity.status import StatusLists
from ledger.identity.watch import Watch
from ledger.key_fingerprints import fingerprints
from ledger.keys import ServiceKeys, read_log_key, read_service_keys, write_log_key, write_service_keys
from ledger.log.census import Census
from ledger.log.clock_guard import ClockGuard
from ledger.log.clock_watch import ClockWatch
from ledger.log.drafts import Draft, make_draft
from ledger.log.entries import parse_entry
from ledger.log.history import History
from ledger.log.integrate import begin_log
from ledger.log.mark import Mark
from ledger.log.mark_file import MarkFile, sync_folder
from ledger.log.note import ED25519, Verifier
from ledger.log.publish import Publisher
from ledger.log.reader import Reader
from ledger.log.replay import MAX_BATCH
from ledger.log.sequencer import Integrated, Sequencer
from ledger.log.shared_mark import SharedMark
from ledger.log.witness_policy import read_policy
from ledger.log.witnesses import Witnesses
from ledger.net.development import Development, from_environment
from ledger.net.fetch import Fetcher, user_agent
from ledger.reviews.desk import Desk
from ledger.reviews.worker import Worker
from ledger.settings import Settings, base_url_of, is_loopback, origin_of
from ledger.store.deadlines import Deadlines
from ledger.store.engine import Store
from ledger.store.limiter import Limiter
from ledger.store.rights import require_rights
from ledger.store.rows import newest_published, read_entries, read_head
from ledger.store.schema import migrate, require_newest
from ledger.store.setting import Setting, read_setting, write_setting
from ledger.store.write_probe import WriteProbe

_LOST = (
    "Name the right database with --database-url, or bring it back. If it is lost, that log has ended: start a new one "
    "in another folder with `staylog init --previous ORIGIN`"
)


@dataclass(slots=True)
class Ledger:
    """An open ledger. `sequencer` writes once it is started; `reader` shows what is published."""

    settings: Settings
    verifier: Verifier
    keys: ServiceKeys
    store: Store
    sequencer: Sequencer
    reader: Reader
    registries: Registries
    limiter: Limiter
    clock: Clock
    clock_watch: ClockWatch
    fetcher: Fetcher
    archive: KeyArchive
    watch: Watch
    witnesses: Witnesses
    census: Census
    health: Health
    probe: WriteProbe
    # The base URL that it was made with; `settings` have the one that it has now.
    made_as: str

    @property
    def origin(self) -> str:
        return self.verifier.name

    @property
    def version(self) -> tuple[int, int, int]:
        """Of everything that an answer about a host is made from; a note grows with each cosignature."""
        newest = self.reader.published
        return newest.size, len(newest.note), self.archive.version

    def issuers(self) -> Registry:
        """Whose credentials count, as the published log says."""
        return self.registries.newest()

    @property
    def policy(self) -> bytes:
        """The admission policy, as it is served."""
        return policy.document(publishes_unanswered=self.settings.publishes_unanswered)

    def adopt_policy(self) -> bool:
        """Adds a `policy` entry unless the log's newest one has this policy; whether it added one. While the clock is
        not confirmed that is put off, until a second after it is at the latest."""
        newest, adopted = self.reader.newest_policy(), policy.hash_of(self.policy)
        if newest is not None and newest[1] == adopted:
            return False
        # Once after the last one, though several services start at once.
        key = b"policy %d %s" % (-1 if newest is None else newest[0], adopted.encode())
        draft = make_draft("policy", {"policy": adopted}, key=key)
        try:
            return not self.sequencer.append([draft])[0].repeated
        except Unavailable as error:
            if error.code != "clock_unconfirmed":
                raise
            self.clock_watch.when_confirmed(partial(self._adopt_later, draft))
            return False

    def _adopt_later(self, draft: Draft) -> None:
        def again(done: Future[Integrated]) -> None:
            if done.exception() is not None:
                self.clock_watch.when_confirmed(partial(self._adopt_later, draft))

        self.sequencer.submit(draft).add_done_callback(again)

    def desk(self, domain: str | None = None, **options: Any) -> Desk:
        """Where reviews and responses are handed in, made for `domain`: by default the ledger's base URL."""
        domain = domain or self.settings.base_url
        log = (self.store, self.reader, self.sequencer, self.registries)
        dids = Resolution(self.fetcher, self.clock, self.archive, self.limiter)
        statuses = StatusLists(self.fetcher, self.clock, self.registries.newest)
        given = {"publishes_unanswered": self.settings.publishes_unanswered, **options}
        return Desk(*log, self.keys, self.limiter, self.confirmed_clock, domain, dids, statuses, self.fetcher, **given)

    def confirmed_clock(self) -> datetime:
        """What time it is. Raises Unavailable with `clock_unconfirmed` while the clock may not date entries."""
        return self.clock_watch.guard.require(self.reader.published.at)

    def worker(self, domain: str | None = None) -> Worker:
        """Decides on what waits. Its desk is its own: what is asked of others belongs to one event loop."""
        return Worker(self.desk(domain))

    def close(self) -> None:
        """Finish what is queued, and let go of the database."""
        self.probe.close()
        self.watch.close()
        self.census.close()
        self.witnesses.stop()
        self.sequencer.close()
        self.witnesses.close()
        self.reader.close()
        self.limiter.close()
        self.store.close()


def open_store(settings: Settings, health: Health | None = None) -> Store:
    """The ledger's database, which nothing was asked yet."""
    return Store(settings.database_url, Deadlines(settings.database_deadline), health)


def is_empty(settings: Settings) -> bool:
    """Whether there is nothing of a ledger in the folder yet."""
    return not any(path.exists() for path in (settings.log_key, settings.service_keys, settings.mark))


def init_folder(settings: Settings, *, previous: str | None = None, clock: Clock = utc_now) -> Verifier:
    """New keys and a new log of two entries, whose origin this fixes for ever. Goes on where a crash stopped it."""
    settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    mark = MarkFile(settings.mark)
    if mark.read() is not None:
        raise Misconfigured("already_initialised", "the folder has a ledger already, and it has signed; choose another")
    origin = origin_of(settings.base_url)
    store = open_store(settings)
    try:
        migrate(store)
        with store.read() as connection:
            begun, signed = read_head(connection), newest_published(connection)
        is_begun, is_kept = settings.log_key.exists(), settings.unused_log_key.exists()
        if signed is not None or begun is not None and not is_begun and not is_kept:
            raise Misconfigured("already_initialised", "the database has a log already; its key is in its own folder")
        if begun is None and is_begun:
            raise Misconfigured(
                "already_initialised",
                f"log.key has begun a log, which is not in this database. {_LOST}",
            )
        name, key = _log_key(settings, origin)
        if name != origin:
            raise Misconfigured("key_mismatch", f"the folder has the key of {name}, not of {origin}")
        if not settings.service_keys.exists():
            write_service_keys(settings.service_keys)
        if begun is None:
            adopted = policy.hash_of(policy.document(publishes_unanswered=settings.publishes_unanswered))
            genesis = {"origin": origin, "policy": adopted, "previous": previous}
            own = fingerprints(read_service_keys(settings.service_keys))
            with store.write() as connection:
                write_setting(connection, Setting(settings.base_url, own))
            begin_log(store, make_draft("genesis", genesis), format_time(clock()))
        if not is_begun:
            # From here on the key is never used for another log: its database may be lost, and its keys brought back.
            settings.unused_log_key.rename(settings.log_key)
            sync_folder(settings.data)
        history = History(mark, clock, Health(), _shared_mark(settings, origin))
        Publisher(store, origin, key, history).publish()
    finally:
        store.close()
    return Verifier(origin, ED25519, bytes(key.verify_key))


def _log_key(settings: Settings, origin: str) -> tuple[str, SigningKey]:
    for path in (settings.log_key, settings.unused_log_key):
        if path.exists():
            return read_log_key(path)
    return origin, write_log_key(settings.unused_log_key, origin)


def open_ledger(
    settings: Settings,
    *,
    clock: Clock = utc_now,
    elapsed: Callable[[], float] = elapsed_seconds,
    accept_clock: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
    max_batch: int = MAX_BATCH,
    development: Development | None = None,
    served_at: str | None = None,
) -> Ledger:
    """The ledger of a folder, checked: its key is the log's, and nothing newer than its database was ever signed, as
    far as its mark and its witnesses know. `accept_clock` is the operator's word that the clock is right now.
    `development` is by default what the environment says. `served_at` is the base URL of a ledger that was made for
    this machine alone, unless `settings` state one."""
    if is_empty(settings):
        raise Misconfigured("not_initialised", f"{settings.data.name} has no ledger: run `staylog init`")
    if settings.unused_log_key.exists() and not settings.log_key.exists():
        raise Misconfigured("not_initialised", "`staylog init` was interrupted: run it again")
    origin, key = read_log_key(settings.log_key)
    verifier = Verifier(origin, ED25519, bytes(key.verify_key))
    tlog_policy = read_policy(settings.tlog_policy, verifier)
    keys = read_service_keys(settings.service_keys)
    health = Health()
    store = open_store(settings, health)
    try:
        require_newest(store)
        require_rights(store)
        _check_origin(store, origin)
        made_as = _made_as(store, origin, keys)
        if not settings.base_url_stated:
            settings = replace(settings, base_url=(is_loopback(made_as) and served_at) or made_as)
        if development is None:
            development = from_environment(os.environ, settings.base_url)
        agent = user_agent(settings.base_url)
        shared = _shared_mark(settings, origin)
        accepted = Mark.of(settings.accepted) if settings.accepted is not None else None
        history = History(MarkFile(settings.mark), clock, health, shared, accepted, elapsed)
        publisher = Publisher(store, origin, key, history, on_step)
        # Before anything is noted down: a folder without a mark must not get one by being opened.
        publisher.check_history()
        reader = Reader(store, history.see)
        is_local = is_loopback(made_as) and is_loopback(settings.base_url)
        guard = ClockGuard(clock, elapsed, settings.clock_bound, trusted=is_local)
        if accept_clock:
            guard.accept()
        witnesses = Witnesses(store, reader, verifier, tlog_policy, clock, agent, guard)
        history.agreement = witnesses.require_agreement
        witnesses.require_agreement()
        clock_watch = ClockWatch(clock, guard, health)
        sequencer = Sequencer(
            store, publisher, clock_watch, max_batch=max_batch, on_step=on_step, on_published=reader.tell, health=health
        )
        sequencer.open()
    except BaseException:
        store.close()
        raise
    registries, archive = Registries(reader), KeyArchive(store, clock)
    limiter = Limiter(store, keys.booking, clock, may_erase=lambda: guard.is_confirmed(reader.published.at))
    fetcher = Fetcher(agent, development)
    watch = Watch(store, registries, archive, fetcher, clock)
    log = (store, sequencer, reader, registries)
    census = Census(reader)
    asks = (fetcher, archive, watch, witnesses)
    probe = WriteProbe(store)
    return Ledger(settings, verifier, keys, *log, limiter, clock, clock_watch, *asks, census, health, probe, made_as)


def _shared_mark(settings: Settings, origin: str) -> SharedMark | None:
    if settings.mark_url is None:
        return None
    return SharedMark(settings.mark_url, origin, user_agent(settings.base_url))


def _made_as(store: Store, origin: str, keys: ServiceKeys) -> str:
    """The base URL that the ledger was made with; one of an earlier version, the one that its origin comes from. Raises
    Misconfigured when `keys` are not the ledger's own, Halted when what is kept is damaged."""
    with store.read() as connection:
        found = read_setting(connection)
    scheme = found.base_url.partition("://")[0] if found else "https"
    if found and (scheme not in ("http", "https") or origin_of(found.base_url) != origin):
        raise Halted("log_damaged", "the base URL in the table setting is not the log's: bring that row back")
    known = found.service_keys if found else None
    kept = Setting(found.base_url if found else base_url_of(origin), fingerprints(keys, known))
    if kept != found:
        with store.write() as connection:
            # Another service may have been faster.
            found = read_setting(connection)
            known = found.service_keys if found else None
            kept = replace(kept, service_keys=fingerprints(keys, known))
            write_setting(connection, kept)
    return kept.base_url


def _check_origin(store: Store, origin: str) -> None:
    with store.read() as connection:
        if read_head(connection) is None:
            raise Misconfigured("not_initialised", f"the database has no log, and log.key has begun one. {_LOST}")
        try:
            genesis = parse_entry(read_entries(connection, 0, 1)[0][0])
        except (Malformed, NotStored) as error:
            raise Halted("log_damaged", f"the first entry is damaged: {error}; run `staylog fsck`") from error
    if genesis.members["origin"] != origin:
        raise Misconfigured(
            "key_mismatch", f"the key signs for {origin}, the database holds the log {genesis.members['origin']}"
        )
