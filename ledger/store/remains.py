"""Which files may still have what was erased from a table, and until when, after `Store.scrub`."""

from dataclasses import dataclass

from sqlalchemy import Connection

from ledger.store.engine import Store
from ledger.store.rows import run
from ledger.store.scrub import MOST_REWRITTEN, has_at_most

_FILES = (
    "SELECT pg_relation_filepath(c.oid), pg_relation_filepath(c.reltoastrelid) FROM pg_class c "
    "WHERE c.oid = to_regclass(?)"
)
_WAL = "SELECT pg_walfile_name(pg_current_wal_insert_lsn()), current_setting('max_wal_size')"


@dataclass(frozen=True, slots=True)
class Remains:
    where: str
    until: str


def remains_of(store: Store, table: str, *, scrubbed: bool) -> list[Remains]:
    """Besides backups and copies elsewhere. `scrubbed` is what `Store.scrub` returned, with MOST_REWRITTEN for
    PostgreSQL."""
    if store.is_sqlite:
        name = f"{(store.url.database or '').rpartition('/')[2]}-wal"
        until = "a running service empties it, which it tries every hour, or until the last one stops"
        return [] if scrubbed else [Remains(name, until)]
    with store.read() as connection:
        return [*_in_tables(connection, table, scrubbed=scrubbed), *_in_wal(connection)]


def _in_tables(connection: Connection, table: str, *, scrubbed: bool) -> list[Remains]:
    [(own, toast)] = run(connection, _FILES, (table,))
    if not scrubbed:
        until = f"nothing reads an older state any more, and then VACUUM (FULL) {table}"
    elif has_at_most(connection, table, MOST_REWRITTEN):
        return []
    else:
        until = f"it is used again, or VACUUM (FULL) {table} is run at a quiet hour, when the service need not write"
    return [Remains(f"free space in {own}" + (f" and {toast}" if toast else ""), until)]


def _in_wal(connection: Connection) -> list[Remains]:
    [(segment, size)] = run(connection, _WAL)
    return [
        Remains(
            f"pg_wal/{segment} and older files beside it",
            f"the server has deleted or overwritten them: after some checkpoints, with at most {size} written",
        ),
        Remains("the same files of standbys, and archives of them", "they have replayed it, and you delete them"),
    ]
