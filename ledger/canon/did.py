"""Decentralised identifiers in their one canonical spelling (protocol.md 1).

A host's reputation hangs on the bytes of its DID, so another spelling of the same DID is refused, never rewritten.
"""

import re
from functools import lru_cache

from ledger.canon import base58
from ledger.errors import BadDID, Malformed

MAX_BYTES = 256

_SEGMENT = re.compile(r"(?:[A-Za-z0-9._-]|%[0-9A-F]{2})+")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_NEEDLESS_ESCAPE = re.compile(r"%(?:2D|2E|3[0-9]|4[1-9A-F]|5[0-9A]|5F|6[1-9A-F]|7[0-9A])")


def check(did: object) -> str:
    """`did` itself if it is a did:web, did:key or did:jwk in canonical form, else BadDID."""
    if not isinstance(did, str) or not did.isascii() or len(did) > MAX_BYTES:
        raise BadDID(f"a DID is ASCII text of at most {MAX_BYTES} bytes")
    _check(did)
    return did


@lru_cache(maxsize=16_384)
def _check(did: str) -> None:
    """Remembered: an answer names its host in every event."""
    scheme, _, rest = did.partition(":")
    method, _, identifier = rest.partition(":")
    if scheme != "did" or method not in _METHODS:
        raise BadDID(f"not a did:web, did:key or did:jwk: {did[:60]!r}")
    for mark, name in (("/", "path"), ("?", "query"), ("#", "fragment")):
        if mark in identifier:
            raise BadDID(f"a DID has no {name} here: {did!r}")
    _METHODS[method](identifier)


def _check_web(identifier: str) -> None:
    host, *path = identifier.split(":")
    for segment in (host, *path):
        if not _SEGMENT.fullmatch(segment):
            raise BadDID(f"did:web segment {segment!r} is empty, or has a character or an escape that is not allowed")
        if _NEEDLESS_ESCAPE.search(segment):
            raise BadDID(f"did:web segment {segment!r} escapes a character that needs none")
    name, port_mark, port = host.partition("%3A")
    if not _HOST.fullmatch(name) or ".." in name:
        raise BadDID(f"did:web host {name!r} is not a lower-case host name without trailing dot")
    if port_mark and (not _PORT.fullmatch(port) or port == "443" or int(port) > 65535):
        raise BadDID(f"did:web port {port!r} is the default one, has a leading zero or is not a port")


def _check_key(identifier: str) -> None:
    try:
        canonical = "z" + base58.encode(base58.decode(identifier[1:]))
    except Malformed as error:
        raise BadDID(f"did:key: {error}") from None
    if identifier != canonical:
        raise BadDID("did:key is `z` and canonical base58btc")


def _check_jwk(identifier: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", identifier):
        raise BadDID("did:jwk is base64url without padding")


_METHODS = {"web": _check_web, "key": _check_key, "jwk": _check_jwk}
