"""Documents that say which keys speak for somebody: DID documents (W3C DID 1.0), and what issuers with an https address
publish of themselves or of one key (W3C Controlled Identifiers 1.0).

Of use here are Ed25519 keys that may assert, and X25519 keys to which private words are sealed. A document may list
whatever else; a key that cannot be read, is not its owner's or tells its secret is not one of its keys.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ledger.canon import multikey
from ledger.canon.times import parse_moment
from ledger.errors import BadKey, NotAccepted
from ledger.identity.did import Keys, agreement_key_of_jwk, key_of_jwk
from ledger.identity.sealing import check_key

MAX_METHODS = 100
# Of those, the keys that may assert: nobody signs with more, and all are remembered of a host.
MAX_KEYS = 16
_JWKS = ("JsonWebKey", "JsonWebKey2020")
# As a proof can name it, and a database can keep it.
_NAME = re.compile(r"[!-~]{1,512}")


@dataclass(frozen=True, slots=True)
class _Purpose:
    """What keys are for: the member that lists them, the types that have a multikey, where their secret would stand,
    and how to read either form."""

    member: str
    multikeys: tuple[str, ...]
    secrets: tuple[str, ...]
    of_multikey: Callable[[str], bytes]
    of_jwk: Callable[[object], bytes]


_ASSERTION = _Purpose(
    "assertionMethod",
    ("Multikey", "Ed25519VerificationKey2020"),
    ("secretKeyMultibase",),
    multikey.decode,
    key_of_jwk,
)
_AGREEMENT = _Purpose(
    "keyAgreement",
    ("Multikey", "X25519KeyAgreementKey2020"),
    ("secretKeyMultibase", "privateKeyMultibase", "secretKeyJwk", "privateKeyJwk"),
    lambda text: check_key(multikey.decode_agreement(text)),
    lambda jwk: check_key(agreement_key_of_jwk(jwk)),
)


@dataclass(frozen=True, slots=True)
class Method:
    """A key under its name, which is absolute, and until when it counts."""

    id: str
    key: bytes
    until: datetime | None

    def counts(self, now: datetime) -> bool:
        """It has neither expired nor been revoked."""
        return self.until is None or now < self.until


@dataclass(frozen=True, slots=True)
class Document:
    """Who, the keys that may assert for them, and those for what only they shall read. In the order of the document."""

    id: str
    methods: tuple[Method, ...]
    agreements: tuple[Method, ...] = ()

    def keys(self, now: datetime) -> Keys:
        """Those that may assert now."""
        return {each.id: each.key for each in self.methods if each.counts(now)}

    def agreement_keys(self, now: datetime) -> Keys:
        """Those to which something may be sealed now."""
        return {each.id: each.key for each in self.agreements if each.counts(now)}


def read_document(value: Any, name: str) -> Document:
    """The document of `name`, a DID or an https address."""
    if not isinstance(value, dict) or value.get("id") != name:
        raise NotAccepted("did_document_invalid", f"the document of {name} is about somebody else: its id must be that")
    found = _listed(value, _ASSERTION)
    if len(found) > MAX_KEYS:
        raise NotAccepted("did_document_invalid", f"more than {MAX_KEYS} keys may assert for {name}")
    return Document(name, tuple(found.values()), tuple(_agreements(value).values()))


def read_key(value: Any, method: str, issuer: str, now: datetime) -> bytes:
    """The key of an https issuer that has a document of its own, at the address `method`."""
    if not isinstance(value, dict) or value.get("id") != method:
        raise NotAccepted("bad_verification_method", f"there is no key at {method}, or it has another name")
    if value.get("controller") != issuer:
        raise NotAccepted("issuer_key_mismatch", f"the key {method} is not controlled by {issuer}")
    for found in _methods(value, issuer, _ASSERTION):
        if found.counts(now):
            return found.key
    raise NotAccepted("bad_verification_method", f"{method} is not an Ed25519 key of {issuer} that counts now")


def _listed(document: Mapping[str, Any], purpose: _Purpose) -> dict[str, Method]:
    """The keys for a purpose, by name: described where they are listed, or listed by the name of a method."""
    owner = document["id"]
    methods = _entries(document, "verificationMethod")
    known = {method.id: method for entry in methods for method in _methods(entry, owner, purpose)}
    found: dict[str, Method] = {}
    for entry in _entries(document, purpose.member):
        if isinstance(entry, str):
            named = _absolute(entry, owner)
            found |= {named: known[named]} if named in known else {}
        for method in _methods(entry, owner, purpose):
            if known.get(method.id, method) != method:
                raise NotAccepted("did_document_invalid", f"{method.id} is the name of two keys")
            found[method.id] = method
    return found


def _agreements(document: Mapping[str, Any]) -> dict[str, Method]:
    """None where they cannot be meant as they stand: that takes nothing from who signs."""
    try:
        found = _listed(document, _AGREEMENT)
    except NotAccepted:
        return {}
    # Nor if what has one of their names elsewhere is not the same key.
    for entry in (*_entries(document, "verificationMethod"), *_entries(document, "assertionMethod")):
        named = _absolute(str(entry.get("id")), document["id"]) if isinstance(entry, dict) else None
        if named in found and [found[named]] != [*_methods(entry, document["id"], _AGREEMENT)]:
            return {}
    return found


def _entries(document: Mapping[str, Any], member: str) -> list[Any]:
    entries = document.get(member, [])
    if not isinstance(entries, list) or len(entries) > MAX_METHODS:
        raise NotAccepted("did_document_invalid", f"{member}: a list of at most {MAX_METHODS} expected")
    # Which of two keys a name means must not depend on who reads it.
    names = [_absolute(str(each.get("id")), document["id"]) for each in entries if isinstance(each, dict)]
    if len(set(names)) != len(names):
        raise NotAccepted("did_document_invalid", f"{member}: two keys have the same name")
    return entries


def _methods(entry: Any, owner: str, purpose: _Purpose) -> Iterator[Method]:
    """The key of an entry, if it is one of the owner's that can be used for this."""
    if not isinstance(entry, dict) or entry.get("controller") != owner or any(s in entry for s in purpose.secrets):
        return
    try:
        id_, kind = _absolute(entry["id"], owner), entry.get("type")
        if not _NAME.fullmatch(id_):
            return
        if owner.startswith("did:") and not id_.startswith(f"{owner}#"):
            return
        if kind in purpose.multikeys:
            key = purpose.of_multikey(entry["publicKeyMultibase"])
        elif kind in _JWKS:
            key = purpose.of_jwk(entry["publicKeyJwk"])
        else:
            return
        ends = [parse_moment(entry[name]) for name in ("expires", "revoked") if name in entry]
    except (BadKey, KeyError, TypeError, ValueError, AttributeError):
        return
    yield Method(id_, key, min(ends, default=None))


def _absolute(name: str, owner: str) -> str:
    return f"{owner}{name}" if name.startswith("#") else name
