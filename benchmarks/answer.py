"""Row 7: a full answer about a host with 24 reviews, checked in process and counted in Ed25519 verifications."""

import json
from pathlib import Path

import audits
from audits.verify import verify_answer
from benchmarks.measure import alternate, cpu_per_call, ed25519_verification, require
from benchmarks.report import Row, at_most
from benchmarks.sample_log import HOST, HOST_REVIEWS, SampleLog
from benchmarks.workspace import Workspace

MAX_LINES = 330
NOTES = (
    "Row 7: CPU of verify_answer on the JSON bytes of a full answer, every text with its opening, every third review "
    "with a response, in a log of about 1,400 entries; the bound is one PyNaCl verification of 100 bytes.",
)


def rows(work: Workspace) -> list[Row]:
    work.step("building the sample log")
    sample = SampleLog()
    data = json.dumps(sample.log.answer(HOST), ensure_ascii=False, separators=(",", ":")).encode()
    report = verify_answer(data, sample.verifier, HOST, kind="full")
    events = len(report.texts)
    require(events > HOST_REVIEWS and not report.withheld and not report.redacted, "an answer with all its texts")
    verify_signature = ed25519_verification()
    sides = {
        "ours": lambda: cpu_per_call(verify_answer, [(data, sample.verifier, HOST)] * 5),
        "peer": lambda: cpu_per_call(verify_signature, [()] * 100),
    }
    what = f"verify a full proof: {HOST_REVIEWS} reviews, {events - HOST_REVIEWS} responses, {len(data) / 1000:.0f} kB"
    samples = alternate(2 * work.plan.rounds, sides, work.step, what)
    found = [Row(7, what, "1 Ed25519 verification", "us", samples, at_most(60))]
    standalone = Path(audits.__file__).with_name("standalone_verify.py")
    lines = len(standalone.read_text().splitlines())
    counts = {"ours": [float(lines)], "peer": [float(MAX_LINES)]}
    found.append(Row(7, "length of audits/standalone_verify.py", "bound", "lines", counts, at_most(1)))
    return found
