"""Row 5: the whole of `POST /v1/reviews`, against Argon2 alone."""

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from itertools import islice
from os import cpu_count

from audits.receipts import verify_receipt
from benchmarks.client import ServerProcess, get_request, post_request, server_process
from benchmarks.engines import Sqlite
from benchmarks.measure import Samples, alternate, require
from benchmarks.report import RATE, Row, at_most
from benchmarks.workspace import Workspace
from ledger.clock import utc_now
from ledger.folder import init_folder, open_ledger
from ledger.identity.guestref import guest_ref
from ledger.identity.issuers import trust
from ledger.log.note import Verifier
from ledger.settings import DEFAULT_BASE_URL, Settings
from tests.identities import IDV, ISSUER, Speaker
from tests.reviewing import credential, encoded, review, stay_receipt

GUESTS = [Speaker(seed) for seed in range(10, 210)]
HOSTS = [Speaker(seed) for seed in range(210, 250)]
CORES = cpu_count() or 1
# Connections of a service that has something to do.
BUSY = 16
NOTES = (
    "Row 5: CPU of the server's process, all threads, per review that was accepted: HTTP, limits, strict JSON, closed "
    "schemas, three signatures (review, credential, stay receipt; eddsa-jcs-2022), guest reference, integration with "
    f"fsync, signed checkpoint, receipt with its proof. SQLite; {BUSY} connections, one request at a time on each, so "
    "that some share a commit; and one connection, where each review has a commit to itself. Every review from an "
    f"address of its own. Argon2 alone: {CORES} threads, as many as the server lets in.",
)


def rows(work: Workspace) -> list[Row]:
    settings = Sqlite(work.directory).new("submissions")
    rounds, count = work.plan.submission_rounds, work.plan.submissions
    _trusting(settings)
    with server_process("ours", str(settings.data), connections=BUSY) as server:
        [key] = server.ask([get_request("/v1/log/key")])
        log = Verifier.parse(json.loads(key.body)["vkey"])
        requests, wall, waited = _requests(), Samples(), Samples()
        # One round to warm up: what is imported, compiled and cached once is not the work of one review.
        _submit(server, list(islice(requests, count)), log, BUSY, [])
        sides = {
            "ours": lambda: _submit(server, list(islice(requests, count)), log, BUSY, wall),
            "peer": lambda: _argon2(count),
            "alone": lambda: _submit(server, list(islice(requests, count // 5)), log, 1, waited),
        }
        samples = alternate(rounds, sides, work.step, f"whole reviews, {count} each")
    what = f"POST /v1/reviews, whole, JCS suite, {rounds * count:,} accepted"
    peer = samples["peer"]
    alone = {"ours": samples["alone"], "peer": peer}
    rates = {"ours": wall, "peer": [CORES / seconds for seconds in peer]}
    latency = {"ours": [1 / rate for rate in waited], "peer": peer}
    return [
        Row(5, what, "Argon2 alone", "ms", {"ours": samples["ours"], "peer": peer}, at_most(1.18)),
        Row(5, f"{what}: wall", f"Argon2 alone on {CORES} cores", RATE, rates, None),
        Row(5, "POST /v1/reviews, one at a time", "Argon2 alone", "ms", alone, None),
        Row(5, "POST /v1/reviews, one at a time: latency", "Argon2 alone", "ms", latency, None),
    ]


def _trusting(settings: Settings) -> None:
    init_folder(settings)
    ledger = open_ledger(settings)
    draft = trust(ledger.issuers(), "guest", IDV, [ISSUER.multikey], None)
    require(draft is not None, "an issuer that is not trusted yet")
    ledger.sequencer.append([draft] if draft else [])
    ledger.close()


def _requests() -> Iterator[bytes]:
    """Reviews by guests and of hosts in turn, each of a booking of its own, signed when they are asked for."""
    stay = {"check_in": str(date.today() - timedelta(days=14)), "check_out": str(date.today() - timedelta(days=7))}
    number = 0
    while True:
        now, reference = utc_now(), f"B-{number}"
        guest, host = GUESTS[number % len(GUESTS)], HOSTS[number * 7 % len(HOSTS)]
        shown = credential(guest, now=now.replace(minute=0, second=0, microsecond=0))
        receipt = stay_receipt(guest, host, reference, now=now, **stay)
        changes = {"guest_credential": shown, "booking_evidence": receipt, "review_text": "Quiet and dry. " * 10}
        body = review(guest, host, reference, now=now, domain=DEFAULT_BASE_URL, **changes, **stay)
        address = f"x-forwarded-for: 10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
        yield post_request("/v1/reviews", encoded(body), address.encode())
        number += 1


def _submit(server: ServerProcess, requests: list[bytes], log: Verifier, at_once: int, wall: Samples) -> float:
    """Server CPU per review."""
    cpu, start = server.cpu(), time.perf_counter()
    responses = server.ask(requests, 201, at_once)
    wall.append(len(requests) / (time.perf_counter() - start))
    cpu = server.cpu() - cpu
    verify_receipt(responses[-1].body, log)
    return cpu / len(requests)


def _argon2(count: int) -> float:
    with ThreadPoolExecutor(CORES) as pool:
        start = time.process_time()
        list(pool.map(lambda number: guest_ref("p1", bytes(32), HOSTS[0].did, GUESTS[number].did), range(count)))
        return (time.process_time() - start) / count
