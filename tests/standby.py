"""A standby of a PostgreSQL server, made by pg_basebackup, and what a failover to it looks like to services."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from sqlalchemy import URL

from tests.engines import PostgresServer, postgres_wheel
from tests.waiting import until


class Standby(PostgresServer):
    """Follows `primary` from its own `directory`, and starts at once."""

    def __init__(self, primary: PostgresServer, directory: Path) -> None:
        self.directory, self.data, self.log = directory, directory / "data", directory / "log"
        self._identity, self._bin, self._tables, self._leash = primary._identity, primary._bin, {}, None
        if self._identity:
            os.chown(directory, self._identity["user"], self._identity["group"])
        source = ("--host", str(primary.directory), "--username", "postgres", "--pgdata", str(self.data))
        self._run("pg_basebackup", *source, "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
        self.start()

    def promote(self) -> None:
        self._run("pg_ctl", "promote", "-w", "-D", str(self.data))


class Pair:
    """A primary and a standby, and one address that leads to the server that is the primary now."""

    def __init__(self, directory: Path) -> None:
        folders = [directory / name for name in ("a", "b")]
        for folder in folders:
            folder.mkdir()
        self.primary = PostgresServer(postgres_wheel(), folders[0])
        self.primary.url("ledger")
        self.standby = Standby(self.primary, folders[1])
        self._address = directory / "live"
        self._address.symlink_to(folders[0])

    @property
    def url(self) -> str:
        query = {"host": str(self._address)}
        return URL.create("postgresql+psycopg", "postgres", database="ledger", query=query).render_as_string()

    def require_synchronous(self) -> None:
        """From now on a commit waits until the standby has it."""
        with self.primary._connect("postgres") as admin:
            admin.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            admin.execute("SELECT pg_reload_conf()")
            state = "SELECT sync_state FROM pg_stat_replication"
            until(lambda: admin.execute(state).fetchall() == [("sync",)], 60)

    def caught_up(self) -> None:
        """The standby has everything that the primary has now."""
        with self.primary._connect("ledger") as admin:
            query = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn >= pg_current_wal_lsn()"
            until(lambda: admin.execute(query).fetchall() == [(1,)], 60)

    def fail_over(self) -> None:
        """The primary is gone as in a power cut, the standby takes its place and its address."""
        self.primary.stop(immediate=True)
        if self.standby._leash is None:
            self.standby.start()
        self.standby.promote()
        self._address.unlink()
        self._address.symlink_to(self.standby.directory)

    def stop(self) -> None:
        self.primary.stop(immediate=True)
        self.standby.stop(immediate=True)


@contextmanager
def pair() -> Iterator[Pair]:
    with TemporaryDirectory(prefix="staylog-", dir="/tmp") as directory:
        Path(directory).chmod(0o755)
        made = Pair(Path(directory))
        try:
            yield made
        finally:
            made.stop()
