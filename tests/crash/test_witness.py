"""A witness is killed at every step, at every system call and at random, and its disk fails: a fork of anything whose
cosignature was handed out is refused for ever, and the honest log goes on."""

import os
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from random import Random
from signal import SIGKILL
from time import sleep
from urllib.parse import urlsplit

import pytest

from audits.witness.judge import NotCosigned, Witness
from audits.witness.memory import log_id
from ledger.log.add_checkpoint import parse_size
from tests.audits.witnessing import NOW, Log, make_witness
from tests.crash.harness import Child
from tests.crash.tracing import Call, Tracer
from tests.crash.witness_child import FORKED, LOG, asked_once, growing, serving

STEPS = ("judged", "cosigned", "written", "renamed", "durable", "kept")
# All by which files are found, read, written and replaced.
CALLS = "openat,read,write,fsync,rename,flock,getdents64"
OLD, SIZE = 3, 5


def go_on(folder: Path, handed_out: int) -> int:
    """The size that is known after a crash: nothing of what was handed out is forgotten, no fork of it is cosigned, and
    the log goes on."""
    with closing(Witness(folder, lambda: NOW)) as witness:
        [(_, latest)] = witness.logs()
        size = latest.checkpoint.size if latest else 0
        assert size >= handed_out
        for old, new in ((size, size), (size, size + 1), (size, size + 4)):
            if handed_out > 2:
                with pytest.raises(NotCosigned) as refusal:
                    witness.add_checkpoint(FORKED.request(old, new).encode())
                assert refusal.value.status == 422
        if handed_out:
            with pytest.raises(NotCosigned) as refusal:
                witness.add_checkpoint(FORKED.request(0, 3).encode())
            assert (refusal.value.status, refusal.value.size) == (409, size)
        witness.add_checkpoint(LOG.request(size, size + 1).encode())
    return size


@pytest.mark.parametrize("step", STEPS)
def test_killed_at_every_step(tmp_path: Path, step: str) -> None:
    make_witness(tmp_path, logs=[LOG.verifier])
    handed_out = 0
    for times in (1, 3):
        child, before = Child(growing, tmp_path, step, times), handed_out
        try:
            while True:
                handed_out = int(child.channel.recv_bytes())
        except (EOFError, ConnectionResetError):
            assert child.wait() == -SIGKILL
        # The one that was being answered is known from its renaming on.
        tried = max(handed_out, before) + 2
        known = go_on(tmp_path, handed_out)
        assert known == (tried if step in ("renamed", "durable", "kept") else tried - 2)
        handed_out = known + 1


class Asked:
    """A witness that has cosigned three entries, and copies of it that are asked for five under strace."""

    def __init__(self, folder: Path) -> None:
        self._tracer = Tracer(folder, CALLS)
        self._base = folder / "base"
        self.copy = folder / "copy"
        make_witness(self._base, logs=[LOG.verifier])
        with closing(Witness(self._base, lambda: NOW)) as witness:
            witness.add_checkpoint(LOG.request(0, OLD).encode())
        assert self.run("") == ([b"cosigned"], 0)
        self.calls = list(self._calls())
        self.changes = list(self._changes())

    def run(self, fault: str) -> tuple[list[bytes], int]:
        """What the process said, and how it ended."""
        shutil.rmtree(self.copy, ignore_errors=True)
        shutil.copytree(self._base, self.copy)
        return self._tracer.run(fault, asked_once, self.copy, OLD, SIZE)

    def _calls(self) -> Iterator[Call]:
        """Each with its number among those of its name; only those that are about the folder."""
        seen: Counter[str] = Counter()
        for line in self._tracer.trace().splitlines():
            if found := re.match(r"(\w+)\(", line):
                seen[found[1]] += 1
                if str(self.copy) in line:
                    yield found[1], seen[found[1]]

    def _changes(self) -> Iterator[tuple[str, str]]:
        """What was done to which file, and when the other side was told."""
        for line in self._tracer.trace().splitlines():
            if found := re.match(rf"(write|fsync)\(\d+<{self.copy}/([^>]*)>", line):
                yield found[1], found[2]
            elif found := re.match(r'rename\(".*", ".*/([^"/]+)"\)', line):
                yield "rename", found[1]
            elif re.match(r"write\(.*cosigned", line):
                yield "tell", ""


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("asked"))


def test_all_of_it_is_durable_before_it_is_told(asked: Asked) -> None:
    """A killed process leaves what it wrote to the system; a machine without power leaves what was synced. At the start
    what is found is written once more, because nobody knows whether it was."""
    name = log_id(LOG.origin)
    new = f"checkpoints/{name}.new"
    durable = [("write", new), ("fsync", new), ("rename", name), ("fsync", "checkpoints")]
    assert asked.changes == [*durable, *durable, ("tell", "")]


def test_killed_at_every_system_call(asked: Asked) -> None:
    """From the opening of its folder to the answer."""
    known = []
    for name, number in asked.calls:
        answers, status = asked.run(f"{name}:signal=KILL:when={number}")
        assert (answers, status) == ([], -SIGKILL), (name, number)
        known.append(go_on(asked.copy, OLD))
    # From one call on it is known.
    assert known == sorted(known)
    assert set(known) == {OLD, SIZE}
    assert {name for name, _ in asked.calls} == set(CALLS.split(","))
    print(f"{len(known)} kills, {known.count(OLD)} before it was known")  # noqa: T201


@pytest.mark.parametrize("error", ["EIO", "ENOSPC"])
def test_every_system_call_may_fail(asked: Asked, error: str) -> None:
    """Whoever asked is told so, and may ask again."""
    codes: Counter[str] = Counter()
    for name, number in asked.calls:
        if error == "ENOSPC" and name not in ("openat", "write", "fsync", "rename"):
            continue
        answers, status = asked.run(f"{name}:error={error}:when={number}")
        assert status == 0, (name, number)
        *refusals, last = answers
        assert refusals, (name, number)
        codes.update(each.decode() for each in refusals)
        # What failed after it was renamed is found there: then the old size is outdated, and nothing was handed out.
        assert last == b"cosigned" or b"old_size_mismatch" in last
        assert go_on(asked.copy, SIZE if last == b"cosigned" else OLD) == SIZE
    print(f"{error}: {dict(codes)}")  # noqa: T201
    full = "storage_full" if error == "ENOSPC" else "storage_unavailable"
    assert codes[f"NotCosigned {full}"] >= 4
    assert set(codes) <= {
        f"NotCosigned {full}",
        "NotCosigned old_size_mismatch",
        "Misconfigured file_unwritable",
        "Misconfigured key_unreadable",
    }


def test_killed_at_random_while_forks_are_submitted(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """A real server, six submitters with three histories, and a kill at any moment; again and again on one folder."""
    histories = [Log(LOG.origin, 400, name, 3) for name in ("", "x", "y")]
    make_witness(tmp_path, logs=[LOG.verifier])
    handed_out: list[tuple[int, bytes]] = []
    random, rounds = Random(11), 5

    def submit(url: str, log: Log, seed: int) -> list[tuple[int, bytes]]:
        """What was handed out until the server was gone."""
        mine, old, steps = [], 0, Random(seed)
        connection = HTTPConnection(urlsplit(url).netloc, timeout=10)
        try:
            while True:
                size = min(old + steps.randint(0, 2), 400)
                connection.request("POST", "/add-checkpoint", log.request(old, size).encode())
                answer = connection.getresponse()
                text = answer.read().decode()
                if answer.status == 200:
                    mine.append((size, log.tree.root(size)))
                old = size if answer.status == 200 else parse_size(text) if answer.status == 409 else old
        except (HTTPException, OSError):
            return mine
        finally:
            connection.close()

    for number in range(rounds):
        child = Child(serving, tmp_path)
        url = os.read(child.channel.fileno(), 100).decode().strip()
        with ThreadPoolExecutor(6) as pool:
            jobs = [pool.submit(submit, url, histories[at % 3], number * 6 + at) for at in range(6)]
            sleep(random.uniform(0.05, 0.25))
            child.kill()
            handed_out += [each for job in jobs for each in job.result(30)]
        assert child.wait() == -SIGKILL
    size, root = max(handed_out)
    winner = next(log for log in histories if log.tree.root(size) == root)
    assert all(winner.tree.root(at) == shown for at, shown in handed_out)
    with closing(Witness(tmp_path)) as witness:
        [(_, latest)] = witness.logs()
        assert latest is not None
        assert latest.checkpoint == winner.checkpoint(latest.checkpoint.size)
        assert latest.checkpoint.size >= size
    record_property("handed_out", len(handed_out))
    print(f"{rounds} kills, {len(handed_out)} cosignatures up to size {size}, all of one history")  # noqa: T201
