"""`staylog serve`, where it refuses to start; that it serves is shown by test_edge and test_docs."""

import shutil
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner, Result

from ledger import policy
from ledger.cli import main
from ledger.folder import init_folder, is_empty, open_ledger
from ledger.settings import Settings
from tests.running import Writer
from tests.test_docs import serving


def serve(data: Path, *arguments: str, **environment: str) -> Result:
    return CliRunner().invoke(main, ["serve", "--data", str(data), *arguments], env=environment)


def test_a_new_log_is_not_named_after_every_address(tmp_path: Path) -> None:
    for host in ("0.0.0.0", "::"):
        done = serve(tmp_path / "data", "--host", host)
        assert done.exit_code == 1
        assert "(settings_invalid)" in done.output
        assert "STAYLOG_BASE_URL" in done.output
    assert is_empty(Settings.of(tmp_path / "data"))


def test_a_base_url_in_another_spelling_is_refused(tmp_path: Path) -> None:
    done = serve(tmp_path / "data", STAYLOG_BASE_URL="https://Ledger.example/")
    assert (done.exit_code, "(settings_invalid)" in done.output) == (1, True)


def test_a_restored_older_database_is_not_served(tmp_path: Path) -> None:
    """It says what happened and what to do."""
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    database = settings.data / "ledger.db"
    shutil.copy(database, tmp_path / "backup.db")
    ledger = open_ledger(settings)
    ledger.sequencer.append([Writer().review()])
    ledger.close()
    for path in settings.data.glob("ledger.db*"):
        path.unlink()
    shutil.copy(tmp_path / "backup.db", database)
    done = serve(settings.data)
    assert done.exit_code == 1
    for words in ("(log_behind)", "ends at 2 entries", "already signed 4", "bring back the newest database"):
        assert words in done.output


def test_trusted_proxies_are_networks(tmp_path: Path) -> None:
    done = serve(tmp_path / "data", STAYLOG_TRUSTED_PROXIES="everybody")
    assert (done.exit_code, "(settings_invalid)" in done.output) == (1, True)
    assert is_empty(Settings.of(tmp_path / "data"))


def test_proxies_that_let_any_client_claim_any_address_are_warned_of(tmp_path: Path) -> None:
    # It ends before it serves, since a new log needs a name.
    for proxies in ("0.0.0.0/0", "::ffff:0.0.0.0/96", "10.0.0.0/8, 0.0.0.0/0"):
        done = serve(tmp_path / "data", "--host", "0.0.0.0", "--trusted-proxies", proxies)
        assert "trusted proxies include 0.0.0.0/0" in done.output
    assert "warning" not in serve(tmp_path / "data", "--host", "0.0.0.0", "--trusted-proxies", "10.0.0.0/8").output


@pytest.mark.parametrize(
    ("arguments", "header", "limited"),
    [
        ([], "198.51.100.1", True),
        (["--no-limits"], "198.51.100.1", False),
        (["--trusted-proxies", "127.0.0.0/8"], None, False),
    ],
)
def test_what_is_said_about_limits_reaches_the_service(
    tmp_path: Path, arguments: list[str], header: str | None, limited: bool
) -> None:
    """A client that is not behind a trusted proxy counts by its own address, whatever it says; after ten reviews at once there are too many,
    but for one more every other second."""
    statuses = []
    with serving(tmp_path / "data", *arguments) as url, httpx.Client(base_url=url, trust_env=False) as client:
        for number in range(40):
            forwarded = header or f"198.51.100.{number}"
            headers = {"content-type": "application/json", "x-forwarded-for": forwarded}
            statuses.append(client.post("/v1/reviews", content=b"{}", headers=headers).status_code)
    assert 429 not in statuses[:10]
    assert (429 in statuses) is limited


def test_a_new_policy_is_adopted_when_the_service_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is served is what the log has the hash of, whichever the operator chose."""
    settings = Settings.of(tmp_path / "data")
    init_folder(settings)
    monkeypatch.setenv("STAYLOG_UNANSWERED", "reject")
    with serving(settings.data) as url:
        entries = httpx.get(f"{url}/v1/log/entries?start=2&count=1", trust_env=False).json()["entries"]
        served = httpx.get(f"{url}/v1/policy", trust_env=False).content
    assert served == policy.document(publishes_unanswered=False) != policy.document()
    assert f'"policy":"{policy.hash_of(served)}","type":"policy"' in entries[0]


def test_what_becomes_of_what_nobody_answered_is_one_of_two(tmp_path: Path) -> None:
    done = serve(tmp_path / "data", "--unanswered", "forget")
    assert (done.exit_code, "'publish', 'reject'" in done.output) == (2, True)
    assert is_empty(Settings.of(tmp_path / "data"))


def test_a_ledger_that_is_served_without_its_base_url_keeps_it_and_says_so(tmp_path: Path) -> None:
    init_folder(Settings.of(tmp_path / "data", None, "https://ledger.example"))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).with_name("staylog")), "serve", "--data", str(tmp_path / "data")]
    said = []
    with subprocess.Popen([*command, "--port", str(port)], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            said.append(line)
            if "listens on" in line:
                break
        document = httpx.get(f"http://127.0.0.1:{port}/.well-known/did.json", trust_env=False).json()
        server.terminate()
    assert document["id"] == "did:web:ledger.example"
    assert any("the base URL is https://ledger.example, as the ledger was made" in line for line in said)
