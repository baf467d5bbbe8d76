"""One mark in etcd for all services of a log: a real etcd, services as processes of their own."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from ledger.errors import Halted
from ledger.folder import init_folder, open_ledger
from ledger.log.mark import Mark
from ledger.log.shared_mark import SharedMark
from ledger.settings import Settings
from tests.crash.harness import Backups, examine
from tests.crash.service_child import ADDED, WELL, Service
from tests.crash.test_forks import accepted, refusal, second, services
from tests.etcd import Etcd
from tests.waiting import until


@pytest.fixture
def shared(tmp_path: Path, database_url: str, etcd: Etcd) -> Settings:
    settings = replace(Settings.of(tmp_path / "data", database_url), mark_url=etcd.mark_url(tmp_path.name))
    init_folder(settings)
    return settings


def in_etcd(settings: Settings) -> str:
    assert settings.mark_url
    mark = SharedMark(settings.mark_url, "127.0.0.1:8080/log", "test").read()
    return str(mark)


def test_a_service_that_knows_nothing_of_the_end_refuses_an_older_database(
    shared: Settings, backups: Backups, tmp_path: Path
) -> None:
    """Its folder is new, or its own mark is older: the mark in etcd has all that any service signed."""
    other, bare = second(shared, tmp_path / "other"), second(shared, tmp_path / "bare", mark=False)
    with services(shared) as [one]:
        assert one.add() == ADDED
    with services(other) as [two]:
        assert two.add() == ADDED
    backups.save("older")
    with services(bare, shared) as (three, one):
        assert [three.add(), one.add(), three.add()] == [ADDED] * 3
        newest = three.newest()
    assert in_etcd(shared) == newest
    backups.restore("older")
    other_folder = second(replace(shared, data=other.data), tmp_path / "again")
    assert [refusal(each)[0] for each in (other, other_folder, bare)] == ["log_behind"] * 3
    assert in_etcd(shared) == newest


def test_two_services_move_one_mark(shared: Settings, tmp_path: Path) -> None:
    """Each signature is one move of it; neither is refused because the other was faster."""
    with services(shared, second(shared, tmp_path / "other")) as (one, two):
        for _ in range(8):
            for each in (one, two):
                each.channel.send("add")
            assert [each._told() for each in (one, two)] == [ADDED, ADDED]
        until(lambda: one.newest() == two.newest() == in_etcd(shared))
    with closing(open_ledger(shared)) as ledger:
        assert examine(ledger) >= 18


def test_does_not_sign_while_the_mark_cannot_be_reached(shared: Settings, etcd: Etcd) -> None:
    with services(shared) as [one]:
        assert one.add() == ADDED
        newest = one.newest()
        etcd.stop()
        try:
            assert one.add_once() == "storage_unavailable"
            assert "shared mark" in one.why
            one.until_health("storage_unavailable")
            assert one.newest() == newest
            assert refusal(shared)[0] == "storage_unavailable"
        finally:
            etcd.start()
        one.until_health(WELL)
        assert one.add() == ADDED
        assert in_etcd(shared) == one.newest()


def test_a_mark_that_was_deleted_or_damaged_halts(shared: Settings, etcd: Etcd, tmp_path: Path) -> None:
    with services(shared) as [one]:
        assert one.add() == ADDED
        newest = one.newest()
        etcd.delete(tmp_path.name)
        one.until_health("mark_missing")
    code, why = refusal(shared)
    assert (code, accepted(why)) == ("mark_missing", newest)
    with services(replace(shared, accepted=newest)) as [one]:
        assert one.add() == ADDED
    etcd.put(f"{tmp_path.name}/127.0.0.1:8080/log", b"99 nonsense\n")
    assert refusal(shared)[0] == "mark_unreadable"


def test_a_mark_is_moved_only_from_the_one_that_was_read(etcd: Etcd, tmp_path: Path) -> None:
    url = etcd.mark_url(tmp_path.name)
    one, two = (SharedMark(url, "log.example/log", "test") for _ in range(2))
    assert one.read() is None
    assert two.read() is None
    assert one.write(Mark(5, bytes(32))) == Mark(5, bytes(32))
    # It has not compared its database with that.
    assert two.write(Mark(9, b"9" * 32)) == Mark(5, bytes(32))
    assert two.write(Mark(9, b"9" * 32)) == Mark(9, b"9" * 32)
    assert one.write(Mark(7, b"7" * 32)) == Mark(9, b"9" * 32)
    with pytest.raises(Halted) as forked:
        one.write(Mark(9, bytes(32)))
    assert forked.value.code == "log_forked"
    other = SharedMark(url, "another.example/log", "test")
    assert other.read() is None


def test_a_ledger_that_had_no_shared_mark_gets_one_at_the_operators_word(
    tmp_path: Path, database_url: str, etcd: Etcd
) -> None:
    settings = Settings.of(tmp_path / "data", database_url)
    init_folder(settings)
    with services(settings) as [one]:
        assert one.add() == ADDED
    shared = replace(settings, mark_url=etcd.mark_url(tmp_path.name))
    code, why = refusal(shared)
    assert code == "mark_missing"
    one = Service(replace(shared, accepted=accepted(why)))
    assert one.add() == ADDED
    assert in_etcd(shared) == one.newest()
    one.close()
