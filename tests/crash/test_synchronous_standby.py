"""A COMMIT that waits for a synchronous standby which is not there: it is never cancelled by us, and one that others
cancel, which PostgreSQL answers with success and a warning, is not acknowledged."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from time import sleep
from typing import Any

import psycopg
import pytest
from sqlalchemy import make_url

from ledger.errors import Halted, Unavailable, Unconfirmed, Unreplicated
from ledger.folder import Ledger, init_folder, open_ledger
from ledger.log.drafts import Draft
from ledger.log.mark_file import MarkFile
from ledger.log.sequencer import Integrated, Sequencer
from ledger.settings import Settings
from ledger.store.write_probe import WriteProbe
from tests.crash.child import Ack
from tests.crash.harness import examine
from tests.engines import PostgresServer
from tests.running import Writer
from tests.waiting import until

# In the midst of a COMMIT, and cancelled there.
CANCEL = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND datname = 'synchronous'"


@pytest.fixture
def settings(tmp_path: Path, postgres: PostgresServer) -> Iterator[Settings]:
    made = Settings.of(tmp_path / "data", postgres.url("synchronous"))
    init_folder(made)
    yield replace(made, database_deadline=1)
    postgres.drop("synchronous")


@contextmanager
def administrator(settings: Settings) -> Iterator[psycopg.Connection[Any]]:
    url = make_url(settings.database_url)
    with psycopg.connect(host=str(url.query["host"]), user="postgres", dbname="postgres", autocommit=True) as admin:
        yield admin


@contextmanager
def without_standby(settings: Settings) -> Iterator[psycopg.Connection[Any]]:
    """Every COMMIT waits for a standby that does not exist."""
    with administrator(settings) as admin:
        admin.execute("ALTER SYSTEM SET synchronous_standby_names = 'absent'")
        admin.execute("SELECT pg_reload_conf()")
        until(lambda: value(admin, "SHOW synchronous_standby_names") == "absent")
        try:
            yield admin
        finally:
            # Another connection: the server may have been started again.
            with administrator(settings) as admin:
                admin.execute("ALTER SYSTEM RESET synchronous_standby_names")
                admin.execute("SELECT pg_reload_conf()")
                until(lambda: value(admin, "SHOW synchronous_standby_names") == "")


def value(connection: psycopg.Connection[Any], query: str) -> Any:
    row = connection.execute(query.encode()).fetchone()
    return row and row[0]


def keyed(writer: Writer) -> Draft:
    return replace(writer.review(), key=writer.random.randbytes(16))


def test_a_commit_that_waits_is_left_alone_and_found_later(settings: Settings, writer: Writer) -> None:
    """Even where the database has a statement_timeout, by which the server would cancel it."""
    with administrator(settings) as admin:
        admin.execute("ALTER DATABASE synchronous SET statement_timeout = '100ms'")
    draft = keyed(writer)
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.start()
        with without_standby(settings) as admin:
            refused = ledger.sequencer.submit(draft).exception(60)
            assert isinstance(refused, Unconfirmed)
            assert refused.code == "storage_unavailable"
            assert value(admin, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'") > 0
            # It holds the lock: others are told so, and nothing is signed.
            later = ledger.sequencer.submit(draft).exception(60)
            assert isinstance(later, Unavailable)
            assert ledger.health.reason() is not None
            assert ledger.reader.refresh().size == 2
        done = retried(ledger.sequencer, draft)
        assert done.repeated
        assert ledger.health.reason() is None
        assert ledger.sequencer.halted is None
        assert examine(ledger, [Ack.of(done)]) == done.published.size == 4


def can_be_read(ledger: Ledger) -> bool:
    try:
        ledger.reader.refresh()
    except Unavailable:
        return False
    return True


def retried(sequencer: Sequencer, draft: Draft) -> Integrated:
    for _ in range(100):
        future = sequencer.submit(draft)
        if future.exception(60) is None:
            return future.result()
        sleep(0.1)
    raise AssertionError("it is refused again and again")


def test_a_cancelled_commit_halts_the_log(settings: Settings, writer: Writer) -> None:
    """Nothing is acknowledged or signed until the service is started again."""
    draft, settings = keyed(writer), replace(settings, database_deadline=60)
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.start()
        with without_standby(settings) as admin:
            waiting = ledger.sequencer.submit(draft)
            until(lambda: bool(value(admin, CANCEL)))
            refused = waiting.exception(60)
        assert isinstance(refused, Unreplicated)
        assert refused.code == "commit_not_replicated"
        assert ledger.sequencer.halted is not None
        reason = ledger.health.reason()
        assert reason is not None
        assert reason.code == "commit_not_replicated"
        assert ledger.reader.refresh().size == 2
        with pytest.raises(Halted), ledger.store.write():
            pass
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.start()
        done = ledger.sequencer.submit(draft).result(60)
        assert done.repeated
        assert examine(ledger, [Ack.of(done)]) == 4


def test_what_a_restart_shows_without_the_standby_is_neither_signed_nor_acknowledged(
    settings: Settings, postgres: PostgresServer, writer: Writer
) -> None:
    """A COMMIT that waited is visible after a crash of the primary, and nothing waits for it any more."""
    draft = keyed(writer)
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.start()
        with without_standby(settings):
            for _ in range(2):
                assert isinstance(ledger.sequencer.submit(draft).exception(10), Unavailable)
                postgres.restart(immediate=True)
                until(lambda: can_be_read(ledger))
            assert isinstance(ledger.sequencer.submit(draft).exception(10), Unavailable)
            assert ledger.reader.refresh().size == 2
            mark = MarkFile(settings.mark).read()
            assert mark is not None
            assert mark.size == 2
        done = retried(ledger.sequencer, draft)
        assert examine(ledger, [Ack.of(done)]) == done.published.size == 4


def test_a_probe_that_is_cancelled_halts_too(settings: Settings) -> None:
    halted: list[Halted] = []
    with closing(open_ledger(replace(settings, database_deadline=60))) as ledger, without_standby(settings) as admin:
        probe = WriteProbe(ledger.store)
        probe.start(halted.append)
        until(lambda: bool(value(admin, CANCEL)))
        until(lambda: bool(halted))
        probe.close()
    assert [error.code for error in halted] == ["commit_not_replicated"]
