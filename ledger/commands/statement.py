"""What whoever signs something shares: who speaks, by which key, and files that are never overwritten."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from nacl.signing import SigningKey

from ledger.canon import strict_json
from ledger.clock import utc_now
from ledger.commands.common import Command, FilePath, key_names
from ledger.errors import BadForm, BadJSON, Misconfigured
from ledger.keys import read_key
from ledger.log.mark_file import sync_folder

InFile = click.Path(exists=True, dir_okay=False, path_type=Path)


def speaker_options(*, required: bool) -> Callable[[Command], Command]:
    """Who signs: a key, and the DID that it speaks for. `Speaker.of` reads them."""

    def add(command: Command) -> Command:
        for option in (
            click.option("--verification-method", metavar="URL", help="The name of the key.  [default: DID#MULTIKEY]"),
            click.option("--did", metavar="DID", help="Who speaks.  [default: the did:key of the key]"),
            click.option("--key", type=FilePath, required=required, help="Your secret key: staylog key new."),
        ):
            command = option(command)
        return command

    return add


@dataclass(frozen=True, slots=True)
class Speaker:
    """Who signs, and the key with its name. A key that is named is one of whom the name begins with."""

    did: str
    method: str
    secret: SigningKey = field(repr=False)

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Speaker":
        secret, method = read_key(options["key"]), options["verification_method"]
        did = options["did"] or (method.partition("#")[0] if method else None)
        return cls(*key_names(secret, did, method), secret)

    def sign(
        self, body: Mapping[str, Any], kind: str, domain: str | None, challenge: str | None = None
    ) -> dict[str, Any]:
        """The signed statement, if a ledger would hear it, as far as that can be known here: of a did:web we have only
        this key."""
        from ledger.identity import statements
        from ledger.identity.did import is_offline, offline

        own, now = {self.method: bytes(self.secret.verify_key)}, utc_now()
        signed = statements.sign(body, self.secret, self.method, now=now, domain=domain, challenge=challenge)
        statements.verify(
            signed,
            kind,
            domain=domain or "",
            now=now,
            resolve=lambda did: offline(did) if is_offline(did) else own,
            speaker=self.did if statements.KINDS[kind].answers else None,
            challenge=challenge,
        )
        return signed


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, which is no longer than a statement may be."""
    from ledger.identity.statements import MAX_BYTES

    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise BadForm("too_large", f"{path.name} has more than {MAX_BYTES // 1024} KiB")
    try:
        value = strict_json.loads(data)
    except BadJSON as error:
        raise BadJSON(error.code, f"{path.name}: {error.message}") from None
    if not isinstance(value, dict):
        raise BadForm("schema_invalid", f"{path.name}: a JSON object expected")
    return value


def encode(value: Any) -> bytes:
    return f"{json.dumps(value, indent=1, ensure_ascii=False)}\n".encode()


def require_free(*paths: Path) -> None:
    """Raise if a file that is to be written exists, or cannot: what is in it may be the only proof of something, and
    what will come may be proof of something too."""
    for path in paths:
        if os.path.lexists(path):
            raise _taken(path)
        if not os.path.isdir(path.parent):
            raise Misconfigured("file_unwritable", f"{path.name} cannot be written: there is no folder {path.parent}")


def save(path: Path, data: bytes) -> None:
    """A new file on the disk, for its owner alone: statements tell who stays where."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise _taken(path) from None
    except OSError as error:
        raise Misconfigured("file_unwritable", f"{path.name} cannot be written: {error.strerror}") from None
    try:
        with open(file, "wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(file)
        sync_folder(path.parent)
    except OSError as error:
        # Half a statement would only stand in the way of a whole one.
        path.unlink(missing_ok=True)
        raise Misconfigured("file_unwritable", f"{path.name} cannot be written: {error.strerror}") from None


def next_free(path: Path) -> Path:
    """`path` or, when it exists, the first of its kind with a number that does not."""
    number, found = 2, path
    while os.path.lexists(found):
        found, number = path.with_stem(f"{path.stem}-{number}"), number + 1
    return found


def _taken(path: Path) -> Misconfigured:
    return Misconfigured("file_exists", f"{path.name} exists already, and is not overwritten: choose another name")
