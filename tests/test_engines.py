"""The engines that the tests run on are what they promise: real, fresh, durable, and able to go away."""

import os

import pytest
from sqlalchemy import create_engine, inspect, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from ledger.store.tables import metadata
from tests.engines import PostgresServer


def ask(url: str, *statements: str) -> object:
    """The first value of the last statement's answer; all statements are one transaction."""
    with create_engine(url, poolclass=NullPool).begin() as connection:
        return [connection.execute(text(statement)) for statement in statements][-1].scalar()


def test_each_engine_answers_with_its_version(database_url: str) -> None:
    if database_url.startswith("sqlite:"):
        assert str(ask(database_url, "SELECT sqlite_version()")).startswith("3.")
    else:
        assert database_url.startswith("postgresql+psycopg:")
        assert str(ask(database_url, "SELECT version()")).startswith("PostgreSQL ")


@pytest.mark.parametrize("time", [1, 2])
def test_the_tables_are_as_new_and_empty_each_time(database_url: str, time: int) -> None:
    engine = create_engine(database_url, poolclass=NullPool)
    found = inspect(engine).get_table_names()
    assert {*metadata.tables} <= {*found}
    assert "seen" not in found
    assert all(ask(database_url, f"SELECT count(*) FROM {name}") == 0 for name in metadata.tables)
    ask(database_url, "CREATE TABLE seen (time INTEGER)", f"INSERT INTO seen VALUES ({time}) RETURNING time")
    ask(database_url, "DROP TABLE entry", "INSERT INTO known VALUES ('k', 1) RETURNING 1")


def test_whoever_still_has_the_last_database_open_is_thrown_out(postgres: PostgresServer) -> None:
    url = postgres.emptied("left_open")
    with create_engine(url, poolclass=NullPool).connect() as user:
        user.execute(text("SELECT * FROM entry"))
        assert postgres.emptied("left_open") == url
        with pytest.raises(OperationalError, match="terminating connection"):
            user.execute(text("SELECT 1"))
    assert ask(url, "SELECT count(*) FROM entry") == 0
    postgres.drop("left_open")


def test_a_database_is_dropped_under_its_users(postgres: PostgresServer) -> None:
    url = postgres.url("dropped")
    with create_engine(url, poolclass=NullPool).connect() as user:
        user.execute(text("SELECT 1"))
        postgres.drop("dropped")
        with pytest.raises(OperationalError, match="terminating connection"):
            user.execute(text("SELECT 1"))
    with pytest.raises(OperationalError, match='database "dropped" does not exist'):
        ask(url, "SELECT 1")


def test_commits_are_synced_and_text_has_the_order_of_its_bytes(postgres: PostgresServer) -> None:
    url = postgres.url("settings")
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert ask(url, f"SHOW {setting}") == "on"
    assert ask(url, "SELECT string_agg(c, '' ORDER BY c) FROM unnest(ARRAY['a', 'B', 'é', 'Z']) c") == "BZaé"


@pytest.mark.parametrize("immediate", [False, True])
def test_a_restart_loses_connections_and_keeps_commits(postgres: PostgresServer, immediate: bool) -> None:
    url = postgres.url("restarted")
    ask(url, "CREATE TABLE kept (number INTEGER)", "INSERT INTO kept VALUES (7) RETURNING number")
    started = ask(url, "SELECT pg_postmaster_start_time()")
    engine = create_engine(url)
    with engine.connect() as connection:
        connection.execute(text("INSERT INTO kept VALUES (8)"))
        postgres.restart(immediate)
        with pytest.raises(OperationalError) as caught:
            connection.execute(text("SELECT 1"))
        assert caught.value.connection_invalidated
    engine.dispose()
    assert ask(url, "SELECT sum(number) FROM kept") == 7
    assert ask(url, "SELECT pg_postmaster_start_time()") != started
    last_start = postgres.log.read_text().rpartition("starting PostgreSQL")[2]
    assert ("automatic recovery in progress" in last_start) == immediate


def test_a_stopped_server_is_gone_until_it_starts(postgres: PostgresServer) -> None:
    url = postgres.url("stopped")
    postgres.stop()
    postgres.stop()
    with pytest.raises(OperationalError, match="Is the server running"):
        ask(url, "SELECT 1")
    postgres.start()
    assert ask(url, "SELECT 1") == 1


def test_the_socket_is_short_and_the_server_is_not_root(postgres: PostgresServer) -> None:
    assert len(os.fsencode(postgres.directory / ".s.PGSQL.5432")) < 100
    assert (postgres.data / "PG_VERSION").stat().st_uid != 0
    assert ask(postgres.url("network"), "SHOW listen_addresses") == ""
