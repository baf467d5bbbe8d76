"""Which PostgreSQL a connection leads to, and whether its standbys have everything that it acknowledges."""

from sqlalchemy import Connection

from ledger.errors import Unavailable
from ledger.log.mark import Database
from ledger.store.rows import run

# The timeline of the checkpoint in pg_control is the old one for a moment after a failover; that of the write-ahead log
# is not.
_WHICH = (
    "SELECT system_identifier, (SELECT oid FROM pg_database WHERE datname = current_database()), "
    "to_regclass('log_head')::oid, CASE WHEN pg_is_in_recovery() THEN NULL "
    "ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END FROM pg_control_system()"
)
_STANDBYS = (
    "SELECT current_setting('synchronous_standby_names') <> '', "
    "(SELECT count(*) FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')), "
    "pg_has_role('pg_read_all_stats', 'USAGE')"
)


def which_database(connection: Connection) -> Database | None:
    """The PostgreSQL behind the connection; None for SQLite. Raises Unavailable when it is a standby."""
    if connection.dialect.name == "sqlite":
        return None
    [(system, database, table, timeline)] = run(connection, _WHICH)
    if timeline is None:
        raise Unavailable("storage_unavailable", "the database is a standby: nothing can be written to it")
    # A copy that PostgreSQL makes of a whole database (CREATE DATABASE ... TEMPLATE) keeps the numbers of its tables.
    return Database(system, int(timeline, 16), int(database) << 32 | int(table or 0))


def is_synchronous(connection: Connection) -> bool | None:
    """Whether each commit waits until a standby has it; None when the database user may not read that (pg_monitor)."""
    [(named, standbys, may_read)] = run(connection, _STANDBYS)
    return bool(named and standbys) if may_read else None if named else False
