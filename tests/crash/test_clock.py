"""A real process whose wall clock jumps ahead, back, and between two starts: the log's time stays where it is, and the
service says what it waits for."""

from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest

from ledger.canon.times import parse_time
from ledger.clock import utc_now
from ledger.folder import init_folder, open_ledger
from ledger.identity.issuers import trust
from ledger.settings import Settings
from tests.crash.faked_clock import FakedClock, library, serving
from tests.identities import IDV, ISSUER
from tests.reviewing import GUESTS, HOST, credential, response, review, stay_receipt
from tests.waiting import until

BASE = "https://ledger.example"
# What all this may take; the clock jumps by hours.
WHILE = timedelta(minutes=30)


class Guests:
    """Each submits one review, signed by the clock of the service."""

    def __init__(self, clock: FakedClock) -> None:
        self.clock = clock
        self._next = count()

    def submit(self, client: httpx.Client) -> httpx.Response:
        now, number = self.clock(), next(self._next)
        guest, reference = GUESTS[number], f"B-{number}"
        stay = {
            "check_in": str((now - timedelta(days=9)).date()),
            "check_out": str((now - timedelta(days=5)).date()),
        }
        receipt = stay_receipt(guest, HOST, reference, now=now, **stay)
        shown = {"booking_evidence": receipt, "guest_credential": credential(guest, now=now)}
        body = review(guest, HOST, reference, now=now, domain=BASE, **stay, **shown)
        return client.post("/v1/reviews", json=body)

    def accepted(self, client: httpx.Client) -> dict[str, Any]:
        answer = self.submit(client)
        assert answer.status_code == 201, answer.text
        return dict(answer.json())

    def refused(self, client: httpx.Client) -> None:
        answer = self.submit(client)
        assert (answer.status_code, answer.json()["code"]) == (503, "clock_unconfirmed"), answer.text


def at(client: httpx.Client) -> Any:
    return parse_time(client.get("/v1/log/checkpoint").json()["at"])


def is_healthy(client: httpx.Client) -> bool:
    answer = client.get("/health")
    if answer.status_code == 200:
        return True
    assert (answer.status_code, answer.json()["code"]) == (503, "clock_unconfirmed")
    assert "--accept-clock" in answer.json()["detail"]
    return False


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    library()
    made = Settings.of(tmp_path / "data", database_url, BASE)
    init_folder(made)
    ledger = open_ledger(made)
    draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
    assert draft is not None
    ledger.sequencer.append([draft])
    ledger.close()
    return made


def test_a_clock_that_jumps_ahead_and_back_and_between_two_starts(settings: Settings, tmp_path: Path) -> None:
    clock = FakedClock(tmp_path)
    guests = Guests(clock)
    with serving(settings, clock) as client:
        first = guests.accepted(client)
        assert is_healthy(client)

        clock.set(days=40)
        guests.refused(client)
        until(lambda: not is_healthy(client))
        assert abs(at(client) - utc_now()) < WHILE

        clock.set()
        until(lambda: is_healthy(client))
        guests.accepted(client)
        assert abs(at(client) - utc_now()) < WHILE
        # The response comes on the first day, and no entry says that it is the 41st.
        body = response(first["review_id"], HOST, now=clock(), domain=BASE)
        path = f"/v1/reviews/{first['review_id']}/response"
        assert client.post(path, json=body).status_code == 201

        clock.set(hours=-3)
        before = at(client)
        guests.accepted(client)
        assert at(client) == before

    clock.set(hours=26)
    with serving(settings, clock) as client:
        assert not is_healthy(client)
        guests.refused(client)
        assert client.get("/log/checkpoint").status_code == 200
        clock.set(hours=24)
        until(lambda: is_healthy(client))

    clock.set(hours=26)
    with serving(settings, clock, "--accept-clock") as client:
        assert is_healthy(client)
        guests.accepted(client)
        ahead = at(client)
        assert abs(ahead - clock()) < WHILE
        # That was wrong. The log is lived with: its time stands still until the real time has come so far.
        clock.set()
        guests.accepted(client)
        assert at(client) == ahead
        assert 25 * 3600 < client.get("/health").json()["log_time_ahead"] <= 26 * 3600
