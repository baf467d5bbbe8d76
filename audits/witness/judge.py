"""A witness (c2sp.org/tlog-witness 1.0.0): it cosigns only trees that extend the one which it cosigned last.

Whoever is asked for a cosignature decides in the order of the specification. From the comparison with what was cosigned
last to the durable write, the lock of the log is held; a cosignature is told to nobody before it is durable. So no two
histories of a log are ever cosigned: not at the same time, not after a crash, not when the disk fails.
"""

import errno
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

from audits.witness.folder import CHECKPOINTS, Step, TrustedLogs, locked, quiet, read_key
from audits.witness.memory import Cosigned, Logs, Memory, damaged, decode, log_id, read_checkpoint
from ledger.canon.strict_json import MAX_INTEGER
from ledger.errors import BadNote, Misconfigured, NotProved, NotStored, StaylogError
from ledger.log.add_checkpoint import AddCheckpoint
from ledger.log.checkpoint import Checkpoint
from ledger.log.cosignature import cosign
from ledger.log.note import Note, Signature, Verifier
from ledger.log.proofs import verify_consistency
from ledger.log.tree import EMPTY_ROOT

_LOG_ID = re.compile(r"[0-9a-f]{64}")

RETRY_AFTER = 5
# Seconds for which a cosignature is given again to whoever asks for the same: checkpoints are public, and a write is
# dear.
FRESH = 60
# Seconds by which the clock may be put back, and times go on from the last one. One that is further ahead was wrong.
SKEW = 300
NOT_NOW = "nothing was cosigned; ask again later, and tell whoever runs this witness"


class NotCosigned(StaylogError):
    """`status` is that of the specification, `size` in a conflict what was cosigned last, `retry_after` in seconds."""

    def __init__(
        self, status: int, code: str, message: str, *, size: int | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(code, message)
        self.status = status
        self.size = size
        self.retry_after = retry_after


class Witness:
    """The one witness of a folder, for any number of threads."""

    def __init__(self, folder: Path, clock: Callable[[], float] = time.time, on_step: Step = quiet) -> None:
        self.verifier, self._key = read_key(folder)
        self._checkpoints = folder / CHECKPOINTS
        self._clock = clock
        # Told after each step of an answer; crash tests stop the process there.
        self._on_step = on_step
        self._memories: dict[str, Memory] = {}
        self._memories_lock = Lock()
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(folder))
                self._trusted = TrustedLogs(folder)
                self._remember(self._trusted.keys())
            except OSError as error:
                raise Misconfigured("file_unwritable", f"{folder} cannot be used: {error}") from None
            self._locked = stack.pop_all()

    def close(self) -> None:
        self._locked.close()

    def add_checkpoint(self, body: bytes) -> str:
        """The line of our cosignature, or NotCosigned."""
        with _refusing(400):
            request = AddCheckpoint.parse(decode(body))
            note = Note.parse(request.note)
            checkpoint = read_checkpoint(note.text)
        with _storing():
            keys = self._trusted.keys().get(checkpoint.origin)
        if keys is None:
            why = "this witness does not know this log: ask whoever runs it to trust the log's key"
            raise NotCosigned(404, "log_unknown", why)
        with _refusing(403):
            signatures = signatures_by(keys, note)
        if request.old > checkpoint.size:
            why = f"the old size {request.old} is larger than the checkpoint's, {checkpoint.size}"
            raise NotCosigned(400, "old_too_large", why)
        memory = self._memory(log_id(checkpoint.origin))
        with memory.lock, _storing():
            latest = memory.settle()
            judge(request, checkpoint, latest.checkpoint if latest else None)
            self._on_step("judged")
            timestamp = now = int(self._clock())
            if latest is not None:
                if now - FRESH < latest.timestamp <= now and (line := self._given(latest, note, signatures)):
                    return line
                if latest.timestamp <= now + SKEW:
                    # A clock that was put back a little must not date what is newer before what is older.
                    timestamp = max(now, latest.timestamp)
            own = cosign(note.text, self.verifier.name, self._key, timestamp)
            with _refusing(400):
                # Read back before it is kept: nothing is written that the next start could not read.
                cosigned = Cosigned.open(str(Note(note.text, (*signatures, own))), self.verifier)
            self._on_step("cosigned")
            memory.keep(cosigned)
        return own.line()

    def _given(self, latest: Cosigned, note: Note, signatures: Sequence[Signature]) -> str | None:
        """The line that was given for the same before, and is durable."""
        kept = Note.parse(latest.note)
        if kept.text != note.text or not {*signatures} <= {*kept.signatures}:
            return None
        return next(each.line() for each in kept.signatures if each.is_by(self.verifier))

    def checkpoint(self, log: str) -> str | None:
        """What was cosigned last of a log, by the name that it has on the monitoring path."""
        memory = self._memories.get(log)
        return memory.latest.note if memory and memory.latest else None

    def logs(self) -> Logs:
        """The trusted logs by origin, and what was cosigned last of each."""
        with _storing():
            origins = sorted(self._trusted.keys())
        memories = [(origin, self._memories.get(log_id(origin))) for origin in origins]
        return [(origin, memory.latest if memory else None) for origin, memory in memories]

    def _memory(self, log: str) -> Memory:
        with self._memories_lock:
            if log not in self._memories:
                self._memories[log] = Memory(self._checkpoints / log, self.verifier, self._on_step)
            return self._memories[log]

    def _remember(self, trusted: Mapping[str, Sequence[Verifier]]) -> None:
        """All that was ever cosigned, before anything is: also of logs that are no longer trusted."""
        for path in sorted(self._checkpoints.iterdir()):
            latest = self._memory(path.name).settle() if _LOG_ID.fullmatch(path.name) else None
            if latest is None:
                continue
            note = Note.parse(latest.note)
            for key in trusted.get(latest.checkpoint.origin, ()):
                if has_signed(key, note):
                    with damaged(path):
                        note.require(key)


def judge(request: AddCheckpoint, new: Checkpoint, latest: Checkpoint | None) -> None:
    """Raise unless the new tree is shown to extend the latest one."""
    size = latest.size if latest else 0
    if request.old != size:
        why = f"the size that was cosigned last is {size}: prove the growth from there"
        raise NotCosigned(409, "old_size_mismatch", why, size=size)
    if new.size > MAX_INTEGER:
        # No JSON reader could say such a size; a first checkpoint of it would lead to nothing that can be proved here.
        raise NotCosigned(422, "size_too_large", f"this witness cosigns trees of at most {MAX_INTEGER} entries")
    with _refusing(422):
        if latest is None or size == 0:
            if request.proof:
                raise NotProved("proof_length", "from size 0 the proof must be empty")
            if new.size == 0 and new.root != EMPTY_ROOT:
                raise NotProved("root_mismatch", "this is not the root of an empty tree")
        else:
            verify_consistency(size, new.size, latest.root, new.root, request.proof)


def signatures_by(keys: Sequence[Verifier], note: Note) -> list[Signature]:
    """The signatures of trusted keys, each once, all of them valid and at least one."""
    known = [key for key in keys if has_signed(key, note)]
    if not known:
        trusted = ", ".join(f"{key.name}+{key.key_id.hex()}" for key in keys)
        raise NotProved("signer_unknown", f"the checkpoint has no signature by a trusted key: {trusted}")
    for key in known:
        note.require(key)
    return list(dict.fromkeys(each for each in note.signatures if any(map(each.is_by, known))))


def has_signed(key: Verifier, note: Note) -> bool:
    return any(signature.is_by(key) for signature in note.signatures)


@contextmanager
def _refusing(status: int) -> Iterator[None]:
    try:
        yield
    except NotCosigned:
        raise
    except StaylogError as error:
        raise NotCosigned(status, error.code, error.message) from None


@contextmanager
def _storing() -> Iterator[None]:
    """What is wrong with the folder is nothing that whoever asks could mend, or should read about."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        code = "storage_full" if full else "storage_unavailable"
        raise NotCosigned(503, code, NOT_NOW, retry_after=RETRY_AFTER) from error
    except (NotStored, BadNote) as error:
        raise NotCosigned(503, error.code, NOT_NOW, retry_after=RETRY_AFTER) from error
