"""Key files, readable by their owner only.

A ledger has two. The log key is in the text form of Go's note package (`PRIVATE+KEY+<name>+<id>+<base64>`), so that
other tools can read it. The service keys are one JSON object: the statements key, the booking key, the peppers, and a
checksum over these. Other secrets than before would go unnoticed: the log key is checked against its own log, the
service keys against their fingerprints in the database (`ledger.key_fingerprints`).
Issuers, guests and hosts have one key each, a W3C Multikey secret in multibase.
"""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from nacl.signing import SigningKey

from ledger.canon import base64, jcs, multikey, strict_json
from ledger.errors import Malformed, Misconfigured
from ledger.log.mark_file import sync_folder
from ledger.log.note import ED25519, Verifier

_PREFIX = "PRIVATE+KEY+"
_SECRET_SIZE = 32
_CHECKSUM = "sha256"
_PEPPER_ID = re.compile(r"p[1-9][0-9]{0,5}")


def write_log_key(path: Path, name: str) -> SigningKey:
    key = SigningKey.generate()
    verifier = Verifier(name, ED25519, bytes(key.verify_key))
    _write(path, f"{_PREFIX}{name}+{verifier.key_id.hex()}+{base64.encode(bytes([ED25519]) + bytes(key))}")
    return key


def read_log_key(path: Path) -> tuple[str, SigningKey]:
    """The name it signs under, and the key."""
    text = _read(path)
    name, _, rest = text.removeprefix(_PREFIX).partition("+")
    key_id, _, encoded = rest.partition("+")
    try:
        secret = base64.decode(encoded)
        key = SigningKey(secret[1:])
        known = Verifier(name, ED25519, bytes(key.verify_key)).key_id.hex() == key_id
    except (ValueError, TypeError, Malformed):
        known, secret = False, b""
    if not text.startswith(_PREFIX) or not known or secret[:1] != bytes([ED25519]):
        raise Misconfigured("key_unreadable", f"{path.name} does not hold an Ed25519 log key")
    return name, key


def write_key(path: Path) -> SigningKey:
    key = SigningKey.generate()
    _write(path, multikey.encode_secret(key))
    return key


def read_key(path: Path) -> SigningKey:
    try:
        return multikey.decode_secret(_read(path))
    except Malformed:
        raise Misconfigured("key_unreadable", f"{path.name} does not hold an Ed25519 secret as a multikey") from None


# Secrets, so they are not shown: an object may end up in a log.
@dataclass(frozen=True, slots=True, repr=False)
class Peppers:
    """The secrets of guest references by key id, as "p1"; the newest is the last. Old ones are kept: without them
    nobody is known again from the time before."""

    by_id: dict[str, bytes]

    def __iter__(self) -> Iterator[tuple[str, bytes]]:
        """The newest first."""
        return reversed(self.by_id.items())

    @property
    def current(self) -> str:
        return next(reversed(self.by_id))


@dataclass(frozen=True, slots=True, repr=False)
class ServiceKeys:
    """`statements` signs what the service asserts, `booking` makes bookings comparable and not readable."""

    statements: SigningKey
    booking: bytes
    peppers: Peppers


def write_service_keys(path: Path) -> ServiceKeys:
    keys = ServiceKeys(SigningKey.generate(), os.urandom(_SECRET_SIZE), Peppers({"p1": os.urandom(_SECRET_SIZE)}))
    _write(path, _encode(keys))
    return keys


def read_service_keys(path: Path) -> ServiceKeys:
    text = _read(path)
    try:
        given = strict_json.loads(text)
        # Files of earlier versions have none.
        checked = _CHECKSUM in given
        keys = ServiceKeys(
            multikey.decode_secret(given["statements"]),
            base64.decode_hash(given["booking"]),
            Peppers({key_id: base64.decode_hash(pepper) for key_id, pepper in given["peppers"].items()}),
        )
        # Nothing else stands in it, the checksum is right, and every pepper has a number.
        if not all(map(_PEPPER_ID.fullmatch, keys.peppers.by_id or [""])) or _encode(keys, checked=checked) != text:
            raise ValueError
    except (Malformed, ValueError, KeyError, TypeError, AttributeError):
        raise Misconfigured(
            "key_unreadable",
            f"{path.name} does not hold the keys of a service, or was damaged: bring it back from a backup",
        ) from None
    return keys


def add_checksum(path: Path) -> None:
    """Give a file of an earlier version its checksum. Raises Misconfigured as `read_service_keys`, OSError when the
    folder cannot be written."""
    keys = read_service_keys(path)
    if _CHECKSUM not in strict_json.loads(_read(path)):
        _write(path, _encode(keys), replace=True)


def rotate_pepper(path: Path) -> Peppers:
    """A new pepper for all guest references from now on. Services take it when they start."""
    keys = read_service_keys(path)
    newest = max(int(key_id[1:]) for key_id in keys.peppers.by_id)
    peppers = Peppers({**keys.peppers.by_id, f"p{newest + 1}": os.urandom(_SECRET_SIZE)})
    _write(path, _encode(ServiceKeys(keys.statements, keys.booking, peppers)), replace=True)
    return peppers


def _encode(keys: ServiceKeys, *, checked: bool = True) -> str:
    secrets = {
        "statements": multikey.encode_secret(keys.statements),
        "booking": base64.encode(keys.booking),
        "peppers": {key_id: base64.encode(pepper) for key_id, pepper in keys.peppers.by_id.items()},
    }
    checksum = {_CHECKSUM: sha256(jcs.dumps(secrets)).hexdigest()} if checked else {}
    return json.dumps(secrets | checksum, indent=1)


def _write(path: Path, text: str, *, replace: bool = False) -> None:
    """Never over another key unless told: a lost log key is a lost log. The file is there whole or not at all."""
    # A name that nobody else has, so that nothing that lies there is written to.
    new = path.with_name(f"{path.name}.{os.urandom(8).hex()}.new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, f"{text}\n".encode())
        os.fsync(file)
        if replace:
            new.replace(path)
        else:
            os.link(new, path)
    finally:
        os.close(file)
        new.unlink(missing_ok=True)
    sync_folder(path.parent)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise Misconfigured("key_unreadable", f"{path.name} can be read by others: chmod 600 {path.name}")
        return path.read_text("ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured("key_unreadable", f"the key file {path.name} cannot be read: {error}") from None
