"""The tables are made and changed by Alembic, from `migrations/`."""

from importlib.resources import as_file, files

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from ledger.errors import Misconfigured
from ledger.store.engine import Store
from ledger.store.rights import require_ownership


def migrate(store: Store) -> None:
    """Bring the database to the newest revision, in one transaction that other processes wait for."""
    with as_file(files("migrations")) as scripts:
        directory = ScriptDirectory(str(scripts))
        newest, known = directory.get_current_head(), {None, *(each.revision for each in directory.walk_revisions())}
        with store.read() as connection:
            if revision(connection) == newest:
                return
        with store.write() as connection, store.patient(connection):
            found = revision(connection)
            if found not in known:
                raise Misconfigured(
                    "database_outdated",
                    f"the database has revision {found}, which this version of Staylog does not know",
                )
            if found != newest:
                require_ownership(connection)
                command.upgrade(_config(str(scripts), connection), "head")


def upgrade(database_url: str) -> None:
    store = Store(database_url)
    try:
        migrate(store)
    finally:
        store.close()


def revision(connection: Connection) -> str | None:
    """What the database has; None when it has no tables of ours."""
    return MigrationContext.configure(connection).get_current_revision()


def require_newest(store: Store) -> None:
    with as_file(files("migrations")) as scripts, store.read() as connection:
        newest = ScriptDirectory(str(scripts)).get_current_head()
        found = revision(connection)
    if found is None:
        raise Misconfigured("not_initialised", "there is no ledger in this database: run `staylog init`")
    if found != newest:
        raise Misconfigured(
            "database_outdated",
            f"the database has revision {found}, this version of Staylog needs {newest}: run `staylog serve` once",
        )


def _config(scripts: str, connection: Connection) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", scripts.replace("%", "%%"))
    return config
