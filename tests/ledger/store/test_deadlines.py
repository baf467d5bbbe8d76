"""Calls end at their deadline whatever the server or the network does, and refusals say what is wrong."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Any

import psycopg
import pytest
from prometheus_client import REGISTRY
from psycopg import errors
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from ledger.errors import Misconfigured, Unavailable
from ledger.store.database_url import connection_parameters, parse_database_url
from ledger.store.deadlines import PATIENT, Deadlines
from ledger.store.engine import Store
from ledger.store.refusals import refusal_of
from ledger.store.rows import run
from ledger.store.schema import migrate
from ledger.store.write_probe import WriteProbe
from tests.engines import PostgresServer
from tests.waiting import until

SHORT = Deadlines(0.8)


class Line:
    """Leads from a TCP port to a server's socket, and can be cut so that the kernel goes on acknowledging."""

    def __init__(self, server: Path) -> None:
        self._target = str(server / ".s.PGSQL.5432")
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._open = Event()
        self._open.set()
        self._ends: list[socket.socket] = []
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self._open.clear()

    def mend(self) -> None:
        self._open.set()

    def close(self) -> None:
        self._open.set()
        for end in (self._listener, *self._ends):
            with closing(end):
                pass

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self._target)
            self._ends += [near, far]
            for source, target in ((near, far), (far, near)):
                Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                self._open.wait()
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            with closing(end):
                pass


@pytest.fixture
def line(postgres: PostgresServer) -> Iterator[Line]:
    made = Line(postgres.directory)
    yield made
    made.close()


def named(postgres: PostgresServer, name: str, hosts: str) -> str:
    postgres.url(name)
    return f"postgresql://postgres@{hosts}/{name}"


def refusal(call: Any) -> Unavailable:
    with pytest.raises(Unavailable) as refused, call():
        pass
    return refused.value


def test_a_dead_connection_ends_at_its_deadline_and_others_are_refused_at_once(
    postgres: PostgresServer, line: Line
) -> None:
    store = Store(named(postgres, "dead", f"127.0.0.1:{line.port}"), SHORT)
    migrate(store)
    before = _stalls()
    with closing(store), store.read() as connection:
        line.cut()
        for least, call in ((SHORT.statement, lambda: run(connection, "SELECT 1")), (0, lambda: None)):
            began = monotonic()
            with pytest.raises((Unavailable, DBAPIError, psycopg.Error)), store.write():
                call()
            assert least * 0.9 <= monotonic() - began < 10
        assert refusal(store.read).code == "storage_unavailable"
        assert store.health.reason() is not None
        line.mend()
        until(lambda: _works(store))
        assert store.health.reason() is None
    assert _stalls() == before + 1


def _stalls() -> float:
    return REGISTRY.get_sample_value("staylog_database_stalls_total") or 0


def _works(store: Store) -> bool:
    try:
        with store.write() as connection:
            return run(connection, "SELECT 1") == [(1,)]
    except Unavailable:
        return False


def test_the_next_host_of_a_url_is_taken_when_one_does_not_answer(postgres: PostgresServer, line: Line) -> None:
    """libpq's spelling of several hosts, with and without ports."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        hosts = f"127.0.0.1:{silent.getsockname()[1]},127.0.0.1:{line.port}"
        url = named(postgres, "hosts", hosts) + "?target_session_attrs=read-write&connect_timeout=1"
        store = Store(url, SHORT)
        with closing(store), store.read() as connection:
            assert run(connection, "SELECT current_database()") == [("hosts",)]


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("postgresql://u@h1:5433,h2:5434/name?target_session_attrs=read-write", "h1,h2", "5433,5434"),
        ("postgres://u@h1,h2/name?target_session_attrs=read-write", "h1,h2", ","),
        ("postgresql+psycopg://u@[::1]:1,[::2]:2/name?target_session_attrs=read-write", "::1,::2", "1,2"),
        ("postgresql://u@/name?host=h1:5433&host=h2:5434&target_session_attrs=read-write", "h1,h2", "5433,5434"),
        ("postgresql://u@h1:5433/name?target_session_attrs=read-write", "h1", 5433),
    ],
)
def test_urls_with_several_hosts_are_read(url: str, host: str, port: Any) -> None:
    given = {"user": "u", "dbname": "name", "host": host, "target_session_attrs": "read-write"}
    assert connection_parameters(parse_database_url(url)) == given | ({"port": port} if port else {})


def test_a_password_in_a_url_with_several_hosts_is_read_and_never_shown() -> None:
    url = parse_database_url("postgresql://u:s%40cret@h1,h2/name")
    assert connection_parameters(url)["password"] == "s@cret"
    assert "s@cret" not in repr(url)


@pytest.mark.parametrize("url", ["postgresql://u@h1:x,h2/n?no_such_option=1", "mysql://h1,h2/name"])
def test_rejects_urls_that_libpq_cannot_read(url: str) -> None:
    with pytest.raises(Misconfigured) as refused:
        parse_database_url(url)
    assert refused.value.code == "settings_invalid"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ConnectionTimeout(), "storage_unavailable"),
        (errors.lookup("25006")(), "storage_unavailable"),
        (errors.lookup("42501")(), "storage_unavailable"),
        (errors.lookup("40001")(), "storage_unavailable"),
        (errors.lookup("57014")(), "storage_unavailable"),
        (errors.lookup("25P03")(), None),
        (errors.lookup("55P03")(), "busy"),
        (errors.lookup("53100")(), "storage_full"),
        (errors.lookup("42P01")(), None),
        (errors.lookup("23505")(), None),
    ],
)
def test_errors_of_postgresql_have_their_codes(error: psycopg.Error, code: str | None) -> None:
    refused = refusal_of(DBAPIError.instance(None, None, error, psycopg.Error))  # type: ignore[arg-type]
    assert (refused and refused.code) == code


def test_a_database_that_is_only_read_is_unavailable_and_told_of(database_url: str) -> None:
    """As after a failover; until it may be written again."""
    store = Store(database_url, SHORT)
    migrate(store)
    probe = WriteProbe(store)
    with closing(store):
        probe.probe()
        with _read_only(store):
            if not store.is_sqlite:
                # Its connection is lost first.
                assert _fails(probe) == "storage_unavailable"
            assert _fails(probe) == "storage_unavailable"
            reason = store.health.reason()
            assert reason is not None
            assert reason.code == "storage_unavailable"
            with store.read() as connection:
                assert run(connection, "SELECT 1") == [(1,)]
        probe.probe()
        assert store.health.reason() is None


@contextmanager
def _read_only(store: Store) -> Iterator[None]:
    if store.is_sqlite:
        _query_only(store, "ON")
        yield
        _query_only(store, "OFF")
        return
    name, host = store.url.database, str(store.url.query["host"])
    with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as admin:
        admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
        # As when the server was another one before.
        admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [name])
        try:
            yield
        finally:
            admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only'.encode())


def _query_only(store: Store, value: str) -> None:
    with store.write() as connection:
        run(connection, f"PRAGMA query_only = {value}")


def _fails(probe: WriteProbe) -> str:
    with pytest.raises(Unavailable) as refused:
        probe.probe()
    return refused.value.code


def test_the_session_has_deadlines_that_the_urls_own_come_before(postgres: PostgresServer) -> None:
    store = Store(postgres.url("sessions") + "&application_name=mine", Deadlines(4))
    with closing(store), store.read() as connection:
        shown = {
            name: run(connection, f"SHOW {name}")[0][0]
            for name in (
                "lock_timeout",
                "idle_in_transaction_session_timeout",
                "statement_timeout",
                "application_name",
            )
        }
        # It has no value on a Unix socket.
        is_set = run(connection, "SELECT source FROM pg_settings WHERE name = 'tcp_user_timeout'")
        with store.write() as writing:
            waits = run(writing, "SHOW lock_timeout")
    assert list(shown.values()) == ["1s", "10s", "0", "mine"]
    assert waits == [("3s",)]
    assert is_set == [("session",)]


@pytest.mark.parametrize(("long", "stalls"), [(0.0, 1), (60.0, 0)])
def test_refusals_to_connect_that_take_long_are_not_waited_for_by_everyone(
    monkeypatch: pytest.MonkeyPatch, long: float, stalls: int
) -> None:
    """As where a host that does not answer stands in front of one that refuses."""
    monkeypatch.setattr("ledger.store.postgresql.LONG_SECONDS", long)
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    before = _stalls()
    with closing(Store(f"postgresql://postgres@127.0.0.1:{port}/any", SHORT)) as store:
        for call in (store.read, store.write, store.read):
            assert refusal(call).code == "storage_unavailable"
    assert _stalls() == before + stalls


def test_one_connection_serves_calls_that_follow_each_other(postgres: PostgresServer) -> None:
    """So that after a failover one is made anew, and not each of the pool in turn."""
    store = Store(postgres.url("lifo"), SHORT)
    with closing(store):
        with store.read(), store.read(), store.read():
            pass
        seen = set()
        for _ in range(6):
            with store.read() as connection:
                seen |= {*run(connection, "SELECT pg_backend_pid()")}
    assert len(seen) == 1


def test_calls_behind_a_locked_table_are_refused_without_a_wait_of_their_own(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise calls that one thread makes in turn would each wait, and clients for the sum of them."""
    monkeypatch.setattr("ledger.store.engine.LOCKED_SECONDS", 60)
    store = Store(postgres.url("tables"), SHORT)
    migrate(store)
    before = _waits()
    with closing(store), postgres._connect("tables") as admin, admin.transaction():
        admin.execute("LOCK TABLE checkpoint")
        for _ in range(5):
            with pytest.raises(Unavailable) as refused, store.read() as connection:
                run(connection, "SELECT count(*) FROM checkpoint")
            assert refused.value.code == "busy"
    assert _waits() == before + 1


def _waits() -> float:
    labels = {"code": "busy", "sqlstate": "55P03"}
    return REGISTRY.get_sample_value("staylog_database_refusals_total", labels) or 0


def test_a_connection_is_not_given_up_again_and_again_for_one_failure(postgres: PostgresServer) -> None:
    """Nor is one that was made while others failed."""
    store = Store(postgres.url("renewed"), SHORT)
    with closing(store):
        with store.read() as connection:
            first = run(connection, "SELECT pg_backend_pid()")
        before = store._generation
        for _ in range(3):
            store._renew()
        assert store._generation == before + 1

        def fail(_connection: Any, _record: Any) -> None:
            store._generation += 1

        event.listen(store._reading, "connect", fail)
        with store.read() as connection:
            assert run(connection, "SELECT pg_backend_pid()") != first


def test_a_long_wait_ends_when_others_find_that_the_server_does_not_answer(
    postgres: PostgresServer, line: Line
) -> None:
    """A VACUUM would otherwise hold the worker for its whole deadline."""
    store = Store(named(postgres, "patient", f"127.0.0.1:{line.port}"), SHORT)
    refusals: list[Unavailable] = []
    sleeping = Event()

    def sleep() -> None:
        try:
            with store.read() as connection, store.patient(connection):
                sleeping.set()
                run(connection, "SELECT pg_sleep(600)")
        except Unavailable as refused:
            refusals.append(refused)

    thread = Thread(target=sleep, daemon=True)
    with closing(store):
        thread.start()
        assert sleeping.wait(10)
        with store.read() as connection:
            run(connection, "SELECT 1")
        line.cut()
        with pytest.raises(Unavailable), store.read() as connection:
            run(connection, "SELECT 1")
        thread.join(10)
        line.mend()
    assert [error.code for error in refusals] == ["storage_unavailable"]


def test_writing_anew_waits_no_longer_than_the_server_keeps_the_write_lock(postgres: PostgresServer) -> None:
    """Its connection may be the one that leads nowhere, and nothing else can be written meanwhile."""
    store = Store(postgres.url("anew"), SHORT)
    migrate(store)
    waits: list[float] = []
    patient = store.patient

    def noting(connection: Any, seconds: float = PATIENT) -> Any:
        waits.append(seconds)
        return patient(connection, seconds)

    store.patient = noting  # type: ignore[method-assign]
    with closing(store):
        assert store.scrub("submission", rewrite=1)
    assert waits == [PATIENT, SHORT.idle]
