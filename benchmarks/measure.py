"""How everything here is measured: alternating rounds, CPU time, medians, and the machine's own pace beside them."""

import gc
import json
import os
import platform
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from nacl.signing import SigningKey

Samples = list[float]
Step = Callable[[str], None]


def cpu_per_call(function: Callable[..., object], calls: Iterable[tuple[Any, ...]]) -> float:
    """CPU seconds of one call, over all `calls` (argument tuples)."""
    arguments = list(calls)
    start = time.process_time()
    for call in arguments:
        function(*call)
    return (time.process_time() - start) / len(arguments)


def alternate(rounds: int, sides: Mapping[str, Callable[[], float]], step: Step, what: str) -> dict[str, Samples]:
    """One sample of each side in turn, so that a slow minute of the machine slows all of them."""
    samples: dict[str, Samples] = {side: [] for side in sides}
    for number in range(rounds):
        step(f"{what}, round {number + 1} of {rounds}")
        for side, sample in sides.items():
            gc.collect()
            samples[side].append(sample())
    return samples


class Pace:
    """How fast the machine itself was in each round. A core that is shared with others is slower by half at times, and
    the CPU clock counts that as ours; a fixed loop before and after a round tells."""

    # A round is at full pace when the loop took at most this much of its quickest.
    FULL = 1.1

    def __init__(self) -> None:
        self._slowest: Samples = []

    def beside(self, sample: Callable[[], float]) -> float:
        before = cpu_per_call(_loop, [()])
        measured = sample()
        self._slowest.append(max(before, cpu_per_call(_loop, [()])))
        return measured

    def full(self, samples: Samples) -> Samples:
        """Those of the samples, one per round, that were taken at full pace."""
        limit = self.FULL * min(self._slowest)
        return [sample for sample, pace in zip(samples, self._slowest, strict=True) if pace <= limit]


def _loop() -> int:
    return sum(number * number for number in range(100_000))


def require(fact: bool, claim: str) -> None:
    """Sides that did different work must not get a ratio."""
    if not fact:
        raise AssertionError(f"this benchmark is broken: it needs {claim}")


def fresh_process(*arguments: str) -> dict[str, Any]:
    """What `benchmarks.fresh` reports from a process of its own."""
    command = [sys.executable, "-m", "benchmarks.fresh", *arguments]
    done = subprocess.run(command, cwd=Path(__file__).parent.parent, check=True, stdout=subprocess.PIPE)
    return dict(json.loads(done.stdout))


def machine_facts(directory: Path) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "pymerkle": version("pymerkle"),
        "pynacl": version("pynacl"),
        "cpus": os.cpu_count(),
        "fdatasync_ms": median(fdatasync_samples(directory)) * 1e3,
        "ed25519_verify_us": median(ed25519_samples()) * 1e6,
    }


def fdatasync_samples(directory: Path, count: int = 100) -> Samples:
    with fdatasync(directory) as sync:
        return [sync() for _ in range(count)]


@contextmanager
def fdatasync(directory: Path) -> Iterator[Callable[[], float]]:
    """Wall seconds to make one appended block of 4 KiB durable where the databases are, at each call."""
    sync = getattr(os, "fdatasync", os.fsync)
    with (directory / "fdatasync").open("wb") as file:

        def sample() -> float:
            file.write(bytes(4096))
            file.flush()
            start = time.perf_counter()
            sync(file.fileno())
            return time.perf_counter() - start

        yield sample


def ed25519_samples(rounds: int = 9) -> Samples:
    verify = ed25519_verification()
    return [cpu_per_call(verify, [()] * 100) for _ in range(rounds)]


def ed25519_verification() -> Callable[[], object]:
    """One PyNaCl verification of a message as long as a checkpoint; the key is decoded beforehand."""
    key = SigningKey(bytes(range(32)))
    signed = key.sign(b"c" * 100)
    verify_key = key.verify_key
    return lambda: verify_key.verify(signed.message, signed.signature)
