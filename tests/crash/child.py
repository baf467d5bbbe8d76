"""Processes that are made to be killed: they add to a ledger without pause and tell what was acknowledged."""

import os
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from multiprocessing.connection import Connection
from signal import SIGKILL
from threading import Lock

from ledger.canon import base64
from ledger.errors import StaylogError
from ledger.folder import init_folder, open_ledger
from ledger.log.drafts import Draft
from ledger.log.sequencer import Integrated, Sequencer
from ledger.settings import Settings
from tests.running import Writer

HOSTS = tuple(f"did:web:house{number}.example" for number in range(8))
READY = b"ready\n"
LEVELS = ("guest_verified", "guest_verified", "host_attested", "unconfirmed")


@dataclass(frozen=True, slots=True)
class Ack:
    """An acknowledged entry: its place, the SHA-256 of its bytes, and the checkpoint that was shown with it."""

    index: int
    digest: str
    size: int
    root: str

    @classmethod
    def of(cls, done: Integrated) -> "Ack":
        digest = sha256(done.entry.data).hexdigest()
        return cls(done.index, digest, done.published.size, base64.encode(done.published.root))

    def line(self) -> bytes:
        return f"{self.index} {self.digest} {self.size} {self.root}\n".encode()

    @classmethod
    def parse(cls, line: bytes) -> "Ack":
        index, digest, size, root = line.decode().split()
        return cls(int(index), digest, int(size), root)


@dataclass(frozen=True, slots=True)
class Work:
    """What a process does: so many callers submit at once, each so many entries, or for ever.

    It kills itself when the step `die_at` comes for the `times`-th time.
    """

    settings: Settings
    seed: int
    callers: int = 8
    entries: int | None = None
    die_at: str = ""
    times: int = 1


def work(job: Work, out: Connection) -> None:
    """Opens the ledger, says so, and begins when it is told.

    A line is written after its future is resolved. It is so short that the channel takes all of it or nothing, also
    from a process that is being killed.
    """
    ledger = open_ledger(job.settings, on_step=DyingStep(job.die_at, job.times))
    ledger.sequencer.start()
    os.write(out.fileno(), READY)
    os.read(out.fileno(), 1)
    told = Lock()

    def tell(ack: Ack) -> None:
        with told:
            os.write(out.fileno(), ack.line())

    def call(caller: int) -> None:
        story = Story(Writer(job.seed * 1000 + caller))
        while job.entries is None or story.told < job.entries:
            tell(Ack.of(story.submit(ledger.sequencer)))

    with ThreadPoolExecutor(job.callers) as callers:
        list(callers.map(call, range(job.callers)))
    ledger.close()


@dataclass(slots=True)
class DyingStep:
    """Told of every step of a batch; the chosen one is the last that this process takes."""

    step: str
    times: int
    seen: int = 0

    def __call__(self, step: str) -> None:
        self.seen += step == self.step
        if step == self.step and self.seen == self.times:
            os.kill(os.getpid(), SIGKILL)


class Story:
    """Reviews, and what follows each: upgrade, response, redaction. Every draft has a key: it can be submitted again
    when nobody knows what became of it."""

    def __init__(self, writer: Writer) -> None:
        self.told = 0
        self._writer = writer
        self._drafts = self._tell()
        self.next = next(self._drafts)

    def submit(self, sequencer: Sequencer) -> Integrated:
        """The next entry; after an error the same one again."""
        done = sequencer.submit(self.next).result(60)
        self.next = self._drafts.send(done)
        self.told += 1
        return done

    def _tell(self) -> Generator[Draft, Integrated, None]:
        random = self._writer.random
        while True:
            level = random.choice(LEVELS)
            review = yield self._keyed(self._writer.review(random.choice(HOSTS), level))
            if level == "unconfirmed":
                yield self._keyed(self._writer.upgrade(review))
            if random.random() < 0.5:
                yield self._keyed(self._writer.response(review))
            if random.random() < 0.3:
                yield self._keyed(self._writer.redaction(review))

    def _keyed(self, draft: Draft) -> Draft:
        return replace(draft, key=self._writer.random.randbytes(16))


def lone(settings: Settings, seed: int, channel: Connection) -> None:
    """One append in an open ledger, when the other side says so. After a failure it is tried once more; what came of
    it is told as one line each time."""
    ledger = open_ledger(settings)
    draft = Story(Writer(seed)).next
    channel.send_bytes(b"ready")
    channel.recv_bytes()
    for _ in range(2):
        try:
            [done] = ledger.sequencer.append([draft])
        except StaylogError as error:
            channel.send_bytes(f"{type(error).__name__} {error.code}".encode())
        else:
            channel.send_bytes(Ack.of(done).line())
            break
    ledger.close()


def begin(settings: Settings, channel: Connection) -> None:
    """A new ledger, when the other side says so."""
    channel.send_bytes(b"ready")
    channel.recv_bytes()
    init_folder(settings)
