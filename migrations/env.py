"""Run by Alembic: with the connection of `ledger.store.schema`, or with one of its own for the `alembic` command."""

import os

from alembic import context
from sqlalchemy import Connection

from ledger.store.engine import Store
from ledger.store.tables import metadata


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    context.run_migrations()


given = context.config.attributes.get("connection")
if given is not None:
    run(given)
else:
    store = Store(os.environ.get("STAYLOG_DATABASE_URL", "sqlite:///data/ledger.db"))
    with store.write() as own:
        run(own)
    store.close()
