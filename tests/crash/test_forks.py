"""Whatever is restored, and however many services write: none signs a second history (protocol.md 3). Real processes."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import pytest

from ledger.errors import Halted
from ledger.folder import init_folder, open_ledger
from ledger.log.mark_file import MarkFile
from ledger.settings import Settings
from tests.crash.harness import Backups, Child
from tests.crash.service_child import ADDED, OPEN, WELL, Service, look_as_nobody
from tests.engines import PostgresServer
from tests.running import Writer
from tests.test_docs import serving
from tests.waiting import until

STAYLOG = Path(sys.executable).with_name("staylog")


@contextmanager
def services(*settings: Settings) -> Iterator[list[Service]]:
    """All open; those that the test leaves open are closed."""
    made = [Service(each) for each in settings]
    assert [each.opened for each in made] == [OPEN] * len(made), [each.why for each in made]
    yield made
    for each in made:
        if not each.channel.closed:
            each.close()


def second(settings: Settings, folder: Path, *, mark: bool = True) -> Settings:
    """The folder of another service on the same database: the keys and, as the guide says, the mark."""
    other = replace(settings, data=folder)
    folder.mkdir(mode=0o700)
    for path in (settings.log_key, settings.service_keys, *([settings.mark] if mark else [])):
        (folder / path.name).write_bytes(path.read_bytes())
        (folder / path.name).chmod(0o600)
    return other


def refusal(settings: Settings) -> tuple[str, str]:
    """By which a new process refuses to start."""
    tried = Service(settings)
    opened, why = tried.opened, tried.why
    tried.close()
    return opened, why


def accepted(why: str) -> str:
    """The checkpoint that the advice names."""
    return why.rpartition("--accept-checkpoint ")[2].rstrip("`")


def test_both_services_refuse_an_older_database_though_one_signed(
    settings: Settings, backups: Backups, tmp_path: Path
) -> None:
    """The one that signed last, and the one that has only seen it."""
    other = second(settings, tmp_path / "other")
    with services(settings, other) as (one, two):
        assert one.add() == ADDED
        until(lambda: two.newest() == one.newest())
    backups.save("older")
    with services(settings, other) as (one, two):
        assert [two.add(), two.add()] == [ADDED, ADDED]
        until(lambda: one.newest() == two.newest())
    backups.restore("older")
    assert [refusal(each)[0] for each in (settings, other)] == ["log_behind"] * 2


def test_a_new_folder_with_the_keys_alone_is_refused_without_a_word(settings: Settings, tmp_path: Path) -> None:
    with services(settings) as [one]:
        assert one.add() == ADDED
        newest = one.newest()
    bare = second(settings, tmp_path / "bare", mark=False)
    code, why = refusal(bare)
    assert (code, accepted(why)) == ("mark_missing", newest)
    assert not bare.mark.exists()
    assert refusal(replace(bare, accepted="2" + newest[newest.index(":") :]))[0] == "checkpoint_not_accepted"
    with services(replace(bare, accepted=newest)) as [two]:
        assert two.add() == ADDED
    with services(bare) as [two]:
        assert two.add() == ADDED


def test_staylog_serve_names_the_command_that_lets_a_new_folder_go_on(tmp_path: Path) -> None:
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    with services(settings) as [one]:
        assert one.add() == ADDED
    bare = second(settings, tmp_path / "bare", mark=False)
    where = ("--data", str(bare.data), "--database-url", bare.database_url)
    done = subprocess.run([STAYLOG, "serve", *where], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "mark_missing" in done.stderr
    assert "staylog log marks" in done.stderr
    word = accepted(done.stderr.strip())
    with serving(bare.data, *where[2:], "--accept-checkpoint", word) as url:
        assert httpx.get(f"{url}/health", timeout=60).status_code == 200


@pytest.mark.parametrize("length", [0, 3])
def test_a_database_restored_under_running_services_halts_them(
    settings: Settings, backups: Backups, writer: Writer, tmp_path: Path, length: int
) -> None:
    """Also where a service that has seen nothing of the end has gone on to a greater length: that is not served."""
    ignorant = second(settings, tmp_path / "ignorant")
    with services(settings) as [one]:
        assert one.add() == ADDED
    backups.save("older")
    with services(settings, second(settings, tmp_path / "other")) as (one, two):
        assert two.add() == ADDED
        until(lambda: one.newest() == two.newest())
        newest = one.newest()
        backups.restore_under("older")
        if length:
            with closing(open_ledger(ignorant)) as forking:
                forking.sequencer.append([writer.review() for _ in range(length)])
        for each in (one, two):
            until(lambda each=each: each.health() in ("log_behind", "log_forked"))  # type: ignore[misc]
            assert each.add() in ("log_behind", "log_forked")
            assert each.newest() == newest


def test_a_running_staylog_serve_says_that_an_older_database_was_put_under_it(tmp_path: Path, writer: Writer) -> None:
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    backups = Backups(settings.database_url, tmp_path / "backups", None)
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.append([writer.review()])
    backups.save("older")
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.append([writer.review()])
    with serving(settings.data, "--database-url", settings.database_url) as url:
        assert httpx.get(f"{url}/health", timeout=60).json()["size"] == 6
        backups.restore_under("older")
        until(lambda: httpx.get(f"{url}/health", timeout=60).json().get("code") == "log_behind")
        assert 'staylog_signing_refused_total{code="log_behind"}' in httpx.get(f"{url}/metrics", timeout=60).text
        assert httpx.get(f"{url}/log/checkpoint", timeout=60).text.split("\n")[1] == "6"


def test_a_running_staylog_serve_takes_nothing_into_replaced_files(tmp_path: Path, writer: Writer) -> None:
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    backups = Backups(settings.database_url, tmp_path / "backups", None)
    backups.save("older")
    with closing(open_ledger(settings)) as ledger:
        ledger.sequencer.append([writer.review()])
    with serving(settings.data, "--database-url", settings.database_url) as url:
        backups.restore("older")
        until(lambda: httpx.get(f"{url}/health", timeout=60).json().get("code") == "storage_unavailable")
        assert "were replaced" in httpx.get(f"{url}/health", timeout=60).json()["detail"]
        assert httpx.get(f"{url}/log/checkpoint", timeout=60).text.split("\n")[1] == "4"
    with pytest.raises(Halted) as refused:
        open_ledger(settings)
    assert refused.value.code == "log_behind"


def test_a_dump_that_a_stopped_service_knows_nothing_of_is_refused(tmp_path: Path, postgres: PostgresServer) -> None:
    """Its mark fits the older dump. That the tables were made anew shows that something was restored."""
    settings = Settings.of(tmp_path / "data", postgres.url("dumped"))
    init_folder(settings)
    stopped = second(settings, tmp_path / "stopped")
    with services(settings) as [one]:
        assert one.add() == ADDED
        with services(stopped) as [two]:
            assert two.add() == ADDED
        restore = dump_of(postgres, "dumped")
        assert one.add() == ADDED
    restore()
    assert refusal(settings)[0] == "log_behind"
    code, why = refusal(stopped)
    assert code == "database_changed"
    assert "restored dump" in why
    # The operator who knows that nothing was signed after it may go on.
    with services(replace(stopped, accepted=accepted(why))) as [two]:
        assert two.add() == ADDED


def test_a_copy_that_postgresql_makes_of_a_database_is_another_one(tmp_path: Path, postgres: PostgresServer) -> None:
    """CREATE DATABASE ... TEMPLATE: the tables keep their numbers, the database does not."""
    settings = Settings.of(tmp_path / "data", postgres.url("copied"))
    init_folder(settings)
    open_ledger(settings).close()
    stopped = second(settings, tmp_path / "stopped")
    backups = Backups(settings.database_url, tmp_path / "backups", postgres)
    backups.save("copied_older")
    with services(settings) as [one]:
        assert one.add() == ADDED
    backups.restore("copied_older")
    assert [refusal(each)[0] for each in (settings, stopped)] == ["log_behind", "database_changed"]


def dump_of(postgres: PostgresServer, name: str) -> Callable[[], None]:
    """What restores the database as it is now, with PostgreSQL's own programs."""
    at = ("--host", str(postgres.directory), "--username", "postgres")
    dumped = subprocess.run([postgres._bin / "pg_dump", *at, name], capture_output=True, check=True).stdout

    def restore() -> None:
        postgres.url(name)
        command = [str(postgres._bin / "psql"), *at, "--quiet", "--set=ON_ERROR_STOP=1", name]
        subprocess.run(command, input=dumped, capture_output=True, check=True)

    return restore


def test_a_damaged_mark_halts_and_says_what_to_do(settings: Settings) -> None:
    with services(settings) as [one]:
        assert one.add() == ADDED
        newest = one.newest()
    settings.mark.write_bytes(b"")
    code, why = refusal(settings)
    assert (code, accepted(why)) == ("mark_unreadable", newest)
    with services(replace(settings, accepted=newest)) as [one]:
        assert one.add() == ADDED
        # And while it runs.
        settings.mark.write_bytes(bytes(1024))
        assert one.add() == "mark_unreadable"
        assert one.health() == "mark_unreadable"


def test_the_operators_word_replaces_no_mark_that_cannot_be_read(tmp_path: Path) -> None:
    """It may be newer than the database; what is in its place is left there."""
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    newest = str(MarkFile(settings.mark).read())
    settings.mark.rename(tmp_path / "aside")
    settings.mark.mkdir()
    with pytest.raises(Halted, match="cannot be used") as refused:
        open_ledger(replace(settings, accepted=newest))
    assert refused.value.code == "mark_unreadable"
    assert settings.mark.is_dir()


def test_a_mark_that_is_not_the_services_own_halts_it(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    found = {}
    # pytest closes its own folders to other users each time that it is started.
    with TemporaryDirectory(prefix="staylog-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        path = Path(folder) / "last-signed"
        path.write_bytes(settings.mark.read_bytes())
        for mode in (0o600, 0o644, 0o666):
            path.chmod(mode)
            child = Child(look_as_nobody, path)
            found[mode] = child.channel.recv()
            assert child.wait() == 0
    assert found == {0o600: ("mark_unreadable", False), 0o644: ("mark_unreadable", False), 0o666: (2, True)}


def test_the_mark_of_a_running_service_survives_its_deletion(settings: Settings) -> None:
    with services(settings) as [one]:
        assert one.add() == ADDED
        settings.mark.unlink()
        # Also while nothing is added: it may be killed before the next entry.
        until(settings.mark.exists, 60)
        assert str(MarkFile(settings.mark).read()) == one.newest()
        settings.mark.unlink()
        assert one.add() == ADDED
        assert str(MarkFile(settings.mark).read()) == one.newest()
        assert one.health() == WELL
