"""Row 4: one review alone, from its submission to the bytes of its signed receipt, in units of one fdatasync."""

import time
from dataclasses import replace
from statistics import median, quantiles

import msgspec

from audits.receipts import verify_receipt
from benchmarks.engines import Engine
from benchmarks.loaded import Drafts, opened
from benchmarks.measure import Samples, fdatasync
from benchmarks.report import Row, at_most
from benchmarks.workspace import Workspace
from ledger.folder import Ledger
from ledger.log.drafts import Draft
from ledger.reviews.receipts import receipt_of

MAX_SECONDS = 0.010
NOTES = (
    "Row 4: wall time of one review whose signatures are checked already and nobody else waits: queued, committed with "
    "fsync, integrated, under a signed checkpoint that is stored, inclusion proved, receipt written as JSON. An "
    "fdatasync of 4 KiB beside the database before each review is the unit. Disks differ: it warns.",
)


def rows(work: Workspace) -> list[Row]:
    return [row for engine in work.engines for row in engine_rows(work, engine)]


def engine_rows(work: Workspace, engine: Engine) -> list[Row]:
    settings = engine.copy(work.hosts_ledger(engine), "lone")
    ours, sync = Samples(), Samples()
    warm_up, count = max(work.plan.lone // 10, 1), work.plan.lone
    with opened(settings) as ledger, fdatasync(engine.disk) as sync_once:
        for number, draft in enumerate(Drafts(seed=4).reviews(warm_up + count, work.plan.hosts)):
            if number % 50 == 0:
                work.step(f"lone reviews, {engine.name}, {number} of {warm_up + count}")
            sync.append(sync_once())
            start = time.perf_counter()
            receipt = submit_alone(ledger, draft)
            ours.append(time.perf_counter() - start)
        verify_receipt(receipt, ledger.verifier)
    ours, sync = ours[warm_up:], sync[warm_up:]
    what = f"lone review to receipt, {work.plan.hosts:,} hosts, {engine.name}"
    bound = [5 * median(sync) + 0.003]
    last = {"ours": [p99(ours)], "peer": [p99(sync)]}
    bar = at_most(1) if engine.name == "SQLite" else None
    return [
        Row(4, f"{what}: p50", "5 fdatasync + 3 ms", "ms", {"ours": ours, "peer": bound}, bar, gates=False),
        Row(4, f"{what}: p50", "bound", "ms", {"ours": ours, "peer": [MAX_SECONDS]}, bar, gates=False),
        Row(4, f"{what}: p99", "1 fdatasync, p99", "ms", last, None),
    ]


def p99(samples: Samples) -> float:
    return quantiles(samples, n=100, method="inclusive")[-1]


def submit_alone(ledger: Ledger, draft: Draft) -> bytes:
    draft = replace(draft, salt=bytes(32))
    placed = ledger.sequencer.submit(draft).result()
    return msgspec.json.encode(receipt_of(ledger.reader, placed, draft))
