"""A service that is killed while reviews come in: whoever has a receipt finds the review, whoever has none may send the
same again, and nobody's review is there twice."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date, timedelta
from pathlib import Path
from threading import Event
from typing import Any

import httpx

from audits.receipts import verify_receipt
from audits.verify import verify_answer
from ledger.clock import utc_now
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.log.note import Verifier
from ledger.settings import Settings
from tests.identities import IDV, ISSUER, Speaker
from tests.reviewing import GUESTS, HOST, credential, encoded, review, stay_receipt

STAYLOG = str(Path(sys.executable).with_name("staylog"))
REVIEWS = 16


@contextmanager
def serving(settings: Settings, port: int) -> Iterator["subprocess.Popen[str]"]:
    command = [STAYLOG, "serve", "--data", str(settings.data), "--database-url", settings.database_url]
    environment = {**os.environ, "STAYLOG_BASE_URL": settings.base_url}
    with subprocess.Popen(
        [*command, "--port", str(port), "--no-limits"], stdout=subprocess.PIPE, text=True, env=environment
    ) as server:
        assert server.stdout is not None
        assert any("listens on" in line for line in iter(server.stdout.readline, ""))
        try:
            yield server
        finally:
            server.kill()


def written(guest: Speaker, number: int, domain: str) -> dict[str, Any]:
    now = utc_now()
    stay: dict[str, Any] = {
        "check_in": str(date.today() - timedelta(days=9)),
        "check_out": str(date.today() - timedelta(days=5)),
    }
    shown = credential(guest, now=now.replace(minute=0, second=0, microsecond=0))
    receipt = stay_receipt(guest, HOST, f"B-{number}", now=now, **stay)
    changes = {"guest_credential": shown, "booking_evidence": receipt, **stay}
    return review(guest, HOST, f"B-{number}", now=now, domain=domain, **changes)


def test_killed_while_reviews_come_in(tmp_path: Path, database_url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    settings = Settings.of(tmp_path / "data", database_url, url)
    log = begin(settings)
    bodies = [written(GUESTS[number % len(GUESTS)], number, url) for number in range(REVIEWS)]
    enough, receipts = Event(), {}

    def send(number: int) -> None:
        try:
            answer = httpx.post(f"{url}/v1/reviews", json=bodies[number], timeout=30, trust_env=False)
        except httpx.HTTPError:
            return
        assert answer.status_code in (200, 201), answer.text
        receipts[number] = answer.json()
        if len(receipts) >= REVIEWS // 3:
            enough.set()

    with ThreadPoolExecutor(6) as threads:
        with serving(settings, port) as server:
            sent = [threads.submit(send, number) for number in range(REVIEWS)]
            assert enough.wait(30)
            server.send_signal(signal.SIGKILL)
        for each in sent:
            each.result()
        acknowledged = dict(receipts)
        assert REVIEWS // 3 <= len(acknowledged) < REVIEWS
        with serving(settings, port):
            for each in [threads.submit(send, number) for number in range(REVIEWS)]:
                each.result()
            answer = httpx.get(f"{url}/v1/hosts/{HOST.did}/reputation?proof=full", trust_env=False)
    assert len(receipts) == REVIEWS
    assert all(receipts[number] == receipt for number, receipt in acknowledged.items())
    assert json.loads(answer.content)["verified_reviews"] == REVIEWS
    verify_answer(answer.content, log, HOST.did, kind="full")
    for number, receipt in receipts.items():
        verify_receipt(encoded(receipt), log, submission=encoded(bodies[number]))


def begin(settings: Settings) -> Verifier:
    init_folder(settings)
    ledger = open_ledger(settings)
    draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
    assert draft is not None
    ledger.sequencer.append([draft])
    ledger.close()
    return ledger.verifier
