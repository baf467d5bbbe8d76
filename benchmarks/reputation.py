"""Row 6: reputation answers over HTTP, against a bare Litestar handler that returns the same bytes."""

import json
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from itertools import islice

from audits.verify import verify_answer
from benchmarks.client import ServerProcess, get_request, server_process
from benchmarks.loaded import REVIEWS, host_name
from benchmarks.measure import Samples, alternate, require
from benchmarks.report import RATE, Bar, Row, at_least
from benchmarks.workspace import Workspace
from ledger.log.note import Verifier

PEER = "bare Litestar handler"
# How often a round repeats its requests where answers are quick.
REPEATS = 4
ADDRESSES = 1000
# Shares of the bare handler's rate, cold and warm.
BARS = {"none": (0.10, 0.40), "full": (0.05, 0.40)}
KINDS = {"none": "without proof", "full": "full proof"}
NOTES = (
    "Row 6: requests per second of server CPU (all threads of its process), and per second of wall time beside it. "
    "Both sides run under uvicorn as `staylog serve` does, on SQLite, each in its own process; 4 connections, kept "
    "alive, one request at a time on each. The bare handler takes nothing and returns the bytes of one of our answers. "
    f"Ours counts each request towards the limit of its address, of which there are {ADDRESSES:,}.",
    f"Row 6: hosts have {REVIEWS} reviews, all listed, every text with its opening, every third review with a "
    "response. Cold: the URL was not asked for before in this process; hosts come in random order. The first cold "
    "round, in which the process reads tiles and map pages, is shown by itself too. Warm: the same URLs again.",
)


class Sides:
    """One kind of answer in rounds: from the peer, cold, warm, and asked for with the tag that it had. A sample is the
    rate per second of server CPU; the rate per second of wall time goes to `wall`."""

    def __init__(self, kind: str, count: int, ours: ServerProcess, bare: ServerProcess, hosts: Iterable[int]) -> None:
        self.kind = kind
        self.count = count
        self.wall: dict[str, Samples] = {"peer": [], "cold": [], "warm": [], "304": []}
        self._ours = ours
        self._bare = bare
        self._hosts = iter(hosts)
        self._targets: list[str] = []
        self._etags: list[bytes] = []
        self._addresses = 0
        self._bare.ask([get_request(f"/{kind}")] * count)

    def samples(self) -> dict[str, Callable[[], float]]:
        return {"peer": self._peer, "cold": self._cold, "warm": self._warm, "304": self._not_modified}

    def _peer(self) -> float:
        return self._measure("peer", self._bare, [get_request(f"/{self.kind}")] * self.count)

    def _cold(self) -> float:
        self._targets = [_target(host_name(host), self.kind) for host in islice(self._hosts, self.count)]
        require(len(self._targets) == self.count, "enough hosts")
        return self._measure("cold", self._ours, [self._get(target) for target in self._targets], repeats=1)

    def _warm(self) -> float:
        return self._measure("warm", self._ours, [self._get(target) for target in self._targets])

    def _not_modified(self) -> float:
        pairs = zip(self._targets, self._etags, strict=True)
        requests = [self._get(target, b"if-none-match: " + etag) for target, etag in pairs]
        return self._measure("304", self._ours, requests, status=304)

    def _get(self, target: str, *headers: bytes) -> bytes:
        """From one address after the other: each of them is counted, and none of them asks too often."""
        self._addresses += 1
        return get_request(target, b"x-forwarded-for: 10.0.%d.%d" % divmod(self._addresses % ADDRESSES, 256), *headers)

    def _measure(
        self, side: str, server: ServerProcess, requests: list[bytes], *, repeats: int = REPEATS, status: int = 200
    ) -> float:
        cpu, start = server.cpu(), time.perf_counter()
        for _ in range(repeats):
            responses = server.ask(requests, status)
        wall, cpu = time.perf_counter() - start, server.cpu() - cpu
        if side == "cold":
            self._etags = [response.etag for response in responses]
        self.wall[side].append(repeats * len(requests) / wall)
        return repeats * len(requests) / cpu


def rows(work: Workspace) -> list[Row]:
    settings = work.reviews_ledger
    sample, *hosts = work.draw(work.plan.reviewed_hosts, work.plan.reviewed_hosts, seed=6)
    found: list[Row] = []
    with ExitStack() as stack:
        work.step("starting servers")
        ours = stack.enter_context(server_process("ours", str(settings.data)))
        bodies = {kind: _sample_answer(ours, host_name(sample), kind) for kind in KINDS}
        files = {kind: work.directory / f"answer-{kind}.json" for kind in KINDS}
        for kind, file in files.items():
            file.write_bytes(bodies[kind])
        bare = stack.enter_context(server_process("bare", *map(str, files.values())))
        for kind, drawn in zip(KINDS, (hosts[::2], hosts[1::2]), strict=True):
            [same] = bare.ask([get_request(f"/{kind}")])
            require(same.body == bodies[kind], "that the peer returns the same bytes")
            found += _kind_rows(work, Sides(kind, work.plan.answers, ours, bare, drawn), len(same.body))
    return found


def _sample_answer(server: ServerProcess, host: str, kind: str) -> bytes:
    """An answer as it will be measured, after looking whether it says what it should."""
    key, response = server.ask([get_request("/v1/log/key"), get_request(_target(host, kind))])
    answer = json.loads(response.body)
    require(len(answer["review_history"]) == REVIEWS, f"an answer of {REVIEWS} reviews")
    require(sum(1 for review in answer["review_history"] if review["host_response"]) == REVIEWS // 3, "responses")
    if kind == "full":
        report = verify_answer(response.body, Verifier.parse(json.loads(key.body)["vkey"]), host, kind="full")
        require(not report.withheld, "an answer with all its texts")
    return response.body


def _target(host: str, kind: str) -> str:
    proof = "" if kind == "none" else f"&proof={kind}"
    return f"/v1/hosts/{host}/reputation?limit={REVIEWS}{proof}"


def _kind_rows(work: Workspace, sides: Sides, length: int) -> list[Row]:
    what = f"reputation {KINDS[sides.kind]}, {length / 1000:.0f} kB"
    cpu = alternate(work.plan.rounds, sides.samples(), work.step, what)
    cold, warm = map(at_least, BARS[sides.kind])

    def row(name: str, samples: dict[str, Samples], side: str, bar: Bar | None, *, gates: bool = True) -> Row:
        return Row(6, f"{what}, {name}", PEER, RATE, {"ours": samples[side], "peer": samples["peer"]}, bar, gates)

    return [
        row("cold", cpu, "cold", cold),
        row("warm repeat", cpu, "warm", warm),
        row("cold: wall", sides.wall, "cold", cold, gates=False),
        row("warm repeat: wall", sides.wall, "warm", warm, gates=False),
        row("304", cpu, "304", None),
        row("304: wall", sides.wall, "304", None),
        row(f"the first {sides.count}", {**cpu, "cold": cpu["cold"][:1]}, "cold", None),
    ]
