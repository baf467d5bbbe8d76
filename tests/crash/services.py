"""Services as processes of their own, and what guests send to them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

from ledger.clock import utc_now
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.log.note import Verifier
from ledger.settings import Settings
from tests.identities import IDV, ISSUER, Speaker
from tests.ports import free_port
from tests.reviewing import HOST, credential, review, stay_receipt

STAYLOG = str(Path(sys.executable).with_name("staylog"))


@dataclass(frozen=True, slots=True)
class Service:
    url: str
    process: "subprocess.Popen[str]"

    def review(self, body: dict[str, Any]) -> tuple[httpx.Response, float]:
        """The answer, and how many seconds it took."""
        began = monotonic()
        answer = httpx.post(f"{self.url}/v1/reviews", json=body, timeout=60, trust_env=False, verify=False)
        return answer, monotonic() - began

    def get(self, path: str) -> httpx.Response:
        return httpx.get(f"{self.url}{path}", timeout=60, trust_env=False, verify=False)

    def wait_for_health(self, status: int, seconds: float = 60) -> httpx.Response:
        """Each answer comes at once, whatever the database does. On a busy machine some may be late, and not three
        in a row."""
        deadline, late = monotonic() + seconds, 0
        while True:
            began = monotonic()
            answer = self.get("/health")
            late = late + 1 if monotonic() - began > 2 else 0
            assert late < 3, "/health waits for something"
            if answer.status_code == status:
                return answer
            assert monotonic() < deadline, answer.text
            sleep(0.05)


@contextmanager
def service(settings: Settings, port: int | None = None, **environment: str) -> Iterator[Service]:
    """Under the base URL of the settings, on a port of its own."""
    command = [STAYLOG, "serve", "--data", str(settings.data), "--database-url", settings.database_url]
    environment = {**os.environ, "STAYLOG_BASE_URL": settings.base_url, **environment}
    with subprocess.Popen(
        [*command, "--port", str(port or free_port()), "--no-limits"],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as server:
        assert server.stdout is not None
        told = next((line for line in server.stdout if "listens on" in line), "")
        assert told, "the service does not start"
        try:
            yield Service(told.split()[-1], server)
        finally:
            server.kill()


def begin(settings: Settings) -> Verifier:
    """A new ledger that trusts the issuer of the guests' credentials."""
    init_folder(settings)
    ledger = open_ledger(settings)
    draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
    assert draft is not None
    ledger.sequencer.append([draft])
    ledger.close()
    return ledger.verifier


def written(guest: Speaker, number: int, domain: str) -> dict[str, Any]:
    """A review that is accepted, of a booking of this number."""
    now = utc_now()
    stay: dict[str, Any] = {
        "check_in": str(date.today() - timedelta(days=9)),
        "check_out": str(date.today() - timedelta(days=5)),
    }
    shown = credential(guest, now=now.replace(minute=0, second=0, microsecond=0))
    receipt = stay_receipt(guest, HOST, f"B-{number}", now=now, **stay)
    changes = {"guest_credential": shown, "booking_evidence": receipt, **stay}
    return review(guest, HOST, f"B-{number}", now=now, domain=domain, **changes)
