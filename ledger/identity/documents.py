"""Documents that say which keys speak for somebody: DID documents (W3C DID 1.0), and what issuers with an https address
publish of themselves or of one key (W3C Controlled Identifiers 1.0).

Only Ed25519 keys that may assert are of use here. A document may list whatever else; a key that cannot be read, is not
its owner's or tells its secret is not one of its keys.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.canon import multikey
from ledger.canon.times import parse_moment
from ledger.errors import BadKey, NotAccepted
from ledger.identity.did import Keys, key_of_jwk

MAX_METHODS = 100
# Of those, the keys that may assert: nobody signs with more, and all are remembered of a host.
MAX_KEYS = 16
_MULTIKEYS = ("Multikey", "Ed25519VerificationKey2020")
_JWKS = ("JsonWebKey", "JsonWebKey2020")
# As a proof can name it, and a database can keep it.
_NAME = re.compile(r"[!-~]{1,512}")


@dataclass(frozen=True, slots=True)
class Method:
    """A key under its name, which is absolute, and until when it counts."""

    id: str
    key: bytes
    until: datetime | None


@dataclass(frozen=True, slots=True)
class Document:
    """Who, and the keys that may assert for them."""

    id: str
    methods: tuple[Method, ...]

    def keys(self, now: datetime) -> Keys:
        """Those that have neither expired nor been revoked."""
        return {each.id: each.key for each in self.methods if each.until is None or now < each.until}


def read_document(value: Any, name: str) -> Document:
    """The document of `name`, a DID or an https address."""
    if not isinstance(value, dict) or value.get("id") != name:
        raise NotAccepted("did_document_invalid", f"the document of {name} is about somebody else: its id must be that")
    listed = {method.id: method for entry in _entries(value, "verificationMethod") for method in _methods(entry, name)}
    found: dict[str, Method] = {}
    for entry in _entries(value, "assertionMethod"):
        if isinstance(entry, str):
            named = _absolute(entry, name)
            found |= {named: listed[named]} if named in listed else {}
        for method in _methods(entry, name):
            if listed.get(method.id, method) != method:
                raise NotAccepted("did_document_invalid", f"{method.id} is the name of two keys")
            found[method.id] = method
    if len(found) > MAX_KEYS:
        raise NotAccepted("did_document_invalid", f"more than {MAX_KEYS} keys may assert for {name}")
    return Document(name, tuple(found.values()))


def read_key(value: Any, method: str, issuer: str, now: datetime) -> bytes:
    """The key of an https issuer that has a document of its own, at the address `method`."""
    if not isinstance(value, dict) or value.get("id") != method:
        raise NotAccepted("bad_verification_method", f"there is no key at {method}, or it has another name")
    if value.get("controller") != issuer:
        raise NotAccepted("issuer_key_mismatch", f"the key {method} is not controlled by {issuer}")
    for found in _methods(value, issuer):
        if found.until is None or now < found.until:
            return found.key
    raise NotAccepted("bad_verification_method", f"{method} is not an Ed25519 key of {issuer} that counts now")


def _entries(document: Mapping[str, Any], member: str) -> list[Any]:
    entries = document.get(member, [])
    if not isinstance(entries, list) or len(entries) > MAX_METHODS:
        raise NotAccepted("did_document_invalid", f"{member}: a list of at most {MAX_METHODS} expected")
    # Which of two keys a name means must not depend on who reads it.
    names = [_absolute(str(each.get("id")), document["id"]) for each in entries if isinstance(each, dict)]
    if len(set(names)) != len(names):
        raise NotAccepted("did_document_invalid", f"{member}: two keys have the same name")
    return entries


def _methods(entry: Any, owner: str) -> Iterator[Method]:
    """The key of an entry, if it is one of the owner's that can be used."""
    if not isinstance(entry, dict) or entry.get("controller") != owner or "secretKeyMultibase" in entry:
        return
    try:
        id_, kind = _absolute(entry["id"], owner), entry.get("type")
        if not _NAME.fullmatch(id_):
            return
        if owner.startswith("did:") and not id_.startswith(f"{owner}#"):
            return
        if kind in _MULTIKEYS:
            key = multikey.decode(entry["publicKeyMultibase"])
        elif kind in _JWKS:
            key = key_of_jwk(entry["publicKeyJwk"])
        else:
            return
        ends = [parse_moment(entry[name]) for name in ("expires", "revoked") if name in entry]
    except (BadKey, KeyError, TypeError, ValueError, AttributeError):
        return
    yield Method(id_, key, min(ends, default=None))


def _absolute(name: str, owner: str) -> str:
    return f"{owner}{name}" if name.startswith("#") else name
