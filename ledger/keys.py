"""Key files: one secret each, readable by their owner only.

The log key is in the text form of Go's note package (`PRIVATE+KEY+<name>+<id>+<base64>`), so that other tools can read
it; the statements key is a W3C Multikey secret in multibase.
"""

import os
from pathlib import Path

from nacl.signing import SigningKey

from ledger.canon import base58, base64
from ledger.errors import Malformed, Misconfigured
from ledger.log.mark import sync_folder
from ledger.log.note import ED25519, Verifier

_PREFIX = "PRIVATE+KEY+"
_ED25519_PUBLIC = b"\xed\x01"
_ED25519_SECRET = b"\x80\x26"


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
    _write(path, "z" + base58.encode(_ED25519_SECRET + bytes(key)))
    return key


def read_key(path: Path) -> SigningKey:
    text = _read(path)
    try:
        secret = base58.decode(text[1:])
    except Malformed:
        secret = b""
    if text[:1] != "z" or secret[:2] != _ED25519_SECRET or len(secret) != 34:
        raise Misconfigured("key_unreadable", f"{path.name} does not hold an Ed25519 secret as a multikey")
    return SigningKey(secret[2:])


def multikey(public_key: bytes) -> str:
    """An Ed25519 public key as DID documents write it."""
    return "z" + base58.encode(_ED25519_PUBLIC + public_key)


def _write(path: Path, text: str) -> None:
    """Never over another key: a lost log key is a lost log. The file is there whole or not at all."""
    new = path.with_name(path.name + ".new")
    file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(file, f"{text}\n".encode())
        os.fsync(file)
    finally:
        os.close(file)
    os.link(new, path)
    new.unlink()
    sync_folder(path.parent)


def _read(path: Path) -> str:
    try:
        if path.stat().st_mode & 0o077:
            raise Misconfigured("key_unreadable", f"{path.name} can be read by others: chmod 600 {path.name}")
        return path.read_text("ascii").rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise Misconfigured("key_unreadable", f"the key file {path.name} cannot be read: {error}") from None
