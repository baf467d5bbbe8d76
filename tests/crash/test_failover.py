"""A standby takes the primary's place: a log goes on only where that standby is known to have all that was signed."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.folder import init_folder, open_ledger
from ledger.log.databases import is_synchronous
from ledger.log.mark_file import MarkFile
from ledger.settings import Settings
from ledger.store.engine import Store
from tests.crash.service_child import ADDED, OPEN, WELL, Service
from tests.crash.test_forks import accepted, refusal, second, services
from tests.standby import Pair, pair
from tests.waiting import until


def test_a_standby_that_lags_is_refused(tmp_path: Path) -> None:
    """By the running service, by it after a restart, and by one that was stopped before the end."""
    with pair() as servers:
        settings = Settings.of(tmp_path / "data", servers.url)
        init_folder(settings)
        stopped = second(settings, tmp_path / "stopped")
        with services(settings, stopped) as (one, two):
            assert one.add() == ADDED
            until(lambda: two.newest() == one.newest())
            two.close()
            servers.caught_up()
            servers.standby.stop()
            assert one.add() == ADDED
            newest = one.newest()
            servers.fail_over()
            one.until_health("log_behind")
            assert one.add() == "log_behind"
            assert one.newest() == newest
        assert refusal(settings)[0] == "log_behind"
        code, why = refusal(stopped)
        assert code == "database_changed"
        assert "timeline 1 to 2" in why
        # The operator has compared, and knows that nothing more was signed.
        with services(replace(stopped, accepted=accepted(why))) as [two]:
            assert two.add() == ADDED


@pytest.mark.soak
def test_a_running_service_waits_for_a_word_after_a_failover_and_goes_on_by_itself(tmp_path: Path) -> None:
    """It has seen nothing that the standby lacks; only another service could have signed more."""
    with pair() as servers:
        settings = Settings.of(tmp_path / "data", servers.url)
        init_folder(settings)
        one = Service(settings)
        assert one.opened == OPEN
        assert one.add() == ADDED
        servers.caught_up()
        servers.fail_over()
        one.until_health("database_changed")
        assert one.add() == "database_changed"
        # One command with the operator's word is enough, also beside the running service.
        with closing(open_ledger(replace(settings, accepted=accepted(one.why)))):
            one.until_health(WELL)
        assert one.add() == ADDED
        one.close()


def sees_standby(servers: Pair, grant: str) -> bool | None:
    """What a user without other rights sees."""
    with servers.primary._connect("ledger") as admin:
        admin.execute(f"DROP ROLE IF EXISTS plain; CREATE ROLE plain LOGIN; {grant}".encode())
    with closing(Store(servers.url.replace("postgres@", "plain@"))) as store, store.read() as connection:
        return is_synchronous(connection)


def test_a_synchronous_standby_takes_over_without_a_word(tmp_path: Path) -> None:
    with pair() as servers:
        settings = Settings.of(tmp_path / "data", servers.url)
        init_folder(settings)
        stopped = second(settings, tmp_path / "stopped")
        with services(stopped):
            pass
        servers.require_synchronous()
        with services(settings) as [one]:
            assert [one.add(), one.add()] == [ADDED, ADDED]
            assert [sees_standby(servers, role) for role in ("", "GRANT pg_monitor TO plain")] == [None, True]
            kept = MarkFile(settings.mark).database()
            assert kept is not None
            assert kept.synchronous_at is not None
            servers.fail_over()
            assert one.add() == ADDED
            now = MarkFile(settings.mark).database()
            assert now is not None
            assert (now.timeline, now.synchronous_at) == (2, None)
            # The thread that follows the log may still have the answer of a connection that was lost.
            one.until_health(WELL)
        # A service that has not seen the standby synchronous cannot know what it has.
        code, why = refusal(stopped)
        assert code == "database_changed"
        assert "no standby was seen to be synchronous" in why
