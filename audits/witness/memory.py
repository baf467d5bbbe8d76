"""What a witness cosigned last of each log: one file per log, which is durable before anybody hears of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from audits.witness.folder import CHECKPOINTS, Step, TrustedLogs, quiet, read_key, write_durably
from ledger.errors import BadNote, Misconfigured, NotProved, NotStored, StaylogError
from ledger.log.add_checkpoint import monitoring_path
from ledger.log.checkpoint import MAX_SIZE, Checkpoint
from ledger.log.cosignature import cosignatures
from ledger.log.note import Note, Verifier

WHAT_TO_DO = (
    "Bring back the newest copy of it. Never delete it: a witness that has forgotten what it cosigned can be made to "
    "cosign a fork. If it is lost, this witness has ended: begin a new one, with a new key, in another folder."
)


@dataclass(frozen=True, slots=True)
class Cosigned:
    """`note` has the log's signatures and our cosignature of `timestamp`."""

    note: str
    checkpoint: Checkpoint
    timestamp: int

    @classmethod
    def open(cls, note: str, witness: Verifier) -> "Cosigned":
        parsed = Note.parse(note)
        own = cosignatures(parsed, [witness])
        if len(own) != 1:
            raise NotProved("cosignature_invalid", f"there is not one cosignature by {witness.name} on it")
        return cls(note, read_checkpoint(parsed.text), own[0].timestamp)


# By origin; nothing may have been cosigned yet.
Logs = list[tuple[str, Cosigned | None]]


class Memory:
    """What was cosigned last of one log. `latest` is always durable, so that anybody may see it."""

    def __init__(self, path: Path, witness: Verifier, on_step: Step = quiet) -> None:
        self.lock = Lock()
        self.latest: Cosigned | None = None
        self._path = path
        self._witness = witness
        self._on_step = on_step
        self._settled = False

    def settle(self) -> Cosigned | None:
        """What the file has, after a start or a failed write. It may be seen there and not be durable: such a write is
        done again."""
        if not self._settled:
            latest = read_cosigned(self._path, self._witness)
            if latest is not None:
                write_durably(self._path, latest.note)
            elif self.latest is not None:
                raise NotStored(f"{self._path} is gone. {WHAT_TO_DO}")
            self.latest, self._settled = latest, True
        return self.latest

    def keep(self, latest: Cosigned) -> None:
        """Durable once it returns. After an error nobody knows until the file is read again."""
        self._settled = False
        write_durably(self._path, latest.note, self._on_step)
        self.latest, self._settled = latest, True
        self._on_step("kept")


def read_cosigned(path: Path, witness: Verifier) -> Cosigned | None:
    """What the file of a log says; nothing of that log was cosigned if there is none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        return None
    with damaged(path):
        latest = Cosigned.open(decode(text), witness)
        if log_id(latest.checkpoint.origin) != path.name:
            raise NotProved("origin_mismatch", f"it is about another log, {latest.checkpoint.origin}")
    return latest


def last_cosigned(folder: Path) -> tuple[Verifier, Logs]:
    """Whose folder it is, and what is in it, also while a witness runs there."""
    witness, _ = read_key(folder)
    try:
        origins = sorted(TrustedLogs(folder).keys())
        return witness, [(each, read_cosigned(folder / CHECKPOINTS / log_id(each), witness)) for each in origins]
    except OSError as error:
        raise Misconfigured("file_unreadable", f"{folder} cannot be read: {error.strerror or error}") from None


def read_checkpoint(text: str) -> Checkpoint:
    """As any log may write it: lines of extensions may follow the three that count, and the origin may be any text."""
    origin, *lines = text.removesuffix("\n").split("\n")
    if len(lines) < 2 or not all((origin, *lines)):
        raise BadNote("checkpoint_malformed", "a checkpoint must have an origin, a size, a root, and no empty line")
    return replace(Checkpoint.parse(f"origin\n{lines[0]}\n{lines[1]}\n", MAX_SIZE), origin=origin)


def log_id(origin: str) -> str:
    """What the monitoring path, and our file, call a log."""
    return monitoring_path(origin).partition("/")[0]


def decode(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise BadNote("request_malformed", "this is not UTF-8 text") from None


@contextmanager
def damaged(path: Path) -> Iterator[None]:
    try:
        yield
    except StaylogError as error:
        raise NotStored(f"{path} is not what this witness cosigned: {error}. {WHAT_TO_DO}") from None
