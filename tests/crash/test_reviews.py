"""A service that is killed while reviews come in: whoever has a receipt finds the review, whoever has none may send the
same again, and nobody's review is there twice."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import httpx

from audits.receipts import verify_receipt
from audits.verify import verify_answer
from ledger.settings import Settings
from tests.crash.services import begin, service, written
from tests.ports import free_port
from tests.reviewing import GUESTS, HOST, encoded

REVIEWS = 16


def test_killed_while_reviews_come_in(tmp_path: Path, database_url: str) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    settings = Settings.of(tmp_path / "data", database_url, url)
    log = begin(settings)
    bodies = [written(GUESTS[number % len(GUESTS)], number, url) for number in range(REVIEWS)]
    enough, receipts = Event(), {}

    def send(number: int) -> None:
        try:
            answer = httpx.post(f"{url}/v1/reviews", json=bodies[number], timeout=60, trust_env=False)
        except httpx.HTTPError:
            return
        assert answer.status_code in (200, 201), answer.text
        receipts[number] = answer.json()
        if len(receipts) >= REVIEWS // 3:
            enough.set()

    with ThreadPoolExecutor(6) as threads:
        with service(settings, port) as running:
            # Not all, however late it is killed.
            sent = [threads.submit(send, number) for number in range(REVIEWS - 4)]
            assert enough.wait(60)
            running.process.kill()
        for each in sent:
            each.result()
        acknowledged = dict(receipts)
        assert REVIEWS // 3 <= len(acknowledged) < REVIEWS
        with service(settings, port):
            for each in [threads.submit(send, number) for number in range(REVIEWS)]:
                each.result()
            answer = httpx.get(f"{url}/v1/hosts/{HOST.did}/reputation?proof=full", trust_env=False)
    assert len(receipts) == REVIEWS
    assert all(receipts[number] == receipt for number, receipt in acknowledged.items())
    assert json.loads(answer.content)["verified_reviews"] == REVIEWS
    verify_answer(answer.content, log, HOST.did, kind="full")
    for number, receipt in receipts.items():
        verify_receipt(encoded(receipt), log, submission=encoded(bodies[number]))
