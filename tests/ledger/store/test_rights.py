"""What a role needs is checked before it is needed, named, and enough."""

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from ledger.errors import Misconfigured, Unavailable
from ledger.folder import init_folder, open_ledger
from ledger.settings import Settings
from ledger.store.engine import Store
from ledger.store.rights import NEEDED, require_rights
from ledger.store.rows import run
from ledger.store.schema import migrate, upgrade
from ledger.store.scrub import ERASED, MOST_REWRITTEN
from ledger.store.write_probe import WriteProbe
from tests.engines import PostgresServer
from tests.running import Writer

ROLE = "staylog_service"
PAIRS = [(right, table) for right, tables in NEEDED.items() for table in tables]


class Served:
    """A database whose tables `postgres` owns, and a role with the rights that the operator's guide grants."""

    def __init__(self, postgres: PostgresServer) -> None:
        self.owner = postgres.url("granted")
        self.url = self.owner.replace("postgres@", f"{ROLE}@")
        upgrade(self.owner)
        self.admin: psycopg.Connection[Any] = postgres._connect("granted")
        self.execute(f"DROP ROLE IF EXISTS {ROLE}")
        self.execute(f"CREATE ROLE {ROLE} LOGIN")
        guide = (Path(__file__).parents[3] / "docs" / "guides" / "operator.md").read_text("utf-8")
        for statement in re.findall(r"^    (GRANT .*);$", guide, re.MULTILINE):
            self.execute(statement)

    def execute(self, statement: str) -> None:
        self.admin.execute(statement.encode())


@pytest.fixture(scope="module")
def served(postgres: PostgresServer) -> Iterator[Served]:
    made = Served(postgres)
    yield made
    made.admin.close()
    postgres.drop("granted")


def refused(store: Store) -> Misconfigured:
    with pytest.raises(Misconfigured) as found:
        require_rights(store)
    return found.value


def test_names_missing_rights_with_their_grants(served: Served) -> None:
    with closing(Store(served.url)) as store:
        require_rights(store)
        for right, table in PAIRS:
            served.execute(f"REVOKE {right} ON {table} FROM {ROLE}")
            error = refused(store)
            assert error.code == "database_rights_missing"
            assert f"lacks {right} on {table}." in error.message
            statement = error.message.rpartition("owner: ")[2]
            assert statement == f"GRANT {right} ON {table} TO {ROLE}"
            served.execute(statement)
        require_rights(store)


def test_these_rights_are_enough_for_a_ledger(served: Served, tmp_path: Path, writer: Writer) -> None:
    """Made by the owner, kept by the service's role: entries, redactions, erasing, vacuum, and the probe of /health."""
    init_folder(Settings.of(tmp_path / "data", served.owner))
    with closing(open_ledger(Settings.of(tmp_path / "data", served.url))) as ledger:
        [review] = ledger.sequencer.append([writer.review(level="unconfirmed")])
        ledger.sequencer.append([writer.upgrade(review), writer.redaction(review)])
        for table in ERASED:
            with ledger.store.erase(table) as connection:
                run(connection, f"DELETE FROM {table}")
        assert ledger.store.scrub("entry", *ERASED, rewrite=MOST_REWRITTEN)
        ledger.probe.probe()
        ledger.adopt_policy()


def test_a_right_that_is_taken_away_later_is_unavailable(served: Served) -> None:
    with closing(Store(served.url)) as store:
        served.execute(f"REVOKE INSERT ON tile FROM {ROLE}")
        with pytest.raises(Unavailable) as found, store.write() as connection:
            run(connection, "INSERT INTO tile (id, data) VALUES (1, ?)", (b"x",))
        assert found.value.code == "storage_unavailable"
        assert "right" in found.value.message
        served.execute(f"GRANT INSERT ON tile TO {ROLE}")


def test_health_knows_of_a_missing_right_without_a_submission(served: Served) -> None:
    """Whatever the right; the probe's own row needs few of them."""
    with closing(Store(served.url)) as store:
        probe = WriteProbe(store)
        served.execute(f"REVOKE INSERT ON entry FROM {ROLE}")
        with pytest.raises(Unavailable):
            probe.probe()
        reason = store.health.reason()
        assert reason is not None
        assert reason.code == "storage_unavailable"
        served.execute(f"GRANT INSERT ON entry TO {ROLE}")
        probe.probe()
        assert store.health.reason() is None


def test_tables_are_changed_by_their_owner_alone(served: Served) -> None:
    served.execute("UPDATE alembic_version SET version_num = '8'")
    with closing(Store(served.url)) as store:
        for grant, said in (("", "GRANT CREATE ON SCHEMA public TO"), ("GRANT CREATE", "does not own")):
            if grant:
                served.execute(f"{grant} ON SCHEMA public TO {ROLE}")
            with pytest.raises(Misconfigured) as found:
                migrate(store)
            assert found.value.code == "database_rights_missing"
            assert said in found.value.message
    served.execute(f"REVOKE CREATE ON SCHEMA public FROM {ROLE}")
    served.execute("UPDATE alembic_version SET version_num = '9'")


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_rejects_a_database_that_is_not_utf8(postgres: PostgresServer, encoding: str) -> None:
    postgres.drop("encoded")
    with postgres._connect("postgres") as admin:
        admin.execute(f"CREATE DATABASE encoded ENCODING '{encoding}' TEMPLATE template0".encode())
    with closing(Store(postgres._url("encoded"))) as store:
        with pytest.raises(Misconfigured, match=f"the encoding {encoding}") as found:
            migrate(store)
        assert found.value.code == "database_unsuitable"
    postgres.drop("encoded")
