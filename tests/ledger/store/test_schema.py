"""The migrations give the tables that the code names, and old databases are told apart from none."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from ledger.errors import Misconfigured
from ledger.store.engine import Store
from ledger.store.schema import migrate, require_newest, revision
from ledger.store.tables import metadata
from tests.running import Running

LIMITS = ("rate", "day_rate")


def test_the_migrations_give_the_tables_of_the_code(new_database_url: str) -> None:
    store = Store(new_database_url)
    with store.read() as connection:
        assert inspect(connection).get_table_names() == []
    migrate(store)
    migrate(store)
    require_tables(store)
    store.close()


def test_so_does_what_the_tests_begin_with(database_url: str) -> None:
    store = Store(database_url)
    require_tables(store)
    store.close()


def require_tables(store: Store) -> None:
    with store.read() as connection:
        # The limiter's tables are there on PostgreSQL alone.
        ours = {"compare_type": True, "include_name": lambda name, kind, _: kind != "table" or name not in LIMITS}
        context = MigrationContext.configure(connection, opts=ours)
        assert compare_metadata(context, metadata) == []
        checks = inspect(connection).get_check_constraints("log_head")
        assert [check["name"] for check in checks] == ["log_head_one"]
    require_newest(store)


def test_a_database_without_tables_or_of_another_revision_is_refused(running: Running) -> None:
    store = running.ledger.store
    with store.write() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0000'"))
    with pytest.raises(Misconfigured, match="staylog serve") as refused:
        require_newest(store)
    assert refused.value.code == "database_outdated"
    with pytest.raises(Misconfigured, match="does not know"):
        migrate(store)
    with store.write() as connection:
        connection.execute(text("DELETE FROM alembic_version"))
    with pytest.raises(Misconfigured, match="staylog init") as refused:
        require_newest(store)
    assert refused.value.code == "not_initialised"
    with store.read() as connection:
        assert revision(connection) is None


def test_large_columns_of_hashes_are_not_compressed(database_url: str) -> None:
    store = Store(database_url)
    if store.is_sqlite:
        pytest.skip("SQLite compresses nothing")
    migrate(store)
    query = "SELECT attstorage FROM pg_attribute WHERE attname = 'data' AND attrelid = 'tile'::regclass"
    with store.read() as connection:
        assert connection.execute(text(query)).scalar() == "e"
    store.close()
