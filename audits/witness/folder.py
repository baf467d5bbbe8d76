"""The folder of a witness: its key, the logs that it trusts, and what it cosigned last of each.

witness.key     the secret key, in the text form of Go's note package with the type of a cosignature
logs            a tlog-policy with a line `log <vkey>` for each trusted key; read again when it changes
checkpoints/    one file per log, named as on the monitoring path: what was cosigned last
"""

import fcntl
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from nacl.signing import SigningKey

from ledger.canon import base64
from ledger.errors import BadNote, Malformed, Misconfigured
from ledger.log.note import COSIGNATURE, ED25519, Verifier
from ledger.log.policy import Policy

KEY = "witness.key"
LOGS = "logs"
CHECKPOINTS = "checkpoints"

_PREFIX = "PRIVATE+KEY+"
_NO_LOGS = "# The logs that this witness trusts, one line `log <vkey>` each. A change counts at once.\nquorum none\n"

Step = Callable[[str], None]


def quiet(_step: str) -> None:
    """Nobody wants to know; crash tests do."""


def init(folder: Path, name: str, key: SigningKey) -> Verifier:
    """A new witness. Its key comes last: a folder that has one is complete."""
    witness = Verifier(name, COSIGNATURE, bytes(key.verify_key))
    with _writing(folder):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with locked(folder):
            if is_initialised(folder):
                raise Misconfigured("already_initialised", f"{folder} has a witness already; nothing was changed")
            checkpoints = folder / CHECKPOINTS
            checkpoints.mkdir(mode=0o700, exist_ok=True)
            if any(checkpoints.iterdir()):
                why = "it holds what another key cosigned: bring that key back, or begin in another folder"
                raise Misconfigured("key_mismatch", f"{folder} has no key, but {why}")
            if not (folder / LOGS).exists():
                write_durably(folder / LOGS, _NO_LOGS)
            secret = base64.encode(bytes([COSIGNATURE]) + bytes(key))
            write_durably(folder / KEY, f"{_PREFIX}{name}+{witness.key_id.hex()}+{secret}\n")
            _sync_folder(folder.parent)
    return witness


def is_initialised(folder: Path) -> bool:
    return (folder / KEY).exists()


def read_key(folder: Path) -> tuple[Verifier, SigningKey]:
    path = folder / KEY
    try:
        if path.stat().st_mode & 0o077:
            raise Misconfigured("key_unreadable", f"{path} can be read by others: chmod 600 {path}")
        text = path.read_text("utf-8").removesuffix("\n")
    except FileNotFoundError:
        raise Misconfigured("not_initialised", f"{folder} has no witness: run `staylog witness init`") from None
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured("key_unreadable", f"the key file {path} cannot be read: {error}") from None
    name, _, rest = text.removeprefix(_PREFIX).partition("+")
    key_id, _, encoded = rest.partition("+")
    try:
        algorithm, *seed = base64.decode(encoded)
        key = SigningKey(bytes(seed))
        witness = Verifier(name, algorithm, bytes(key.verify_key))
        known = text.startswith(_PREFIX) and algorithm == COSIGNATURE and witness.key_id.hex() == key_id
    except (ValueError, TypeError, Malformed):
        known = False
    if not known:
        raise Misconfigured("key_unreadable", f"{path} does not hold the Ed25519 key of a witness")
    return witness, key


class TrustedLogs:
    """The keys of each trusted log by its origin, as the file says now."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOGS
        self._read: tuple[tuple[int, ...], dict[str, list[Verifier]]] = ((), {})

    def keys(self) -> Mapping[str, list[Verifier]]:
        """A file that cannot be read trusts nobody: what an operator has just taken out must not go on."""
        found = self._path.stat()
        stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
        if self._read[0] != stamp:
            keys: dict[str, list[Verifier]] = {}
            for log in _policy(self._path.read_bytes()).logs:
                keys.setdefault(log.name, []).append(log)
            self._read = (stamp, keys)
        return self._read[1]


def trust(folder: Path, log: Verifier) -> bool:
    """From now on checkpoints of this log are cosigned; whether that is new."""
    if log.algorithm != ED25519:
        raise BadNote("vkey_malformed", f"{log.name} is a witness: the key of a log has type 01")
    path = folder / LOGS
    if not is_initialised(folder):
        raise Misconfigured("not_initialised", f"{folder} has no witness: run `staylog witness init`")
    # Not the lock of the folder, which a running witness has: only others who trust must wait.
    with _writing(folder), locked(folder / CHECKPOINTS, wait=True):
        text = path.read_bytes()
        if log in _policy(text).logs:
            return False
        new = f"{text.decode().rstrip()}\nlog {log}\n"
        _policy(new.encode())
        write_durably(path, new)
    return True


def _policy(text: bytes) -> Policy:
    try:
        return Policy.parse(text.decode())
    except UnicodeDecodeError:
        raise BadNote("policy_malformed", f"the file {LOGS!r} is not UTF-8 text") from None


def write_durably(path: Path, text: str, on_step: Step = quiet) -> None:
    """The file has all of the new text or all of the old; once this returns, the new one, whatever happens."""
    new = path.with_name(f"{path.name}.new")
    with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    on_step("written")
    new.replace(path)
    on_step("renamed")
    _sync_folder(path.parent)
    on_step("durable")


@contextmanager
def locked(folder: Path, *, wait: bool = False) -> Iterator[None]:
    """The folder belongs to this process until the end, which also is the end of the process."""
    file = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            raise Misconfigured("file_unwritable", f"{folder} is in use: another process witnesses there") from None
        yield
    finally:
        os.close(file)


def _sync_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Misconfigured("file_unwritable", f"{folder} cannot be used: {error.strerror or error}") from None
