"""Every write of one lone append on SQLite is made to fail, one at a time, by the kernel's own interface: the process is
killed at it, or the call returns an error. In the way of Tessera's fault tests (spec/tlog.md 3)."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from signal import SIGKILL

import pytest

from ledger.errors import Misconfigured
from ledger.folder import init_folder, open_ledger
from ledger.settings import Settings
from tests.crash.child import Ack, Story, begin, lone
from tests.crash.harness import examine
from tests.crash.tracing import Call, Tracer
from tests.running import Writer

# The calls by which SQLite, the mark and the key files change anything.
CALLS = "write,pwrite64,pwritev,fdatasync,fsync,ftruncate,fallocate,unlink,unlinkat,rename"
SEED = 3


def calls_in(trace: str) -> Iterator[Call]:
    """Each with its number among those of its name; not those to the channel."""
    seen: Counter[str] = Counter()
    for name, file in re.findall(r"^(\w+)\((?:\d+<([^>]*)>)?", trace, re.MULTILINE):
        seen[name] += 1
        if not file.startswith(("socket:", "UNIX", "pipe:")):
            yield name, seen[name]


class Appends:
    """A small ledger, and copies of it in which one entry is appended."""

    def __init__(self, folder: Path) -> None:
        self._tracer = Tracer(folder, CALLS)
        self._base = folder / "base"
        self.settings = Settings.of(folder / "copy")
        init_folder(Settings.of(self._base))
        with closing(open_ledger(Settings.of(self._base))) as ledger:
            ledger.sequencer.append([Story(Writer(SEED + 1)).next])
            self.size = ledger.reader.refresh().size
        answers, status = self.run("")
        assert (len(answers), status) == (1, 0)
        self.calls = list(calls_in(self._tracer.trace()))

    def run(self, fault: str) -> tuple[list[bytes], int]:
        shutil.rmtree(self.settings.data, ignore_errors=True)
        shutil.copytree(self._base, self.settings.data)
        return self._tracer.run(fault, lone, self.settings, SEED)

    def check(self, acks: list[Ack]) -> bool:
        """Examine the ledger of the last run, and submit the same once more: it is there once, where it was or comes
        next. Whether it was there."""
        with closing(open_ledger(self.settings)) as ledger:
            size = examine(ledger, acks)
            assert size in (self.size, self.size + 2)
            [done] = ledger.sequencer.append([Story(Writer(SEED)).next])
            assert (done.index, done.repeated) == (self.size, size > self.size)
            assert not acks or done.repeated
            assert examine(ledger, acks) == self.size + 2
        return size > self.size


@pytest.fixture(scope="module")
def appends(tmp_path_factory: pytest.TempPathFactory) -> Appends:
    return Appends(tmp_path_factory.mktemp("traced"))


@pytest.mark.parametrize("part", range(2))
def test_killed_at_every_write(appends: Appends, part: int) -> None:
    """In two halves, which may run beside each other."""
    kept = []
    for name, number in appends.calls[part::2]:
        answers, status = appends.run(f"{name}:signal=KILL:when={number}")
        assert status == -SIGKILL
        kept.append(appends.check([Ack.parse(answer) for answer in answers]))
    # From one call on, the entry is there.
    assert kept == sorted(kept)
    assert set(kept) == {False, True}
    print(f"{len(kept)} kills, {kept.count(False)} before the entry was durable")  # noqa: T201


@pytest.mark.parametrize(("error", "every", "code"), [("EIO", 3, "storage_unavailable"), ("ENOSPC", 5, "storage_full")])
def test_every_write_may_fail(appends: Appends, error: str, every: int, code: str) -> None:
    """The caller is told so or has its entry; the same process can do it again."""
    codes: Counter[str] = Counter()
    # Pages are written in long runs: some of them, and for an I/O error every other call.
    writes = [call for call in appends.calls if call[0] == "pwrite64"][::every]
    others = [call for call in appends.calls if call[0] != "pwrite64" and error == "EIO"]
    for name, number in (*writes, *others):
        answers, status = appends.run(f"{name}:error={error}:when={number}")
        assert status == 0
        *refusals, last = answers
        codes.update(refusal.decode() for refusal in refusals)
        appends.check([Ack.parse(last)])
    print(f"{len(writes) + len(others)} failed calls: {dict(codes)}")  # noqa: T201
    assert codes[f"Unavailable {code}"] > 2
    assert set(codes) <= {"Unavailable storage_unavailable", "Unavailable storage_full"}


def test_a_ledger_that_was_being_made_can_be_made_again(tmp_path: Path) -> None:
    """`staylog init` is killed at every write to a key or the mark, every sync, and some writes of the database."""
    tracer, settings = Tracer(tmp_path, CALLS), Settings.of(tmp_path / "data")
    assert tracer.run("", begin, settings) == ([], 0)
    calls = list(calls_in(tracer.trace()))
    pages = [call for call in calls if call[0] == "pwrite64"]
    chosen = [call for call in calls if call[0] != "pwrite64"] + pages[::25] + pages[-6:]
    for name, number in chosen:
        shutil.rmtree(settings.data)
        assert tracer.run(f"{name}:signal=KILL:when={number}", begin, settings) == ([], -SIGKILL)
        try:
            init_folder(settings)
        except Misconfigured as error:
            code = error.code
        else:
            code = "already_initialised"
        assert code == "already_initialised", (name, number)
        with closing(open_ledger(settings)) as ledger:
            assert examine(ledger) == 2
