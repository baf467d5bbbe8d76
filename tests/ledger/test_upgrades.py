"""Folders that earlier versions made open, serve and audit; migrations that have landed never change."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from threading import Thread

import httpx
import pytest
from click.testing import CliRunner

from api.app import create_app
from api.server import Server, config
from audits import entry_differs
from audits.receipts import verify_receipt
from audits.verify import verify_answer
from ledger.cli import main
from ledger.errors import NotProved
from ledger.folder import Ledger, open_ledger
from ledger.keys import add_checksum
from ledger.log.fsck import fsck
from ledger.log.mark_file import MarkFile
from ledger.store.schema import require_newest
from tests.earlier_folders import MIGRATIONS, EarlierFolder
from tests.running import SetClock
from tests.waiting import until

FROZEN = {
    "0001_log.py": "cf48acd3cd07fdf762315276d4d4b14d0ebfa6635d0c826bb7d94a9cce4f255a",
    "0002_setting.py": "cfd8088285896e4a736b260d664d8bb6da283d8a68bfa7ba54834562e7225c71",
    "0003_day_rate.py": "840aa0c22172e1b47b76fdbc6ada39dedb9875a6fa794addba9f3c94e8248172",
}
MOMENTS_LATER = "2026-11-19T02:00:00Z"


@pytest.fixture(params=["7"])
def earlier(request: pytest.FixtureRequest, tmp_path: Path, new_database_url: str) -> EarlierFolder:
    return EarlierFolder(request.param, tmp_path, new_database_url)


def opened(earlier: EarlierFolder) -> Ledger:
    ledger = open_ledger(earlier.upgraded(), clock=SetClock(MOMENTS_LATER))
    require_newest(ledger.store)
    return ledger


def test_migrations_that_have_landed_are_frozen() -> None:
    """A table is changed by a new revision. A file that is not in the list yet joins it when it lands."""
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in (MIGRATIONS / "versions").glob("[0-9]*.py")}
    assert found == FROZEN


def test_an_earlier_folder_is_upgraded_and_clean(earlier: EarlierFolder) -> None:
    ledger = opened(earlier)
    # It was called so, and says so without being told.
    assert ledger.made_as == ledger.settings.base_url == "http://127.0.0.1:18080"
    with ledger.store.snapshot() as connection:
        report = fsck(connection, ledger.verifier, MarkFile(earlier.settings.mark).read(), lambda *_: None)
    assert (report.entries, report.findings) == (27, [])
    ledger.close()
    # And once more: what the first opening wrote is what the second one finds.
    opened(earlier).close()


def test_an_earlier_folder_serves_and_audits(earlier: EarlierFolder) -> None:
    ledger = opened(earlier)
    receipt, review = earlier.document("receipt.json"), earlier.document("review.json")
    host = review["host_did"]
    with serving(ledger) as url, httpx.Client(base_url=url, trust_env=False) as client:
        answer = client.get(f"/v1/hosts/{host}/reputation?proof=full").content
        verify_answer(answer, ledger.verifier, host)
        # The guest and the booking are known again, by secrets that are not in the database.
        again = client.post("/v1/reviews", json=review)
        assert (again.status_code, again.json()["review_id"]) == (200, receipt["review_id"])
        pending = client.post("/v1/reviews", json=earlier.document("review-2.json"))
        assert pending.status_code == 202
        audit = CliRunner().invoke(main, ["audit", url, "--key", str(ledger.verifier), "--host", host])
        assert (audit.exit_code, "clean" in audit.output) == (0, True), audit.output


@contextmanager
def serving(ledger: Ledger) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(config(create_app(ledger, limits=False), "127.0.0.1", 0))
        thread = Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        until(lambda: server.started, 20)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        server.should_exit = True
        thread.join()


def test_receipts_and_answers_of_an_earlier_version_still_verify(earlier: EarlierFolder) -> None:
    ledger = opened(earlier)
    for receipt, review in (("receipt.json", "review.json"), ("ada-receipt.json", "ada-review.json")):
        given, signed = ((earlier.where / name).read_bytes() for name in (receipt, review))
        assert verify_receipt(given, ledger.verifier, submission=signed).proved
        with pytest.raises(NotProved, match="follows from the statement"):
            entry_differs.prove(given, signed, None, ledger.verifier)
    host = earlier.document("review.json")["host_did"]
    verify_answer((earlier.where / "answer.json").read_bytes(), ledger.verifier, host)
    ledger.close()


def test_an_earlier_key_file_gets_its_checksum(earlier: EarlierFolder) -> None:
    path = earlier.settings.service_keys
    before = path.read_text()
    add_checksum(path)
    assert '"sha256"' in path.read_text()
    assert '"sha256"' not in before
    opened(earlier).close()
